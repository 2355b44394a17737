"""Columns of a dataset as columns of an Iceberg table: their ids, their types, and where a slice has them.

Ids are given in the order in which the chain's schemas name columns, so a column keeps its id for ever (a chain only
ever gains optional columns, CHAIN-47). Slices have no ids in them: a table's name mapping says which name is which id.

Source: clauses ICEBERG-9 to ICEBERG-12 in ``spec/plug-ins/iceberg.md``; Iceberg table specification, "Schemas and Data
Types", "Column Projection" and "Name Mapping Serialization".
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from odf_protocol import events as odf

MAX_DECIMAL_DIGITS: Final = 38
"""Source: Iceberg table specification, "Primitive Types"."""

_PRIMITIVES: Final[dict[type[odf.DataType], str]] = {
    odf.DataTypeBool: "boolean",
    odf.DataTypeInt8: "int",
    odf.DataTypeInt16: "int",
    odf.DataTypeInt32: "int",
    odf.DataTypeInt64: "long",
    odf.DataTypeUInt8: "int",
    odf.DataTypeUInt16: "int",
    odf.DataTypeFloat32: "float",
    odf.DataTypeFloat64: "double",
    odf.DataTypeDate: "date",
    odf.DataTypeString: "string",
}
_EXACT_TIMESTAMPS: Final = (None, odf.TimeUnit.SECOND, odf.TimeUnit.MILLISECOND, odf.TimeUnit.MICROSECOND)
"""Units that Parquet has, and that Iceberg's microseconds hold; Parquet keeps seconds as milliseconds."""


class _NoIcebergTypeError(Exception):
    """A type whose values in a Parquet file no reader of Iceberg reads as what they are."""


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


@dataclass(frozen=True, slots=True)
class TableColumns:
    """One schema of a table.

    Attributes:
        fields: Of Iceberg's schema, as its JSON has them.
        omitted: Names of columns that Iceberg has no type for.
    """

    fields: tuple[dict[str, Any], ...]
    omitted: tuple[str, ...]


def columns_of(schema: odf.DataSchema, ids: ColumnIds, left_out: Collection[str] = ()) -> TableColumns:
    """Make the columns of a table.

    Args:
        schema: Of the dataset.
        ids: Known ids; gains those of new columns.
        left_out: Columns that the table does not show.
    """
    fields, omitted = [], []
    for column in schema.fields:
        # A column that is left out has an id all the same: both tables of a dataset give a column the same one.
        ids.of((column.name,))
        if column.name in left_out:
            continue
        try:
            fields.append(_field_of(column, (), ids))
        except _NoIcebergTypeError:
            omitted.append(column.name)
    return TableColumns(tuple(fields), tuple(omitted))


def _field_of(column: odf.DataField, path: tuple[str, ...], ids: ColumnIds) -> dict[str, Any]:
    inner, required = _unwrapped(column.type)
    place = (*path, column.name)
    return {"id": ids.of(place), "name": column.name, "required": required, "type": _type_of(inner, place, ids)}


def _unwrapped(data_type: odf.DataType) -> tuple[odf.DataType, bool]:
    return (data_type.inner, False) if isinstance(data_type, odf.DataTypeOption) else (data_type, True)


def _type_of(data_type: odf.DataType, path: tuple[str, ...], ids: ColumnIds) -> Any:
    match data_type:
        case odf.DataTypeDecimal(precision=precision, scale=scale) if precision <= MAX_DECIMAL_DIGITS and scale >= 0:
            return f"decimal({precision}, {scale})"
        case odf.DataTypeTimestamp(unit=unit) if unit in _EXACT_TIMESTAMPS:
            return "timestamptz"
        case odf.DataTypeTime(unit=unit) if unit in _EXACT_TIMESTAMPS:
            return "time"
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
    found = _PRIMITIVES.get(type(data_type))
    if found is None:
        raise _NoIcebergTypeError
    return found


def name_mapping_of(schema: odf.DataSchema, ids: ColumnIds) -> str:
    """Give ``schema.name-mapping.default`` for files of a schema: every name in them, whatever a table shows.

    Args:
        schema: The newest of the dataset, which has every column that any slice has.
        ids: Known ids; gains those of columns that no table shows, as readers want one for each name.
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
