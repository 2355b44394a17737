"""The processes that this one has started and that have not ended, whichever of its threads did."""

import os
from pathlib import Path


def find_children(word: str = "") -> set[str]:
    """Return the numbers of those whose command has a word in it."""
    processes = (folder for folder in Path("/proc").iterdir() if folder.name.isdigit())
    return {each.name for each in processes if _is_child(each) and word in _read(each / "cmdline")}


def _is_child(process: Path) -> bool:
    return f"\nPPid:\t{os.getpid()}\n" in _read(process / "status")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it has ended
