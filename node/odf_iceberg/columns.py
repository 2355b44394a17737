"""Columns of a dataset as columns of an Iceberg table: their ids, their types, and where a slice has them.

Ids are given in the order in which the chain's schemas name columns, so a column keeps its id for ever (a chain only
ever gains optional columns, CHAIN-47). Slices have no ids in them: a table's name mapping says which name is which id.

Source: clauses ICEBERG-9 to ICEBERG-11 in ``spec/plug-ins/iceberg.md``; Iceberg table specification, "Schemas and Data
Types", "Column Projection" and "Name Mapping Serialization".
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from odf_iceberg.readable_types import readable_schema
from odf_protocol import events as odf

TableColumns = tuple[dict[str, Any], ...]
"""Fields of one of Iceberg's schemas, as its JSON has them."""

_PRIMITIVES: Final[dict[type[odf.DataType], str]] = {
    odf.DataTypeBool: "boolean",
    odf.DataTypeInt8: "int",
    odf.DataTypeInt16: "int",
    odf.DataTypeInt32: "int",
    odf.DataTypeInt64: "long",
    odf.DataTypeFloat32: "float",
    odf.DataTypeFloat64: "double",
    odf.DataTypeDate: "date",
    odf.DataTypeString: "string",
    odf.DataTypeTime: "time",
    odf.DataTypeTimestamp: "timestamptz",
}
"""Types that ``readable_schema`` leaves."""


@dataclass
class ColumnIds:
    """Ids of columns and of what is inside them, by path."""

    _ids: dict[tuple[str, ...], int] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The highest id that was given; 0 where none was."""
        return len(self._ids)

    def of(self, path: tuple[str, ...]) -> int:
        """Return the id of a path, a new one where it has none."""
        return self._ids.setdefault(path, len(self._ids) + 1)


def columns_of(schema: odf.DataSchema, ids: ColumnIds, left_out: Collection[str] = ()) -> TableColumns:
    """Make the columns of a table.

    Args:
        schema: Of the dataset.
        ids: Known ids; gains those of new columns.
        left_out: Columns that the table does not show.
    """
    columns = readable_schema(schema).fields
    # A column that is left out has an id all the same: both tables of a dataset give a column the same one.
    made = [(each.name, _field_of(each, (), ids)) for each in columns]
    return tuple(each for name, each in made if name not in left_out)


def _field_of(column: odf.DataField, path: tuple[str, ...], ids: ColumnIds) -> dict[str, Any]:
    inner, required = _unwrapped(column.type)
    place = (*path, column.name)
    return {"id": ids.of(place), "name": column.name, "required": required, "type": _type_of(inner, place, ids)}


def _unwrapped(data_type: odf.DataType) -> tuple[odf.DataType, bool]:
    return (data_type.inner, False) if isinstance(data_type, odf.DataTypeOption) else (data_type, True)


def _type_of(data_type: odf.DataType, path: tuple[str, ...], ids: ColumnIds) -> Any:
    match data_type:
        case odf.DataTypeDecimal(precision=precision, scale=scale):
            return f"decimal({precision}, {scale})"
        case odf.DataTypeBinary(fixed_length=length):
            return "binary" if length is None else f"fixed[{length}]"
        case odf.DataTypeStruct(fields=fields):
            return {"type": "struct", "fields": [_field_of(each, path, ids) for each in fields]}
        case odf.DataTypeList(item_type=item_type):
            place = (*path, "element")
            item, required = _unwrapped(item_type)
            element_id = ids.of(place)
            return {
                "type": "list",
                "element-id": element_id,
                "element": _type_of(item, place, ids),
                "element-required": required,
            }
        case odf.DataTypeMap(key_type=key_type, value_type=value_type):
            value, required = _unwrapped(value_type)
            key_id, value_id = ids.of((*path, "key")), ids.of((*path, "value"))
            return {
                "type": "map",
                "key-id": key_id,
                "key": _type_of(key_type, (*path, "key"), ids),
                "value-id": value_id,
                "value": _type_of(value, (*path, "value"), ids),
                "value-required": required,
            }
    return _PRIMITIVES[type(data_type)]


def name_mapping_of(schema: odf.DataSchema, ids: ColumnIds) -> str:
    """Give ``schema.name-mapping.default`` for files of a schema: every name in them, whatever a table shows.

    Args:
        schema: The newest of the dataset, which has every column that any slice has.
        ids: Known ids.
    """
    return json.dumps(_mappings_of(schema.fields, (), ids), separators=(",", ":"))


def _mappings_of(fields: Sequence[odf.DataField], path: tuple[str, ...], ids: ColumnIds) -> list[dict[str, Any]]:
    return [_mapping_of(each.name, each.type, path, ids) for each in fields]


def _mapping_of(name: str, data_type: odf.DataType, path: tuple[str, ...], ids: ColumnIds) -> dict[str, Any]:
    place = (*path, name)
    mapped: dict[str, Any] = {"field-id": ids.of(place), "names": [name]}
    match _unwrapped(data_type)[0]:
        case odf.DataTypeStruct(fields=fields):
            mapped["fields"] = _mappings_of(fields, place, ids)
        case odf.DataTypeList(item_type=item_type):
            mapped["fields"] = [_mapping_of("element", item_type, place, ids)]
        case odf.DataTypeMap(key_type=key_type, value_type=value_type):
            mapped["fields"] = [
                _mapping_of(part, kind, place, ids) for part, kind in (("key", key_type), ("value", value_type))
            ]
    return mapped
