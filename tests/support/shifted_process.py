"""Real processes of this program whose clock is set forward and back while they run.

Only what the program itself asks (``time.time``, ``time.time_ns``) is shifted; files are dated by the machine.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_START = """
import os, time
_place = os.environ["ODF_TEST_CLOCK_SHIFT"]
_time, _time_ns = time.time, time.time_ns

def _shift_s():
    with open(_place) as file:
        return int(file.read())

time.time = lambda: _time() + _shift_s()
time.time_ns = lambda: _time_ns() + _shift_s() * 10**9
"""


@dataclass(frozen=True)
class ShiftedClock:
    """A clock for processes: started with ``environment``, they are ``set`` together."""

    folder: Path

    def __post_init__(self) -> None:
        """Begin with the machine's time."""
        self.folder.mkdir()
        (self.folder / "sitecustomize.py").write_text(_START)
        self.set(0)

    @property
    def environment(self) -> Mapping[str, str]:
        """What processes are started with."""
        path = os.pathsep.join(filter(None, (str(self.folder), os.environ.get("PYTHONPATH"))))
        return {"PYTHONPATH": path, "ODF_TEST_CLOCK_SHIFT": str(self.folder / "shift")}

    def set(self, shift_s: int) -> None:
        """Make the clocks show the machine's time and so many seconds."""
        draft = self.folder / "shift.draft"
        draft.write_text(str(shift_s))
        draft.rename(self.folder / "shift")
