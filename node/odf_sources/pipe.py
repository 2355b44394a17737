"""Pipe a file through a command of the operator's machine.

A manifest may come from anybody, so a command in it is run only where the operator said so for this node: in a sandbox
that shows it the machine's programs and nothing else, or as this user.

Source: clause ING-17 in ``spec/plug-ins/sources.md``.
"""

import asyncio
import os
import resource
import signal
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_engines.sandbox.profile import Mount, Profile, build_command
from odf_engines.sandbox.system_calls import open_filter
from odf_node.ports.sources import COMMANDS_SETTING, Commands, SourceTooLargeError, reject_command
from odf_node.records.errors import mapped_os_errors
from odf_node.sources.contract import PrepareKind, SourceSettings
from odf_node.sources.limits import SourceLimits
from odf_node.sources.watched_programs import wait_watched
from odf_protocol.errors import MalformedError
from odf_protocol.events import PrepStep, PrepStepPipe
from odf_protocol.manifest.errors import At

_SHOWN_ERROR_BYTES: Final = 300
# Secrets in our environment are not the command's business.
_PASSED_ON: Final = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ")

_PROGRAMS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")
"""What a sandboxed command sees of the machine, read only."""

_TEMPORARY_BYTES: Final = 64 * 1024**2  # guess: a command turns one stream into another
_SANDBOX_ENVIRONMENT: Final = {"HOME": "/tmp", "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "TZ": "UTC"}  # noqa: S108 - inside the sandbox


class PipeStep(PrepareKind):
    """Prepare steps that run a program over a file."""

    steps = (PrepStepPipe,)

    def check(self, step: PrepStep, at: At, settings: SourceSettings) -> None:
        assert isinstance(step, PrepStepPipe)
        if not step.command:
            (at / "command").reject("a program and its arguments", "none")
        if settings.commands is Commands.NONE:
            allow = f"{COMMANDS_SETTING} = {Commands.SANDBOXED.value!r}"
            (at / "kind").reject(f"no command, as none may be run here (the setting {allow} allows it)", "Pipe")

    async def prepare(
        self, step: PrepStep, path: Path, target: Path, *, name: str, settings: SourceSettings
    ) -> tuple[str, ...]:
        assert isinstance(step, PrepStepPipe)
        commands, limits = settings.commands, settings.limits
        await pipe(step, path=path, target=target, name=name, limits=limits, commands=commands)
        return ()


async def pipe(
    step: PrepStepPipe, *, path: Path, target: Path, name: str, limits: SourceLimits, commands: Commands
) -> None:
    """Run the command with ``path`` as input and its output in ``target``; see ``SourceReader.prepare``."""
    if commands is Commands.NONE:
        reject_command(name, repr(" ".join(step.command)[:200]))
    if not step.command:
        raise MalformedError("prepare step Pipe", expected="a command", found="nothing")
    with mapped_os_errors(target):
        source, output = path.open("rb"), target.open("xb")
    try:
        with source, output, tempfile.TemporaryFile(dir=target.parent) as complaints:
            code = await _run(step, source, output, complaints, name, limits, commands)
            _require_success(step, code, os.fstat(output.fileno()).st_size, complaints, name, limits)
    except BaseException:
        os.unlink(target)  # noqa: PTH108 - inside an async function, where Path methods count as blocking
        raise


async def _run(
    step: PrepStepPipe,
    source: BinaryIO,
    output: BinaryIO,
    complaints: BinaryIO,
    name: str,
    limits: SourceLimits,
    commands: Commands,
) -> int:
    is_sandboxed = commands is Commands.SANDBOXED
    system_calls = [open_filter()] if is_sandboxed else []
    # Files and no pipes: the kernel then keeps the limit, and no output that nobody reads can hold the command up.
    try:
        process = await asyncio.create_subprocess_exec(
            *(_sandboxed(step, system_calls[0]) if is_sandboxed else step.command),
            stdin=source,
            stdout=output,
            stderr=complaints,
            env={} if is_sandboxed else {key: os.environ[key] for key in _PASSED_ON if key in os.environ},
            pass_fds=system_calls,
            start_new_session=True,
            # Before the command is there: its children have the limit too. One byte more shows that it was crossed.
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limits.size_bytes + 1,) * 2),
        )
    except (OSError, ValueError) as error:
        raise MalformedError("prepare step Pipe", expected="a program", found=f"{step.command[0]}: {error}") from error
    finally:
        for descriptor in system_calls:
            os.close(descriptor)
    try:
        async with asyncio.timeout(limits.command_s):
            return await (wait_watched(process, name, limits) if is_sandboxed else process.wait())
    except TimeoutError as error:
        limit = f"an end within {limits.command_s:g} s"
        raise MalformedError(f"output of {step.command[0]}", where=name, expected=limit, found="none") from error
    finally:
        # The command's own children go with it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _sandboxed(step: PrepStepPipe, filter_descriptor: int) -> list[str]:
    """Return the command that runs the step's in a sandbox without network, home and secrets."""
    paths = [Path(each) for each in _PROGRAMS if Path(each).exists()]
    profile = Profile(
        mounts=tuple(Mount(each, str(each)) for each in paths if not each.is_symlink()),
        links={str(each): str(each.readlink()) for each in paths if each.is_symlink()},
        memory_folders={"/tmp": _TEMPORARY_BYTES},  # noqa: S108 - inside the sandbox
        environment=_SANDBOX_ENVIRONMENT,
        folder="/tmp",  # noqa: S108
    )
    return build_command(find_bubblewrap(), profile, step.command, filter_descriptor=filter_descriptor)


def _require_success(
    step: PrepStepPipe, code: int, size_bytes: int, complaints: BinaryIO, name: str, limits: SourceLimits
) -> None:
    # A shell may say that all is well after a program of it was ended at the limit.
    if code == -signal.SIGXFSZ or size_bytes > limits.size_bytes:
        raise SourceTooLargeError(name, "size_bytes", limits.size_bytes)
    if code == 0:
        return
    end = complaints.seek(0, os.SEEK_END)
    complaints.seek(max(0, end - _SHOWN_ERROR_BYTES))
    text = " ".join(complaints.read().decode(errors="replace").split())
    raise MalformedError(f"output of {step.command[0]}", where=name, expected="exit code 0", found=f"{code}: {text}")


STEP: Final = PipeStep()
