"""The user's folder for what this program can make again."""

import os
from pathlib import Path


def user_cache() -> Path:
    """Return this user's folder for what can be made again; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "odf-node"
