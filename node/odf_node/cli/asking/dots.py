"""What one says to the shell itself: lines that begin with a dot (QUERY-10)."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odf_node.cli.asking.asker import Asker
from odf_node.cli.context import parse_time
from odf_node.cli.inspections.definition import show_schema
from odf_node.cli.row_formats import FILE_FORMATS, FORMATS, check_output_path
from odf_node.datasets.naming import get_dataset
from odf_node.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

OFF: Final = "off"
USUAL: Final = "auto"
"""For ``.engine``: the one that answers where none is named."""

HELP: Final = {
    ".tables": "list the tables and their columns, as SHOW TABLES does",
    ".schema NAME": "show the columns of a table, as DESCRIBE NAME does",
    ".as-of TIME|off": "answer as was known then; or as of now",
    ".engine NAME|auto": "ask this engine, in its own SQL; or DataFusion",
    ".format FORMAT": f"show answers as {', '.join(each for each in FORMATS if each not in FILE_FORMATS)}",
    ".format FORMAT FILE": f"write the next answer to a file, also as {' or '.join(FILE_FORMATS)}",
    ".pages on|off": "show long answers with a pager; or at once",
    ".help": "show this",
    ".quit": "leave, as exit, quit and Ctrl-D do",
}


_OF_OTHER_SHELLS: Final = {
    "exit": ".quit", "quit": ".quit", r"\q": ".quit", "help": ".help", r"\h": ".help", r"\?": ".help",
    r"\d": ".tables", r"\dt": ".tables", "show tables": ".tables",
}  # fmt: skip
_SCHEMA_OF_OTHER_SHELLS: Final = re.compile(
    r"(?:\\d|desc|describe(?: table)?|show columns from) ([^\s;]+)", re.IGNORECASE
)


def find_dot_command(text: str) -> str | None:
    """Return the dot command that a line is, or that does what the line does in other shells; None: it is a query."""
    if text.startswith("."):
        return text
    line = " ".join(text.rstrip("; \n").split())
    if (found := _SCHEMA_OF_OTHER_SHELLS.fullmatch(line)) is not None:
        return f".schema {shlex.quote(found[1])}"
    return _OF_OTHER_SHELLS.get(line.lower())


@dataclass(slots=True)
class Manner:
    """How the shell shows answers.

    Attributes:
        output_format: Of those on the terminal.
        file: Format and place of the next answer, where that is a file.
        has_pages: Whether long ones go through a pager.
    """

    output_format: str
    file: tuple[str, Path] | None = None
    has_pages: bool = True


class DotCommands:
    """Does what a line says that begins with a dot."""

    def __init__(self, asker: Asker, manner: Manner) -> None:
        self._asker = asker
        self._manner = manner
        self._known: dict[str, tuple[tuple[int, ...], Callable[..., None]]] = {
            ".tables": ((0,), self._list_tables),
            ".schema": ((1,), self._show_schema),
            ".as-of": ((1,), self._set_time),
            ".engine": ((1,), self._set_engine),
            ".format": ((1, 2), self._set_format),
            ".pages": ((1,), self._set_pages),
            ".help": ((0,), self._show_help),
        }

    def run(self, line: str) -> bool:
        """Do it; False: the shell ends.

        Raises:
            UsageError: There is no such command, or not with these words.
            OdfError: It failed.
        """
        try:
            command, *words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"{line.partition(' ')[0]}: a quote does not end") from error
        if command in {".quit", ".exit"}:
            return False
        if command not in self._known:
            raise UsageError(f"there is no {command}; .help lists what there is")
        counts, work = self._known[command]
        if len(words) not in counts:
            reported = [each for each in HELP if each.partition(" ")[0] == command]
            raise UsageError(f"expected {' or '.join(reported)}")
        work(*words)
        return True

    def _list_tables(self) -> None:
        tables = self._asker.context.node.queries.list_tables()
        rows = [{"name": name, "columns": ", ".join(columns)} for name, columns in tables.items()]
        console = self._asker.context.console
        console.table(rows, {"name": "TABLE", "columns": "COLUMNS"}, empty="no dataset has rows yet")

    def _show_schema(self, name: str) -> None:
        context = self._asker.context
        show_schema(context, get_dataset(context.node.store, name.strip('`"')), as_json=False)

    def _set_time(self, text: str) -> None:
        self._asker.as_of = None if text == OFF else parse_time(text, option=".as-of")

    def _set_engine(self, name: str) -> None:
        if name != USUAL:
            # Now, and not with the next question, one hears that there is none.
            self._asker.context.node.engines.get_answering_engine(name)
        self._asker.engine = None if name == USUAL else name

    def _set_format(self, name: str, file: str | None = None) -> None:
        if name not in FORMATS:
            raise UsageError(f"there is no format {name}; there are {', '.join(FORMATS)}")
        if file is None:
            if name in FILE_FORMATS:
                raise UsageError(f"{name} is written to a file: .format {name} FILE")
            self._manner.output_format, self._manner.file = name, None
            return
        path = Path(file).expanduser()
        check_output_path(path)
        self._manner.file = name, path

    def _set_pages(self, text: str) -> None:
        if text not in {"on", OFF}:
            raise UsageError("expected .pages on or .pages off")
        self._manner.has_pages = text == "on"

    def _show_help(self) -> None:
        console = self._asker.context.console
        console.line(
            "A query ends with a semicolon and may have several lines. NAME__state has the current rows.", hang=0
        )
        rows = [{"command": command, "does": does} for command, does in HELP.items()]
        for row in rows:
            console.line(f"  {row['command']:<20}  {row['does']}", hang=22)
        console.line("Tab completes; Ctrl-C stops a question, Ctrl-D ends the shell.", hang=0)
