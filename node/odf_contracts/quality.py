"""The ``quality`` lists of a contract file: metrics of the standard's library, queries, and this node's own measures.

Source: Open Data Contract Standard v3, "Data Quality"; CONTRACT-3 to CONTRACT-5.
"""

from collections.abc import Callable, Mapping
from typing import Final

from odf_contracts.bounds import OPERATORS, Bound, BoundTest, exactly
from odf_contracts.fields import ContractField
from odf_contracts.rules import ContractRule, MeasureKind, RuleMeasure, UncheckedLine

ENGINE: Final = "odf-node"
"""The ``engine`` of ``custom`` rules that this node checks."""

DRIFT_MEASURES: Final = ("psi", "jensenShannon", "kolmogorovSmirnov")

_LIBRARY: Final = ("rowCount", "nullValues", "missingValues", "invalidValues", "duplicateValues")
_OLD_METRICS: Final = {
    "countCheck": "rowCount",
    "nullCheck": "nullValues",
    "nullValue": "nullValues",
    "duplicateCount": "duplicateValues",
    "validValues": "invalidValues",
}
"""Names of version 3.0 of the standard, under ``rule``."""
_OWN: Final = (
    "eventTimeAhead",
    "calendarDaysMissing",
    "cumulativeFalls",
    "rowsOfPrevious",
    "rowsRewritten",
    "drift",
)
_ARGUMENTS: Final = ("missingValues", "validValues", "pattern", "properties")
_WORDS: Final = (
    *("id", "name", "description", "type", "metric", "rule", "arguments", "unit", "query", "engine", "implementation"),
    *("dimension", "method", "severity", "businessImpact", "customProperties", "tags", "authoritativeDefinitions"),
    *("scheduler", "schedule", "relationships", "validValues", "pattern"),
    *OPERATORS,
)
_OWN_WORDS: Final = ("metric", "tolerance", "by", "measure", "unit", *OPERATORS)
_ONLY_WARN: Final = frozenset({"warning", "warn", "info", "information", "low"})
_MAX_VALUES: Final = 10_000  # guess: a list of countries or currencies many times over


def read_rule(field: ContractField, columns: Mapping[str, str], column: str | None) -> ContractRule | UncheckedLine:
    """Read one entry of a ``quality`` list.

    Args:
        field: The entry.
        columns: The columns of the object, by the names of its properties.
        column: The one that the list is of; None: it is of the object.

    Raises:
        ManifestError: It cannot be followed.
    """
    found = field.entries(_WORDS)
    implied = "library" if {"metric", "rule"} & found.keys() else "sql" if "query" in found else "text"
    kind = found["type"].text(("text", "library", "sql", "custom")) if "type" in found else implied
    if kind == "text":
        return UncheckedLine(field.line, field.path, "a text for people")
    if kind != "custom" and not found.keys() & OPERATORS.keys():
        return UncheckedLine(field.line, field.path, f"no bound: none of {', '.join(OPERATORS)}")
    only_warns = "severity" in found and found["severity"].text().lower() in _ONLY_WARN
    description = found["description"].text() if "description" in found else ""
    if kind == "custom":
        return _read_custom(field, found, columns, column, (only_warns, description))
    if kind == "sql":
        query = _require(field, found, "query").text()
        measure = RuleMeasure(MeasureKind.QUERY, () if column is None else (column,), (query,))
        bound = read_bound(field, found)
        return ContractRule(field.line, field.path, measure, bound, False, only_warns, description)
    key = "metric" if "metric" in found else "rule"
    named = _require(field, found, key)
    name = _OLD_METRICS.get(named.text(), named.text()) if key == "rule" else named.text(_LIBRARY)
    if name not in _LIBRARY:
        named.reject("one of " + ", ".join(_LIBRARY), known=_LIBRARY)
    measure = _library_measure(named, MeasureKind(name), _arguments(found), columns, column)
    is_percent = _is_percent(found)
    bound = read_bound(field, found, is_share=is_percent)
    return ContractRule(field.line, field.path, measure, bound, is_percent, only_warns, description)


def read_bound(
    field: ContractField, found: Mapping[str, ContractField], *, is_share: bool = False, default: Bound | None = None
) -> Bound:
    """Read the operators of a rule.

    Args:
        field: The rule.
        found: Its fields.
        is_share: The number is a percentage, which is 0 to 100.
        default: Where no operator is there; None: that is an error.

    Raises:
        ManifestError: There is none, it is no number, or no number would be allowed.
    """
    tests: list[BoundTest] = []
    for name in OPERATORS:
        if name not in found:
            continue
        each, count = found[name], OPERATORS[name][1]
        numbers = tuple(item.number() for item in each.items()) if count == 2 else (each.number(),)
        if len(numbers) != count:
            each.reject("two numbers")
        if count == 2 and numbers[0] > numbers[1]:
            each.reject("the smaller number first", f"{numbers[0]:g} to {numbers[1]:g}")
        tests.append(BoundTest(name, numbers))
    if not tests:
        if default is None:
            field.reject("one of " + ", ".join(OPERATORS), "none of them")
        return default
    bound = Bound(tuple(tests))
    if bound.is_empty(0 if is_share else float("-inf"), 100 if is_share else float("inf")):
        limits = "some share of 0 to 100 percent" if is_share else "some number"
        field.reject(f"a bound that allows {limits}", bound.describe())
    return bound


def read_columns(field: ContractField, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Read a list of names of columns, or one name.

    Raises:
        ManifestError: One is no property of the object.
    """
    items = [field] if not hasattr(field.node, "items") else [*field.items()]
    return tuple(columns[item.text(tuple(columns))] for item in items)


def _library_measure(
    named: ContractField,
    kind: MeasureKind,
    arguments: Mapping[str, ContractField],
    columns: Mapping[str, str],
    column: str | None,
) -> RuleMeasure:
    if kind is MeasureKind.ROW_COUNT:
        if column is not None:
            named.reject("a metric of a property", known=_LIBRARY[1:])
        return RuleMeasure(kind)
    if column is None:
        if kind is not MeasureKind.DUPLICATES:
            named.reject("rowCount or duplicateValues, which are of an object", known=("rowCount", "duplicateValues"))
        of = read_columns(_require(named, arguments, "properties"), columns)
        return RuleMeasure(kind, of)
    match kind:
        case MeasureKind.MISSING:
            texts, with_null = _texts(_require(named, arguments, "missingValues"))
            return RuleMeasure(kind, (column,), texts, with_null=with_null)
        case MeasureKind.INVALID:
            if not {"validValues", "pattern"} & arguments.keys():
                named.reject("an argument validValues or pattern, by which values are valid", "none of them")
            texts = _texts(arguments["validValues"])[0] if "validValues" in arguments else ()
            pattern = arguments["pattern"].text() if "pattern" in arguments else None
            return RuleMeasure(kind, (column,), texts, pattern)
    return RuleMeasure(kind, (column,))


def _read_custom(
    field: ContractField,
    found: Mapping[str, ContractField],
    columns: Mapping[str, str],
    column: str | None,
    said: tuple[bool, str],
) -> ContractRule | UncheckedLine:
    engine = _require(field, found, "engine")
    if engine.text() != ENGINE:
        return UncheckedLine(field.line, field.path, f"a rule of the engine {engine.text()[:60]!r}")
    given = _require(field, found, "implementation")
    own = given.entries(_OWN_WORDS)
    named = _require(given, own, "metric")
    kind = MeasureKind(named.text(_OWN))
    of_column = kind in {MeasureKind.FALLS, MeasureKind.DRIFT}
    if of_column and column is None:
        named.reject("a metric of an object; this one is of a property", known=_OWN[:2])
    if not of_column and column is not None:
        named.reject("a metric of a property; this one is of an object", known=_OWN[2:])
    is_percent = kind in {MeasureKind.OF_PREVIOUS, MeasureKind.REWRITTEN, MeasureKind.FALLS} or _is_percent(own)
    return ContractRule(
        field.line,
        field.path,
        _OWN_READERS[kind](given, own, columns, column),
        read_bound(
            given,
            own,
            is_share=is_percent and kind is not MeasureKind.OF_PREVIOUS,
            default=exactly(0) if kind in {MeasureKind.AHEAD, MeasureKind.DAYS_MISSING, MeasureKind.FALLS} else None,
        ),
        is_percent,
        *said,
    )


_OwnReader = Callable[[ContractField, Mapping[str, ContractField], Mapping[str, str], str | None], RuleMeasure]


def _read_ahead(
    _given: ContractField, own: Mapping[str, ContractField], _columns: Mapping[str, str], _of: str | None
) -> RuleMeasure:
    tolerance = own["tolerance"].number() if "tolerance" in own else 0.0
    if tolerance < 0:
        own["tolerance"].reject("a number of seconds, 0 or more")
    return RuleMeasure(MeasureKind.AHEAD, number=tolerance)


def _read_falls(
    _given: ContractField, own: Mapping[str, ContractField], columns: Mapping[str, str], of: str | None
) -> RuleMeasure:
    assert of is not None
    return RuleMeasure(MeasureKind.FALLS, (of, *(read_columns(own["by"], columns) if "by" in own else ())))


def _read_drift(
    given: ContractField, own: Mapping[str, ContractField], _columns: Mapping[str, str], of: str | None
) -> RuleMeasure:
    assert of is not None
    return RuleMeasure(MeasureKind.DRIFT, (of,), (_require(given, own, "measure").text(DRIFT_MEASURES),))


def _read_plain(
    given: ContractField, own: Mapping[str, ContractField], _columns: Mapping[str, str], _of: str | None
) -> RuleMeasure:
    return RuleMeasure(MeasureKind(_require(given, own, "metric").text()))


_OWN_READERS: Final[dict[MeasureKind, _OwnReader]] = {
    MeasureKind.AHEAD: _read_ahead,
    MeasureKind.DAYS_MISSING: _read_plain,
    MeasureKind.FALLS: _read_falls,
    MeasureKind.OF_PREVIOUS: _read_plain,
    MeasureKind.REWRITTEN: _read_plain,
    MeasureKind.DRIFT: _read_drift,
}


def _arguments(found: Mapping[str, ContractField]) -> dict[str, ContractField]:
    """Give the arguments of a rule; examples of the standard have some of them beside ``arguments``."""
    beside = {name: found[name] for name in _ARGUMENTS if name in found}
    return beside | (found["arguments"].entries(_ARGUMENTS) if "arguments" in found else {})


def _texts(field: ContractField) -> tuple[tuple[str, ...], bool]:
    items = [*field.items()]
    if len(items) > _MAX_VALUES:
        field.reject(f"at most {_MAX_VALUES:,} values", f"{len(items):,}")
    return tuple(each.text() for each in items if not each.is_null), any(each.is_null for each in items)


def _is_percent(found: Mapping[str, ContractField]) -> bool:
    return "unit" in found and found["unit"].text(("rows", "percent")) == "percent"


def _require(field: ContractField, found: Mapping[str, ContractField], name: str) -> ContractField:
    if name not in found:
        field.reject(f"a field {name}", "none")
    return found[name]
