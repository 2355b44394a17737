"""Fetch objects of buckets: one by URL, known again by its ETag, or the next one that matches a pattern, by its name.

The server is asked by ``adapters/bucket_reader``, a process of its own.

Source: clause ING-45 in ``spec/ingest.md``.
"""

import secrets
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from odf_node.adapters.sources.bucket_place import BucketPlace, parse_object_url
from odf_node.adapters.sources.files import check_event_time, check_order, read_event_time
from odf_node.adapters.sources.limits import SourceLimits
from odf_node.adapters.sources.reader_process import run_reader
from odf_node.adapters.sources.source_state import etag_state, find_etag, find_last_modified, last_modified_state
from odf_node.byte_rate import ByteRate
from odf_node.ports.sources import Fetched, UpToDate
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import (
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
    FetchStepFilesGlob,
    FetchStepUrl,
    SourceState,
)
from odf_protocol.timestamp import Timestamp

_NANOSECONDS_PER_MS: Final = 1_000_000


async def fetch_object(
    step: FetchStepUrl, *, state: SourceState | None, now: Timestamp, folder: Path, limits: SourceLimits, rate: ByteRate
) -> Fetched | UpToDate:
    """Fetch the object that a URL names; see ``SourceReader.fetch``."""
    if isinstance(step.event_time, EventTimeSourceFromPath):
        raise UnsupportedError("event time of a URL source", found="FromPath", supported="FromMetadata, FromSystemTime")
    place, target = parse_object_url(step.url), folder / f"fetched-{secrets.token_hex(8)}"
    modified_at = find_last_modified(state)
    known_ms = None if modified_at is None else _ms_of(modified_at)
    request = _request_of(place, limits) | {"known": find_etag(state) or known_ms}
    answer = await run_reader("bucket_reader", request, target=target, name=place.shown_as, limits=limits, rate=rate)
    if answer.get("is_new") is not True:
        target.unlink()
        return UpToDate()
    etag, modified_ms = answer["etag"], answer["modified_ms"]
    modified_at = None if modified_ms is None else Timestamp.from_unix_ms(modified_ms)
    dated = None if modified_at is None else last_modified_state(modified_at)
    return Fetched(
        path=target,
        name=place.shown_as,
        source_state=dated if etag is None else etag_state(etag),
        event_time=now if isinstance(step.event_time, EventTimeSourceFromSystemTime) else modified_at,
    )


async def fetch_next_object(
    step: FetchStepFilesGlob,
    *,
    state: SourceState | None,
    now: Timestamp,
    folder: Path,
    limits: SourceLimits,
    rate: ByteRate,
) -> Fetched | UpToDate:
    """Fetch the object whose name follows the one in ``state``, in order of names; see ``SourceReader.fetch``."""
    check_order(step)
    check_event_time(step)
    place, target = parse_object_url(step.path, is_pattern=True), folder / f"fetched-{secrets.token_hex(8)}"
    request = _request_of(place, limits) | {"is_pattern": True, "last_name": find_etag(state)}
    answer = await run_reader("bucket_reader", request, target=target, name=place.shown_as, limits=limits, rate=rate)
    if answer.get("is_new") is not True:
        target.unlink()
        return UpToDate()
    name = str(answer["name"])
    return Fetched(
        path=target,
        name=place.shown_as.removesuffix(f"{place.address.bucket}/{place.address.prefix}") + str(answer["path"]),
        source_state=etag_state(name),
        event_time=read_event_time(step, name, now),
        has_more=bool(answer["has_more"]),
    )


def _request_of(place: BucketPlace, limits: SourceLimits) -> dict[str, Any]:
    variables = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment"
    if place.address.endpoint is not None:
        variables = "keys from the environment, as in s3+https://${{ env.KEY }}:${{ env.SECRET }}@host/bucket/..."
    return {
        "address": asdict(place.address),
        "keys": place.keys and [place.keys.access, place.keys.secret],
        "advice": f"set {variables}",
        "is_pattern": False,
        "last_name": None,
        "known": None,
        "size_bytes": limits.size_bytes,
        "connect_s": limits.connect_s,
        "request_s": limits.read_s,
    }


def _ms_of(time: Timestamp) -> int:
    return time.seconds * 1000 + time.nanoseconds // _NANOSECONDS_PER_MS
