"""Waiting for a program in a sandbox, and looking what it takes of the machine meanwhile.

Source: clauses ING-17 and ING-41 in ``spec/ingest.md``; SANDBOX-8 in ``spec/extensions/sandbox.md``.
"""

import asyncio
from pathlib import Path
from typing import Final

from odf_engines.sandbox.disk import deleted_usage, disk_usage
from odf_engines.sandbox.resources import MOST_DESCRIPTORS, usage_of
from odf_node.adapters.sources.limits import SourceLimits
from odf_node.ports.sources import SourceTooLargeError

_LOOK_S: Final = 0.2
"""How often it is looked what a sandboxed command takes. Source: the watch of engines (SANDBOX-8)."""


async def wait_watched(
    process: asyncio.subprocess.Process, name: str, limits: SourceLimits, writable: Path | None = None
) -> int:
    """Wait for the end of a stranger's program.

    Args:
        process: The sandbox.
        name: Of the source.
        limits: On memory and processes of all that it starts, and on what it writes.
        writable: A folder of the host that it can write to.

    Returns:
        Its exit code.

    Raises:
        SourceTooLargeError: Too much of any.
    """
    ending = asyncio.create_task(process.wait())
    try:
        while not (await asyncio.wait([ending], timeout=_LOOK_S))[0]:
            await asyncio.to_thread(_look, process.pid, name, limits, writable)
        return ending.result()
    finally:
        ending.cancel()


def _look(process_id: int, name: str, limits: SourceLimits, writable: Path | None) -> None:
    usage = usage_of(process_id)
    if usage.memory_bytes > limits.command_memory_bytes:
        raise SourceTooLargeError(name, "command_memory_bytes", limits.command_memory_bytes)
    if usage.processes > limits.command_processes:
        raise SourceTooLargeError(name, "command_processes", limits.command_processes)
    if usage.descriptors > MOST_DESCRIPTORS:
        raise SourceTooLargeError(name, "command_descriptors", MOST_DESCRIPTORS)
    if writable is None:
        return
    used = disk_usage(writable)
    if used.is_flooded:
        raise SourceTooLargeError(name, "command_files", used.entries - 1)
    most_bytes = limits.command_disk_bytes
    if used.size_bytes + deleted_usage(usage.process_ids, writable, most_bytes) > most_bytes:
        raise SourceTooLargeError(name, "command_disk_bytes", most_bytes)
