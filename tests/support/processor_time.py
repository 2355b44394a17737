"""Processor time of this process and all below it, so of engines in sandboxes too."""

import os
from pathlib import Path

from odf_engines.sandbox.resources import activity_of

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def spent_s() -> float:
    """Seconds of processors since all of them began."""
    total = 0.0
    for each in activity_of(os.getpid()).process_ids:
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
    return total
