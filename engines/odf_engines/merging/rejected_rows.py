"""Rows that a merge rejected, kept with the values that say why.

Source: spec/ingest.md ING-6.
"""

import base64
import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.contract import IngestRequest
from odf_engines.ingest.columns import Columns
from odf_engines.ingest.quarantined_rows import BATCH_ROWS, BadRows, QuarantinedRow, iter_batches
from odf_engines.records.carriers import from_carrier
from odf_engines.records.source_records import FieldError, value_name
from odf_protocol.cell_values import cell_value


class RejectedRows:
    """Collects rows that are rejected for one reason.

    Args:
        request: Of the ingest; rows that a query made of its source are no records, and stand as JSON.
        columns: Of the rows.
        message: Why.
        indexes: Of the columns that are at fault.
        code: A word for programs.
    """

    def __init__(
        self, request: IngestRequest, columns: Columns, message: str, indexes: tuple[int, ...], code: str
    ) -> None:
        self._are_records, self._message, self._code = request.prepared is None, message, code
        self._at_fault = [columns.schema.field(index) for index in indexes]
        kept = indexes if self._are_records else range(len(columns.schema))
        self._fields = [(value_name(index), columns.schema.field(index)) for index in kept]
        self._rows: list[pa.RecordBatch] = []

    def add(self, rows: pa.RecordBatch, number: str) -> None:
        """Add rows, whose numbers are in the column ``number``."""
        if rows.num_rows:
            arrays = [rows.column(number), *(rows.column(name) for name, _ in self._fields)]
            self._rows.append(pa.record_batch(arrays, [str(place) for place in range(len(arrays))]))

    def iter_rows(self) -> BadRows:
        """Give them by number."""
        return iter_batches(self._iter_rows())

    def _iter_rows(self) -> Iterator[QuarantinedRow]:
        if not self._rows:
            return
        table = pa.Table.from_batches(self._rows)
        rows = table.take(pc.sort_indices(table.column(0)))
        for batch in rows.to_batches(max_chunksize=BATCH_ROWS):
            numbers, *columns = batch.columns
            values = {
                field.name: from_carrier(column, field.type)
                for column, (_, field) in zip(columns, self._fields, strict=True)
            }
            for place, number in enumerate(numbers.to_pylist()):
                errors = tuple(
                    FieldError(self._message, field.name, _text(values[field.name][place]), str(field.type), self._code)
                    for field in self._at_fault
                )
                if self._are_records:
                    yield QuarantinedRow(number, "merge", errors)
                else:
                    row = {name: cell_value(column[place]) for name, column in values.items()}
                    yield QuarantinedRow(None, "merge", errors, json.dumps(row, ensure_ascii=False))


def _text(cell: pa.Scalar) -> str | None:
    """Return a value as text: times with milliseconds, bytes in Base64, lists and structs as their JSON."""
    value, types = cell_value(cell), pa.types
    if value is None:
        return None
    if types.is_timestamp(cell.type):
        found = cell.as_py()
        return f"{found:%Y-%m-%dT%H:%M:%S}.{found.microsecond // 1000:03d}Z"
    if types.is_binary(cell.type) or types.is_fixed_size_binary(cell.type):
        return base64.b64encode(cell.as_py()).decode("ascii")
    if types.is_decimal(cell.type):
        return str(json.loads(str(cell)))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
