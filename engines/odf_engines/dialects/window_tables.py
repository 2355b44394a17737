"""Windows of streams that stand where a table does: ``FROM TABLE(TUMBLE(TABLE i, DESCRIPTOR(t), INTERVAL ...))``.

Such a table has each row with ``window_start`` and ``window_end``, by which the query groups. Spark says the same with
a window in GROUP BY (PLAN-17).
"""

from typing import TYPE_CHECKING, Any, Final, NoReturn

from sqlglot import exp
from sqlglot.tokens import TokenType

from odf_protocol.errors import MalformedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot.expressions import Expression

_SPANS: Final = {"TUMBLE": ("SIZE",), "HOP": ("SLIDE", "SIZE"), "SESSION": ("GAP",)}
"""Names of the intervals of each, in their order."""
_COLUMNS: Final = {"window_start": "start", "window_end": "end"}


def without_table_words(tokens: list[Any]) -> list[Any]:
    """Leave out the word ``TABLE`` before a call and before an argument, where the library cannot read it."""
    kinds = [token.token_type for token in tokens]
    before = [None, *kinds]
    after = [*kinds[1:], None]
    return [
        token
        for place, token in enumerate(tokens)
        if kinds[place] is not TokenType.TABLE
        or not (after[place] is TokenType.L_PAREN or before[place] in {TokenType.L_PAREN, TokenType.FARROW})
    ]


def put_window_tables(tree: "Expression", where: str) -> None:
    """Write tables of windows as groups by the call that they are: ``GROUP BY TUMBLE(t, INTERVAL '1' DAY)``.

    Raises:
        MalformedError: One that Spark has nothing for, with its place.
    """
    for select in [*tree.find_all(exp.Select)]:
        source = select.args.get("from_")
        if source is None:
            continue
        held = source.this
        table = held.this if isinstance(held, exp.Subquery) else held
        call = table.this if isinstance(table, exp.Table) else None
        if isinstance(call, exp.Anonymous) and call.name.upper() in {*_SPANS, "CUMULATE"}:
            _put(select, call, held.alias or table.alias, where)


def _put(select: exp.Select, call: exp.Anonymous, alias: str, where: str) -> None:
    kind = call.name.upper()
    if kind not in _SPANS:
        _refuse(where, "TUMBLE, HOP or SESSION", kind)
    names = ("DATA", "TIMECOL", *_SPANS[kind])
    given: dict[str, Any] = {}
    for name, each in zip(names, call.expressions, strict=False):
        is_named = isinstance(each, exp.Kwarg)
        given[each.name.upper() if is_named else name] = each.expression if is_named else each
    if set(given) != set(names) or len(call.expressions) != len(names):
        _refuse(where, f"{kind}({', '.join(names)})", call.sql())
    time = given["TIMECOL"]
    if isinstance(time, exp.Anonymous) and time.name.upper() == "DESCRIPTOR" and len(time.expressions) == 1:
        time = time.expressions[0]
    data = given["DATA"]
    alias = alias or data.alias
    data = data.this if isinstance(data, exp.Alias) else data
    if not isinstance(data, exp.Column) or not isinstance(time, exp.Column):
        _refuse(where, f"the name of a table and of its time column in {kind}", call.sql())
    group = select.args.get("group")
    keys = [] if group is None else group.expressions
    others = [key for key in keys if not _is_window_column(key)]
    if len(others) == len(keys):
        _refuse(where, f"{kind} in GROUP BY, or GROUP BY window_start, window_end", call.sql())
    if kind == "SESSION" and others:
        _refuse(where, "SESSION over all that GROUP BY has, as in GROUP BY SESSION(t, INTERVAL ...), key", call.sql())
    window = exp.Anonymous(this=kind, expressions=[time, *(given[name] for name in _SPANS[kind])])
    group.set("expressions", [window, *others])
    for column in [*_own_columns(select)]:
        name = column.name.lower()
        if name == "window_time":
            _refuse(where, "window_start or window_end", "window_time")
        if _is_window_column(column):
            end = exp.Anonymous(this=f"{kind}_{_COLUMNS[name].upper()}", expressions=[])
            is_shown = column.parent is select
            column.replace(exp.alias_(end, column.name) if is_shown else end)
    named = exp.Table(this=data.this, db=data.args.get("table"))
    select.set("from_", exp.From(this=exp.alias_(named, alias, table=True) if alias else named))


def _own_columns(select: exp.Select) -> "Iterator[exp.Column]":
    """Yield the columns that a query names itself, not those of queries inside it."""
    for node in select.walk(prune=lambda each: isinstance(each, exp.Select) and each is not select):
        if isinstance(node, exp.Column):
            yield node


def _is_window_column(node: "Expression") -> bool:
    return isinstance(node, exp.Column) and node.name.lower() in _COLUMNS


def _refuse(where: str, expected: str, found: str) -> NoReturn:
    raise MalformedError("query", where=where, expected=expected, found=found)
