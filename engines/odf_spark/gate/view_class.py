"""What is known of an analysed query that is no map: whether its result can be kept up to date, and by which key.

A *maintained* view is any deterministic query over whole inputs. After every step its folded output is what the query
gives over the folded inputs, so all that is asked of it is that two of its results can be compared row by row.

Besides: in which columns of an input the rows are alike that one row of a result is made of. Rows that differ in them
never meet in a query, so a step changes only what is made of rows that are in these columns like one that it brings.

Source: clauses VIEW-1 to VIEW-4, VIEW-6, VIEW-10 and VIEW-13 in ``spec/extensions/maintained-views.md``; GATE-7.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_protocol.vocabulary import Vocabulary
from odf_spark.gate.map_class import no_event_time
from odf_spark.gate.trees import items, iter_plan, number_of, simple_name, view_name

_ROW_BY_ROW = frozenset({"Filter", "PipeOperator", "Sort", "SubqueryAlias", "WithCTE", "CTERelationDef"})
"""Plans whose rows are those below, under the same numbers of columns, and are there or not each by itself."""
_KEPT_SIDES = {
    "Inner": ("left", "right"), "Cross": ("left", "right"), "LeftOuter": ("left",), "RightOuter": ("right",),
    "LeftSemi": ("left",), "LeftAnti": ("left",), "ExistenceJoin": ("left",),
}  # fmt: skip
"""By the kind of a join its sides of which each row is joined, or is not, whatever other rows are on that side."""


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """What is known of an input that a query reads once.

    Attributes:
        names: Columns in which the rows are alike that meet.
        read: Columns that the query looks at.
    """

    names: tuple[str, ...]
    read: frozenset[str]


def find_group_columns(plan: Any, inputs: Collection[str]) -> dict[str, GroupColumns]:
    """Find what an analysed query groups each of its inputs by; inputs of which groups may mix any rows are left out.

    Args:
        plan: Analysed, over views that have the data columns of the inputs alone.
        inputs: Their names.
    """
    nodes = list(iter_plan(plan, inputs))
    reads = Counter(view_name(each) for each in nodes)
    tables = {int(each.id()): each.child() for each in nodes if simple_name(each) == "CTERelationDef"}
    uses = Counter(int(each.cteId()) for each in nodes if simple_name(each) == "CTERelationRef")
    once = {number: table for number, table in tables.items() if uses[number] == 1}
    looked_at = {int(each.exprId().id()) for node in nodes for each in _columns_read(node, is_last=node is plan)}
    found = {}
    for alias in inputs:
        view = None if reads[alias] != 1 else next(each for each in nodes if view_name(each) == alias)
        columns = None if view is None else _descend(plan, alias, None, once)
        if view is not None and columns:
            names = {number_of(each): str(each.name()) for each in items(view.output())}
            read = frozenset(name for number, name in names.items() if number in looked_at)
            found[alias] = GroupColumns(tuple(name for number, name in names.items() if number in columns), read)
    return found


def _columns_read(node: Any, *, is_last: bool) -> list[Any]:
    listed = items(node.references().toSeq())
    if is_last:
        listed += items(node.output())
    if simple_name(node) == "Distinct":
        listed += items(node.child().output())
    return listed


def _descend(node: Any, alias: str, columns: set[int] | None, once: Mapping[int, Any]) -> set[int] | None:
    """Follow columns of a plan down to the view of an input.

    Args:
        node: The plan.
        alias: Of the input, which is read in one place.
        columns: Numbers of columns of the plan in which rows are alike that meet above it; None where no rows do.
        once: Common table expressions that are used once, by their numbers.

    Returns:
        Numbers of columns of the input, None where it is not below, or where rows meet that are alike in none.
    """
    if columns is not None and not columns:
        return None
    below = None
    match simple_name(node):
        case "View" if view_name(node) == alias:
            return {number_of(each) for each in items(node.output())} if columns is None else columns
        case "View":
            below, columns = node.child(), _renamed_columns(node, node.child(), columns)
        case "CTERelationRef" if int(node.cteId()) in once:
            below = once[int(node.cteId())]
            columns = _renamed_columns(node, below, columns)
        case "Project":
            below, columns = node.child(), _passed_on(items(node.projectList()), columns)
        case "Aggregate":
            groups = _numbers(items(node.groupingExpressions()))
            passed = _passed_on(items(node.aggregateExpressions()), columns)
            below, columns = node.child(), groups if passed is None else groups & passed
        case "Window":
            parts = _numbers(items(node.partitionSpec()))
            below, columns = node.child(), parts if columns is None else parts & columns
        case "Distinct":
            listed = _numbers(items(node.output()))
            below, columns = node.child(), listed if columns is None else columns
        case "Join":
            sides = _KEPT_SIDES.get(simple_name(node.joinType()), ())
            found = (_descend(getattr(node, side)(), alias, _those_of(node, side, columns), once) for side in sides)
            return next((each for each in found if each), None)
        case "WithCTE":
            below = node.plan()
        case name if name in _ROW_BY_ROW:
            below = node.child()
    return None if below is None else _descend(below, alias, columns, once)


def _those_of(join: Any, side: str, columns: set[int] | None) -> set[int] | None:
    return None if columns is None else columns & _numbers(items(getattr(join, side)().output()))


def _renamed_columns(outer: Any, inner: Any, columns: set[int] | None) -> set[int] | None:
    if columns is None:
        return None
    pairs = zip(items(outer.output()), items(inner.output()), strict=True)
    return {number_of(below) for above, below in pairs if number_of(above) in columns}


def _passed_on(listed: list[Any], columns: set[int] | None) -> set[int] | None:
    """Return what columns of a list are below it, as far as it passes them on."""
    if columns is None:
        return None
    sources = [each.child() if simple_name(each) == "Alias" else each for each in listed if number_of(each) in columns]
    return _numbers(sources)


def _numbers(expressions: list[Any]) -> set[int]:
    return {number_of(each) for each in expressions if simple_name(each) == "AttributeReference"}


_UNCOMPARABLE = ("map<", "variant", "interval")
_ABOVE_GROUPS = frozenset({"Filter", "GlobalLimit", "LocalLimit", "PipeOperator", "Sort", "SubqueryAlias"})


class NoViewError(NotReproducibleError):
    """A query that could be repeated, and cannot be kept up to date."""


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """What is known about a maintained view.

    Attributes:
        key: Positions of the output columns that tell its rows apart; none of them where there is only one row, None
            where nothing is known.
        group_columns: By alias of an input, in which columns the rows are alike that meet (VIEW-13), where it is known.
    """

    key: tuple[int, ...] | None
    group_columns: Mapping[str, GroupColumns] = field(default_factory=dict)


def check_view(plan: Any, inputs: Mapping[str, Any], vocabulary: Vocabulary) -> ViewQuery:
    """Check an analysed plan over rows without the columns of the changelog.

    Args:
        plan: Analysed, over views that have the data columns of the inputs alone.
        inputs: Java structs of these columns, by alias.
        vocabulary: Of the output.

    Raises:
        NoViewError: Rows that cannot be compared, or what is not executed so far.
        InvalidQueryError: Output columns that a transform must not have, or must have.
    """
    for alias, struct in inputs.items():
        for name, kind in _types_of(list(struct.fields())):
            if any(each in kind for each in _UNCOMPARABLE):
                reason = f"column {name} is of type {kind}, so its rows cannot be compared with one another"
                raise NoViewError(
                    f"input {alias}", reason, f"a derivative that selects the columns of {alias} you need"
                )
    check_output_columns(plan, vocabulary)
    for name, kind in _types_of(items(plan.output())):
        if any(each in kind for each in _UNCOMPARABLE):
            reason = f"it is of type {kind}, so rows before and after a step cannot be compared"
            raise NoViewError(f"column {name}", reason, f"to_json({name}), or sort_array(map_entries({name}))")
    return ViewQuery(_find_key(find_groups(plan, inputs)), find_group_columns(plan, inputs))


def check_output_columns(plan: Any, vocabulary: Vocabulary) -> None:
    """Check the names of an output and its event time.

    Raises:
        InvalidQueryError: A column twice, one that every step makes by itself, or no event time.
    """
    names = [str(each.name()) for each in items(plan.output())]
    for name in names:
        if name in (vocabulary.offset, vocabulary.op, vocabulary.system_time):
            raise InvalidQueryError(f"the output must not contain {name}; every step makes its own")
        if names.count(name) > 1:
            raise InvalidQueryError(f"the output has more than one column {name}; give each its own name with AS")
    for attribute in items(plan.output()):
        if str(attribute.name()) == vocabulary.event_time:
            kind = str(attribute.dataType().typeName())
            if kind not in ("date", "timestamp", "timestamp_ntz"):
                raise InvalidQueryError(f"column {vocabulary.event_time}: expected a date or timestamp, found {kind}")
            return
    raise no_event_time(plan, vocabulary)


def _types_of(columns: list[Any]) -> list[tuple[str, str]]:
    return [(str(each.name()), str(each.dataType().catalogString())) for each in columns]


@dataclass(frozen=True, slots=True)
class Groups:
    """The outermost GROUP BY of a query.

    Attributes:
        aggregate: Its plan.
        columns: For each column of the query's output the one of the aggregate that it is, None for another value.
    """

    aggregate: Any
    columns: tuple[Any, ...]


def find_groups(plan: Any, inputs: Collection[str]) -> Groups | None:
    """Find the outermost GROUP BY of an analysed query, below lists, filters and sorts; None where there is none."""
    tables = {
        int(each.id()): each.child()
        for node in iter_plan(plan, inputs)
        if simple_name(node) == "WithCTE"
        for each in items(node.cteDefs())
    }
    columns: list[Any] = items(plan.output())
    while simple_name(plan) != "Aggregate":
        given: dict[int, Any] | None = None
        match simple_name(plan):
            case "Project":
                given, below = {number_of(each): _source_of(each) for each in items(plan.projectList())}, plan.child()
            case "CTERelationRef":
                below = tables[int(plan.cteId())]
                given = _renamed(plan, below)
            case "View" if view_name(plan) not in inputs:
                below = plan.child()
                given = _renamed(plan, below)
            case "WithCTE":
                below = plan.plan()
            case name if name in _ABOVE_GROUPS:
                below = plan.child()
            case _:
                return None
        if given is not None:
            columns = [None if each is None else given.get(number_of(each)) for each in columns]
        plan = below
    return Groups(plan, tuple(columns))


def _renamed(plan: Any, below: Any) -> dict[int, Any]:
    """Return the columns of a plan that stands under a name, by the numbers they have outside of it."""
    return {number_of(outer): inner for outer, inner in zip(items(plan.output()), items(below.output()), strict=True)}


def _source_of(expression: Any) -> Any:
    """Return the column that an item of a list passes on, None where it computes another value."""
    inner = expression.child() if simple_name(expression) == "Alias" else expression
    return inner if simple_name(inner) == "AttributeReference" else None


def _find_key(groups: Groups | None) -> tuple[int, ...] | None:
    """Find the columns of the output that a GROUP BY makes unique."""
    if groups is None:
        return None
    aggregate, columns = groups.aggregate, groups.columns
    made = {number_of(each): each for each in items(aggregate.aggregateExpressions())}
    key = []
    for group in items(aggregate.groupingExpressions()):
        for position, column in enumerate(columns):
            found = None if column is None else made.get(number_of(column))
            if found is not None and _is_group(found, group):
                key.append(position)
                break
        else:
            return None
    return tuple(key)


def _is_group(expression: Any, group: Any) -> bool:
    inner = expression.child() if simple_name(expression) == "Alias" else expression
    return bool(inner.semanticEquals(group) or expression.semanticEquals(group))
