"""A contract file of the Open Data Contract Standard, version 3, to the rules that are checked here.

The text is read by the reader of manifests, which bounds it and knows no anchors and tags. What says something about
data and is not checked is listed with its line; what says nothing about data (prices, teams, servers) is passed over.

Source: Open Data Contract Standard v3; CONTRACT-1 to CONTRACT-6, decision 0430.
"""

import re
from collections.abc import Mapping
from typing import Final

from odf_contracts.bounds import Bound, BoundTest, exactly
from odf_contracts.fields import ContractField
from odf_contracts.quality import read_rule
from odf_contracts.rules import (
    ContractColumn,
    ContractObject,
    ContractRule,
    DataContract,
    HoldAction,
    MeasureKind,
    RuleMeasure,
    UncheckedLine,
)
from odf_contracts.service_levels import read_service_levels
from odf_protocol.manifest.errors import ManifestError
from odf_protocol.manifest.yaml_text import parse_yaml

MAX_BYTES: Final = 1 << 20  # guess: a hundred tables of a hundred columns
MAX_RULES: Final = 2_000  # guess: each costs a part of a query for every version
MAX_BOUNDS: Final = 64  # guess: of one measure; each is compared with all others
ACTION: Final = "odf-node.action"
"""The custom property of a contract by which it says what a version does that breaks it."""
LOGICAL_TYPES: Final = (
    *("string", "date", "timestamp", "time", "number", "integer", "boolean", "object", "array", "map"),
)

_VERSION: Final = re.compile(r"v3\.(\d{1,3})\.\d{1,3}")
_TOP: Final = (
    *(
        "apiVersion",
        "kind",
        "id",
        "name",
        "version",
        "status",
        "tenant",
        "domain",
        "dataProduct",
        "description",
        "tags",
    ),
    *("servers", "schema", "price", "team", "roles", "slaDefaultElement", "slaProperties", "support"),
    *("authoritativeDefinitions", "customProperties", "contractCreatedTs"),
)
_ELEMENT: Final = (
    *("id", "name", "physicalName", "physicalType", "logicalType", "businessName", "description", "deprecated"),
    *("quality", "synonyms", "authoritativeDefinitions", "tags", "customProperties", "relationships", "semanticType"),
)
_OBJECT: Final = (*_ELEMENT, "dataGranularityDescription", "properties")
_PROPERTY: Final = (
    *_ELEMENT,
    *("classification", "criticalDataElement", "encryptedName", "enum", "examples", "items", "logicalTypeOptions"),
    *("map", "partitioned", "partitionKeyPosition", "primaryKey", "primaryKeyPosition", "required", "unique"),
    *("transformDescription", "transformLogic", "transformSourceObjects", "properties"),
)
_OPTIONS: Final = (
    *("minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("multipleOf", "minItems", "maxItems", "uniqueItems", "required", "minProperties", "maxProperties"),
    *("timezone", "defaultTimezone"),
)
_SAID_TWICE: Final = frozenset({MeasureKind.QUERY, MeasureKind.DRIFT})


def parse_contract(raw: bytes, source: str) -> DataContract:
    """Read a contract file.

    Args:
        raw: Of the file.
        source: Its name, for messages.

    Raises:
        ManifestError: It is too large, no contract of version 3, names what it does not have, or contradicts itself.
    """
    if len(raw) > MAX_BYTES:
        raise ManifestError(source, 1, 1, expected=f"at most {MAX_BYTES:,} bytes", found=f"{len(raw):,}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ManifestError(source, line, 1, expected="text in UTF-8", found="other bytes") from error
    documents = parse_yaml(text, source_name=source)
    if len(documents) != 1:
        raise ManifestError(source, 1, 1, expected="one contract", found=f"{len(documents)} documents")
    top = ContractField(source, documents[0], "")
    unknown = top.entries(None)
    version = _require(top, unknown, "apiVersion")
    if _VERSION.fullmatch(version.text()) is None:
        version.reject("v3.0.0 or a later version 3 of the Open Data Contract Standard")
    _require(top, unknown, "kind").text(("DataContract",))
    found = top.entries(_TOP)
    contract_id, contract_version = (_require(top, found, name).text() for name in ("id", "version"))
    objects = tuple(_read_object(each) for each in _require(top, found, "schema").items())
    if not objects:
        found["schema"].reject("at least one table", "none")
    names = [each.name for each in objects]
    if len({*names}) < len(names):
        found["schema"].reject("tables of different names", "two of one name")
    levels = sum(1 for _ in found["slaProperties"].items()) if "slaProperties" in found else 0
    if levels * len(objects) > MAX_RULES or sum(len(each.rules) for each in objects) + levels > MAX_RULES:
        top.reject(f"at most {MAX_RULES:,} rules", "more")
    objects = read_service_levels(found, objects)
    for each in objects:
        _require_consistent(source, each)
    return DataContract(contract_id, contract_version, _find_action(found), objects)


def _find_action(found: Mapping[str, ContractField]) -> HoldAction | None:
    for item in found["customProperties"].items() if "customProperties" in found else ():
        each = item.entries(None)
        if "property" in each and each["property"].text() == ACTION:
            return HoldAction(_require(item, each, "value").text(tuple(HoldAction)))
    return None


def _read_object(field: ContractField) -> ContractObject:
    found = field.entries(_OBJECT)
    name = _require(field, found, "name").text()
    properties = [*found["properties"].items()] if "properties" in found else []
    of_property = {}
    for each in properties:
        entries = each.entries(_PROPERTY)
        named = _require(each, entries, "name")
        if named.text() in of_property:
            named.reject("each property once", f"{named.text()!r} a second time")
        of_property[named.text()] = (each, entries)
    columns = {
        key: entries["physicalName"].text() if "physicalName" in entries else key
        for key, (_each, entries) in of_property.items()
    }
    said: list[ContractRule | UncheckedLine] = []
    keys: list[tuple[float, str, int]] = []
    for key, (each, entries) in of_property.items():
        said += _read_property(each, entries, columns, columns[key])
        if "primaryKey" in entries and entries["primaryKey"].flag():
            position = entries["primaryKeyPosition"].number() if "primaryKeyPosition" in entries else len(keys) + 1.0
            keys.append((position, columns[key], entries["primaryKey"].line))
    if keys:
        of = tuple(column for _position, column, _line in sorted(keys))
        measure = RuleMeasure(MeasureKind.DUPLICATES, of)
        said.append(ContractRule(keys[0][2], f"{field.path}.properties.primaryKey", measure, exactly(0)))
    said += [read_rule(each, columns, None) for each in found["quality"].items()] if "quality" in found else []
    said += _list_unchecked(found, ("relationships", "customProperties"))
    return ContractObject(
        name,
        found["physicalName"].text() if "physicalName" in found else None,
        tuple(ContractColumn(key, columns[key], each.line) for key, (each, _) in of_property.items()),
        tuple(each for each in said if isinstance(each, ContractRule)),
        tuple(each for each in said if isinstance(each, UncheckedLine)),
    )


def _read_property(
    field: ContractField, found: Mapping[str, ContractField], columns: Mapping[str, str], column: str
) -> list[ContractRule | UncheckedLine]:
    said: list[ContractRule | UncheckedLine] = []
    logical = (found["logicalType"].text(LOGICAL_TYPES),) if "logicalType" in found else ()
    said.append(ContractRule(field.line, field.path, RuleMeasure(MeasureKind.COLUMN, (column,), logical), exactly(1)))
    if "required" in found and found["required"].flag():
        said.append(_rule(found["required"], RuleMeasure(MeasureKind.NULLS, (column,)), exactly(0)))
    if "unique" in found and found["unique"].flag():
        said.append(_rule(found["unique"], RuleMeasure(MeasureKind.DUPLICATES, (column,)), exactly(0)))
    if "enum" in found:
        items = [*found["enum"].items()]
        values = tuple(_enum_text(each) for each in items)
        said.append(_rule(found["enum"], RuleMeasure(MeasureKind.INVALID, (column,), values), exactly(0)))
    if "logicalTypeOptions" in found:
        said += _read_options(found["logicalTypeOptions"], column)
    said += [read_rule(each, columns, column) for each in found["quality"].items()] if "quality" in found else []
    said += _list_unchecked(found, ("physicalType", "items", "map", "properties", "relationships", "customProperties"))
    return said


def _enum_text(field: ContractField) -> str:
    entries = field.entries(None) if hasattr(field.node, "entries") else None
    return field.text() if entries is None else _require(field, entries, "value").text()


def _read_options(field: ContractField, column: str) -> list[ContractRule | UncheckedLine]:
    found = field.entries(_OPTIONS)
    said: list[ContractRule | UncheckedLine] = []
    for low, high, is_length in (("minLength", "maxLength", True), ("minimum", "maximum", False)):
        low_field, high_field = found.get(low), found.get(high)
        if not is_length:
            low_field, high_field = found.get("exclusiveMinimum", low_field), found.get("exclusiveMaximum", high_field)
        if low_field is None and high_field is None:
            continue
        if any(each is not None and not _is_number(each) for each in (low_field, high_field)):
            said += [
                UncheckedLine(each.line, each.path, "a bound that is no number")
                for each in (low_field, high_field)
                if each is not None
            ]
            continue
        least = None if low_field is None else low_field.number()
        most = None if high_field is None else high_field.number()
        if least is not None and most is not None and least > most:
            assert high_field is not None
            high_field.reject(f"at least the {low} {least:g}", f"{most:g}")
        measure = RuleMeasure(
            MeasureKind.INVALID,
            (column,),
            low=least,
            high=most,
            is_length=is_length,
            excludes_low="exclusiveMinimum" in found and not is_length,
            excludes_high="exclusiveMaximum" in found and not is_length,
        )
        at = low_field or high_field
        assert at is not None
        said.append(_rule(at, measure, exactly(0)))
    if "pattern" in found:
        measure = RuleMeasure(MeasureKind.INVALID, (column,), pattern=found["pattern"].text())
        said.append(_rule(found["pattern"], measure, exactly(0)))
    rest = [name for name in _OPTIONS if name in {"format", "multipleOf"} or name.startswith(("minI", "maxI", "uni"))]
    return said + _list_unchecked(found, rest)


def _is_number(field: ContractField) -> bool:
    try:
        field.number()
    except ManifestError:
        return False
    return True


def _rule(field: ContractField, measure: RuleMeasure, bound: Bound) -> ContractRule:
    return ContractRule(field.line, field.path, measure, bound)


_WHY_UNCHECKED: Final = {
    "physicalType": "a type of another system; logicalType is checked",
    "relationships": "other tables are not looked at",
    "customProperties": "no check of that name; own measures are quality rules of type custom and engine odf-node",
    "items": "what lists contain",
    "map": "what maps contain",
    "properties": "what structs contain",
}


def _list_unchecked(found: Mapping[str, ContractField], names: "list[str] | tuple[str, ...]") -> list[UncheckedLine]:
    return [
        UncheckedLine(found[name].line, found[name].path, _WHY_UNCHECKED.get(name, "no check of that name"))
        for name in names
        if name in found
    ]


def _require_consistent(source: str, of: ContractObject) -> None:
    """Require that no two rules about one number leave none that both allow, and that they are not too many."""
    bounds: dict[tuple[RuleMeasure, bool], tuple[ContractRule, tuple[BoundTest, ...]]] = {}
    for rule in of.rules:
        if rule.measure.kind in _SAID_TWICE:
            continue
        first, tests = bounds.get((rule.measure, rule.is_percent), (rule, ()))
        both = Bound((*tests, *rule.bound.tests))
        if len(both.tests) > MAX_BOUNDS:
            expected, found = f"at most {MAX_BOUNDS} bounds of one measure, the first in line {first.line}", "more"
            raise ManifestError(source, rule.line, 1, path=rule.path, expected=expected, found=found)
        is_share = rule.is_percent and rule.measure.kind is not MeasureKind.OF_PREVIOUS  # which can be any percentage
        if both.is_empty(0, 100 if is_share else float("inf")):
            expected = (
                f"what line {first.line} allows too ({Bound(tests).describe()})" if tests else "a possible number"
            )
            raise ManifestError(source, rule.line, 1, path=rule.path, expected=expected, found=rule.bound.describe())
        bounds[rule.measure, rule.is_percent] = (first, both.tests)


def _require(field: ContractField, found: Mapping[str, ContractField], name: str) -> ContractField:
    if name not in found:
        field.reject(f"a field {name}", "none")
    return found[name]
