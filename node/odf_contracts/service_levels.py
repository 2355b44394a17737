"""The service levels of a contract file: how late data may be, and how often they come.

Source: Open Data Contract Standard v3, "Service-Level Agreement"; CONTRACT-6.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from odf_contracts.bounds import at_most
from odf_contracts.fields import ContractField
from odf_contracts.rules import ContractObject, ContractRule, MeasureKind, RuleMeasure, UncheckedLine

SECONDS: Final = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3_600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86_400),
    **dict.fromkeys(("y", "yr", "year", "years"), 365 * 86_400),
}
_KINDS: Final = {
    **dict.fromkeys(("latency", "ly", "freshness"), MeasureKind.LATENCY),
    **dict.fromkeys(("frequency", "fy"), MeasureKind.GAP),
}
_WORDS: Final = (
    *("id", "property", "value", "valueExt", "unit", "element", "driver", "description", "scheduler", "schedule"),
    "customProperties",
)


def read_service_levels(
    found: Mapping[str, ContractField], objects: Sequence[ContractObject]
) -> tuple[ContractObject, ...]:
    """Add the service levels of a contract to the tables that they are about.

    Raises:
        ManifestError: One cannot be followed, or is about a table or column that is not there.
    """
    added: dict[str, list[ContractRule | UncheckedLine]] = {each.name: [] for each in objects}
    default = found.get("slaDefaultElement")
    for item in found["slaProperties"].items() if "slaProperties" in found else ():
        each = item.entries(_WORDS)
        if "property" not in each or "value" not in each:
            item.reject("the fields property and value", "not both")
        named = each["property"].text()
        kind = _KINDS.get(named.lower())
        if kind is None:
            for said in added.values():
                said.append(UncheckedLine(item.line, item.path, f"no check of {named[:60]!r}"))
            continue
        seconds = each["value"].number() * _unit_of(item, each)
        if seconds <= 0:
            each["value"].reject("more than 0")
        of = _find_element(each.get("element", default), objects)
        if of is None:
            for said in added.values():
                said.append(
                    UncheckedLine(item.line, item.path, "an element that is not in the schema of this contract")
                )
            continue
        name, column = of
        columns = () if column is None or kind is MeasureKind.GAP else (column,)
        rule = ContractRule(item.line, item.path, RuleMeasure(kind, columns), at_most(seconds), only_warns=True)
        for table, said in added.items():
            if name in {None, table}:
                said.append(rule)
    return tuple(
        replace(
            each,
            rules=(*each.rules, *(rule for rule in added[each.name] if isinstance(rule, ContractRule))),
            unchecked=(*each.unchecked, *(line for line in added[each.name] if isinstance(line, UncheckedLine))),
        )
        for each in objects
    )


def _unit_of(item: ContractField, each: Mapping[str, ContractField]) -> int:
    if "unit" not in each:
        item.reject("a field unit, such as d for days", "none")
    unit = each["unit"].text().lower()
    if unit not in SECONDS:
        each["unit"].reject("a unit of time", known=(*SECONDS,))
    return SECONDS[unit]


def _find_element(
    field: ContractField | None, objects: Sequence[ContractObject]
) -> tuple[str | None, str | None] | None:
    """Read ``table.column``, ``table`` or, where there is one table, ``column``.

    Returns:
        The table and column, None for any; None: it is not in the contract, as in the standard's own examples.
    """
    if field is None:
        return None, None
    first, _dot, named = field.text().partition(".")
    table = next((each for each in objects if first in {each.name, each.physical_name}), None)
    if table is None and not named and len(objects) == 1:
        table, named = objects[0], first
    if table is None:
        return None
    if not named:
        return table.name, None
    column = next((each.column for each in table.columns if named in {each.name, each.column}), None)
    return None if column is None else (table.name, column)
