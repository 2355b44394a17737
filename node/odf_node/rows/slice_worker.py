"""The program that reads slices of strangers: run as a process of its own, with little memory and time.

Parquet compresses without bound: a file of a kilobyte can stand for a terabyte of values, and a reader may have faults
that a file of an attacker's finds. So slices are read here, where nothing is at stake: the process can write no file,
and its end is an answer like any other. ``slice_process`` starts it and speaks with it, one line of JSON each way;
rows that are written anew go out through the same pipe, in parts before the answer.

Source: clause ROWS-6 in ``spec/extensions/acceptance.md``.
"""

import ctypes
import resource
import signal
import sys
from typing import Final

from odf_node import rows

PART_BYTES: Final = 1024 * 1024  # guess: large enough that its line of JSON costs nothing
_DIE_WITH_PARENT: Final = 1  # Source: prctl(2), PR_SET_PDEATHSIG


def _limit_process(memory_bytes: int) -> None:
    # The parent may be killed while a slice is read.
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    for limit, value in (
        (resource.RLIMIT_DATA, memory_bytes),  # unlike RLIMIT_AS it does not count the mapped file
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (bounded, bounded))


if __name__ == "__main__":
    _limit_process(int(sys.argv[1]))
    # Now: whoever started us early has no request yet.
    rows.slice_answers.answer_all()
