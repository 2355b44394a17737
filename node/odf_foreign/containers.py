"""Fetch what a program in a container image writes: run in our sandbox, its standard output is the data.

Of what the program leaves, everything is untrusted: files may be links, pipes or endless.

Source: clauses ING-40 to ING-42 in ``spec/plug-ins/foreign.md``; ODF "FetchStep::Container" and the
reference implementation's behaviour.
"""

import asyncio
import os
import secrets
import signal
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_engines.sandbox.disk import remove_tree
from odf_engines.sandbox.profile import Mount, Profile, build_command, open_environment, show_root
from odf_engines.sandbox.system_calls import open_filter
from odf_foreign.image_folder import ImageFolder
from odf_foreign.images import AddedImage, DamagedImage
from odf_node.ports.sources import (
    COMMANDS_SETTING,
    Commands,
    Fetched,
    SourceUnavailableError,
    UpToDate,
    reject_command,
)
from odf_node.records.errors import mapped_os_errors
from odf_node.sources.checks import TEMPLATE, check_value
from odf_node.sources.contract import FetchContext, SourceKind, SourceSettings
from odf_node.sources.limits import BoundedFile, SourceLimits
from odf_node.sources.source_state import (
    etag_state,
    find_etag,
    find_last_modified,
    is_same_version,
    last_modified_state,
)
from odf_node.sources.watched_programs import wait_watched
from odf_protocol.errors import MalformedError
from odf_protocol.events import FetchStep, FetchStepContainer, SourceState
from odf_protocol.manifest.errors import At
from odf_protocol.timestamp import Timestamp

# What programs in images expect where the image does not say it, as container runtimes have it.
_USUAL: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp"}  # noqa: S108 - inside the sandbox


def find_image(reference: str, images: ImageFolder | None) -> AddedImage:
    """Return the added image that a manifest names: ``NAME``, or ``NAME@sha256:...`` for that one alone.

    Raises:
        MalformedError: There is none; says how to add it.
    """
    name, at, digest = reference.partition("@")
    found = None if images is None else images.find(name)
    if isinstance(found, DamagedImage):
        raise MalformedError("image", where=reference, expected="an image that can be read", found=found.describe())
    if found is None:
        expected = (
            f"an image of this node ('odf-node image add {name} FILE' adds it from a file that "
            f"'podman save --format oci-archive {name}' or 'docker save {name}' writes)"
        )
        raise MalformedError("image", expected=expected, found=reference)
    if at and digest not in found.digests:
        expected = f"one of the digests that the file of {name} has: {', '.join(found.digests)}"
        raise MalformedError("image", expected=expected, found=digest)
    return found


def command_of(step: FetchStepContainer, image: AddedImage) -> tuple[str, ...]:
    """Return program and arguments: a ``command`` stands for the image's entry point and its arguments too.

    Raises:
        MalformedError: Neither manifest nor image says what to run.
    """
    if step.command:
        words = (*step.command, *(step.args or ()))
    else:
        words = (*image.start.entry_point, *(image.start.arguments if step.args is None else step.args))
    if not words or not words[0]:
        raise MalformedError(
            "command", where=step.image, expected="a program to run", found="none in manifest or image"
        )
    return words


def environment_of(step: FetchStepContainer, image: AddedImage, reported: Mapping[str, str]) -> dict[str, str]:
    """Return all variables of a program: those of the image, of the manifest, and what the node tells it."""
    stated = dict(each.split("=", 1) for each in image.start.environment)
    return {**_USUAL, **stated, **{each.name: each.value or "" for each in step.env or ()}, **reported}


_OUT: Final = "/opt/odf/out"  # as the reference implementation
_NEW_ETAG: Final = "new-etag"
_NEW_LAST_MODIFIED: Final = "new-last-modified"
_HAS_MORE: Final = "new-has-more-data"
_BATCH_RECORDS: Final = "10000"  # a hint; the reference implementation's
_MAX_STATE_BYTES: Final = 4096  # guess: it is in a block for ever
_READ_BYTES: Final = 64 * 1024
_KEPT_ERROR_BYTES: Final = 64 * 1024
_SHOWN_ERROR_CHARACTERS: Final = 300
_STREAMS: Final = {
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/fd": "/proc/self/fd",
}
_NAMES_OF_HOSTS: Final = Path("/etc/resolv.conf")


class ContainerSource(SourceKind):
    """Programs in container images of this node, which write rows."""

    steps = (FetchStepContainer,)

    def check(self, step: FetchStep, at: At, settings: SourceSettings) -> None:
        assert isinstance(step, FetchStepContainer)
        if settings.commands is Commands.NONE:
            allow = f"{COMMANDS_SETTING} = {Commands.SANDBOXED.value!r}"
            (at / "kind").reject(
                f"no program, as none may be run here (the setting {allow} allows it, in a sandbox)", "Container"
            )
        if TEMPLATE not in step.image:
            check_value(lambda: command_of(step, find_image(step.image, _images_of(settings))), at / "image")

    async def fetch(self, step: FetchStep, context: FetchContext) -> Fetched | UpToDate:
        assert isinstance(step, FetchStepContainer)
        return await fetch_output(step, context)


async def fetch_output(step: FetchStepContainer, context: FetchContext) -> Fetched | UpToDate:
    """Run the step's image, and take what it writes; see ``SourceReader.fetch``."""
    name, state, folder, limits = step.image, context.state, context.folder, context.limits
    images = _images_of(context.settings)
    if context.settings.commands is Commands.NONE:
        reject_command(name, f"image {name}")
    image = find_image(step.image, images)
    assert images is not None, "an image was found"
    program = command_of(step, image)
    environment = environment_of(step, image, _reported(state))
    root = await asyncio.to_thread(images.open_root, image)
    work, target = folder / f"container-{secrets.token_hex(8)}", folder / f"output-{secrets.token_hex(8)}"
    with mapped_os_errors(folder):
        for each in (work, work / "out", work / "tmp"):
            each.mkdir(mode=0o700)
    mounts, links = show_root(root)
    profile = Profile(
        mounts=(*mounts, *_shown(work, has_network=image.has_network)),
        links={**links, **_STREAMS},
        folder=image.start.folder,
        has_network=image.has_network,
    )
    try:
        with BoundedFile(target, name, limits) as output:
            await _run(profile, program, environment, output, work, name, limits)
            new_state, has_more = _read_state(work / "out", name), _states_more(work / "out")
            has_data = target.stat().st_size > 0
            if has_data and is_same_version(new_state, state):
                expected = "another text at ODF_NEW_ETAG_PATH or ODF_NEW_LAST_MODIFIED_PATH, or no data"
                raise MalformedError(f"output of {name}", expected=expected, found="data, and the state of before")
    finally:
        await asyncio.to_thread(remove_tree, work)
    if not has_data and (new_state is None or is_same_version(new_state, state)):
        target.unlink()
        return UpToDate()
    return Fetched(path=target, name=name, source_state=new_state, event_time=None, has_more=has_more)


def _images_of(settings: SourceSettings) -> ImageFolder | None:
    return None if settings.home is None else ImageFolder(settings.home)


def _reported(state: SourceState | None) -> dict[str, str]:
    reported = {
        "ODF_NEW_ETAG_PATH": f"{_OUT}/{_NEW_ETAG}",
        "ODF_NEW_LAST_MODIFIED_PATH": f"{_OUT}/{_NEW_LAST_MODIFIED}",
        "ODF_NEW_HAS_MORE_DATA_PATH": f"{_OUT}/{_HAS_MORE}",
        "ODF_BATCH_SIZE": _BATCH_RECORDS,
    }
    if (etag := find_etag(state)) is not None:
        reported["ODF_ETAG"] = etag
    if (time := find_last_modified(state)) is not None:
        reported["ODF_LAST_MODIFIED"] = str(time)
    return reported


def _shown(work: Path, *, has_network: bool) -> list[Mount]:
    shown = [Mount(work / "tmp", "/tmp", is_writable=True), Mount(work / "out", _OUT, is_writable=True)]  # noqa: S108 - inside the sandbox
    if has_network and _NAMES_OF_HOSTS.exists():
        shown.append(Mount(_NAMES_OF_HOSTS, str(_NAMES_OF_HOSTS)))
    return shown


async def _run(
    profile: Profile,
    program: tuple[str, ...],
    environment: dict[str, str],
    output: BoundedFile,
    work: Path,
    name: str,
    limits: SourceLimits,
) -> None:
    """Run a program to its end.

    Raises:
        SourceUnavailableError: It failed, or did not end in time.
        SourceTooLargeError: It wrote or took too much.
        MalformedError: Words that no program can be given.
    """
    descriptors = []
    try:
        descriptors.append(open_environment(environment))
        descriptors.append(open_filter(shares_network=profile.has_network))
        command = build_command(
            find_bubblewrap(), profile, program, filter_descriptor=descriptors[1], environment_descriptor=descriptors[0]
        )
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env={}, pass_fds=descriptors, start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise MalformedError("fetch step Container", where=name, expected="a command", found=str(error)) from error
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = bytearray()
    tasks = [
        asyncio.create_task(wait_watched(process, name, limits, work)),
        asyncio.create_task(_copy(process.stdout, output)),
        asyncio.create_task(_keep_end(process.stderr, complaints)),
    ]
    try:
        async with asyncio.timeout(limits.total_s):
            code, *_ = await asyncio.gather(*tasks)
    except TimeoutError as error:
        raise SourceUnavailableError(name, f"it did not end within {limits.total_s:g} s") from error
    finally:
        # All that it started goes with it: it is the first process of its namespace.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Reads what is left: a process counts as ended when its pipes are, and a pipe that is full does not end.
        await process.communicate()
    if code:
        said = " ".join(complaints.decode(errors="replace").split())[-_SHOWN_ERROR_CHARACTERS:]
        raise SourceUnavailableError(name, f"it ended with exit code {code}: {said or 'it said nothing'}")


async def _copy(stream: asyncio.StreamReader, output: BoundedFile) -> None:
    while chunk := await stream.read(_READ_BYTES):
        output.write(chunk)


async def _keep_end(stream: asyncio.StreamReader, kept: bytearray) -> None:
    while chunk := await stream.read(_READ_BYTES):
        kept += chunk
        del kept[:-_KEPT_ERROR_BYTES]


def _read_state(out: Path, name: str) -> SourceState | None:
    """Read what the program says of the version of its data; of both ways to say it, the first is taken."""
    if etag := _read_word(out, _NEW_ETAG, name):
        return etag_state(etag)
    if time := _read_word(out, _NEW_LAST_MODIFIED, name):
        return last_modified_state(Timestamp.parse(time))
    return None


def _states_more(out: Path) -> bool:
    return os.path.lexists(out / _HAS_MORE)


def _read_word(out: Path, file_name: str, name: str) -> str | None:
    """Read one line of text, None where there is none.

    Raises:
        MalformedError: It is more or something else, or no file of the program's own.
    """
    expected = f"one line of text, of at most {_MAX_STATE_BYTES} bytes, in a file"
    try:
        # Not through a link, which would lead to a file of this machine, and never waiting for a pipe.
        descriptor = os.open(out / file_name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MalformedError(f"{_OUT}/{file_name}", where=name, expected=expected, found=error.strerror) from error
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        raw = os.read(descriptor, _MAX_STATE_BYTES + 1) if is_file else b""
    finally:
        os.close(descriptor)
    if not is_file:
        raise MalformedError(f"{_OUT}/{file_name}", where=name, expected=expected, found="no file")
    text = raw.decode(errors="replace").strip()
    if len(raw) > _MAX_STATE_BYTES or "\ufffd" in text or not text.isprintable():
        raise MalformedError(f"{_OUT}/{file_name}", where=name, expected=expected, found=text[:80])
    return text


SOURCE: Final = ContainerSource()
