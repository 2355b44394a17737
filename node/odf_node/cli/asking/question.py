"""One question: bring what it needs, ask, write the answer."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odf_node.cli.context import Context
from odf_node.cli.missing_files import bring_files
from odf_node.cli.rows import write_rows
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from odf_node.datasets.queries import Answer


@dataclass(slots=True)
class Asker:
    """Asks one question after the other, and says what the user chose for all of them.

    Attributes:
        context: Of the command.
        engine: Which answers; None for the usual way.
        as_of: Answer as was known by then.
        max_rows: Cut answers there; None for all of them.
    """

    context: Context
    engine: str | None
    as_of: Timestamp | None
    max_rows: int | None

    def ask(self, sql: str) -> "Answer":
        """Answer one question; says which engine did where that is not the first one.

        Raises:
            OdfError: As ``QueryRunner.run`` and ``bring_files``.
        """
        with self.context.console.progress("running the query") as progress:
            queries = self.context.node.queries
            bring_files(self.context, queries.list_absent(sql, as_of=self.as_of), progress)
            answer = queries.run(sql, as_of=self.as_of, max_rows=self.max_rows, engine=self.engine)
        if answer.fallback is not None:
            self.context.console.note(f"answered by {answer.engine}: {answer.fallback}")
        return answer

    def split(self, text: str) -> tuple[tuple[str, ...], str]:
        """Split a text into statements that a semicolon ends, and the rest behind the last one (QUERY-9).

        Raises:
            InvalidQueryError: A quote does not end.
        """
        from odf_engines.dialects.statements import split_statements

        found = split_statements(text, self.engine or self.context.node.engine_roles.query)
        return found.ended, found.rest

    def write(self, answer: "Answer", output_format: str, path: Path | None) -> None:
        """Write an answer to a file, or to standard output where ``path`` is None.

        Raises:
            UsageError, ResultNotWrittenError: As ``write_rows``.
        """
        write_rows(self.context.console, answer.rows, output_format, path=path)
