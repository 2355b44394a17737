"""Results of probes of this machine, kept in the user's cache until the machine starts again.

A probe starts programs, for which every command would pay. Only success is kept: what is missing is tried again each
time. A success that no longer holds weakens nothing: bubblewrap then fails, and with it the start of the program.

A result holds for one boot, one user, one set of namespaces (containers share a home and a kernel), and the files that
were tried as they were. The file of results counts only if it is this user's and no other can write it.

Source: clause SANDBOX-19 in ``spec/extensions/sandbox.md``.
"""

import contextlib
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any, Final

from odf_engines.user_cache import user_cache

_FILE: Final = "sandbox-probes.json"
_MAX_BYTES: Final = 1024 * 1024  # guess: filters have some kilobytes each
_MAX_RESULTS: Final = 32  # guess: of some containers, and of some versions of bubblewrap


def find_result(probe: str, *files: Path) -> str | None:
    """Return what a probe found since this machine started; None if it must be made.

    Args:
        probe: Its name.
        files: What was tried, as it is now.
    """
    with contextlib.suppress(OSError):
        return _read().get(_key(probe, files))
    return None


def keep_result(probe: str, found: str, *files: Path) -> None:
    """Keep what a successful probe found; nothing where the cache cannot be written."""
    with contextlib.suppress(OSError):
        key = _key(probe, files)
        kept = _read()
        kept.pop(key, None)
        kept[key] = found
        _write(dict(list(kept.items())[-_MAX_RESULTS:]))


def forget_results() -> None:
    """Have every probe made again."""
    with contextlib.suppress(OSError):
        (user_cache() / _FILE).unlink()


def _key(probe: str, files: tuple[Path, ...]) -> str:
    """Name a result by all that it depends on.

    Raises:
        OSError: A file is missing, or this system tells no boot.
    """
    namespaces = [os.readlink(f"/proc/self/ns/{kind}") for kind in ("mnt", "user", "pid")]  # noqa: PTH115 - no path
    known = [f"{each} {(status := each.stat()).st_mtime_ns} {status.st_size} {status.st_ino}" for each in files]
    return json.dumps([_boot(), os.geteuid(), *namespaces, probe, *known])


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _read() -> dict[str, str]:
    """Return the results of this boot by key; none where the file is not only ours or makes no sense."""
    try:
        descriptor = os.open(user_cache() / _FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return {}
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
        if not is_ours or status.st_size > _MAX_BYTES:
            return {}
        raw = file.read(_MAX_BYTES)
    try:
        found: Any = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    beginning = json.dumps([_boot()])[:-1]
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        return {}
    return {key: value for key, value in found.items() if key.startswith(beginning)}


def _write(results: dict[str, str]) -> None:
    folder = user_cache()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, path = tempfile.mkstemp(dir=folder, prefix=".sandbox-probes-")  # readable by this user only
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(results, file)
        Path(path).replace(folder / _FILE)
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise
