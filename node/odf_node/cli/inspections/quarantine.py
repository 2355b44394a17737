"""Rows that ingests of a dataset could not read."""

from typing import TYPE_CHECKING, Any, Final

from odf_node.cli.context import Context
from odf_node.ports import DatasetRecord

if TYPE_CHECKING:
    import pyarrow as pa

ERRORS_COLUMN: Final = "errors"


def show_quarantine(context: Context, record: DatasetRecord, *, as_json: bool) -> None:
    """Show every row with its text and all its errors; for scripts the errors keep their fields."""
    from odf_node.cli.rows import write_rows

    rows = context.node.reader.quarantine(record)
    if as_json:
        write_rows(context.console, rows, "json")
        return
    empty = "every row could be taken; nothing was set aside"
    write_rows(context.console, _tell_errors(rows) if rows.num_rows else rows, "table", empty=empty)


def _tell_errors(rows: "pa.Table") -> "pa.Table":
    import pyarrow as pa

    # What the columns of a row are, its text says.
    rows = rows.drop_columns([name for name in ("columns",) if name in rows.column_names])
    position = rows.schema.get_field_index(ERRORS_COLUMN)
    told = ["; ".join(map(_tell_error, errors)) for errors in rows.column(position).to_pylist()]
    return rows.set_column(position, ERRORS_COLUMN, pa.array(told, pa.string()))


def _tell_error(error: dict[str, Any]) -> str:
    """Say one error in a line: ``a: not a whole number: 'q' (int32)``."""
    place = f"{error['column']}: " if error["column"] else ""
    found = f": {error['value']!r}" if error["value"] is not None else ""
    expected = f" ({error['expected']})" if error["expected"] else ""
    return f"{place}{error['message']}{found}{expected}"
