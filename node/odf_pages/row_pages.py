"""Pages with rows: some at a time, as of any version; and every row that one key ever had.

Source: clauses PAGES-9 to PAGES-11 in ``spec/plug-ins/pages.md``.
"""

from collections.abc import Sequence
from typing import Any, Final

from odf_node.datasets.chains import load_view
from odf_node.datasets.row_windows import Cell, RowWindow, RowWindows, find_keys
from odf_node.errors import UsageError
from odf_node.records.datasets import DatasetRecord
from odf_pages.dataset_pages import frame_of
from odf_pages.rendering import Page
from odf_pages.requests import PageRequest, to_number
from odf_protocol.dataset_view import DatasetView
from odf_protocol.schema_compat import describe_type

PAGE_ROWS: Final = 50  # guess: some screens
PAGE_COLUMNS: Final = 30  # guess: with as many rows and cells of this length, a page has half a megabyte
CELL_CHARACTERS: Final = 200  # guess
ROW_CHARACTERS: Final = 2_000
"""Of a cell, where one row is looked at.  # guess"""
MAX_VERSIONS: Final = 200  # guess: steps that a slider can show

OPERATIONS: Final = ("append", "retract", "correct from", "correct to")
"""By their numbers. Source: ODF OperationType."""


def show_rows(visit: PageRequest) -> Page:
    """Show rows of a dataset, the newest unless others are asked for, as of a version."""
    record = visit.get_dataset()
    windows = windows_of(visit)
    versions = windows.list_versions(record, MAX_VERSIONS)
    place = visit.find_number("version")
    block = visit.find_number("block")
    if place is not None:
        # A slider counts its steps; a link names the block.
        block = versions[min(place, len(versions) - 1)][0]
    if block is not None and block > record.head.sequence_number:
        raise UsageError(f"'{record.name}' has no block {block}")
    first_column = visit.find_number("columns") or 0
    first = visit.find_number("from")
    window = windows.read(
        record,
        first=first,
        count=PAGE_ROWS,
        columns=slice(first_column, first_column + PAGE_COLUMNS),
        upto=block,
        max_characters=CELL_CHARACTERS,
    )
    view = load_view(visit.node.store, record.id, upto=block)
    is_newest = block is None or block == record.head.sequence_number
    values = {
        "window": window,
        "table": table_of(window, view),
        "block": None if is_newest else block,
        "as_of": view.system_time,
        "versions": versions,
        "step": _step_of(versions, view.sequence_number),
        "as_of_block": view.sequence_number,
        "first_column": first_column,
        "page_columns": PAGE_COLUMNS,
        **_steps(window, first),
    }
    return Page("rows.html", {**frame_of(visit, record, "rows"), **values})


def windows_of(visit: PageRequest) -> RowWindows:
    """Make what reads rows."""
    node = visit.node
    return RowWindows(node.store, node.objects)


def _step_of(versions: Sequence[tuple[int, Any]], number: int) -> int:
    return max((step for step, (block, _) in enumerate(versions) if block <= number), default=0)


def _steps(window: RowWindow, first: int | None) -> dict[str, int | None]:
    """Say from where the pages before and after this one begin; None: there is none."""
    if window.last is None:
        return {"start": 0, "older": None, "newer": None}
    start = max(0, window.last - PAGE_ROWS + 1) if first is None else first
    older = max(0, start - PAGE_ROWS) if start > 0 else None
    newer = start + PAGE_ROWS if start + PAGE_ROWS <= window.last else None
    return {"start": start, "older": older, "newer": newer}


def table_of(window: RowWindow, view: DatasetView) -> dict[str, Any]:
    """Give a window as a template draws it: headings with their looks, rows with words for operations."""
    types = {} if view.schema is None else {field.name: describe_type(field.type) for field in view.schema.fields}
    op, shown = view.vocabulary.op, window.columns
    headings = [(name, types.get(name, ""), _look_of(name, types.get(name, ""), view)) for name in window.columns]
    rows = [
        (number, [(name, _in_words(cell) if name == op else cell) for name, cell in zip(shown, cells, strict=True)])
        for number, cells in window.rows
    ]
    return {"headings": headings, "rows": rows, "offset": view.vocabulary.offset}


def _look_of(name: str, kind: str, view: DatasetView) -> str:
    if name in (view.vocabulary.offset, view.vocabulary.op, view.vocabulary.system_time):
        return "system"
    bare = kind.removeprefix("Option<")
    return "figure" if bare.startswith(("Int", "UInt", "Float", "Decimal")) else "words"


def _in_words(cell: Cell) -> Cell:
    if cell is None or not (cell[0].isascii() and cell[0].isdigit()) or int(cell[0]) >= len(OPERATIONS):
        return cell
    text = OPERATIONS[int(cell[0])]
    return text, len(text)


def show_history(visit: PageRequest) -> Page:
    """Show one row, and every row of its key in both times: when it was so, and since when this was known."""
    record = visit.get_dataset()
    offset = visit.get_number_of_path("offset")
    view = load_view(visit.node.store, record.id)
    names = [] if view.schema is None else [field.name for field in view.schema.fields]
    keys = _choose_keys(visit, view, names, record)
    history = windows_of(visit).read_history(
        record, offset, keys, columns=slice(0, PAGE_COLUMNS), max_characters=ROW_CHARACTERS
    )
    system = view.vocabulary.columns
    values = {
        "offset": offset,
        "event_time": view.vocabulary.event_time,
        "system_time": view.vocabulary.system_time,
        "history": history,
        "table": table_of(history.window, view),
        "choices": [
            (place, name)
            for place, name in enumerate(names[: 2 * PAGE_COLUMNS])
            if name not in system or name == view.vocabulary.event_time
        ],
    }
    return Page("history.html", {**frame_of(visit, record, "rows"), **values})


def _choose_keys(visit: PageRequest, view: DatasetView, names: Sequence[str], record: DatasetRecord) -> tuple[str, ...]:
    """Return the columns that were chosen by their places, as names may hold anything; else those of the source."""
    places = dict.fromkeys(to_number(text, "key") for text in visit.query.get("key", []))
    if beyond := [place for place in places if place >= len(names)]:
        raise UsageError(f"'{record.name}' has no column {beyond[0]}")
    return tuple(names[place] for place in places) or tuple(key for key in find_keys(view) if key in names)
