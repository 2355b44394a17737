"""Files that a user names on the command line: looked at before work starts, so that a slip is told at once."""

import os
import stat
import sys
from typing import Final

from odf_node.errors import UsageError
from odf_protocol.errors import NotFoundError, UnavailableError

LARGEST_BYTES: Final = 64 * 1024 * 1024  # guess: many times the largest manifest or block that is read


class InputFileNotFoundError(NotFoundError):
    """There is no file of that name."""


class InputFileUnavailableError(UnavailableError):
    """The file is there and cannot be read."""


def read_input(name: str) -> bytes:
    """Read a small file, or standard input where the name is ``-``.

    Raises:
        InputFileNotFoundError, InputFileUnavailableError, UsageError: As ``check_input``; or it is far too large.
    """
    if name == "-":
        content = sys.stdin.buffer.read(LARGEST_BYTES + 1)
    else:
        check_input(name)
        with open(name, "rb") as file:  # noqa: PTH123 - devices and pipes have no other way
            content = file.read(LARGEST_BYTES + 1)
    if len(content) > LARGEST_BYTES:
        raise UsageError(f"{name} has more than {LARGEST_BYTES // 1024**2} MiB; a file of this kind is smaller")
    return content


def check_input(name: str) -> None:
    """Make sure that a file can be read.

    Raises:
        InputFileNotFoundError: Nothing has that name.
        InputFileUnavailableError: This user may not read it, or the disk does not answer.
        UsageError: It is a folder.
    """
    try:
        mode = os.stat(name).st_mode  # noqa: PTH116 - as above
        if stat.S_ISDIR(mode):
            raise UsageError(f"{name} is a folder; name a file")
        if stat.S_ISREG(mode):
            os.close(os.open(name, os.O_RDONLY | os.O_CLOEXEC))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputFileNotFoundError(f"there is no file {name}") from error
    except (OSError, ValueError) as error:
        raise InputFileUnavailableError(f"{name} cannot be read: {getattr(error, 'strerror', error)}") from error
