"""The shell of ``odf-node sql``: questions and answers on a terminal, until Ctrl-D (QUERY-10).

The prompt, its history and its keys are a library's, which only this module and ``words`` load. Between two questions
the session of the engine stays.
"""

import io
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]  # it says none

from odf_engines.errors import InvalidQueryError
from odf_node.cli.asking.dots import HELP, OFF, USUAL, DotCommands, Manner
from odf_node.cli.asking.pager import find_pager, page
from odf_node.cli.asking.question import Asker
from odf_node.cli.asking.words import WordCompleter
from odf_node.cli.console import Console
from odf_node.cli.rows import FORMATS, write_rows
from odf_node.cli.run import tell_failure
from odf_node.cli.stopping import Stopped, stop_on_signals
from odf_protocol.errors import OdfError

if TYPE_CHECKING:
    from odf_node.datasets.queries import Answer

PROMPT: Final = "odf> "
CONTINUED: Final = "...> "
ENDS: Final = frozenset({"exit", "quit"})
"""What people type to leave other shells; no statement of SQL begins so."""


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
            history=open_history(self._asker.context.node.home.question_history),
            lexer=PygmentsLexer(SqlLexer),
            completer=WordCompleter(self._asker.context.node.queries.list_tables, self._list_choices()),
            complete_while_typing=False,
            key_bindings=self._keys(),
            multiline=True,
            prompt_continuation=CONTINUED,
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
        if text.lower() in ENDS:
            return False
        try:
            with stop_on_signals():
                if text.startswith("."):
                    return self._dots.run(text)
                ended, rest = self._asker.split(text)
                for statement in (*ended, rest) if rest else ended:
                    self._show(self._asker.ask(statement))
        except Stopped as stopped:
            if stopped.number != signal.SIGINT:
                raise
            self._asker.context.node.engines.renew()
            self._console.note("stopped")
        except OdfError as error:
            tell_failure("sql", error)
        except OSError as error:
            self._console.warn(error.strerror or str(error))
        return True

    def _show(self, answer: "Answer") -> None:
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
        lines = whole.getvalue().splitlines()
        if len(lines) < room.lines and all(len(line) <= room.columns for line in lines):
            self._console.raw(whole.getvalue())
        elif lines:
            page(whole.getvalue(), pager, os.environ)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter", filter=Condition(lambda: self._is_whole(get_app().current_buffer.text)))
        def enter(event: KeyPressEvent) -> None:
            event.current_buffer.validate_and_handle()

        return keys

    def _is_whole(self, text: str) -> bool:
        """Say whether Enter ends the input: it is a dot command, or nothing, or ends with a semicolon."""
        if not text.strip() or text.lstrip().startswith("."):
            return True
        try:
            _, rest = self._asker.split(text)
        except InvalidQueryError:
            return False  # inside of a quote
        return not rest or text.strip().lower() in ENDS

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
