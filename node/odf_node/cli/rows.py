"""Write rows (an Arrow table) as a table, CSV, JSON, Parquet or an Arrow file."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pyarrow.types as pt

from odf_node.cli.console import Console, ResultNotWrittenError
from odf_node.cli.row_formats import ARROW, PARQUET, check_output_path
from odf_node.errors import UsageError
from odf_node.wording import count_of
from odf_protocol.cell_values import cell_value, float_value

OPERATION_COLUMN: Final = "op"
OPERATIONS: Final = ("append", "retract", "correct from", "correct to")
"""By their numbers. Source: ODF OperationType."""


def write_rows(
    console: Console, rows: pa.Table, output_format: str, *, path: Path | None = None, empty: str = "no rows"
) -> None:
    """Write ``rows`` to ``path``, or to standard output where it is None.

    Raises:
        UsageError: ``path`` exists: results never replace files; or the form has no room for what the rows are.
        ResultNotWrittenError: There is no room, or no right to write there.
    """
    if path is None:
        _write(console, rows, output_format, empty)
        return
    check_output_path(path)
    try:
        _write_whole(rows, output_format, path)
    except (OSError, ResultNotWrittenError) as error:
        raise ResultNotWrittenError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    console.note(f"{count_of(rows.num_rows, 'row')} written to {path}")


def _write_whole(rows: pa.Table, output_format: str, path: Path) -> None:
    """Write a file under its name when it is whole: a part of an answer would be taken for the answer (QUERY-11)."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        part = Path(folder, "part")
        _write_file(rows, output_format, part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        check_output_path(path)
        part.rename(path)


def _write_file(rows: pa.Table, output_format: str, path: Path) -> None:
    if output_format == PARQUET:
        pq.write_table(rows, path)
    elif output_format == ARROW:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
    else:
        with path.open("x", encoding="utf-8", newline="") as file:
            _write(Console(out=file), rows, output_format, "no rows")


def _write(console: Console, rows: pa.Table, output_format: str, empty: str) -> None:
    match output_format:
        case "csv":
            sink = pa.BufferOutputStream()
            pa_csv.write_csv(_as_csv_has_it(rows), sink)
            console.raw(sink.getvalue().to_pybytes().decode())
        case "json":
            console.json([*_iter_plain(rows)])
        case "ndjson":
            for row in _iter_plain(rows):
                console.json(row, indent=None)
        case _:
            names = rows.schema.names
            numeric = [_is_number(field.type) for field in rows.schema]
            headings = {str(i): (">" if numeric[i] else "") + name for i, name in enumerate(names)}
            columns = [_values_of(column) for column in rows.columns]
            cells = [{str(i): _cell(column[row]) for i, column in enumerate(columns)} for row in range(rows.num_rows)]
            console.table(cells, headings, empty=empty)


def name_operations(rows: pa.Table) -> pa.Table:
    """Write what the numbers in the column ``op`` mean, where there is one and it has no others."""
    position = rows.schema.get_field_index(OPERATION_COLUMN)
    if position < 0 or rows.schema.field(position).type != pa.int32():
        return rows
    numbers = rows.column(position).to_pylist()
    if not all(number in range(len(OPERATIONS)) for number in numbers):
        return rows
    return rows.set_column(position, OPERATION_COLUMN, pa.array([OPERATIONS[n] for n in numbers], pa.string()))


def rows_of_texts(columns: Mapping[str, Sequence[str | None]]) -> pa.Table:
    """Make rows of columns of texts."""
    return pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})


def _values_of(column: pa.ChunkedArray) -> list[Any]:
    # Python has no nanoseconds; Arrow fails, or cuts them off where pandas is installed.
    if "[ns" not in str(column.type):
        # Nor has it years beyond 9999, or dictionaries with a key twice.
        with suppress(ValueError, OverflowError):
            return list(column.to_pylist())
    return [cell_value(cell) for cell in column]


def _as_csv_has_it(rows: pa.Table) -> pa.Table:
    """Write lists and structs as JSON, and times that Arrow would write as others as they are (ROWS-11)."""
    for index, field in enumerate(rows.schema):
        values = _values_of(rows.column(index)) if pt.is_nested(field.type) or pt.is_temporal(field.type) else []
        if pt.is_nested(field.type) or any(isinstance(value, str) for value in values):
            texts = [None if value is None else _cell(value) for value in values]
            rows = rows.set_column(index, pa.field(field.name, pa.string()), pa.array(texts, pa.string()))
    return rows


def _iter_plain(rows: pa.Table) -> Iterator[dict[str, Any]]:
    names = rows.schema.names
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"JSON has no two columns called {repeated[0]}; give each its own name with AS")
    columns = [_values_of(column) for column in rows.columns]
    for values in zip(*columns, strict=True):
        yield {name: _plain_value(value) for name, value in zip(names, values, strict=True)}


def _plain_value(value: Any) -> Any:
    """Keep what JSON has; times become RFC 3339, decimals exact text, bytes hexadecimal, NaN and infinities words."""
    if isinstance(value, float):
        return float_value(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return {name: _plain_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain_value(item) for item in value]
    return _cell(value)


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return _shortest(value).replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, dict | list):
        return json.dumps(_plain_value(value), ensure_ascii=False)
    return str(value)


def _shortest(moment: datetime) -> str:
    """Write a time with no more digits of a second than it has: 0, 3 or 6, as in the metadata."""
    if not moment.microsecond:
        return moment.isoformat(timespec="seconds")
    return moment.isoformat(timespec="microseconds" if moment.microsecond % 1000 else "milliseconds")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))
