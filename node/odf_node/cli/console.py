"""What a user sees: tables, JSON, notes and progress, each on the right stream.

Results go to standard output, everything about the run to standard error, so that a pipe carries results alone.
Progress moves only on a terminal; elsewhere a long step is one plain line when it ends.
"""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

from odf_protocol.errors import UnavailableError

BAR_WIDTH: Final = 24  # guess: leaves room for the numbers on an 80-column terminal
REDRAW_S: Final = 0.1
UNITS: Final = ("B", "kB", "MB", "GB", "TB")

_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What moves a terminal's cursor or turns text around; newline and tab apart (ECMA-48; Unicode "Bidirectional")."""


class ResultNotWrittenError(UnavailableError):
    """The result cannot be written where it was asked for."""


@dataclass(slots=True)
class Console:
    """The two streams of one command."""

    quiet: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)

    def note(self, text: str) -> None:
        """Say something about the run."""
        if not self.quiet:
            print(printable(text), file=self.err, flush=True)

    def warn(self, text: str) -> None:
        """Say something that the user should act on; it is said even when quiet."""
        print(printable(f"warning: {text}"), file=self.err, flush=True)

    def text(self, text: str) -> None:
        """Write lines for people."""
        self._print(printable(text))

    def json(self, value: Any, *, indent: int | None = 2) -> None:
        """Write a result as JSON for scripts; on one line where ``indent`` is None."""
        is_unicode = (self.out.encoding or "utf-8").lower().startswith("utf")
        text = json.dumps(value, indent=indent, ensure_ascii=not is_unicode, default=str)
        # Control characters that JSON leaves alone stand inside its texts only, where they may be escaped.
        self._print(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))

    def raw(self, text: str) -> None:
        """Write a result byte for byte for other programs; only a terminal is kept from control characters."""
        with _mapped_failures():
            self.out.write(printable(text) if self.out.isatty() else text)

    def flush(self) -> None:
        """Write out what is still in memory.

        Raises:
            ResultNotWrittenError: There is no room, or the disk does not answer.
        """
        with _mapped_failures():
            self.out.flush()

    def table(self, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, empty: str = "") -> None:
        """Write rows as a table.

        Args:
            rows: One mapping per row.
            columns: Key in the row → heading; a heading that starts with ``>`` is aligned to the right.
            empty: What to say instead of a table without rows.
        """
        if not rows:
            if empty:
                self.note(empty)
            return
        for line in format_table(rows, columns):
            self._print(line.rstrip())

    @contextmanager
    def progress(self, label: str, *, total_bytes: int | None = None) -> Iterator["Progress"]:
        """Show how far a long step is; the line is gone, or final, when the block ends."""
        meter = Progress(self, label, total_bytes)
        try:
            yield meter
        finally:
            meter.close()

    def _print(self, text: str) -> None:
        encoding = self.out.encoding or "utf-8"
        # A terminal or pipe that is not in Unicode gets escapes instead of a failure.
        with _mapped_failures():
            print(text.encode(encoding, "backslashreplace").decode(encoding), file=self.out)

    @property
    def is_terminal(self) -> bool:
        """Whether moving output can be shown."""
        return self.err.isatty() and os.environ.get("TERM") != "dumb"


class Progress:
    """A moving line on a terminal; nothing elsewhere."""

    def __init__(self, console: Console, label: str, total_bytes: int | None) -> None:
        self._console = console
        self._label = label
        self._total = total_bytes
        self._done = 0
        self._started = time.monotonic()
        self._drawn = 0.0
        self._shows = console.is_terminal and not console.quiet
        self._width = 0
        if self._shows:
            self._draw()

    def advance(self, size_bytes: int) -> None:
        """Add bytes that have been handled."""
        self._done += size_bytes
        if self._shows and time.monotonic() - self._drawn >= REDRAW_S:
            self._draw()

    def say(self, label: str) -> None:
        """Say that something else is going on now; bytes are counted anew."""
        self._label, self._total, self._done = label, None, 0
        self._started = time.monotonic()
        if self._shows:
            self._draw()

    def expect(self, total_bytes: int) -> None:
        """Set how many bytes there will be, once that is known."""
        self._total = total_bytes

    def close(self) -> None:
        """Wipe the line."""
        if self._shows and self._width:
            print("\r" + " " * self._width + "\r", end="", file=self._console.err, flush=True)

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        line = self._label
        if self._total:
            share = min(1.0, self._done / self._total)
            full = int(share * BAR_WIDTH)
            rate = self._done / max(0.001, self._drawn - self._started)
            left = (self._total - self._done) / rate if rate else 0
            line = (
                f"{self._label} [{'#' * full}{'.' * (BAR_WIDTH - full)}] {format_bytes(self._done)} of "
                f"{format_bytes(self._total)}, {format_bytes(int(rate))}/s, {max(0, left):.0f} s left"
            )
        line = _printable_cell(line)[: shutil.get_terminal_size().columns - 1]
        print("\r" + line.ljust(self._width), end="", file=self._console.err, flush=True)
        self._width = len(line)


def format_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> Iterable[str]:
    """Lay rows out in columns as wide as their widest cell, under a heading."""
    headings = [heading.removeprefix(">") for heading in columns.values()]
    right = [heading.startswith(">") for heading in columns.values()]
    cells = [["" if row.get(key) is None else _printable_cell(row[key]) for key in columns] for row in rows]
    widths = [max(len(line[i]) for line in [headings, *cells]) for i in range(len(headings))]

    def lay(line: Sequence[str]) -> str:
        return "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, right, strict=True)
        )

    yield lay(headings)
    yield "  ".join("-" * width for width in widths)
    for line in cells:
        yield lay(line)


@contextmanager
def _mapped_failures() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # Somebody reads no further; that is no failure of ours.
        raise
    except OSError as error:
        raise ResultNotWrittenError(f"cannot write the result: {error.strerror or error}") from error


def printable(text: str) -> str:
    """Write control characters as escapes: what strangers wrote must not steer the terminal it is shown on."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def _printable_cell(value: object) -> str:
    """As ``printable``, on one line."""
    return printable(str(value)).replace("\n", "\\n").replace("\t", "\\t")


def format_bytes(size_bytes: int) -> str:
    """Write a size with three digits and a decimal unit."""
    size = float(size_bytes)
    for unit in UNITS:
        if size < 1000 or unit == UNITS[-1]:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError(size_bytes)
