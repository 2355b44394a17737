"""Rows of a sheet of an Excel workbook (``.xlsx``).

A workbook is a zip of XML, and is taken apart by openpyxl: what a hostile one costs stays in the sandbox and within its
limits. Rows are read one after the other, whatever dimensions the sheet says it has. Formulas are never computed: the
result that the program which saved the file left beside each is its value.

Source: clauses READ-4 and READ-5 in ``spec/plug-ins/quality.md``.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO, Final

import msgspec
from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from odf_engines.readers.contract import BrokenFileError, BrokenRecordError, ParameterError, RawRecord, Reader
from odf_quality.readers.row_order import check_row_order

_MAX_ROWS: Final = 1_048_576  # Source: Excel "specifications and limits"
_MAX_COLUMNS: Final = 16_384  # Source: the same
_SAFE_WHOLE: Final = 2**53


class Excel(Reader):
    """Takes rows out of a sheet of an Excel workbook (``.xlsx``), columns by the names in its header row."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """What is read.

        ``sheet``: its name; without, the workbook must have one sheet only; ``header``: the number of the row with the
        names, from 1; ``columns``: names in the header by column, ``{people: People (1000)}``; a column that is not
        named there has its own name.
        """

        sheet: str | None = None
        header: int = 1
        columns: dict[str, str] = field(default_factory=dict)

    def __init__(self, parameters: Any, names: tuple[str, ...]) -> None:
        super().__init__(parameters, names)
        if not 1 <= parameters.header < _MAX_ROWS:
            raise ParameterError("header", expected="the number of a row, from 1", found=str(parameters.header))
        for name in parameters.columns:
            if name not in names:
                raise ParameterError("columns", expected=f"columns of the read step ({', '.join(names)})", found=name,
                                     known=names)  # fmt: skip
        self._titles = {name: parameters.columns.get(name, name) for name in names}

    def iter_records(self, file: BinaryIO) -> Iterator[RawRecord]:
        check_row_order(file)
        # With the results of formulas, and with the formulas: a result that is not there is no empty cell.
        values, formulas = (self._open_sheet(file, has_results=each) for each in (True, False))
        first = self.parameters.header
        header = next(values.iter_rows(min_row=first, max_row=first, max_col=_MAX_COLUMNS), ())
        places = self._find_places([None if each.value is None else _text_of(each.value).strip() for each in header])
        span = {"min_row": first + 1, "max_col": max(places.values()) + 1}
        rows = zip(values.iter_rows(**span), formulas.iter_rows(**span), strict=True)
        for number, (row, as_written) in enumerate(rows, start=first + 1):
            if number > _MAX_ROWS:
                raise BrokenFileError(f"it has more than {_MAX_ROWS:,} rows")
            cells = {}
            for name, place in places.items():
                if place < len(row):
                    cells[name] = _cell_of(row[place], as_written[place])
            if any(each is not None for each in cells.values()):
                yield RawRecord(msgspec.json.encode(cells), number)

    def take_apart(self, raw: bytes) -> Mapping[str, str | None]:
        cells: dict[str, Any] = msgspec.json.decode(raw)
        for name, cell in cells.items():
            if isinstance(cell, dict):
                raise BrokenRecordError(f"the cell of {name} has {cell['broken']}")
        return cells

    def _open_sheet(self, file: BinaryIO, *, has_results: bool) -> Any:
        try:
            book = load_workbook(file, read_only=True, data_only=has_results, keep_links=False)
        except (InvalidFileException, KeyError) as error:
            raise BrokenFileError(f"it is no workbook: {error}") from error
        known = [sheet.title for sheet in book.worksheets]
        name = self.parameters.sheet
        if name is None and len(known) != 1:
            raise BrokenFileError(f"it has {len(known)} sheets ({', '.join(known[:20])}); name one with 'sheet'")
        if name is not None and name not in known:
            raise BrokenFileError(f"it has no sheet '{name}'; it has {', '.join(known[:20])}")
        sheet = book[name or known[0]]
        sheet.reset_dimensions()  # they are a claim
        return sheet

    def _find_places(self, header: list[str | None]) -> dict[str, int]:
        places = {}
        for name, title in self._titles.items():
            found = [place for place, text in enumerate(header) if text == title]
            if len(found) != 1:
                shown = ", ".join(islice((text for text in header if text), 50))
                how_often = "twice" if found else "not"
                row = self.parameters.header
                raise BrokenFileError(
                    f"the name '{title}' is {how_often} in row {row}, which has: {shown or 'nothing'}"
                )
            places[name] = found[0]
        return places


def _cell_of(cell: Any, as_written: Any) -> Any:
    """Give the text of a cell, None where there is nothing, or what is broken."""
    if cell.data_type == "e":
        return {"broken": f"the error {cell.value}"}
    if cell.value is None:
        if as_written.data_type == "f":
            return {"broken": "a formula without its result: open the file where it was made, and save it again"}
        return None
    return _text_of(cell.value) or None


def _text_of(value: Any) -> str:
    """Write a value as ING-4 reads it: Excel knows no whole numbers, and no days but midnights."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < _SAFE_WHOLE:
            return str(int(value))
        case float():
            return repr(value)
        case dt.datetime():
            return value.date().isoformat() if value.time() == dt.time() else value.isoformat()
        case dt.date() | dt.time():
            return value.isoformat()
    return str(value)
