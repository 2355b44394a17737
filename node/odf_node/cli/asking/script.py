"""Several questions, from a file or standard input: answered in order, up to the first that fails (QUERY-9)."""

import sys
from pathlib import Path
from typing import Final

from odf_node.cli.asking.question import Asker
from odf_node.cli.run import tell_failure
from odf_node.errors import UsageError
from odf_protocol.errors import OdfError

MOST_BYTES: Final = 64 * 1024 * 1024  # guess: a script of people's is a thousand times shorter


def read_script(path: Path | None) -> str:
    """Read the statements of a file, or of standard input where ``path`` is None.

    Raises:
        UsageError: It cannot be read, is no text, or is too long.
    """
    name = "standard input" if path is None else str(path)
    try:
        if path is None:
            raw = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with path.open("rb") as file:
                raw = file.read(MOST_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: is no text in UTF-8, at byte {error.start}") from error
    if len(raw) > MOST_BYTES:
        raise UsageError(f"{name}: expected at most {MOST_BYTES} bytes of statements")
    return text


def run_script(asker: Asker, text: str, output_format: str, path: Path | None) -> int:
    """Answer every statement of a script.

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
            return tell_failure(f"sql: statement {number} of {len(statements)}", error)
        if output_format == "table" and number < len(statements):
            asker.context.console.text("")
    return 0
