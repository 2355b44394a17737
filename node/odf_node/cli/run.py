"""Run one parsed command: open the context, map every expected failure to a line and an exit code."""

import argparse
import importlib
import os
import sys
from collections.abc import Coroutine
from typing import Any, Final

from odf_node.cli.context import Context
from odf_node.errors import RefusedError, UsageError
from odf_protocol.errors import (
    CorruptError,
    MalformedError,
    NotFoundError,
    OdfError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)

EXIT_CODES: Final[dict[type[OdfError], int]] = {
    UsageError: 2,
    NotFoundError: 3,
    RejectedError: 4,
    UnavailableError: 5,
    CorruptError: 6,
    MalformedError: 7,
    UnsupportedError: 8,
    OdfError: 1,
}
"""The first class that an error is an instance of decides; the README's table is tested against this one."""

INTERRUPTED: Final = 130
"""What shells report for a process ended by Ctrl-C (128 + SIGINT)."""


def run_command(arguments: argparse.Namespace) -> int:
    """Run the command that ``arguments`` name and return its exit code."""
    module = importlib.import_module(f"odf_node.cli.commands.{arguments.command}")
    try:
        context = Context.from_arguments(arguments)
        with context:
            result = module.run(context, arguments)
            code = result if isinstance(result, int) else _run_asynchronous(result)
    except OdfError as error:
        return _fail(arguments.command, error)
    except KeyboardInterrupt:
        print(f"odf-node {arguments.command}: stopped; nothing half-done was kept", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`odf-node log | head`); that is its business, not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(arguments.command, error)
    return code


def _run_asynchronous(result: Coroutine[Any, Any, int]) -> int:
    import asyncio

    return asyncio.run(result)


def exit_code_of(error: Exception) -> int:
    """Find the exit code that stands for ``error``."""
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)


def _fail(command: str, error: Exception) -> int:
    sys.stdout.flush()
    text = f"odf-node {command}: {error}"
    report = getattr(error, "report", None)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        text = f"odf-node {command}: {where}{error.strerror or error}"
    elif report:
        from odf_node.cli.refusal_text import describe_cells, describe_refusal

        here = isinstance(error, RefusedError)
        text = "\n".join(describe_refusal(report) if here else [text, *describe_cells(report)])
    print(text, file=sys.stderr)
    return exit_code_of(error)
