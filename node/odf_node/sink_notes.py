"""Which entry of quarantine each sink of each dataset had last: a file of the home that may be gone.

Source: clause SINK-4 in ``spec/plug-ins/corrections.md``.
"""

import fcntl
import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

NOTES_FILE: Final = "sinks.json"
_LOCK_FILE: Final = ".sinks.lock"
_MAX_NOTES_BYTES: Final = 64 * 1024**2  # as those of notices

Notes = dict[str, dict[str, int]]
"""By the identity of a dataset and the declaration of a sink."""


@contextmanager
def held_notes(cache: Path, *, waits: bool = True) -> Iterator[Notes]:
    """Hold what was delivered, alone among all processes, and write it down behind.

    Raises:
        BlockingIOError: Another process holds it, and nobody ``waits``.
    """
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = cache / NOTES_FILE
    with (cache / _LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        notes = read_notes(cache)
        try:
            yield notes
        finally:
            temporary = path.with_name(f".{NOTES_FILE}")
            with suppress(OSError):  # then an entry comes twice
                temporary.touch(mode=0o600)  # parameters may have a secret
                temporary.write_text(json.dumps(notes), encoding="utf-8")
                temporary.replace(path)


def read_notes(cache: Path) -> Notes:
    """Return who had which entry last; a file that cannot be read is none, and entries come twice."""
    path = cache / NOTES_FILE
    try:
        if path.stat().st_size > _MAX_NOTES_BYTES:
            return {}
        found = json.loads(path.read_bytes())
        return {str(key): {str(sink): int(last) for sink, last in each.items()} for key, each in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return {}


def forget_notes(cache: Path, list_kept: Callable[[], Collection[str]]) -> None:
    """Forget what datasets that are gone had; while somebody delivers, that is left to the next time.

    Args:
        cache: Of the home.
        list_kept: Gives the identities of datasets that there are; asked after the notes, as new ones come first.
    """
    if not read_notes(cache):
        return
    with suppress(BlockingIOError), held_notes(cache, waits=False) as notes:
        kept = set(list_kept())
        for gone in notes.keys() - kept:
            del notes[gone]
