"""Wait for sandboxed programs that sources run, and end them where they take too much.

Source: clause ING-17 in ``spec/plug-ins/sources.md``; SANDBOX-8.
"""

import asyncio
from pathlib import Path
from typing import Final

from odf_engines.sandbox.disk import WatchedFolder
from odf_engines.sandbox.resources import MAX_DESCRIPTORS, LastingExcess, usage_of
from odf_node.ports.sources import SourceTooLargeError
from odf_node.sources.limits import SourceLimits

_LOOK_S: Final = 0.2
"""How often it is looked what a sandboxed command takes. Source: the watch of engines (SANDBOX-8)."""


async def wait_watched(
    process: asyncio.subprocess.Process, name: str, limits: SourceLimits, writable: Path | None = None
) -> int:
    """Wait for the end of an untrusted program.

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
    watch = _Watch(process.pid, name, limits, writable)
    ending = asyncio.create_task(process.wait())
    try:
        while not (await asyncio.wait([ending], timeout=_LOOK_S))[0]:
            await asyncio.to_thread(watch.look)
        return ending.result()
    finally:
        ending.cancel()


class _Watch:
    """What a sandboxed command takes, from one look to the next."""

    def __init__(self, process_id: int, name: str, limits: SourceLimits, writable: Path | None) -> None:
        self._process_id, self._name, self._limits = process_id, name, limits
        self._memory = LastingExcess(limits.command_memory_bytes)
        self._descriptors = LastingExcess(MAX_DESCRIPTORS)
        self._folder = None if writable is None else WatchedFolder(writable, limits.command_disk_bytes)

    def look(self) -> None:
        """Raise ``SourceTooLargeError`` if it is too much."""
        usage, limits = usage_of(self._process_id), self._limits
        if self._memory.is_crossed(usage.memory_bytes):
            raise SourceTooLargeError(self._name, "command_memory_bytes", limits.command_memory_bytes)
        if usage.processes > limits.command_processes:
            raise SourceTooLargeError(self._name, "command_processes", limits.command_processes)
        if self._descriptors.is_crossed(usage.descriptors):
            raise SourceTooLargeError(self._name, "command_descriptors", MAX_DESCRIPTORS)
        if self._folder is None:
            return
        used = self._folder.usage(usage.process_ids)
        if used.is_flooded:
            raise SourceTooLargeError(self._name, "command_files", used.entries - 1)
        if used.size_bytes > limits.command_disk_bytes:
            raise SourceTooLargeError(self._name, "command_disk_bytes", limits.command_disk_bytes)
