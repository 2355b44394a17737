"""What is at work, told to the host by a file: whoever kills the sandbox can say whose fault it was.

Source: clause VALID-4 in ``spec/validation.md``; of a step ENGINE-16.
"""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CONVERTER", "READER", "VALIDATOR", "RunningName", "find_running", "read_running"]

READER, CONVERTER, VALIDATOR = "reader", "converter", "validator"
"""What is told before the name of a plug-in."""

_FILE = "at-work"
_MAX_BYTES = 200  # guess: names of classes are shorter


@dataclass(slots=True)
class RunningName:
    """Tells what is at work, as ``validator Range``.

    Attributes:
        folder: Of the request's output.
        name: What was told last, empty where none is at work.
    """

    folder: Path
    name: str = ""

    def tell(self, name: str) -> None:
        """Say that a plug-in begins; the empty name: that all have ended."""
        if name == self.name:
            return
        self.name = name
        path = self.folder / _FILE
        if name:
            path.write_text(name, encoding="utf-8")
        else:
            path.unlink(missing_ok=True)


def find_running(folder: Path, known: frozenset[str]) -> str | None:
    """Return the name that was told last, on the host: None if it is none of those that may be told."""
    reported = read_running(folder)
    return reported if reported in known else None


def read_running(folder: Path) -> str | None:
    """Return what was told last, which may be anything, on the host; None where nothing was."""
    try:
        descriptor = os.open(folder / _FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, _MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)
