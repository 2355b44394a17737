"""Rows that a merge refused, kept with the values that say why.

Source: spec/ingest.md ING-6.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from odf_engines.contract import IngestRequest
from odf_engines.errors import UnsuitableSourceError
from odf_engines.ingest.columns import Columns
from odf_engines.ingest.quarantined_rows import BATCH_ROWS, BadRows, QuarantinedRow, iter_batches
from odf_engines.records.source_records import FieldError, value_name


class RefusedRows:
    """Collects rows that are refused for one reason.

    Args:
        request: Of the ingest.
        columns: Of the rows.
        message: Why.
        indexes: Of the columns that are at fault.
        code: A word for programs.
    """

    def __init__(
        self, request: IngestRequest, columns: Columns, message: str, indexes: tuple[int, ...], code: str
    ) -> None:
        self._request, self._message, self._code = request, message, code
        self._fields = [(value_name(index), columns.schema.field(index)) for index in indexes]
        self._rows: list[pa.RecordBatch] = []

    def add(self, rows: pa.RecordBatch, number: str) -> None:
        """Add rows, whose numbers are in the column ``number``.

        Raises:
            UnsuitableSourceError: They are no records of the source as it is, so another engine says what they are.
        """
        if not rows.num_rows:
            return
        if self._request.prepared is not None or self._request.converters:
            raise UnsuitableSourceError(self._request.source_name)
        arrays = [rows.column(number), *(rows.column(name) for name, _ in self._fields)]
        self._rows.append(pa.record_batch(arrays, [str(place) for place in range(len(arrays))]))

    def iter_rows(self) -> BadRows:
        """Give them by number."""
        return iter_batches(self._iter_rows())

    def _iter_rows(self) -> Iterator[QuarantinedRow]:
        if not self._rows:
            return
        rows = pa.Table.from_batches(self._rows).sort_by("0")
        for batch in rows.to_batches(max_chunksize=BATCH_ROWS):
            for number, *values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                errors = (
                    FieldError(self._message, field.name, _text(value), str(field.type), self._code)
                    for value, (_, field) in zip(values, self._fields, strict=True)
                )
                yield QuarantinedRow(number, "merge", tuple(errors))


def _text(value: Any) -> str | None:
    """Give a value as the text that Spark's JSON has for it."""
    match value:
        case None | str():
            return value
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case bool() | int():
            return str(value)
    if hasattr(value, "hour"):
        return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z"
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return str(json.loads(str(value)))
