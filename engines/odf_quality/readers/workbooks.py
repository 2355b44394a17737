"""How a workbook is to be read: which sheet, which row has the names, and which columns have one.

Source: clauses READ-4 and READ-5 in ``spec/plug-ins/quality.md``; ING-24 in ``spec/plug-ins/drafts.md``.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, BinaryIO, Final

from openpyxl import load_workbook
from openpyxl.utils import get_column_letter
from openpyxl.utils.exceptions import InvalidFileException

from odf_engines.readers.contract import BrokenFileError
from odf_engines.sampling.plans import ReadPlan, texts_of
from odf_quality.readers.excel import Excel
from odf_quality.readers.row_order import check_row_order

_MAX_SHEETS: Final = 50  # guess: whoever has more knows which
_TRIED_ROWS: Final = 200
_MAX_COLUMNS: Final = 2_000  # as drafts have them
_HEADER_SHARE: Final = 0.7  # guess: of the columns most are named, a title over them fills a cell or two


def plan_workbook(file: BinaryIO) -> ReadPlan:
    """Choose the first sheet with a table, and the row of it that names the columns.

    Raises:
        BrokenFileError: It is no workbook, or has no table.
    """
    check_row_order(file)
    try:
        book: Any = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    except (InvalidFileException, KeyError) as error:
        raise BrokenFileError(f"it is no workbook: {error}") from error
    sheets = [sheet.title for sheet in book.worksheets]
    for sheet in book.worksheets[:_MAX_SHEETS]:
        rows = _first_rows(sheet)
        if (header := _find_header(rows)) is not None:
            return _plan(sheet.title, sheets, header, rows[header - 1], rows[header:])
    raise BrokenFileError("no sheet has a row of names with a row of values below it")


def _first_rows(sheet: Any) -> list[list[str]]:
    sheet.reset_dimensions()  # they are a claim
    found = sheet.iter_rows(max_row=_TRIED_ROWS, max_col=_MAX_COLUMNS, values_only=True)
    return [["" if value is None else _title_of(value) for value in row] for row in found]


def _title_of(value: Any) -> str:
    """Write a value as the reader does in a header."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _find_header(rows: Sequence[Sequence[str]]) -> int | None:
    """Find the number of the first row that fills about as many cells as the rows do, and has one below it."""
    filled = [sum(map(bool, row)) for row in rows]
    width = max(filled, default=0)
    for number, count in enumerate(filled[:-1], 1):
        if count and count >= _HEADER_SHARE * width and any(filled[number:]):
            return number
    return None


def _plan(
    sheet: str, sheets: Sequence[str], header: int, titles: Sequence[str], below: Sequence[Sequence[str]]
) -> ReadPlan:
    names = tuple(title for title in titles if title and titles.count(title) == 1)
    if not names:
        raise BrokenFileError(f"row {header} of the sheet '{sheet}' has no name that is there once")
    parameters: dict[str, Any] = {}
    doubts = []
    if len(sheets) > 1:
        parameters["sheet"] = sheet
        others = ", ".join(repr(each) for each in sheets if each != sheet)[:300]
        doubts.append(f"the workbook has other sheets too: {others}")
    if header > 1:
        parameters["header"] = header
        doubts.append(f"row {header} is taken for the names of the columns, and rows above it are left out")
    lost = [
        f"{get_column_letter(place + 1)} ({title})" if title else get_column_letter(place + 1)
        for place, title in enumerate(titles)
        if title not in names and (title or any(row[place : place + 1] not in ([], [""]) for row in below))
    ]
    if lost:
        doubts.append(f"columns without a name, or with one that is there twice, are left out: {', '.join(lost[:20])}")
    reader = Excel(Excel.Parameters(**parameters), names)
    return ReadPlan(names=names, iter_texts=partial(texts_of, reader), parameters=parameters, doubts=tuple(doubts))
