"""Rows of quarantine as commands name and write them: ids, codes, columns of exported files (QUAR-1, QUAR-4)."""

import argparse
from collections.abc import Sequence
from typing import Final

from odf_node.datasets.quarantined_rows import KeptRow, QuarantineReader
from odf_node.errors import UsageError
from odf_node.records.datasets import DatasetRecord
from odf_node.records.quarantine import RowId

ROW_COLUMN: Final = "_row"
"""The column of an exported file that says which row a line is; it has to stay."""

REPORTED_COLUMNS: Final = ("_errors", "_line", "_original")
"""Columns of an exported file that say what is wrong; what stands there is not read again."""

_IDS: Final = "an entry (3) or a row (3.17), as 'quarantine list' and 'show' number them"
_MAX_DIGITS: Final = 15  # as many as a number of JSON has


def add_ids(parser: argparse.ArgumentParser, *, is_required: bool = False) -> None:
    """Declare which entries and rows are meant."""
    rest = "" if is_required else " (default: everything that waits)"
    parser.add_argument("ids", nargs="+" if is_required else "*", metavar="ID", help=f"{_IDS}{rest}")


def add_code(parser: argparse.ArgumentParser) -> None:
    """Declare ``--code``."""
    parser.add_argument("--code", metavar="CODE", help="only rows that have an error of this code, such as range")


def read_ids(words: Sequence[str]) -> tuple[list[int], list[RowId]]:
    """Read which entries and which rows are meant.

    Raises:
        UsageError: A word is no id.
    """
    entries, rows = [], []
    for word in words:
        if word.isascii() and word.isdigit() and len(word) <= _MAX_DIGITS:
            entries.append(int(word))
        elif (row := RowId.find(word)) is not None:
            rows.append(row)
        else:
            raise UsageError(f"'{word}' is no id: expected {_IDS}")
    return entries, rows


def has_code(row: KeptRow, code: str | None) -> bool:
    """Say whether a row has an error of a code; None: of any."""
    return code is None or any(error["code"] == code for error in row.errors)


def select_rows(reader: QuarantineReader, record: DatasetRecord, arguments: argparse.Namespace) -> list[KeptRow]:
    """List the rows that ``ids`` and ``code`` mean; without ids all that wait.

    Raises:
        UsageError: A word is no id.
        NotFoundError: As ``QuarantineReader.require_known``.
    """
    entries, rows = read_ids(arguments.ids)
    reader.require_known(record, entries, rows)
    return [
        row
        for row in reader.iter_rows(record, entries=entries, rows=rows)
        if has_code(row, arguments.code) and (arguments.ids or row.waits or row.state == "batch waits")
    ]
