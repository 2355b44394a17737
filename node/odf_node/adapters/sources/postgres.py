"""Rows of a table or query of PostgreSQL, by a column that grows: each fetch brings those beyond the last value read.

A server is not trusted: it is asked by a process of its own, of bounded memory, whose rows come through a pipe and are
bounded in bytes and time here (``adapters/postgres_reader``).

Source: clause ING-31 in ``spec/ingest.md``.
"""

import asyncio
import json
import os
import secrets
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any, Final

from odf_node.adapters.sources.extras import find_missing_extra
from odf_node.adapters.sources.limits import BoundedFile, SourceLimits
from odf_node.adapters.sources.postgres_place import PostgresPlace, parse_postgres_url
from odf_node.adapters.sources.table_cursor import cursor_state, find_last_value
from odf_node.adapters.sources.url import show_url
from odf_node.byte_rate import ByteRate
from odf_node.ports.sources import Fetched, SourceUnavailableError, UpToDate
from odf_protocol.errors import MalformedError, OdfError, UnsupportedError
from odf_protocol.events import EventTimeSourceFromPath, FetchStepUrl, SourceState
from odf_protocol.timestamp import Timestamp

__all__ = ["fetch_postgres", "request_of"]

_MOST_ANSWER_BYTES: Final = 64 * 1024  # guess: a value of the column, or a message
_NOT_FOR_READERS: Final = ("PG", "ODF_NODE_")
"""Begin variables of the environment that a reader does not see: libpq would send ``PGPASSWORD`` to any server."""


async def fetch_postgres(
    step: FetchStepUrl,
    *,
    state: SourceState | None,
    now: Timestamp,
    folder: Path,
    limits: SourceLimits,
    rate: ByteRate,
) -> Fetched | UpToDate:
    """Fetch the rows behind the last value that was read, as lines of JSON; see ``SourceReader.fetch``."""
    if isinstance(step.event_time, EventTimeSourceFromPath):
        raise MalformedError("event time of a table", expected="FromSystemTime, or none", found="FromPath")
    if missing := find_missing_extra("postgresql"):
        raise UnsupportedError("source", found="a table of PostgreSQL", supported=missing)
    place, name = parse_postgres_url(step.url), show_url(step.url)
    target = folder / f"rows-{secrets.token_hex(8)}"
    total_s = None if rate.is_limited else limits.total_s
    last = find_last_value(state, place.cursor_place)
    try:
        async with asyncio.timeout(total_s):
            answer = await _read(place, last if isinstance(last, str) else None, target, name, limits, rate)
    except TimeoutError as error:
        raise SourceUnavailableError(name, f"the database does not answer within {limits.total_s:g} s") from error
    if answer["last"] is None:
        target.unlink()
        return UpToDate()
    cursor = cursor_state(place.cursor_place, answer["last"])
    return Fetched(path=target, name=name, source_state=cursor, event_time=now, has_more=answer["has_more"])


def request_of(place: PostgresPlace, last: str | None, limits: SourceLimits) -> dict[str, Any]:
    """Make what a reader is asked: the rows behind ``last``."""
    return {
        "settings": place.settings | {"connect_timeout": str(max(2, int(limits.connect_s)))},
        "rows": place.rows,
        "by": place.by,
        "limit": place.limit,
        "last": last,
        "total_ms": int(limits.total_s * 1000),
    }


async def _read(
    place: PostgresPlace, last: str | None, target: Path, name: str, limits: SourceLimits, rate: ByteRate
) -> dict[str, Any]:
    """Write the rows to ``target``, and return what the reader says at the end."""
    environment = {each: value for each, value in os.environ.items() if not each.startswith(_NOT_FOR_READERS)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "odf_node.adapters.postgres_reader",
        stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment,
        start_new_session=True,  # a terminal's Ctrl-C is for us: it must not look like the server's doing
    )  # fmt: skip
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(request_of(place, last, limits)).encode())
        process.stdin.close()
        with BoundedFile(target, name, limits) as file:
            await _take_rows(process, file, name, limits, rate)
            return await _take_answer(process, name)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _take_rows(process: Process, file: BoundedFile, name: str, limits: SourceLimits, rate: ByteRate) -> None:
    assert process.stdout is not None
    while True:
        try:
            chunk = await asyncio.wait_for(process.stdout.read(rate.piece_bytes), limits.answer_s)
        except TimeoutError as error:
            raise SourceUnavailableError(name, f"the database sent nothing for {limits.answer_s:g} s") from error
        if not chunk:
            return
        rate.take(len(chunk))
        await rate.wait()
        file.write(chunk)


async def _take_answer(process: Process, name: str) -> dict[str, Any]:
    """Read what the reader says when it is done; it may be in the hands of the server that it asks."""
    assert process.stderr is not None
    text = await process.stderr.read(_MOST_ANSWER_BYTES)
    code = await process.wait()
    try:
        answer = json.loads(text.splitlines()[-1])
        if code == 0 and "error" in answer:
            raise _error_of(answer["error"], name)
        if code == 0 and isinstance(answer["last"], str | None) and isinstance(answer["has_more"], bool):
            return dict(answer)
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    raise SourceUnavailableError(name, f"what the server sent ended its reader ({ended})")


def _error_of(error: dict[str, Any], name: str) -> OdfError:
    if error["kind"] == "malformed":
        return MalformedError("table", where=name, expected=str(error["expected"]), found=str(error["found"]))
    return SourceUnavailableError(name, f"the database does not answer: {error['found']}")
