"""Sinks on this machine: quarantine itself, and a file beside it.

Source: clause SINK-2 in ``spec/plug-ins/corrections.md``.
"""

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from odf_engines.validation.contract import ParameterError
from odf_node.ports.sinks import BadRows, Sink, SinkContext, Told

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_MIB: Final = 1024 * 1024
_LOOKED_BYTES: Final = 64 * 1024
_FORMULAS: Final = ("=", "+", "-", "@", "\t")
"""How texts begin that spreadsheets compute.  Source: OWASP, CSV injection"""
_CSV_COLUMNS: Final = (
    "row",
    "dataset",
    "source",
    "setAsideAt",
    "line",
    "stage",
    "plug_in",
    "code",
    "column",
    "value",
    "expected",
    "message",
)


class Quarantine(Sink):
    """The node's own quarantine, which has every row whether it is declared or not."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """Nothing can be set: it cannot be switched off either."""

    def deliver(self, entry: BadRows) -> tuple[Told, str]:
        return Told.DONE, f"entry {entry.entry} is there"


class File(Sink):
    """Appends each row to a file of the home as a line of JSON, or each error as a line of CSV.

    A full file begins anew, one full one is kept.
    """

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``name`` of the file, in the folder ``sinks/IDENTITY`` of the home; ``megabytes`` that it may have.

        The file before it has ``.1`` behind its name. ``format`` is ``ndjson`` or ``csv``.
        """

        name: str
        megabytes: int = 100
        format: str = "ndjson"

    def __init__(self, parameters: Any, context: SinkContext) -> None:
        super().__init__(parameters, context)
        if not _NAME.fullmatch(parameters.name):
            expected = "a name of letters, digits, '.', '_' and '-' that begins with a letter or digit"
            raise ParameterError("name", expected=expected, found=parameters.name)
        if not 1 <= parameters.megabytes <= 1_000_000:
            raise ParameterError("megabytes", expected="1 to 1000000", found=str(parameters.megabytes))
        if parameters.format not in _FORMATS:
            raise ParameterError("format", expected=" or ".join(_FORMATS), found=parameters.format)

    def deliver(self, entry: BadRows) -> tuple[Told, str]:
        path = self.context.folder / self.parameters.name
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        for left in path.parent.glob(f".{path.name}.part*"):  # of a kill
            left.unlink(missing_ok=True)
        first = _open(path)
        start = _without_cut_line(first)
        parts: list[Path] = []
        try:
            self._write(entry, first, start, path, parts)
            if parts:
                # What was full is kept once, and only now: until here nothing of the entry has to stay.
                full = parts[-2] if len(parts) > 1 else path
                full.replace(path.with_name(f"{path.name}.1"))
                parts[-1].replace(path)
        except BaseException:
            with suppress(OSError):  # the entry is given again, whole
                os.ftruncate(first, start)
            for part in parts:
                with suppress(OSError):
                    part.unlink(missing_ok=True)
            raise
        finally:
            os.close(first)
        return Told.DONE, f"{entry.row_count} rows in {'/'.join(path.parts[-3:])}"

    def _write(self, entry: BadRows, first: int, start: int, path: Path, parts: list[Path]) -> None:
        """Write the rows of an entry behind what is there, and those for which there is no room into further parts."""
        descriptor, size = os.dup(first), start
        try:
            for row in entry.iter_rows():
                line = _FORMATS[self.parameters.format](entry, row)
                if size and size + len(line) > self.parameters.megabytes * _MIB:
                    parts.append(path.with_name(f".{path.name}.part{len(parts) + 1}"))
                    opened = _open(parts[-1])
                    os.close(descriptor)
                    descriptor, size = opened, 0
                    for earlier in parts[:-2]:  # two are kept in the end
                        earlier.unlink(missing_ok=True)
                if not size and self.parameters.format == "csv":
                    line = _csv_lines([_CSV_COLUMNS]) + line
                left = memoryview(line)
                while left:
                    left = left[os.write(descriptor, left) :]
                size += len(line)
        finally:
            os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    return os.open(path, flags, 0o600)


def _without_cut_line(descriptor: int) -> int:
    """Take away what a kill left of a line, whose entry is given again; returns the size of what stays."""
    size = end = os.fstat(descriptor).st_size
    while end:
        start = max(0, end - _LOOKED_BYTES)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        os.ftruncate(descriptor, end)
    return end


def _as_json(entry: BadRows, row: dict[str, Any]) -> bytes:
    return json.dumps({**_head_of(entry), **row}, ensure_ascii=True).encode() + b"\n"


def _as_csv(entry: BadRows, row: dict[str, Any]) -> bytes:
    """Write a line for each error of a row, each with the values that the columns name."""
    reported = {**_head_of(entry), **row}
    return _csv_lines([{**reported, **error}.get(name) for name in _CSV_COLUMNS] for error in row["errors"] or [{}])


def _csv_lines(lines: Iterable[Sequence[object]]) -> bytes:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([_as_cell(value) for value in line] for line in lines)
    return written.getvalue().encode(errors="backslashreplace")


def _as_cell(value: object) -> str:
    """Write a value on one line; a text that a spreadsheet would compute is marked as one, as strangers wrote it."""
    text = "" if value is None else str(value).replace("\r", "\\r").replace("\n", "\\n")
    return f"'{text}" if text.startswith(_FORMULAS) else text


_FORMATS: Final = {"ndjson": _as_json, "csv": _as_csv}


def _head_of(entry: BadRows) -> dict[str, Any]:
    return {"dataset": entry.dataset, "source": entry.source, "setAsideAt": entry.set_aside_at, "why": entry.why}
