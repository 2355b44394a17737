"""The result of reading a source file: its records as a table of values, and what is known about the others.

A read step writes one Parquet file with the column `record` (number of the record in the file, from 1, ascending) and
one column per field of the schema, named by position (`v0`, `v1`, …) because a source may use any name. Records that do
not have the shape of a record (wrong number of fields, broken JSON, not UTF-8) are not in it; they are `broken`. Those
whose texts are no values of the schema are `unconverted`.

Source: spec/ingest.md ING-1.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from odf_engines.records.carriers import carrier_of

RECORD = "record"

ERRORS = "errors"
ERRORS_TYPE = pa.list_(pa.struct([(name, pa.string()) for name in ("message", "column", "value", "expected", "code")]))

BROKEN_RECORD = "broken-record"
"""The code of what cannot be taken apart."""

NULL, FORM, MISFIT = "null", "form", "misfit"
"""Codes of values: none where one is required, of another form, of the form and not in the type."""

# Rows of one row group: small enough that a few fit a 1 GiB heap, large enough that Spark can split a file.  # guess
ROW_GROUP_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class OriginalRecord:
    """The bytes of a record as they stand in the source.

    Attributes:
        record: Its number, from 1; a CSV header is not counted.
        line: The line it begins on, from 1; None where a source has no lines.
        raw: Its bytes, without the line end.
    """

    record: int
    line: int | None
    raw: bytes


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong with a record.

    Attributes:
        message: Why the record cannot be taken.
        column: Name of the column, or path into it; None if the record as a whole is wrong.
        value: Text of the value; None for null or for the whole record.
        expected: The type the column has.
        code: A word for programs (ING-6).
        plug_in: What found it; None: the step of its row.
        is_warning: It does not keep the record away.
    """

    message: str
    column: str | None = None
    value: str | None = None
    expected: str | None = None
    code: str = BROKEN_RECORD
    plug_in: str | None = None
    is_warning: bool = False


COLUMNS_TYPE = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))

Split = Callable[[Sequence[bytes]], pa.ListArray]


def columns_of(several: Iterable[Iterable[tuple[str, str | None]]]) -> pa.ListArray:
    """Give names and texts of the columns of some records; of a name that a record has twice, the last text."""
    return pa.array([list(dict(columns).items()) for columns in several], COLUMNS_TYPE)


def split_each(split: Callable[[bytes], Iterable[tuple[str, str | None]]]) -> Split:
    """Take records apart one by one."""
    return lambda raws: columns_of(map(split, raws))


def _split_nothing(raws: Sequence[bytes]) -> pa.ListArray:
    return columns_of(() for _ in raws)


@dataclass(frozen=True, slots=True)
class SourceRecords:
    """What a read step found.

    Attributes:
        path: Parquet file of the records that have the types of the schema.
        names: Names of the source columns.
        record_count: All records of the source, well-formed or not.
        broken: For each record that is not in the file, by number: everything that is wrong with it.
        unconverted: Parquet file of the records whose texts are no values of the schema, with all that is wrong with
            each and the values that it has; None if there are none.
        failed: Parquet file of the records that converters failed, with the values that they have; None: none did.
        ignored: How many records have a field that no column names, by its name (ING-49).
        find_originals: Gives the original bytes of records, asked for by ascending number.
        split: Takes the bytes of records apart into names and texts of their columns, as far as they can be.
    """

    path: Path
    names: tuple[str, ...]
    record_count: int
    broken: Mapping[int, tuple[FieldError, ...]]
    find_originals: Callable[[Iterable[int]], Iterator[OriginalRecord]]
    unconverted: Path | None = None
    failed: Path | None = None
    split: Split = _split_nothing
    ignored: Mapping[str, int] = field(default_factory=dict)


def value_name(index: int) -> str:
    """Name the column of converted rows that holds field `index` of the schema."""
    return f"v{index}"


def typed_schema(target: pa.Schema) -> pa.Schema:
    """Give the columns of a file of converted records, named by position, in carrier types."""
    fields = [pa.field(RECORD, pa.int64(), nullable=False), pa.field(ERRORS, ERRORS_TYPE)]
    fields += [pa.field(value_name(i), carrier_of(field.type)) for i, field in enumerate(target)]
    return pa.schema(fields)
