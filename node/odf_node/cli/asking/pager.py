"""Long and wide answers of the shell: through the pager that the user has."""

import os
import shlex
import shutil
import subprocess
from typing import Final

USUAL: Final = ("less", "more")
LESS_OPTIONS: Final = "FSX"
"""End where all fits on the screen, do not fold lines, leave the answer on the screen (less(1))."""


def find_pager(environment: "os._Environ[str]") -> list[str] | None:
    """Find what ``$PAGER`` names (nothing, where it is empty or ``cat``), else what is usual; None: there is none."""
    named = environment.get("PAGER")
    if named is not None:
        words = shlex.split(named)
        return words if words and words[0] != "cat" and shutil.which(words[0]) else None
    found = next(filter(shutil.which, USUAL), None)
    return None if found is None else [found]


def page(text: str, pager: list[str], environment: "os._Environ[str]") -> None:
    """Show a text until its reader has seen enough."""
    settings = {**environment, "LESS": environment.get("LESS", LESS_OPTIONS)}
    process = subprocess.Popen(pager, stdin=subprocess.PIPE, env=settings, text=True)
    try:
        process.communicate(text)
    except KeyboardInterrupt:
        # The pager has heard it too, and says what it means there.
        process.wait()
