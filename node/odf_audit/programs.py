"""What is known of the program that runs: who started it where, and which code it is.

Source: clauses AUDIT-2 and AUDIT-3 in ``spec/plug-ins/audit.md``.
"""

import hashlib
import os
import platform
import pwd
import re
import socket
import stat
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from sys import modules as loaded_modules  # looked at, never changed
from typing import Any, Final

from odf_audit.texts import WORD_CHARACTERS, bounded, without_secrets
from odf_node import __version__
from odf_node.adapters.rerun_homes import RERUN_VARIABLE

_MAX_SCRIPT_BYTES: Final = 16 << 20  # guess: no program that people write is larger
_MAX_REF_BYTES: Final = 1 << 20  # guess: packed references of a large repository
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_GIT_WAIT_S: Final = 10.0  # guess: a repository with a million files
_LOOK_EACH_S: Final = 5.0  # guess: a program that makes another session is seen soon


def describe_program() -> dict[str, Any]:
    """Describe this process as it is kept: JSON values, bounded, without secrets."""
    words, is_shortened = without_secrets(sys.orig_argv)
    script = find_script()
    described: dict[str, Any] = {
        "user": bounded(_find_user()),
        "host": bounded(socket.gethostname()),
        "pid": os.getpid(),
        "words": list(words),
        "wordsShortened": is_shortened,
        "folder": bounded(_find_folder(), WORD_CHARACTERS),
        "python": platform.python_version(),
        "version": __version__,
    }
    if script is not None:
        described["script"] = bounded(str(script), WORD_CHARACTERS)
        described["scriptHash"] = hash_script(script)
    repository = find_repository(script)
    if repository is not None:
        described["gitCommit"] = read_commit(repository)
    if rerun_of := os.environ.get(RERUN_VARIABLE):
        described["rerunOf"] = bounded(rerun_of)
    return described


def find_script() -> Path | None:
    """Return the file of the program that runs; None: there is none, or it is this program itself."""
    file = getattr(loaded_modules.get("__main__"), "__file__", None)
    if not isinstance(file, str):
        return None
    path = Path(file).absolute()
    # ``python -m odf_node``, and the script that pip makes for it: the version says which code that is.
    is_ours = path.parent.name == "odf_node" or path.name == "odf-node"
    return None if is_ours else path


def hash_script(script: Path) -> str | None:
    """Return the SHA3-256 of a program's file; None: it cannot be read, or is too large."""
    with suppress(OSError):
        read = _read_file(script, _MAX_SCRIPT_BYTES + 1)
        if read and len(read) <= _MAX_SCRIPT_BYTES:
            return hashlib.sha3_256(read).hexdigest()
    return None


def find_repository(script: Path | None) -> Path | None:
    """Return the folder ``.git`` (or the file that stands for it) of the repository that a program is in.

    One above it that is neither its owner's nor this user's is none: others may make folders in ``/tmp``.
    """
    if script is None:
        return None
    with suppress(OSError):
        path = script.resolve()
        owners = {os.geteuid(), path.stat().st_uid}
        for folder in path.parents:
            place = folder / ".git"
            if place.exists():
                return place if place.stat().st_uid in owners else None
    return None


def read_commit(repository: Path) -> str | None:
    """Read which commit is checked out; runs no program. Source: gitrepository-layout(5)."""
    with suppress(OSError, ValueError):
        folder = repository
        if repository.is_file():
            folder = (repository.parent / _read_text(repository).removeprefix("gitdir:").strip()).resolve()
        head = _read_text(folder / "HEAD").strip()
        if not head.startswith("ref:"):
            return head if _COMMIT.fullmatch(head) else None
        name = head.removeprefix("ref:").strip()
        common = folder
        if (folder / "commondir").is_file():
            common = (folder / _read_text(folder / "commondir").strip()).resolve()
        for place in (folder / name, common / name):
            if ".." not in Path(name).parts and place.is_file():
                found = _read_text(place).strip()
                return found if _COMMIT.fullmatch(found) else None
        for line in _read_text(common / "packed-refs").splitlines():
            found, _, packed = line.partition(" ")
            if packed == name and _COMMIT.fullmatch(found):
                return found
    return None


def find_changes(script: Path | None) -> bool | None:
    """Ask git whether the repository of a program has changes that no commit has; None: it cannot be told.

    A program that is not in the repository is such a change. Nothing that the repository configures to be run is run by
    this, but for filters of its attributes.
    """
    repository = find_repository(script)
    if repository is None or script is None:
        return None
    changed = _ask_git(repository, "status", "--porcelain", "--untracked-files=no")
    if changed is None or changed:
        return None if changed is None else True
    # Literal: a name such as ``job[1].py`` is no pattern.
    listed = _ask_git(repository, "--literal-pathspecs", "ls-files", "--", str(script.resolve()))
    return None if listed is None else not listed


def _ask_git(repository: Path, *words: str) -> bytes | None:
    """Give what git prints; None: it failed, or took too long."""
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *words]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            command,
            cwd=repository.parent,
            capture_output=True,
            check=False,
            timeout=_GIT_WAIT_S,
            stdin=subprocess.DEVNULL,
        )
        return None if done.returncode else done.stdout.strip()
    return None


class SparkApplication:
    """The Spark application of this process, by Spark's public interface, looked up at most every few seconds."""

    def __init__(self) -> None:
        self._found = ""
        self._looked_s = -_LOOK_EACH_S

    def find(self) -> str:
        """Return Spark's id of the application; empty: no session is active in this process."""
        if "pyspark.sql" not in loaded_modules:
            return ""
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_EACH_S:
            self._looked_s = now_s
            self._found = self._look() or self._found
        return self._found

    def _look(self) -> str:
        try:
            session = loaded_modules["pyspark.sql"].SparkSession.getActiveSession()
            return "" if session is None else bounded(str(session.sparkContext.applicationId))
        except Exception:  # noqa: BLE001 - a session of Spark Connect has no context; one that ends fails in many ways
            return ""


def _read_text(path: Path) -> str:
    return _read_file(path, _MAX_REF_BYTES).decode("utf-8")


def _read_file(path: Path, max_bytes: int) -> bytes:
    """Read the beginning of a file; what is no file has nothing, and is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(max_bytes) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""


@cache
def _find_user() -> str:
    number = os.geteuid()
    with suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return str(number)


def _find_folder() -> str:
    with suppress(OSError):
        return str(Path.cwd())
    return ""
