"""Rows of a table or query of PostgreSQL, by a column that grows: each fetch brings those beyond the last value read.

The server is asked by ``adapters/postgres_reader``, a process of its own.

Source: clause ING-31 in ``spec/ingest.md``.
"""

import secrets
from pathlib import Path
from typing import Any

from odf_node.adapters.sources.extras import find_missing_extra
from odf_node.adapters.sources.limits import SourceLimits
from odf_node.adapters.sources.postgres_place import PostgresPlace, parse_postgres_url
from odf_node.adapters.sources.reader_process import run_reader
from odf_node.adapters.sources.table_cursor import cursor_state, find_last_value
from odf_node.adapters.sources.url import show_url
from odf_node.byte_rate import ByteRate
from odf_node.ports.sources import Fetched, SourceUnavailableError, UpToDate
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import EventTimeSourceFromPath, FetchStepUrl, SourceState
from odf_protocol.timestamp import Timestamp


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
    last = find_last_value(state, place.cursor_place)
    request = request_of(place, last if isinstance(last, str) else None, limits)
    answer = await run_reader("postgres_reader", request, target=target, name=name, limits=limits, rate=rate)
    if not isinstance(answer.get("last"), str | None):
        raise SourceUnavailableError(name, "the reader gave no answer")
    if answer.get("last") is None:
        target.unlink()
        return UpToDate()
    cursor = cursor_state(place.cursor_place, answer.get("last"))
    return Fetched(path=target, name=name, source_state=cursor, event_time=now, has_more=bool(answer.get("has_more")))


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
