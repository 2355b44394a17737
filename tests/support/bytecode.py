"""Compiled modules for the processes that tests start.

Where ``PYTHONDONTWRITEBYTECODE`` is set, as in many containers, each process would compile all of this program again,
which is half of what a short command costs; an installed program is compiled once.
"""

import os
from pathlib import Path

_FOLDER = Path(__file__).parents[2] / "build/bytecode"


def keep_bytecode() -> None:
    """Let processes started from now on keep what they compile, beside the sources of nobody."""
    if "PYTHONPYCACHEPREFIX" not in os.environ:
        os.environ["PYTHONPYCACHEPREFIX"] = str(_FOLDER)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
