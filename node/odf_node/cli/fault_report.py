"""What a developer needs to know about a defect that a user met, in a file of its own."""

import platform
import tempfile
import traceback
from pathlib import Path

from odf_node import __version__


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
