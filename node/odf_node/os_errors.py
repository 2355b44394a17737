"""Failures of the operating system in the words of our errors, in one place."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from odf_node.ports.errors import HomeFullError, HomeReadOnlyError

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE})
_NOT_WRITABLE: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


@contextmanager
def mapped_os_errors(path: Path) -> Iterator[None]:
    """Raise HomeFullError or HomeReadOnlyError for what the operating system refuses to write below ``path``.

    Other failures pass: they are mistakes of our own code.
    """
    try:
        yield
    except OSError as error:
        where = Path(error.filename) if isinstance(error.filename, str) else path
        reason = error.strerror or str(error)
        if error.errno in _NO_ROOM:
            raise HomeFullError(where, reason) from error
        if error.errno in _NOT_WRITABLE:
            raise HomeReadOnlyError(where, reason) from error
        raise
