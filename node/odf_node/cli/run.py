"""Run one parsed command: open the context, map every failure to a line and an exit code.

Every failure that is expected is an ``OdfError``. Anything else is a defect of this program: it too ends in one line,
and what a developer needs to fix it goes to a file, or to the terminal where ``ODF_NODE_DEBUG`` is set.
"""

import argparse
import errno
import os
import select
import signal
import sys
from typing import Final

from odf_engines.errors import (
    EngineMissingError,
    InvalidQueryError,
    InvalidSourceError,
    NotReproducibleError,
    SandboxUnavailableError,
    UnusableEngineError,
)
from odf_node.cli.awaiting import finish_or_stop
from odf_node.cli.console import Console, printable_line, printable_lines
from odf_node.cli.context import CommandContext
from odf_node.cli.explaining import explained, write_fault_report
from odf_node.cli.failures import show_traceback
from odf_node.cli.registry import find_command
from odf_node.cli.rejection_text import describe_cells, describe_rejection
from odf_node.cli.stopping import Stopped, exit_code_of_signal, stop_on_signals
from odf_node.errors import ProposalRejectedError, UsageError
from odf_node.ports.access import Requester, set_process_requester
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
    NotReproducibleError: 2,
    InvalidQueryError: 7,
    InvalidSourceError: 7,
    EngineMissingError: 8,
    UnusableEngineError: 8,
    NotFoundError: 3,
    RejectedError: 4,
    UnavailableError: 5,
    CorruptError: 6,
    MalformedError: 7,
    UnsupportedError: 8,
    OdfError: 1,
}
"""The first class that an error is an instance of decides; a table of the guide `reference` is tested against it."""

DEBUG_VARIABLE: Final = "ODF_NODE_DEBUG"
"""Set to 1, it shows the traceback of every failure on standard error."""

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def run_command(arguments: argparse.Namespace) -> int:
    """Run the command that ``arguments`` name and return its exit code."""
    command = str(arguments.command)
    if not arguments.verbose and arguments.log_file is None:
        return _run_and_answer(command, arguments)

    try:
        return explained(command, arguments, lambda: _run_and_answer(command, arguments))
    except OSError as error:  # of the file for the log
        return _fail_of_system(command, error)


def _run_and_answer(command: str, arguments: argparse.Namespace) -> int:
    try:
        with stop_on_signals():
            code = _run(command, arguments)
            # Here and not at the end of the process, where a failure could not be told any more.
            Console().flush()
            return code
    except KeyboardInterrupt as stopped:
        number = stopped.number if isinstance(stopped, Stopped) else signal.SIGINT
        _on_progress(command, "stopped; nothing was left half-done")
        _leave_stdout()
        return exit_code_of_signal(number)
    except OdfError as error:
        return report_failure(command, error)
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _reader_is_gone():
            # The reader of our output has gone (`odf-node log | head`); that is its business, not an error.
            _leave_stdout()
            return 0
        return _fail_of_system(command, error)
    except Exception as error:  # noqa: BLE001 - the edge of the program: no defect may end in a traceback
        return _fail_of_ours(command, error)


def exit_code_of(error: Exception) -> int:
    """Find the exit code that stands for ``error``."""
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)


def _run(command: str, arguments: argparse.Namespace) -> int:
    found = find_command(command)
    assert found is not None  # its parser has read the arguments
    set_process_requester(Requester(door="daemon" if command == "serve" else "cli", work=command))
    with CommandContext.from_arguments(arguments) as context:
        result = found.run(context, arguments)
        return result if isinstance(result, int) else finish_or_stop(result, context.stop)


def report_failure(command: str, error: OdfError) -> int:
    """Say on standard error what failed, and return the exit code that stands for it. Call it where it is caught."""
    _show_traceback()
    _flush_or_leave()
    report = getattr(error, "report", None)
    if report:
        if isinstance(error, ProposalRejectedError):
            print("\n".join(map(printable_line, describe_rejection(report))), file=sys.stderr)
        else:
            _on_progress(command, str(error), *describe_cells(report))
    else:
        advice = "; 'odf-node doctor' says how to fix it" if isinstance(error, SandboxUnavailableError) else ""
        _on_progress(command, f"{error}{advice}")
    return exit_code_of(error)


def _fail_of_system(command: str, error: OSError) -> int:
    """Say what the operating system rejected where no port has put it into the words of our errors."""
    _show_traceback()
    _flush_or_leave()
    _on_progress(command, f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}")
    return EXIT_CODES[UnavailableError] if error.errno in _NO_ROOM else EXIT_CODES[OdfError]


def _fail_of_ours(command: str, error: Exception) -> int:
    _show_traceback()
    _flush_or_leave()
    text = f"this is a fault of odf-node itself: {type(error).__name__}: {error}"
    try:
        path = write_fault_report(command, error)
    except OSError as failure:
        _on_progress(
            command, text, f"No report could be written ({failure}); {DEBUG_VARIABLE}=1 shows where it happened."
        )
    else:
        _on_progress(command, text, f"Nothing half-done was kept. Please send {path} to those who make odf-node.")
    return EXIT_CODES[OdfError]


def _on_progress(command: str, text: str, *more: str) -> None:
    """Say what failed, which may quote others; each of ``more`` is a line of its own."""
    lines = [printable_lines(f"odf-node {command}: {text}"), *map(printable_line, more)]
    print("\n".join(lines), file=sys.stderr, flush=True)


def _show_traceback() -> None:
    """Show where a failure arose to whoever asked for it; call it where it is caught."""
    show_traceback(is_wanted=os.environ.get(DEBUG_VARIABLE, "0") not in {"", "0"})


def _flush_or_leave() -> None:
    """Write out what is in standard output's buffer, before the error."""
    try:
        sys.stdout.flush()
    except OSError:
        _leave_stdout()


def _leave_stdout() -> None:
    """Let what is still to be written go nowhere, so that the end of the process does not fail on it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _reader_is_gone() -> bool:
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
