"""``-v`` and ``--log-file``: what a command does, told while it does it.

Source: clause OBSERVE-10 in ``spec/observing.md``.
"""

import argparse
import logging
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

from odf_node import __version__
from odf_node.cli.console import printable_lines

_ALL: Final = logging.getLogger("odf_node")
_SERVED: Final = logging.getLogger("odf_node.http")
"""Lines of the daemon, which go to standard error by themselves."""


class _Printable(logging.Formatter):
    """Leaves nothing in a line that moves the cursor of whoever reads it, nor a line end that begins another one."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


def explained(command: str, arguments: argparse.Namespace, run: Callable[[], int]) -> int:
    """Run a command, and tell on standard error or in a file what it does.

    Args:
        command: Its name.
        arguments: With ``verbose`` and ``log_file``.
        run: Runs it, and returns its exit code.

    Raises:
        OSError: The file cannot be written.
    """
    handlers: list[logging.Handler] = []
    began_s = time.monotonic()
    try:
        if arguments.log_file is not None:
            handlers.append(_open_file(Path(arguments.log_file).expanduser()))
            _SERVED.addHandler(handlers[0])
        # Warnings get there anyhow, until somebody else hears of them.
        handlers.append(logging.StreamHandler(sys.stderr))
        handlers[-1].setFormatter(_Printable("%(message)s"))
        handlers[-1].setLevel(logging.INFO if arguments.verbose else logging.WARNING)
        for each in handlers:
            _ALL.addHandler(each)
        _ALL.setLevel(logging.DEBUG)
        # Not its arguments: an address may hold a password.
        _ALL.debug("%s begins: odf-node %s, Python %s", command, __version__, platform.python_version())
        code = run()
        _ALL.info("%s ended after %.2f s with exit code %d", command, time.monotonic() - began_s, code)
        return code
    finally:
        _ALL.setLevel(logging.NOTSET)
        for each in handlers:
            _ALL.removeHandler(each)
            _SERVED.removeHandler(each)
            each.close()


def _open_file(path: Path) -> logging.Handler:
    """Open a file to append to; where it is new, nobody else may read it."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(_Printable("%(asctime)s.%(msecs)03dZ %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    handler.setLevel(logging.DEBUG)
    return handler


def write_fault_report(command: str, error: Exception) -> Path:
    """Write the traceback, and what it ran on, to a new file that only this user can read.

    The words of the command line are left out: they may hold tokens.

    Raises:
        OSError: There is no place for temporary files.
    """
    with tempfile.NamedTemporaryFile(
        "w", prefix="odf-node-fault-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as file:
        file.write(f"odf-node {__version__}, command {command}\n")
        file.write(f"Python {platform.python_version()}, {platform.platform()}\n\n")
        file.writelines(traceback.format_exception(error))
    return Path(file.name)
