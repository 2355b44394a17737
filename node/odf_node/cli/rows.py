"""Write rows (an Arrow table) as a table, CSV, JSON or Parquet."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from odf_node.cli.console import Console
from odf_node.errors import UsageError
from odf_protocol.errors import UnavailableError

if TYPE_CHECKING:
    import pyarrow as pa


class ResultNotWrittenError(UnavailableError):
    """The file that was named for the result cannot be written; nothing of it is there."""


def write_rows(console: Console, rows: "pa.Table", output_format: str, *, path: Path | None = None) -> None:
    """Write ``rows`` to ``path``, or to standard output where it is None.

    Raises:
        UsageError: ``path`` exists: results never replace files.
        ResultNotWrittenError: There is no room, or no right to write there.
    """
    if path is None:
        _write(console, rows, output_format)
        return
    check_output_path(path)
    try:
        _write_file(rows, output_format, path)
    except OSError as error:
        # A file that holds a part of the answer would be taken for the answer.
        path.unlink(missing_ok=True)
        raise ResultNotWrittenError(f"{path}: cannot write the result: {error.strerror or error}") from error
    console.note(f"{rows.num_rows:,} rows written to {path}")


def check_output_path(path: Path) -> None:
    """Find out before long work whether its result can be put there.

    Raises:
        UsageError: Something is there already, or the folder is missing.
    """
    if path.exists():
        raise UsageError(f"{path} is there already; name another file or remove it")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")


def _write_file(rows: "pa.Table", output_format: str, path: Path) -> None:
    if output_format == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(rows, path)
        return
    with path.open("x", encoding="utf-8", newline="") as file:
        _write(Console(out=file), rows, output_format)


def _write(console: Console, rows: "pa.Table", output_format: str) -> None:
    match output_format:
        case "csv":
            import pyarrow as pa
            import pyarrow.csv as pa_csv

            sink = pa.BufferOutputStream()
            pa_csv.write_csv(rows, sink)
            console.raw(sink.getvalue().to_pybytes().decode())
        case "json":
            console.json([_plain(row) for row in rows.to_pylist()])
        case "ndjson":
            for row in rows.to_pylist():
                console.json(_plain(row), indent=None)
        case _:
            names = rows.schema.names
            numeric = [_is_number(field.type) for field in rows.schema]
            headings = {str(i): (">" if numeric[i] else "") + name for i, name in enumerate(names)}
            columns = [column.to_pylist() for column in rows.columns]
            cells = [{str(i): _cell(column[row]) for i, column in enumerate(columns)} for row in range(rows.num_rows)]
            console.table(cells, headings, empty="no rows")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain_value(value) for name, value in row.items()}


def _plain_value(value: Any) -> Any:
    """Keep what JSON has; times become RFC 3339, decimals exact text, bytes hexadecimal."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return _plain(value)
    if isinstance(value, list):
        return [_plain_value(item) for item in value]
    return _cell(value)


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).replace("+00:00", "Z")
    return str(value)


def _is_number(kind: "pa.DataType") -> bool:
    import pyarrow.types as pt

    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))
