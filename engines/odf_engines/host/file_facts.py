"""What was found out about files of an engine, remembered with their size, times and number on disk.

Hashing 800 MB takes seconds, and reading all code of ours a good part of one; both are asked for again and again, about
files that hardly ever change.

Source: clause ENGINE-10 in ``spec/extensions/engine-contract.md``.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

_FORMAT = 2
_ENTRY_LENGTH = 5  # the fact, and the mark of the file

_Fact = TypeVar("_Fact")


class FileFacts(Generic[_Fact]):
    """What a function says about files, asked again only for files that changed.

    Args:
        cache: Folder where it is kept, made if missing; may be deleted at any time. None to keep it nowhere.
        name: Of what is kept there.
        ask: The function; its answers can be written as JSON.
    """

    def __init__(self, cache: Path | None, name: str, ask: Callable[[Path], _Fact]) -> None:
        self._store = None if cache is None else cache / f"{name}-{_FORMAT}.json"
        self._ask = ask
        self._known = {} if self._store is None else _load(self._store)
        self._is_fresh = False

    def get(self, path: Path) -> _Fact:
        """Return the answer for a file."""
        found = path.stat()
        # The time of last change is kept by the kernel; a copy that keeps its modification time cannot fake it.
        mark = [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
        entry = self._known.get(str(path))
        if entry is None or entry[1:] != mark:
            entry = self._known[str(path)] = [self._ask(path), *mark]
            self._is_fresh = True
        fact: _Fact = entry[0]
        return fact

    def save(self) -> None:
        """Keep what is new."""
        if self._is_fresh and self._store is not None:
            _save(self._store, self._known)


def _load(store: Path) -> dict[str, list[Any]]:
    try:
        entries = json.loads(store.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(entries, dict):
        return {}
    return {path: entry for path, entry in entries.items() if isinstance(entry, list) and len(entry) == _ENTRY_LENGTH}


def _save(store: Path, entries: dict[str, list[Any]]) -> None:
    """Replace the store at once, so that a second process reads the old or the new one; failing costs only time."""
    with contextlib.suppress(OSError):
        store.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=store.parent, prefix=f".{store.name}.")
        with os.fdopen(descriptor, "w") as file:
            json.dump({path: entry for path, entry in entries.items() if Path(path).exists()}, file)
        Path(name).replace(store)
