"""Write rows (an Arrow table) as a table, CSV, JSON or Parquet."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odf_node.cli.console import Console
from odf_node.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


def write_rows(console: Console, rows: "pa.Table", output_format: str, *, path: Path | None = None) -> None:
    """Write ``rows`` to ``path``, or to standard output where it is None.

    Raises:
        UsageError: ``path`` exists: results never replace files.
    """
    if path is None:
        _write(console, rows, output_format)
        return
    if path.exists():
        raise UsageError(f"{path} is there already; name another file or remove it")
    if output_format == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(rows, path)
    else:
        with path.open("x", encoding="utf-8") as file:
            _write(Console(out=file), rows, output_format)
    console.note(f"{rows.num_rows:,} rows written to {path}")


def _write(console: Console, rows: "pa.Table", output_format: str) -> None:
    match output_format:
        case "csv":
            import pyarrow as pa
            import pyarrow.csv as pa_csv

            sink = pa.BufferOutputStream()
            pa_csv.write_csv(rows, sink)
            console.out.write(sink.getvalue().to_pybytes().decode())
        case "json":
            console.json([_plain(row) for row in rows.to_pylist()])
        case "ndjson":
            for row in rows.to_pylist():
                console.text(json.dumps(_plain(row), ensure_ascii=False))
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
