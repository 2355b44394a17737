"""Shelves of the machine's cache: what engines keep there is made once, appears whole, and stays while it is used.

A shelf is a folder of files that took long to make, each under a name that says what it was made for. Several
processes may want one at the same time; all but one wait. Nothing on a shelf is needed: it can be deleted at any time.

Source: clause ENGINE-13 in ``spec/extensions/engine-contract.md``.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_MOST_KEPT = 8  # guess: so many checkouts one user works in at a time; archives of them all take about a gigabyte


def user_cache() -> Path:
    """Return this user's folder for what engines can make again."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "odf-node"


@dataclass(frozen=True, slots=True)
class CacheShelf:
    """One folder of such files.

    Attributes:
        folder: Made if need be.
        suffix: How their names end.
    """

    folder: Path
    suffix: str

    def find(self, name: str, *, is_good: Callable[[Path], bool]) -> Path | None:
        """Return a good thing if there is one, and count it as used now."""
        path = self._path(name)
        if not is_good(path):
            return None
        with contextlib.suppress(OSError):  # it may go meanwhile, and belong to somebody else
            os.utime(path)
        return path

    def make(self, name: str, make: Callable[[Path], Path], *, is_good: Callable[[Path], bool]) -> Path:
        """Return a good thing, making it if need be; those that were used least of late go.

        Args:
            name: Says what it is made for.
            make: Makes it somewhere in the folder it is given, and returns where; the folder is removed afterwards.
            is_good: Whether what stands at a path, if anything does, is whole and up to date.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._locked(name):
            if (found := self.find(name, is_good=is_good)) is not None:
                return found
            path = self._path(name)
            with tempfile.TemporaryDirectory(dir=self.folder, prefix=".making-") as folder:
                make(Path(folder)).replace(path)
            self._forget()
        return path

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{self.suffix}"

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with (self.folder / f"{name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _forget(self) -> None:
        for old in sorted(self._iter_kept(), key=_used_ns, reverse=True)[_MOST_KEPT:]:
            old.unlink(missing_ok=True)

    def _iter_kept(self) -> Iterator[Path]:
        """Yield what stands here, without what is being made and without locks."""
        for path in self.folder.iterdir():
            if not path.name.startswith(".") and path.suffix == self.suffix:
                yield path


def _used_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0  # it went meanwhile
