"""What a user sees: tables, JSON, notes and progress, each on the right stream.

Results go to standard output, everything about the run to standard error, so that a pipe carries results alone.
Progress moves only on a terminal; elsewhere a long step is a plain line a minute.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TextIO

from odf_protocol.errors import UnavailableError

if TYPE_CHECKING:
    from odf_node.cli.progress import Progress

_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
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
        """Show how far a long step is, as ``Progress``; a moving line is gone when the block ends."""
        from odf_node.cli.progress import Progress, plain_seconds

        shown = Progress(
            self.err,
            label,
            total_bytes=total_bytes,
            moves=self.is_terminal,
            is_quiet=self.quiet,
            plain_each_s=plain_seconds(os.environ),
            clean=printable_line,
        )
        try:
            yield shown
        finally:
            shown.close()

    def _print(self, text: str) -> None:
        encoding = self.out.encoding or "utf-8"
        # A terminal or pipe that is not in Unicode gets escapes instead of a failure.
        with _mapped_failures():
            print(text.encode(encoding, "backslashreplace").decode(encoding), file=self.out)

    @property
    def is_terminal(self) -> bool:
        """Whether moving output can be shown."""
        return self.err.isatty() and os.environ.get("TERM") != "dumb"


def format_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> Iterable[str]:
    """Lay rows out in columns as wide as their widest cell, under a heading."""
    headings = [printable_line(heading.removeprefix(">")) for heading in columns.values()]
    right = [heading.startswith(">") for heading in columns.values()]
    cells = [["" if row.get(key) is None else printable_line(row[key]) for key in columns] for row in rows]
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


def printable_line(value: object) -> str:
    """As ``printable``, on one line."""
    return printable(str(value)).replace("\n", "\\n").replace("\t", "\\t")
