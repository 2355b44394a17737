"""What processes used of the machine, read from ``/proc``."""

import os
from pathlib import Path

__all__ = ["list_family", "peak_bytes", "processor_s", "resident_bytes"]


def list_family(process: int) -> list[int]:
    """List a process and all that it started."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [
        process,
        *(each for task in tasks for child in task.read_text().split() for each in list_family(int(child))),
    ]


def processor_s(processes: list[int]) -> float:
    """Add up what processes that live have used."""
    found = [Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split() for each in processes]
    return sum(int(each[11]) + int(each[12]) for each in found) / os.sysconf("SC_CLK_TCK")


def resident_bytes(process: int) -> int:
    """Say how much memory a process has."""
    return _memory(process, "VmRSS:")


def peak_bytes(process: int) -> int:
    """Say how much it had at most."""
    return _memory(process, "VmHWM:")


def _memory(process: int, name: str) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0
