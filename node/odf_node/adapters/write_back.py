"""A hint to the system: begin to write a part of a file to the disk, which the file's fsync then need not wait for.

Bytes stay in memory until somebody asks for them to be durable, or many seconds pass. For a large file that arrives
over seconds the disk would idle meanwhile, and the file's end be waited for while it writes all of it.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

_WRITE: Final = 2  # Source: sync_file_range(2), SYNC_FILE_RANGE_WRITE


def begin_write_back(descriptor: int, start: int, count: int) -> None:
    """Begin to write ``count`` bytes from ``start``; nothing is promised, and nothing happens where it is unknown."""
    if (call := _find_call()) is not None:
        call(descriptor, start, count, _WRITE)  # errors of the disk are left for fsync to tell


@lru_cache(maxsize=1)
def _find_call() -> Callable[[int, int, int, int], int] | None:
    import ctypes  # here: only large objects are worth loading it

    call = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return call
