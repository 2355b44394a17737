"""Libraries that come as extras of this program, and are asked for when a source needs them.

Source: clause ING-18 in ``spec/ingest.md``.
"""

from importlib.util import find_spec
from typing import Final

_MODULES: Final = {"mqtt": "paho", "postgresql": "psycopg"}
"""What each extra brings, as it is imported."""


def find_missing_extra(extra: str) -> str | None:
    """Return the command that installs an extra, None where it is there."""
    return None if find_spec(_MODULES[extra]) else f"pip install 'odf-node[{extra}]'"
