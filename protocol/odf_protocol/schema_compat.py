"""Comparing schemas: may a dataset go from one to the other, and does a slice fit.

**Evolution** (``find_incompatibility``): attributes may change, fields may change places, optional fields may come,
also inside structs and lists. No field may go, change its type, become optional or required, or come as required.

**Slices** (``find_slice_incompatibility``): same columns in the same order, of the same types; a column that the
dataset requires may not hold nulls. How strings, bytes and lists are laid out in memory is no part of ODF's types.

Absent time units and time zones stand for their defaults (milliseconds, UTC), so writing them out is no change.

Source: ODF "SetDataSchema", schema evolution; clauses SCHEMA-1 to SCHEMA-4 of ``spec/manifests.md``.
"""

from typing import Final

from odf_protocol.events import (
    DataField,
    DataSchema,
    DataType,
    DataTypeBinary,
    DataTypeDecimal,
    DataTypeDuration,
    DataTypeList,
    DataTypeMap,
    DataTypeOption,
    DataTypeStruct,
    DataTypeTime,
    DataTypeTimestamp,
    TimeUnit,
)
from odf_protocol.events.equality import means_the_same, with_defaults

_DEFAULT_UNIT: Final = TimeUnit.MILLISECOND


def is_same(previous: DataSchema, new: DataSchema) -> bool:
    """Whether both state the same: fields, order, types and attributes. Setting such a schema again changes nothing."""
    return means_the_same(previous, new)


def find_incompatibility(previous: DataSchema, new: DataSchema) -> str | None:
    """Say why a dataset cannot go from ``previous``, the schema in force, to ``new``; None if it can."""
    return _compare_fields(previous.fields, new.fields, "")


def find_slice_incompatibility(dataset: DataSchema, data: DataSchema) -> str | None:
    """Say why rows of schema ``data`` do not fit a dataset; None if they do.

    Columns go by their names, so rows that have a name twice fit none.
    """
    expected = [field.name for field in dataset.fields]
    found = [field.name for field in data.fields]
    if len(set(found)) != len(found):
        return f"a name stands twice: {', '.join(sorted({name for name in found if found.count(name) > 1}))}"
    if expected != found:
        return _describe_names(expected, found)
    for ours, theirs in zip(dataset.fields, data.fields, strict=True):
        reason = _find_misfit(ours.type, theirs.type, ours.name)
        if reason is not None:
            return reason
    return None


def describe_type(data_type: DataType) -> str:
    """Write a type for people, such as ``Option<List<Decimal(10, 2)>>``."""
    name = type(data_type).__name__.removeprefix("DataType")
    match with_defaults(data_type):
        case DataTypeOption(inner=inner):
            return f"Option<{describe_type(inner)}>"
        case DataTypeList(item_type=item_type, fixed_length=fixed_length):
            length = "" if fixed_length is None else f", {fixed_length}"
            return f"List<{describe_type(item_type)}{length}>"
        case DataTypeMap(key_type=key_type, value_type=value_type):
            return f"Map<{describe_type(key_type)}, {describe_type(value_type)}>"
        case DataTypeStruct(fields=fields):
            return f"Struct<{', '.join(f'{field.name}: {describe_type(field.type)}' for field in fields)}>"
        case DataTypeDecimal(precision=precision, scale=scale):
            return f"Decimal({precision}, {scale})"
        case DataTypeTimestamp(unit=unit, timezone=timezone):
            return f"Timestamp({(unit or _DEFAULT_UNIT).text}, {timezone})"
        case DataTypeTime(unit=unit) | DataTypeDuration(unit=unit):
            return f"{name}({(unit or _DEFAULT_UNIT).text})"
        case DataTypeBinary(fixed_length=int(size_bytes)):
            return f"{name}({size_bytes})"
    return name


def _compare_fields(previous: tuple[DataField, ...], new: tuple[DataField, ...], parent: str) -> str | None:
    before = {field.name: field for field in previous}
    after = {field.name: field for field in new}
    for fields, by_name in ((previous, before), (new, after)):
        if len(fields) != len(by_name):
            return f"{parent or 'the schema'} names a field twice"
    for name, field in before.items():
        path = f"{parent}.{name}" if parent else name
        if name not in after:
            return f"field {path} was removed"
        reason = _compare_types(field.type, after[name].type, path)
        if reason is not None:
            return reason
    for name, field in after.items():
        if name not in before and not isinstance(field.type, DataTypeOption):
            path = f"{parent}.{name}" if parent else name
            return f"field {path} was added as required; a new field has to be optional"
    return None


def _compare_types(previous: DataType, new: DataType, path: str) -> str | None:
    was_optional, is_optional = isinstance(previous, DataTypeOption), isinstance(new, DataTypeOption)
    if was_optional != is_optional:
        return f"field {path} became {'optional' if is_optional else 'required'}"
    before, after = with_defaults(_without_option(previous)), with_defaults(_without_option(new))
    match before, after:
        case DataTypeStruct(fields=old_fields), DataTypeStruct(fields=new_fields):
            return _compare_fields(old_fields, new_fields, path)
        case DataTypeList(), DataTypeList() if before.fixed_length == after.fixed_length:
            return _compare_types(before.item_type, after.item_type, f"{path}[]")
    if _comparable_without_attributes(before) != _comparable_without_attributes(after):
        return f"field {path} changed its type from {describe_type(before)} to {describe_type(after)}"
    return None


def _comparable_without_attributes(data_type: DataType) -> object:
    match data_type:
        case DataTypeMap(key_type=key_type, value_type=value_type, keys_sorted=keys_sorted):
            key, value = map(_comparable_without_attributes, (key_type, value_type))
            return "Map", key, value, keys_sorted
        case DataTypeOption(inner=inner):
            return "Option", _comparable_without_attributes(inner)
        case DataTypeList(item_type=item_type, fixed_length=fixed_length):
            return "List", _comparable_without_attributes(item_type), fixed_length
        case DataTypeStruct(fields=fields):
            return "Struct", tuple((field.name, _comparable_without_attributes(field.type)) for field in fields)
    return data_type


def _find_misfit(dataset: DataType, data: DataType, path: str) -> str | None:
    if isinstance(data, DataTypeOption) and not isinstance(dataset, DataTypeOption):
        return f"column {path} may hold nulls and the dataset requires values"
    ours, theirs = with_defaults(_without_option(dataset)), with_defaults(_without_option(data))
    match ours, theirs:
        case DataTypeStruct(fields=our_fields), DataTypeStruct(fields=their_fields):
            our_schema, their_schema = DataSchema(fields=our_fields), DataSchema(fields=their_fields)
            reason = find_slice_incompatibility(our_schema, their_schema)
            return None if reason is None else f"{reason} (inside {path})"
        case DataTypeList(), DataTypeList() if ours.fixed_length == theirs.fixed_length:
            return _find_misfit(ours.item_type, theirs.item_type, f"{path}[]")
        case DataTypeMap(), DataTypeMap() if ours.keys_sorted == theirs.keys_sorted:
            keys = _find_misfit(ours.key_type, theirs.key_type, f"{path} (keys)")
            return keys or _find_misfit(ours.value_type, theirs.value_type, f"{path} (values)")
    if ours != theirs:
        return f"column {path} is {describe_type(theirs)} and the dataset has {describe_type(ours)}"
    return None


def _describe_names(expected: list[str], found: list[str]) -> str:
    missing = [name for name in expected if name not in found]
    added = [name for name in found if name not in expected]
    if missing:
        return f"column {missing[0]} is missing"
    if added:
        return f"column {added[0]} is not in the dataset's schema"
    return f"columns are in another order: expected {', '.join(expected)}; found {', '.join(found)}"


def _without_option(data_type: DataType) -> DataType:
    while isinstance(data_type, DataTypeOption):
        data_type = data_type.inner
    return data_type
