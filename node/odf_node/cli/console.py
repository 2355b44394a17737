"""What a user sees: tables, JSON, notes and progress, each on the right stream.

Results go to standard output, everything about the run to standard error, so that a pipe carries results alone.
Progress moves only on a terminal; elsewhere a long step is a plain line a minute.
"""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

from odf_node.cli.progress import Progress, plain_seconds
from odf_node.cli.widths import MIN_WIDTH, cut_to, width_of
from odf_node.wording import UNSEEN
from odf_protocol.errors import UnavailableError

_GAP: Final = "  "
_MIN_LINE: Final = 40  # guess: what is narrower is no terminal that somebody reads


class ResultNotWrittenError(UnavailableError):
    """The result cannot be written where it was asked for."""


@dataclass(slots=True)
class Console:
    """The two streams of one command; ``has_progress``: people may read how far it is."""

    quiet: bool = False
    has_progress: bool = True
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)

    def note(self, text: str) -> None:
        """Say something about the run."""
        if not self.quiet:
            print(printable_lines(text), file=self.err, flush=True)

    def warn(self, text: str) -> None:
        """Say something that the user should act on; it is said even when quiet."""
        print(printable_lines(f"warning: {text}"), file=self.err, flush=True)

    def text(self, text: str) -> None:
        """Write lines for people, none of which has words of a stranger in it."""
        self._print(printable(text))

    def line(self, text: str, *, hang: int = 4) -> None:
        """Write one line for people: line ends in words of a stranger must not make it look like several of ours.

        On a terminal that is narrower it goes on below, ``hang`` characters further in, without a word broken.
        """
        shown = printable_line(text)
        width = shutil.get_terminal_size().columns if self.out.isatty() else len(shown)
        if len(shown) > width > _MIN_LINE:
            indent = " " * (len(shown) - len(shown.lstrip()) + hang)
            shown = textwrap.fill(
                shown, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )
        self._print(shown)

    def json(self, value: Any, *, indent: int | None = 2) -> None:
        """Write a result as JSON for scripts; on one line where ``indent`` is None."""
        is_unicode = (self.out.encoding or "utf-8").lower().startswith("utf")
        text = json.dumps(value, indent=indent, ensure_ascii=not is_unicode, default=str)
        # Control characters that JSON leaves alone stand inside its texts only, where they may be escaped.
        self._print(UNSEEN.sub(_json_escape, text))

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

    def table(
        self,
        rows: Sequence[Mapping[str, Any]],
        columns: Mapping[str, str],
        *,
        empty: str = "",
        is_whole: bool = False,
    ) -> None:
        """Write rows as a table; on a terminal one that fits its width, where long values are cut with a mark.

        Args:
            rows: One mapping per row.
            columns: Key in the row → heading; a heading that starts with ``>`` is aligned to the right.
            empty: What to say instead of a table without rows.
            is_whole: Cut nothing.
        """
        if not rows:
            if empty:
                self.note(empty)
            return
        width = shutil.get_terminal_size().columns if self.out.isatty() and not is_whole else None
        for line in format_table(rows, columns, width):
            self._print(line.rstrip())

    def result(
        self,
        rows: Sequence[Mapping[str, Any]],
        columns: Mapping[str, str],
        *,
        as_json: bool,
        shown: Sequence[Mapping[str, Any]] | None = None,
        empty: str = "",
        is_whole: bool = False,
    ) -> None:
        """Write rows as JSON for scripts, or for people as a table of ``shown`` (None: of the same), see ``table``."""
        if as_json:
            self.json(rows)
        else:
            self.table(rows if shown is None else shown, columns, empty=empty, is_whole=is_whole)

    @contextmanager
    def progress(self, label: str, *, total_bytes: int | None = None) -> Iterator["Progress"]:
        """Show how far a long step is, as ``Progress``; a moving line is gone when the block ends."""
        shown = Progress(
            self.err,
            label,
            total_bytes=total_bytes,
            moves=self.is_terminal,
            is_quiet=self.quiet or not self.has_progress,
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


def format_table(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], width: int | None = None
) -> Iterable[str]:
    """Lay rows out in columns as wide as their widest cell, under a heading, or within ``width`` characters."""
    headings = [printable_line(heading.removeprefix(">")) for heading in columns.values()]
    right = [heading.startswith(">") for heading in columns.values()]
    cells = [["" if row.get(key) is None else printable_line(row[key]) for key in columns] for row in rows]
    widths = [max(width_of(line[i]) for line in [headings, *cells]) for i in range(len(headings))]
    if width is not None:
        widths = _fit(widths, width - len(_GAP) * (len(widths) - 1))

    def lay(line: Sequence[str]) -> str:
        fitting = line if width is None else map(cut_to, line, widths)
        return _GAP.join(
            " " * (room - width_of(cell)) * is_right + cell + " " * (room - width_of(cell)) * (not is_right)
            for cell, room, is_right in zip(fitting, widths, right, strict=True)
        )

    yield lay(headings)
    yield _GAP.join("-" * width for width in widths)
    for line in cells:
        yield lay(line)


def _fit(widths: Sequence[int], room: int) -> list[int]:
    """Take from the widest columns until all fit, as long as something of each is left.

    The first one, which mostly has the names, keeps a third of the room until nothing can be taken from the others.
    """
    fitting = list(widths)
    for first in (room // 3, MIN_WIDTH):
        least = [max(first, MIN_WIDTH), *(MIN_WIDTH for _ in widths[1:])]
        while sum(fitting) > room:
            spare = [(width, -place) for place, width in enumerate(fitting) if width > least[place]]
            if not spare:
                break
            fitting[-max(spare)[1]] -= 1
    return fitting


@contextmanager
def _mapped_failures() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # Somebody reads no further; that is no failure of ours.
        raise
    except OSError as error:
        raise ResultNotWrittenError(f"cannot write the result: {error.strerror or error}") from error


def _json_escape(found: re.Match[str]) -> str:
    pairs = found[0].encode("utf-16-be")  # RFC 8259 section 7: beyond the basic plane, a surrogate pair
    return "".join(f"\\u{pairs[place : place + 2].hex()}" for place in range(0, len(pairs), 2))


def printable(text: str) -> str:
    """Write control characters as escapes: what strangers wrote must not steer the terminal it is shown on."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def printable_lines(text: str) -> str:
    """As ``printable``, with all lines but the first set in: no words of a stranger look like a line of ours."""
    return printable(text).replace("\n", "\n  ")


def printable_line(value: object) -> str:
    """As ``printable``, on one line."""
    return printable(str(value)).replace("\n", "\\n").replace("\t", "\\t")
