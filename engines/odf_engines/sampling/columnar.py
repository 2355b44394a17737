"""How files that say their columns themselves are to be read: Avro by its reader, Parquet by ODF's read step.

Source: clauses READ-4 and READ-6 in ``spec/readers.md``; ING-3 and ING-24 in ``spec/ingest.md``.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.readers.avro import Avro, open_blocks
from odf_engines.readers.contract import BrokenFileError
from odf_engines.records.carriers import TIMESTAMP
from odf_engines.sampling.plans import ReadPlan, Texts, texts_of

_UNREADABLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, UnicodeDecodeError)
_NESTED = "nested"
_BATCH_ROWS = 1_024  # small, as the first ones may be all that is looked at

_AVRO_TYPES = {
    "boolean": "Bool",
    "int": "Int64",
    "long": "Int64",
    "float": "Float64",
    "double": "Float64",
    "date": "Date",
    "timestamp-millis": "Timestamp",
    "timestamp-micros": "Timestamp",
}


def plan_avro(file: BinaryIO) -> ReadPlan:
    """Take the fields of the schema.

    Raises:
        BrokenFileError: It is no Avro file of records.
    """
    types = {str(each["name"]): _avro_type(each["type"]) for each in open_blocks(file).writer_schema["fields"]}
    reader = Avro(Avro.Parameters(), tuple(types))
    return ReadPlan(names=tuple(types), iter_texts=partial(texts_of, reader), types=types)


def _avro_type(declared: Any) -> str:
    if isinstance(declared, list):
        values = [each for each in declared if each != "null"]
        return _avro_type(values[0]) if len(values) == 1 else "String"
    if isinstance(declared, dict):
        if declared.get("logicalType") == "decimal" and isinstance(scale := declared.get("scale", 0), int):
            precision = declared.get("precision")
            return f"Decimal({scale})" if isinstance(precision, int) and 0 <= scale <= precision <= 18 else "String"
        return _AVRO_TYPES.get(str(declared.get("logicalType", declared.get("type"))), "String")
    return _AVRO_TYPES.get(str(declared), "String")


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
