"""What reading files of others may cost, and what both sides of its sandbox know; nothing is loaded with it."""

from dataclasses import dataclass
from typing import Final

MAX_FILES: Final = 200  # of one request; Source: unix(7), SCM_RIGHTS: at most 253 with one message


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What one request may cost."""

    memory_bytes: int = 2 * 1024**3  # guess: batches of 65,536 rows of 30 kB; what engines get
    cpu_s: int = 120  # guess: any slice of some megabytes on a slow machine
    cpu_s_per_megabyte: int = 10  # guess: a hundred times of what ordinary columns take
    written_bytes: int = 4 * 1024**3  # guess: what engines may write
