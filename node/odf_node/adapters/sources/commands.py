"""Pipe a file through a command of the operator's machine.

A manifest may come from anybody, so a command in it is run only where the operator said so for this node.
"""

import asyncio
import os
import resource
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from odf_node.adapters.sources.limits import SourceLimits
from odf_node.os_errors import mapped_os_errors
from odf_node.ports.sources import SourceRefusedError, SourceTooLargeError
from odf_protocol.errors import MalformedError
from odf_protocol.events import PrepStepPipe

_SHOWN_ERROR_BYTES: Final = 300
# Secrets in our environment are not the command's business.
_PASSED_ON: Final = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ")


async def pipe(step: PrepStepPipe, *, path: Path, target: Path, name: str, limits: SourceLimits, allowed: bool) -> None:
    """Run the command with ``path`` as input and its output in ``target``; see ``SourceReader.prepare``."""
    if not allowed:
        raise SourceRefusedError(
            name,
            "commands-need-permission",
            f"the manifest asks to run {' '.join(step.command)[:200]!r}, and this node's operator has not allowed "
            "commands of manifests; unpack the data beforehand, or use the prepare step Decompress",
        )
    if not step.command:
        raise MalformedError("prepare step Pipe", expected="a command", found="nothing")
    with mapped_os_errors(target):
        source, output = path.open("rb"), target.open("xb")
    try:
        with source, output, tempfile.TemporaryFile(dir=target.parent) as complaints:
            code = await _run(step, source, output, complaints, name, limits)
            _require_success(step, code, os.fstat(output.fileno()).st_size, complaints, name, limits)
    except BaseException:
        os.unlink(target)  # noqa: PTH108 - inside an async function, where Path methods count as blocking
        raise


async def _run(
    step: PrepStepPipe, source: BinaryIO, output: BinaryIO, complaints: BinaryIO, name: str, limits: SourceLimits
) -> int:
    # Files and no pipes: the kernel then keeps the limit, and no output that nobody reads can hold the command up.
    try:
        process = await asyncio.create_subprocess_exec(
            *step.command,
            stdin=source,
            stdout=output,
            stderr=complaints,
            env={key: os.environ[key] for key in _PASSED_ON if key in os.environ},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise MalformedError("prepare step Pipe", expected="a program", found=f"{step.command[0]}: {error}") from error
    try:
        with suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limits.size_bytes, limits.size_bytes))
        async with asyncio.timeout(limits.command_s):
            return await process.wait()
    except TimeoutError as error:
        limit = f"an end within {limits.command_s:g} s"
        raise MalformedError(f"output of {step.command[0]}", where=name, expected=limit, found="none") from error
    finally:
        # The command's own children go with it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _require_success(
    step: PrepStepPipe, code: int, size_bytes: int, complaints: BinaryIO, name: str, limits: SourceLimits
) -> None:
    if code == 0:
        return
    if code == -signal.SIGXFSZ or size_bytes >= limits.size_bytes:
        raise SourceTooLargeError(name, "size_bytes", limits.size_bytes)
    end = complaints.seek(0, os.SEEK_END)
    complaints.seek(max(0, end - _SHOWN_ERROR_BYTES))
    text = " ".join(complaints.read().decode(errors="replace").split())
    raise MalformedError(f"output of {step.command[0]}", where=name, expected="exit code 0", found=f"{code}: {text}")
