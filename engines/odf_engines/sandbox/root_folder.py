"""Showing a sandbox a root folder that somebody else packed, as its own root.

Source: clauses SANDBOX-3 and ADDED-15 in ``spec/extensions``.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from odf_engines.sandbox.profile import Mount

MADE_ANEW: Final = frozenset({"dev", "proc", "sys", "tmp"})
"""Folders at the top that every sandbox makes for itself, or does without, whatever an archive has there."""


def show_root(root: Path, own: Collection[str] = ()) -> tuple[tuple[Mount, ...], dict[str, str]]:
    """Return what is at the top of a root folder as mounts, read only, and links, target by place.

    Args:
        root: The root folder.
        own: Names at the top that are the node's.
    """
    shown = [path for path in sorted(root.iterdir()) if path.name not in MADE_ANEW | frozenset(own)]
    mounts = tuple(Mount(path, f"/{path.name}") for path in shown if not path.is_symlink())
    return mounts, {f"/{path.name}": str(path.readlink()) for path in shown if path.is_symlink()}
