"""What engines keep on a machine is made once, also when several processes want it at the same time.

Source: clauses ENGINE-13 and ENGINE-20 in ``spec/extensions/engine-contract.md``.
"""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

__all__ = ["locked"]


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is made if need be; wait for whoever holds it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
