"""Queries: tables, joins, groups and unions of a question, with columns by place and not by name.

Source: clause QUERY-8 in ``spec/query.md``; Spark SQL reference "SELECT".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlglot import expressions as exp

from odf_engines.contract import QueryTable
from odf_engines.datafusion.context import quoted
from odf_engines.datafusion.spark_questions.kinds import Kind, columns_of
from odf_engines.datafusion.spark_questions.terms import term_of
from odf_engines.datafusion.spark_questions.values import Term, cast, only
from odf_engines.errors import UnsuitableQueryError

__all__ = ["PLACE", "STATE_SUFFIX", "Part", "Reader", "Scope"]

STATE_SUFFIX: Final = "__state"
PLACE: Final = "place"
MOST_WRITTEN: Final = 1_000_000  # guess: characters; five times the longest question that is taken (GATE-15)
_SIDES: Final = ("LEFT", "RIGHT", "FULL")
_PARTS: Final = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "order", "limit")


@dataclass(frozen=True, slots=True)
class Part:
    """A query as DataFusion's SQL, whose columns are called ``c0``, ``c1`` and so on.

    Attributes:
        sql: It.
        names: Spark's names of the columns.
        kinds: Their types; None: one that the engines do not share.
        passes_rows: Whether its rows are those of one ordered table, one by one (ENGINE-17), or one row of none.
        has_place: Whether there is a column more, ``PLACE``, by which the rows of that table are ordered.
    """

    sql: str
    names: tuple[str, ...]
    kinds: tuple[Kind | None, ...]
    passes_rows: bool = False
    has_place: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean inside of one SELECT.

    Attributes:
        parts: By alias (None: it has none), and the alias that DataFusion hears.
    """

    parts: tuple[tuple[str | None, str, Part], ...]

    def find(self, table: str | None, name: str) -> Term:
        """Find a column.

        Raises:
            UnsuitableQueryError: There is none, there are several, or it is of a type that the engines do not share.
        """
        found = [
            (f"{alias}.c{place}", part.kinds[place])
            for known, alias, part in self.parts
            if table is None or known == table
            for place, each in enumerate(part.names)
            if each == name
        ]
        if len(found) != 1:
            raise UnsuitableQueryError(f"{len(found) or 'no'} columns called {name}")
        sql, kind = found[0]
        if kind is None:
            raise UnsuitableQueryError(f"the type of {name}")
        return Term(sql, kind, name)


@dataclass(slots=True)
class Reader:
    """Reads the queries of one question.

    What a question names once is written out wherever it is used, so that few words could stand for any number of
    them; how much is written out is bounded.

    Attributes:
        tables: All there are, by name.
        named: Queries that WITH names, and how often each was used.
    """

    tables: Mapping[str, QueryTable]
    named: dict[str, Part] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    _count: int = 0
    _written: int = 0

    def read(self, node: exp.Expression) -> Part:
        """Read a query inside of another one.

        Raises:
            UnsuitableQueryError: It has a part that is not known to mean the same to both engines.
        """
        if node.args.get("order") or node.args.get("limit"):
            raise UnsuitableQueryError("ORDER BY or LIMIT inside of a query")
        if isinstance(node, exp.Subquery):
            only(node, "this")
            return self.read(node.this)
        if isinstance(node, exp.Union):
            return self.read_union(node)
        if not isinstance(node, exp.Select):
            raise UnsuitableQueryError(node.key.upper())
        scope, items = self.read_select(node)
        return self.write_select(node, scope, items, ())

    def read_with(self, node: exp.Expression) -> None:
        """Read the queries that a question names first."""
        named = node.args.get("with_")
        if named is None:
            return
        only(named, "expressions")
        for each in named.expressions:
            only(each, "this", "alias")
            only(each.args["alias"], "this")
            name = each.alias
            if name in self.named:
                raise UnsuitableQueryError("WITH with a name twice")
            self.named[name] = self.read(each.this)

    def read_union(self, node: exp.Union) -> Part:
        """Read a union."""
        only(node, "this", "expression", "distinct", "with_", "order", "limit")
        self.read_with(node)
        first, second = self.read(node.this), self.read(node.expression)
        if first.kinds != second.kinds or None in first.kinds:
            raise UnsuitableQueryError("UNION of different types")
        if node.args["distinct"]:
            _refuse_floating(first.kinds, "UNION")
        word = "UNION" if node.args["distinct"] else "UNION ALL"
        # Without the places of rows, by which equal rows would differ.
        columns = ", ".join(f"c{place}" for place in range(len(first.kinds)))
        sides = [f"SELECT {columns} FROM ({each.sql}) AS side" for each in (first, second)]  # noqa: S608 - from parts
        return Part(f" {word} ".join(sides), first.names, first.kinds)

    def read_select(self, node: exp.Select) -> tuple[Scope, list[tuple[str, Term]]]:
        """Read what a SELECT is over, and its columns with their names."""
        only(node, *_PARTS)
        self.read_with(node)
        scope = Scope(tuple(self._iter_relations(node)))
        items = [pair for each in node.expressions for pair in _items_of(each, scope)]
        return scope, items

    def write_select(
        self, node: exp.Select, scope: Scope, items: list[tuple[str, Term]], hidden: tuple[Term, ...]
    ) -> Part:
        """Write a SELECT; ``hidden`` are more columns, ``k0``, ``k1`` and so on, to order it by."""
        terms = [term for _, term in items]
        columns = [f"{each.sql} AS c{place}" for place, each in enumerate(terms)]
        columns += [f"{each.sql} AS k{place}" for place, each in enumerate(hidden)]
        distinct = ""
        if node.args.get("distinct"):
            only(node.args["distinct"])
            _refuse_floating([each.kind for each in terms], "DISTINCT")
            distinct = "DISTINCT "
        aggregates = (exp.AggFunc, exp.Group, exp.Having)
        is_plain = not distinct and len(scope.parts) <= 1 and not any(_iter_own(node, aggregates))
        passes = is_plain and all(part.passes_rows for _, _, part in scope.parts)
        has_place = passes and bool(scope.parts) and scope.parts[0][2].has_place
        if has_place:
            columns.append(f"{scope.parts[0][1]}.{PLACE} AS {PLACE}")
        sql = f"SELECT {distinct}{', '.join(columns)}{self._from(node, scope)}"
        for key, word in (("where", "WHERE"), ("having", "HAVING")):
            if (condition := node.args.get(key)) is not None:
                only(condition, "this")
                test = term_of(condition.this, scope.find)
                if test.kind.name != "boolean":
                    raise UnsuitableQueryError(f"{word} of type {test.kind.name}")
                sql += f" {word} {test.sql}"
            if key == "where":
                sql += _group_of(node, scope, items)
        names, kinds = tuple(name for name, _ in items), tuple(each.kind for each in terms)
        return Part(sql, names, kinds, passes_rows=passes, has_place=has_place)

    def _iter_relations(self, node: exp.Select) -> "list[tuple[str | None, str, Part]]":
        source = node.args.get("from_")
        if source is None:
            if node.args.get("joins"):
                raise UnsuitableQueryError("JOIN without FROM")
            return []
        only(source, "this")
        return [self._relation(each) for each in (source.this, *(join.this for join in node.args.get("joins") or ()))]

    def _relation(self, node: exp.Expression) -> tuple[str | None, str, Part]:
        self._count += 1
        alias = f"r{self._count}"
        if (named := node.args.get("alias")) is not None:
            only(named, "this")
        if isinstance(node, exp.Subquery):
            only(node, "this", "alias")
            return (node.alias or None), alias, self.read(node.this)
        if not isinstance(node, exp.Table):
            raise UnsuitableQueryError(node.key.upper())
        only(node, "this", "alias")
        if not isinstance(node.this, exp.Identifier):
            raise UnsuitableQueryError("a function in FROM")
        name = node.name
        self.used.add(name)
        part = self.named.get(name) or self._table(name)
        self._written += len(part.sql)
        if self._written > MOST_WRITTEN:
            raise UnsuitableQueryError("a text as long as it is when its named queries are written out")
        return node.alias or node.name, alias, part

    def _table(self, name: str) -> Part:
        table, is_state = self.tables.get(name), False
        if table is None:
            table, is_state = self.tables.get(name.removesuffix(STATE_SUFFIX)), True
        if table is None or (is_state and not name.endswith(STATE_SUFFIX)):
            raise UnsuitableQueryError(f"no table called {name}")
        columns = columns_of(table)
        vocabulary = table.vocabulary
        if is_state:
            log = (vocabulary.offset, vocabulary.op, vocabulary.system_time)
            columns = {each: kind for each, kind in columns.items() if each not in log}
            # It is grouped by all its columns.
            _refuse_floating(list(columns.values()), f"{table.name}{STATE_SUFFIX}")
        source = quoted(f"{table.name}{STATE_SUFFIX}" if is_state else table.name)
        casts = [
            f"{quoted(each) if kind is None else cast(quoted(each), kind)} AS c{place}"
            for place, (each, kind) in enumerate(columns.items())
        ]
        if not table.is_changelog:
            raise UnsuitableQueryError("rows that are no dataset")
        if not is_state:
            casts.append(f"{quoted(vocabulary.offset)} AS {PLACE}")
        sql = f"SELECT {', '.join(casts)} FROM {source}"  # noqa: S608 - quoted names
        is_ordered = not is_state
        return Part(sql, tuple(columns), tuple(columns.values()), passes_rows=is_ordered, has_place=is_ordered)

    def _from(self, node: exp.Select, scope: Scope) -> str:
        if not scope.parts:
            return ""
        (_, alias, first), *others = scope.parts
        sql = f" FROM ({first.sql}) AS {alias}"
        joins = node.args.get("joins") or ()
        for place, (join, (_, alias, part)) in enumerate(zip(joins, others, strict=True)):
            only(join, "this", "side", "kind", "on")
            side, kind, on = join.side.upper(), join.kind.upper(), join.args.get("on")
            if kind == "CROSS" and not side and on is None:
                # A comma binds less than a join, and is read as a cross join.
                if len(joins) > place + 1 and any(each.kind.upper() != "CROSS" for each in joins[place + 1 :]):
                    raise UnsuitableQueryError("a join after a cross join")
                sql += f" CROSS JOIN ({part.sql}) AS {alias}"
                continue
            if on is None or kind not in {"", "INNER", "OUTER"} or side not in {"", *_SIDES}:
                raise UnsuitableQueryError(f"{side} {kind} JOIN".strip())
            condition = term_of(on, scope.find)
            if condition.kind.name != "boolean":
                raise UnsuitableQueryError("a join by no condition")
            sql += f" {side or 'INNER'} JOIN ({part.sql}) AS {alias} ON {condition.sql}"
        return sql


def _items_of(node: exp.Expression, scope: Scope) -> list[tuple[str, Term]]:
    """Give the columns that one item of a SELECT stands for."""
    table = node.args.get("table") if isinstance(node, exp.Column) else None
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        only(node.this if isinstance(node, exp.Column) else node)
        parts = [each for each in scope.parts if table is None or each[0] == table.name]
        if not parts or (table is not None and len(parts) > 1):
            raise UnsuitableQueryError("* of no table")
        return [(name, _whole(alias, part, place)) for _, alias, part in parts for place, name in enumerate(part.names)]
    if isinstance(node, exp.Alias):
        only(node, "this", "alias")
        return [(node.alias, term_of(node.this, scope.find))]
    term = term_of(node, scope.find)
    if term.name is None:
        raise UnsuitableQueryError("a column without a name of its own (AS)")
    return [(term.name, term)]


def _whole(alias: str, part: Part, place: int) -> Term:
    kind = part.kinds[place]
    if kind is None:
        raise UnsuitableQueryError(f"the type of {part.names[place]}")
    return Term(f"{alias}.c{place}", kind, part.names[place])


def _group_of(node: exp.Select, scope: Scope, items: list[tuple[str, Term]]) -> str:
    group = node.args.get("group")
    if group is None:
        return ""
    only(group, "expressions")
    keys = [_key_of(each, scope, items) for each in group.expressions]
    _refuse_floating([each.kind for each in keys], "GROUP BY")
    return f" GROUP BY {', '.join(each.sql for each in keys)}" if keys else ""


def _key_of(node: exp.Expression, scope: Scope, items: list[tuple[str, Term]]) -> Term:
    """Give what GROUP BY names: a place, a column of the tables, or else an alias."""
    if isinstance(node, exp.Literal):
        return item_at(node, items)
    if isinstance(node, exp.Column) and not node.args.get("table"):
        name = node.name
        if not any(each == name for _, _, part in scope.parts for each in part.names):
            found = [term for each, term in items if each == name]
            if len(found) == 1:
                return found[0]
    return term_of(node, scope.find)


def item_at(node: exp.Literal, items: list[tuple[str, Term]]) -> Term:
    """Give the column that a whole number names by its place.

    Raises:
        UnsuitableQueryError: There is none.
    """
    text = node.this
    if node.args["is_string"] or not text.isdecimal() or not 0 < int(text) <= len(items):
        raise UnsuitableQueryError("a place that no column has")
    return items[int(text) - 1][1]


def _iter_own(node: exp.Select, kinds: tuple[type[exp.Expression], ...]) -> list[exp.Expression]:
    """List parts of these kinds that belong to a SELECT itself."""
    own = [*node.expressions, *(node.args[key] for key in ("group", "having") if node.args.get(key))]
    return [found for each in own for found in each.find_all(*kinds)]


def _refuse_floating(kinds: "list[Kind | None] | tuple[Kind | None, ...]", what: str) -> None:
    if any(kind is None or kind.is_floating for kind in kinds):
        raise UnsuitableQueryError(f"{what} of floating-point numbers or of types that engines do not share")
