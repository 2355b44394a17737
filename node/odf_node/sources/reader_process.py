"""Servers that are asked in a process of its own: what they send is bounded in memory, bytes and time.

Client libraries believe what a server says of sizes, and wait as long as it likes. So they run in a reader, a program
of bounded memory. It gets one request in JSON, gives bytes, and at the end, on standard error, one line of JSON: an
answer, or what is wrong. Its end is an answer like any other.

Source: clauses ING-31, ING-32 and ING-45 in ``spec/plug-ins/sources.md``.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from odf_node.ports.sources import SourceNotFoundError, SourceTooLargeError, SourceUnavailableError
from odf_node.sources.contract import FetchContext
from odf_node.sources.limits import BoundedFile, SourceLimits, wait_held_back
from odf_protocol.errors import MalformedError, OdfError

_Answer = TypeVar("_Answer")

UnixMs = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000, le=253_402_300_799_999)]
"""A time of the years 1 to 9999, as calendars of libraries have it."""

_MAX_ANSWER_BYTES: Final = 64 * 1024  # guess: a value of a column, or a message
_NOT_FOR_READERS: Final = ("PG", "ODF_NODE_")
"""Begin variables of the environment that a reader does not see: libpq would send ``PGPASSWORD`` to any server."""


async def run_reader(
    module: str, request: dict[str, Any], *, target: Path, name: str, context: FetchContext
) -> dict[str, Any]:
    """Run the program in a module (``odf_sources.readers.ftp``); write its bytes to ``target``, return its answer.

    Raises:
        SourceNotFoundError, SourceUnavailableError, SourceTooLargeError, MalformedError: It brought nothing; ``target``
            is removed.
    """
    limits = context.limits
    environment = {each: value for each, value in os.environ.items() if not each.startswith(_NOT_FOR_READERS)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "odf_node.source_readers", module,
        stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment,
        start_new_session=True,  # a terminal's Ctrl-C is for us: it must not look like the server's doing
    )  # fmt: skip
    assert process.stderr is not None
    # From the beginning: who writes more than a pipe holds waits for somebody to read it.
    reported = asyncio.create_task(_read_end(process.stderr))
    try:
        async with asyncio.timeout(limits.total_s) as deadline:
            assert process.stdin is not None
            process.stdin.write(json.dumps(request).encode())
            process.stdin.close()
            with BoundedFile(target, name, limits) as file:
                await _take_bytes(process, file, name, context, deadline)
                return await _take_answer(process, reported, name, limits)
    except TimeoutError as error:
        raise SourceUnavailableError(name, f"no complete answer within {limits.total_s:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        reported.cancel()
        await asyncio.gather(reported, return_exceptions=True)


async def _take_bytes(
    process: Process, file: BoundedFile, name: str, context: FetchContext, deadline: asyncio.Timeout
) -> None:
    limits, rate = context.limits, context.rate
    assert process.stdout is not None
    while True:
        try:
            chunk = await asyncio.wait_for(process.stdout.read(rate.chunk_bytes), limits.answer_s)
        except TimeoutError as error:
            raise SourceUnavailableError(name, f"the server sent nothing for {limits.answer_s:g} s") from error
        if not chunk:
            return
        rate.take(len(chunk))
        await wait_held_back(rate, deadline)
        file.write(chunk)


async def _read_end(stream: asyncio.StreamReader) -> bytes:
    """Read to the end and keep the last bytes: the answer comes after what libraries had to say."""
    text = b""
    while more := await stream.read(_MAX_ANSWER_BYTES):
        text = (text + more)[-_MAX_ANSWER_BYTES:]
    return text


async def _take_answer(
    process: Process, reported: asyncio.Task[bytes], name: str, limits: SourceLimits
) -> dict[str, Any]:
    """Read what the reader says when it is done; it may be in the hands of the server that it asks."""
    try:
        async with asyncio.timeout(limits.answer_s):
            text, code = await reported, await process.wait()
    except TimeoutError as error:
        raise SourceUnavailableError(name, f"its reader did not end within {limits.answer_s:g} s") from error
    try:
        answer = json.loads(text.splitlines()[-1])
        if code == 0 and "error" in answer:
            raise _error_of(answer["error"], name, limits)
        if code == 0:
            return dict(answer)
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    ended = f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"
    raise SourceUnavailableError(name, f"what the server sent ended its reader ({ended})")


def read_answer(answer: Mapping[str, Any], kind: type[_Answer], name: str) -> _Answer:
    """Read what a reader says; it may be in the hands of the server that it asks.

    Raises:
        SourceUnavailableError: It is no answer of this kind.
    """
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise SourceUnavailableError(name, f"its reader gave no answer that counts: {error}") from error


def _error_of(error: dict[str, Any], name: str, limits: SourceLimits) -> OdfError:
    found = str(error["found"])
    match error["kind"]:
        case "malformed":
            return MalformedError("source", where=name, expected=str(error["expected"]), found=found)
        case "not-found":
            return SourceNotFoundError(name, found)
        case "too-large":
            return SourceTooLargeError(name, "size_bytes", limits.size_bytes)
        case "not-allowed":
            return SourceUnavailableError(name, f"the server does not allow it; {found}")
    return SourceUnavailableError(name, f"the server does not answer: {found}")
