"""How a Parquet file, which says its columns itself, is to be read: by ODF's read step.

Source: clauses ING-3 in ``spec/ingest.md`` and ING-24 in ``spec/plug-ins/drafts.md``.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.readers.contract import BrokenFileError
from odf_engines.records.carriers import TIMESTAMP
from odf_engines.sampling.plans import ReadPlan, Texts

_UNREADABLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, UnicodeDecodeError)
_NESTED = "nested"
_BATCH_ROWS = 1_024  # small, as the first ones may be all that is looked at


def plan_parquet(file: BinaryIO) -> ReadPlan:
    """Take the columns of the schema.

    Raises:
        BrokenFileError: It is no Parquet file.
    """
    try:
        found = pq.read_schema(file)
        types = {field.name: _arrow_type(field.type) for field in found}  # names that are no text fail only here
    except _UNREADABLE as error:
        raise BrokenFileError(f"not a readable Parquet file: {error}") from error
    if len(types) != len(found):
        raise BrokenFileError("two of its columns have one name")
    return ReadPlan(names=tuple(types), iter_texts=partial(_iter_parquet, types), types=types)


def _arrow_type(kind: pa.DataType) -> str:
    checks = pa.types
    if checks.is_decimal(kind):
        return f"Decimal({kind.scale})"
    for is_it, name in (
        (checks.is_boolean, "Bool"),
        (checks.is_integer, "Int64"),
        (checks.is_floating, "Float64"),
        (checks.is_date, "Date"),
        (checks.is_timestamp, "Timestamp"),
        (checks.is_nested, _NESTED),
    ):
        if is_it(kind):
            return name
    return "String"


def _iter_parquet(types: Mapping[str, str], file: BinaryIO) -> Iterator[Texts]:
    """Give the texts of rows; lists and structs tell no rows apart, so they are not read."""
    plain = [name for name, kind in types.items() if kind != _NESTED]
    try:
        with pq.ParquetFile(file, coerce_int96_timestamp_unit=TIMESTAMP.unit) as rows:
            for batch in rows.iter_batches(batch_size=_BATCH_ROWS, columns=plain, use_threads=False):
                texts = {name: _texts_of(batch.column(name)) for name in plain}
                unread = [_NESTED] * batch.num_rows
                yield from zip(*(texts.get(name, unread) for name in types), strict=True)
    except _UNREADABLE as error:
        raise BrokenFileError(f"not a readable Parquet file: {error}") from error


def _texts_of(column: pa.Array) -> list[str | None]:
    if pa.types.is_timestamp(column.type):
        # Without the zone, which is a name that nothing here has to know.
        column = column.cast(pa.timestamp("ms"), safe=False)
    return [None if value is None else str(value) for value in column.to_pylist()]
