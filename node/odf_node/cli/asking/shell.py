"""The shell of ``odf-node sql``: questions and answers on a terminal, until Ctrl-D (QUERY-10).

The prompt, its history and its keys are a library's, which only this module loads. Between two questions the session of
the engine stays.
"""

import io
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]  # it says none

from odf_engines.errors import InvalidQueryError
from odf_node.cli.asking.asker import Asker
from odf_node.cli.asking.dots import HELP, OFF, USUAL, DotCommands, Manner, find_dot_command
from odf_node.cli.console import Console, printable
from odf_node.cli.row_formats import FORMATS
from odf_node.cli.rows import write_rows
from odf_node.cli.run import report_failure
from odf_node.cli.stopping import Stopped, stop_on_signals
from odf_protocol.errors import OdfError

if TYPE_CHECKING:
    from odf_node.datasets.queries import QueryAnswer

PAGERS: Final = ("less", "more")
LESS_OPTIONS: Final = "FSX"
"""End where all fits on the screen, do not fold lines, leave the answer on the screen (less(1))."""


def find_pager(environment: "os._Environ[str]") -> list[str] | None:
    """Find what ``$PAGER`` names (nothing, where it is empty or ``cat``), else what is usual; None: there is none."""
    named = environment.get("PAGER")
    if named is not None:
        words = shlex.split(named)
        return words if words and words[0] != "cat" and shutil.which(words[0]) else None
    found = next(filter(shutil.which, PAGERS), None)
    return None if found is None else [found]


def page(text: str, pager: list[str], environment: "os._Environ[str]") -> None:
    """Show a text until its reader has seen enough."""
    settings = {**environment, "LESS": environment.get("LESS", LESS_OPTIONS)}
    process = subprocess.Popen(pager, stdin=subprocess.PIPE, env=settings, text=True)
    try:
        process.communicate(text)
    except KeyboardInterrupt:
        # The pager has heard it too, and says what it means there.
        process.wait()


_KEYWORDS: Final = """
    ALL AND AS ASC BETWEEN BY CASE CAST COUNT CROSS DESC DISTINCT ELSE END EXISTS FROM FULL GROUP HAVING IN INNER IS
    JOIN LEFT LIKE LIMIT MAX MIN NOT NULL ON OR ORDER OVER PARTITION RIGHT SELECT SUM THEN UNION WHEN WHERE WITH
"""
KEYWORDS: Final = tuple(_KEYWORDS.split())
STATE: Final = "__state"

# Names have dots and hyphens; what is quoted is completed as well.
_WORD: Final = re.compile(r"[\w.\-`]+$")
_QUOTE: Final = "`"

Tables = Mapping[str, tuple[str, ...]]
"""Columns by table."""


class WordCompleter(Completer):
    """Completes the word before the cursor.

    Args:
        tables: Gives the tables as they are now.
        commands: What a line may begin with, each with its dot, and what may follow each.
    """

    def __init__(self, tables: Callable[[], Tables], commands: Mapping[str, tuple[str, ...]]) -> None:
        self._tables = tables
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield what the word may become, best first."""
        del complete_event  # whether a key asked or the typing makes no difference
        found = _WORD.search(document.text_before_cursor)
        word = "" if found is None else found[0]
        for each in self._iter_words(document, word):
            yield Completion(each, start_position=-len(word))

    def _iter_words(self, document: Document, word: str) -> Iterator[str]:
        line = document.text_before_cursor
        if line.startswith("."):
            command, _, behind = line.partition(" ")
            if not behind and line == command:
                yield from (each for each in self._commands if each.startswith(line))
                return
            choices = (*self._commands.get(command, ()), *(self._tables() if command == ".schema" else ()))
            yield from (each for each in choices if each.startswith(word))
            return
        yield from complete_word(word, document.text, self._tables())


def complete_word(word: str, text: str, tables: Tables) -> Iterator[str]:
    """Yield the names and words that begin as ``word`` does, whatever the case.

    Args:
        word: Before the cursor; a quote before it is kept.
        text: The whole question: columns are those of the tables that it names.
        tables: All there are.
    """
    quote = _QUOTE if word.startswith(_QUOTE) else ""
    bare = word.removeprefix(_QUOTE)
    before, dot, last = bare.rpartition(".")
    named = [columns for name, columns in tables.items() if name.lower() in text.lower()]
    columns = sorted({column for each in named for column in each})
    if not quote and not dot:
        yield from _beginning(columns, bare)
    names = [form for name in tables for form in (name, name + STATE)]
    yield from (f"{quote}{name}{quote}" for name in _beginning(names, bare) if bare or quote)
    # Behind a name and a dot, or behind an alias.
    if dot and not quote:
        yield from (f"{before}.{column}" for column in _beginning(columns, last))
    if bare and not quote and not dot:
        yield from (each.lower() if bare.islower() else each for each in _beginning(KEYWORDS, bare))
    elif not bare and not quote and not columns:
        yield from tables


def _beginning(words: "tuple[str, ...] | list[str]", start: str) -> Iterator[str]:
    return (word for word in words if word.lower().startswith(start.lower()))


PROMPT: Final = "odf> "
CONTINUED: Final = "...> "


def _continue(prompt_width: int, line_number: int, wrap_count: int) -> str:  # noqa: ARG001 - prompt_toolkit gives them
    """Begin a further line; what goes on below because the terminal is too narrow is none."""
    return " " * len(CONTINUED) if wrap_count else CONTINUED


class Shell:
    """Reads statements and dot commands, one after the other; errors are one line, and the next may be asked."""

    def __init__(self, asker: Asker, output_format: str) -> None:
        self._asker = asker
        self._console = asker.context.console
        self._manner = Manner(output_format)
        self._dots = DotCommands(asker, self._manner)

    def run(self) -> int:
        """Ask until the user has enough; returns the exit code."""
        session: PromptSession[str] = PromptSession(
            history=open_history(self._asker.context.node.home.folder.query_history),
            lexer=PygmentsLexer(SqlLexer),
            completer=WordCompleter(self._asker.context.node.queries.list_tables, self._list_choices()),
            complete_while_typing=False,
            key_bindings=self._keys(),
            multiline=True,
            prompt_continuation=_continue,
            enable_history_search=False,
        )
        self._console.note(".help explains the shell, Ctrl-D ends it")
        while True:
            try:
                text = session.prompt(self._prompt()).strip()
            except EOFError:
                return 0
            except Stopped:
                raise
            except KeyboardInterrupt:
                continue  # what was typed is forgotten
            if text and not self._answer(text):
                return 0

    def _prompt(self) -> str:
        """Say as of when is asked: whoever forgot it would take what was known then for what is known."""
        as_of = self._asker.as_of
        return PROMPT if as_of is None else f"odf as of {as_of}> "

    def _answer(self, text: str) -> bool:
        """Do what a text says; False: the shell ends."""
        try:
            with stop_on_signals():
                if (command := find_dot_command(text)) is not None:
                    return self._dots.run(command)
                ended, rest = self._asker.split(text)
                for statement in (*ended, rest) if rest else ended:
                    self._show(self._asker.ask(statement))
        except Stopped as stopped:
            if stopped.number != signal.SIGINT:
                raise
            self._asker.context.node.engines.renew()
            self._console.note("stopped")
        except OdfError as error:
            report_failure("sql", error)
        except OSError as error:
            self._console.warn(error.strerror or str(error))
        return True

    def _show(self, answer: "QueryAnswer") -> None:
        manner = self._manner
        if manner.file is not None:
            output_format, path = manner.file
            self._asker.write(answer, output_format, path)
            manner.file = None
            return
        pager = find_pager(os.environ) if manner.has_pages else None
        if pager is None:
            self._asker.write(answer, manner.output_format, None)
            return
        whole = io.StringIO()
        write_rows(Console(quiet=self._console.quiet, out=whole), answer.rows, manner.output_format)
        room = shutil.get_terminal_size()
        # CSV and JSON are for programs as they are; whoever reads them here, also through a pager, is at a terminal.
        shown = printable(whole.getvalue())
        lines = shown.splitlines()
        if len(lines) < room.lines and all(len(line) <= room.columns for line in lines):
            self._console.raw(shown)
        elif lines:
            page(shown, pager, os.environ)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter", filter=Condition(lambda: self._is_whole(get_app().current_buffer.text)))
        def enter(event: KeyPressEvent) -> None:
            event.current_buffer.validate_and_handle()

        return keys

    def _is_whole(self, text: str) -> bool:
        """Say whether Enter ends the input: it is a command of the shell, or nothing, or ends with a semicolon."""
        if not text.strip() or find_dot_command(text.strip()) is not None:
            return True
        try:
            _, rest = self._asker.split(text)
        except InvalidQueryError:
            return False  # inside of a quote
        return not rest

    def _list_choices(self) -> dict[str, tuple[str, ...]]:
        choices = {
            ".as-of": (OFF,),
            ".engine": (USUAL, *self._asker.context.node.engines.list_answering_engines()),
            ".format": FORMATS,
            ".pages": ("on", OFF),
        }
        return {command.split()[0]: choices.get(command.split()[0], ()) for command in HELP}


def open_history(path: Path) -> History:
    """Open the questions of earlier shells; where the home cannot be written, or is not there, those of this one."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        return FileHistory(path)
    return InMemoryHistory()
