"""Questions in SQL: bring what one needs, ask, write the answer; several of a script in order (QUERY-9)."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from odf_engines.host.query_tokens import split_statements
from odf_node.cli.context import CommandContext
from odf_node.cli.missing_files import bring_files, finish_transfers
from odf_node.cli.rows import write_rows
from odf_node.cli.run import report_failure
from odf_node.configuration.declaration import QUERY_ENGINE
from odf_node.errors import UsageError
from odf_node.remote_names import RemoteQuery, find_remote_names
from odf_node.remote_tables import RemoteTables
from odf_protocol.errors import OdfError
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from odf_node.cli.progress import Progress
    from odf_node.datasets.queries import QueryAnswer


@dataclass(slots=True)
class Asker:
    """Asks one question after the other, and says what the user chose for all of them.

    Attributes:
        context: Of the command.
        engine: Which answers; None: DataFusion.
        as_of: Answer as was known by then.
        max_rows: Cut answers there; None for all of them.
    """

    context: CommandContext
    engine: str | None
    as_of: Timestamp | None
    max_rows: int | None
    _remote: RemoteTables | None = None

    def ask(self, sql: str) -> "QueryAnswer":
        """QueryAnswer one query.

        Raises:
            OdfError: As ``QueryRunner.run`` and ``bring_files``.
        """
        with self.context.console.progress("running the query") as progress:
            queries, asked = self.context.node.queries, RemoteQuery(sql)
            if find_remote_names(sql, self.engine or QUERY_ENGINE):
                asked = self._bring_tables(sql, progress)
            bring_files(self.context, queries.list_absent(asked.sql, as_of=self.as_of), progress)
            answer = queries.run(
                asked.sql, as_of=self.as_of, max_rows=self.max_rows, engine=self.engine, more=asked.tables
            )
        for note in asked.notes:
            self.context.console.note(note)
        return answer

    def close(self) -> None:
        """Forget what was brought for questions."""
        if self._remote is not None:
            self._remote.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _bring_tables(self, sql: str, progress: "Progress") -> RemoteQuery:
        self._remote = self._remote or RemoteTables(self.context.node)
        work = self._remote.bring(sql, engine=self.engine, as_of=self.as_of, progress=progress)
        return finish_transfers(self.context, work)

    def split(self, text: str) -> tuple[tuple[str, ...], str]:
        """Split a text into statements that a semicolon ends, and the rest behind the last one (QUERY-9).

        Raises:
            InvalidQueryError: A quote does not end.
        """
        found = split_statements(text, self.engine or QUERY_ENGINE)
        return found.ended, found.rest

    def write(self, answer: "QueryAnswer", output_format: str, path: Path | None) -> None:
        """Write an answer to a file, or to standard output where ``path`` is None.

        Raises:
            UsageError, ResultNotWrittenError: As ``write_rows``.
        """
        write_rows(self.context.console, answer.rows, output_format, path=path)


MAX_BYTES: Final = 64 * 1024 * 1024  # guess: a script of people's is a thousand times shorter


def read_script(path: Path | None) -> str:
    """Read the statements of a file, or of standard input where ``path`` is None.

    Raises:
        UsageError: It cannot be read, is no text, or is too long.
    """
    name = "standard input" if path is None else str(path)
    try:
        if path is None:
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with path.open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: is no text in UTF-8, at byte {error.start}") from error
    if len(raw) > MAX_BYTES:
        raise UsageError(f"{name}: expected at most {MAX_BYTES} bytes of statements")
    return text


def run_script(asker: Asker, text: str, output_format: str, path: Path | None) -> int:
    """QueryAnswer every statement of a script.

    Args:
        asker: Who asks.
        text: The statements; the last one needs no semicolon.
        output_format: Of every answer.
        path: Where the answer goes, None for standard output.

    Returns:
        The exit code: that of the first statement that failed, 0 where none did.

    Raises:
        UsageError: There is no statement, or there are several answers for one file.
        InvalidQueryError: A quote does not end.
    """
    ended, rest = asker.split(text)
    statements = (*ended, rest) if rest else ended
    if not statements:
        raise UsageError("there is no statement to answer")
    if path is not None and len(statements) > 1:
        raise UsageError(
            f"{path} has room for one answer, and there are {len(statements)} statements; ask them one by one"
        )
    for number, statement in enumerate(statements, 1):
        try:
            asker.write(asker.ask(statement), output_format, path)
        except OdfError as error:
            if len(statements) == 1:
                raise
            return report_failure(f"sql: statement {number} of {len(statements)}", error)
        if output_format == "table" and number < len(statements):
            asker.context.console.text("")
    return 0
