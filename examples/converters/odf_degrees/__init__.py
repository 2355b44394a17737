"""Coordinates in degrees, minutes and seconds, made decimal."""

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.conversion.contract import Converted, Converter, ConverterContext
from odf_engines.validation.columns import ColumnPath

_FORM = re.compile(r"""([0-9]{1,3})°(?:([0-5]?[0-9])'(?:([0-5]?[0-9](?:\.[0-9]+)?)")?)?([NSEW])""")


class Degrees(Converter):
    """Texts like 46°57'N as numbers, south and west below zero."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        column: str

    def __init__(self, parameters: Parameters, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        self._path = ColumnPath.find(context.schema, parameters.column)
        self._index = context.schema.get_field_index(self._path.column)
        self._schema = context.schema.set(self._index, pa.field(parameters.column, pa.float64()))

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def convert(self, rows: pa.RecordBatch) -> Converted:
        found = self._path.read(pa.Table.from_batches([rows]))
        numbers = pa.array([decimal_degrees(text) for text in found.values.to_pylist()], pa.float64())
        is_bad = pa.array([number is None for number in numbers.to_pylist()])
        fault = found.fault(pc.and_(is_bad, found.values.is_valid()), code="degrees", message="no coordinate")
        return Converted(rows.set_column(self._index, self._schema.field(self._index), numbers), (fault,))


def decimal_degrees(text: str | None) -> Any:
    """Read one coordinate; None where it is none."""
    match = None if text is None else _FORM.fullmatch(text)
    if match is None:
        return None
    degrees, minutes, seconds, side = match.groups(default="0")
    number = int(degrees) + int(minutes) / 60 + float(seconds) / 3600
    if number > (90 if side in "NS" else 180):
        return None
    return -number if side in "SW" else number
