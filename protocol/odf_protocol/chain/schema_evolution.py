"""Which changes of a schema old readers and old rows survive.

Allowed are other attributes, another order, and new optional fields, in nested structs as well. Not allowed are
removing a field, another type, becoming optional or required, and new required fields.

Source: CHAIN-47; ODF schema evolution rules for SetDataSchema.
"""

from collections.abc import Sequence

from odf_protocol.chain.rule import Breach
from odf_protocol.events import DataField, DataSchema, DataType, DataTypeList, DataTypeOption, DataTypeStruct
from odf_protocol.events.equality import with_defaults

__all__ = ["find_incompatibility"]


def find_incompatibility(old: DataSchema, new: DataSchema) -> Breach | None:
    """Find the first change that is not allowed; the breach names the field by its path."""
    return _compare_fields(with_defaults(old).fields, with_defaults(new).fields, "")


def _compare_fields(old: Sequence[DataField], new: Sequence[DataField], path: str) -> Breach | None:
    new_types = {field.name: field.type for field in new}
    for field in old:
        name = path + field.name
        if field.name not in new_types:
            return Breach(f"field {name}", "its removal")
        if breach := _compare_types(field.type, new_types[field.name], name):
            return breach
    known = {field.name for field in old}
    for field in new:
        if field.name not in known and not isinstance(field.type, DataTypeOption):
            return Breach(f"new field {path}{field.name} to be optional", field.type)
    return None


def _compare_types(old: DataType, new: DataType, name: str) -> Breach | None:
    match old, new:
        case DataTypeOption(), DataTypeOption():
            return _compare_types(old.inner, new.inner, name)
        case DataTypeStruct(), DataTypeStruct():
            return _compare_fields(old.fields, new.fields, f"{name}.")
        case DataTypeList(), DataTypeList() if old.fixed_length == new.fixed_length:
            return _compare_types(old.item_type, new.item_type, f"{name}[]")
    return None if old == new else Breach(f"{name}: {old}", new)
