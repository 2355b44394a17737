"""Fetch objects of buckets: one by URL, known again by its ETag, or the next one that matches a pattern, by its name.

The server is asked by ``odf_sources.readers``, a process of its own.

Source: clause ING-45 in ``spec/plug-ins/sources.md``.
"""

import secrets
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from odf_node.adapters.bucket_client import BUCKET_SCHEMES, BucketAddress, BucketKeys, parse_bucket_url
from odf_node.ports.sources import Fetched, UpToDate
from odf_node.sources.checks import check_no_password, check_value, fill_templates
from odf_node.sources.contract import FetchContext, SourceKind, SourceSettings
from odf_node.sources.files import check_event_time, check_order, read_event_time
from odf_node.sources.limits import SourceLimits
from odf_node.sources.reader_process import UnixMs, read_answer, run_reader
from odf_node.sources.source_state import etag_state, find_etag, find_last_modified, last_modified_state
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import (
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
    FetchStep,
    FetchStepFilesGlob,
    FetchStepUrl,
)
from odf_protocol.manifest.errors import At
from odf_protocol.timestamp import Timestamp

_READER: Final = "odf_sources.readers.bucket"
_EXPECTED: Final = "s3://bucket/path/of/object, s3+https://host/bucket/path or s3+http://host:port/bucket/path"


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """An object or a pattern of objects, ``shown_as`` without keys; ``keys`` None: as the environment says."""

    address: BucketAddress
    keys: BucketKeys | None
    shown_as: str


def parse_object_url(source: str, *, is_pattern: bool = False) -> BucketPlace:
    """Read a URL of an object, or a pattern of objects.

    Raises:
        MalformedError: It is none.
    """
    scheme, _, rest = source.partition("://")
    authority, _, path = rest.partition("/")
    user_info, at_sign, server = authority.rpartition("@")
    access, _, secret = (unquote(each) for each in user_info.partition(":"))
    if at_sign and not (access and secret and (access + secret).isprintable()):
        raise _malformed("an access key without its secret")
    if not is_pattern and ("?" in path or "#" in path):
        raise _malformed("a query or a fragment; in a key ? is written %3F, and # is %23")
    path = unquote(path)
    if not path.isprintable() or {"", ".", ".."} & set(path.split("/")):
        raise _malformed("no object, a folder, or a key with empty parts, dots for folders or control characters")
    try:
        address = parse_bucket_url(f"{scheme.lower()}://{server}/{quote(path)}")
    except MalformedError:
        raise _malformed("no server, bucket or object") from None
    if not server or not _is_bucket_name(address.bucket):
        raise _malformed("no server, or a bucket that is no plain name")
    keys = BucketKeys(access, secret) if at_sign else None
    return BucketPlace(address, keys, f"{scheme.lower()}://{server}/{path}")


def _is_bucket_name(name: str) -> bool:
    return name.isascii() and name.replace("-", "").replace(".", "").replace("_", "").isalnum()


def _malformed(found: str) -> MalformedError:
    return MalformedError("URL in a bucket", expected=_EXPECTED, found=found)


_NANOSECONDS_PER_MS: Final = 1_000_000


class BucketSource(SourceKind):
    """Objects of buckets: one by its URL, or those that match a pattern."""

    steps = (FetchStepUrl, FetchStepFilesGlob)
    schemes = tuple(sorted(BUCKET_SCHEMES))

    def check(self, step: FetchStep, at: At, settings: SourceSettings) -> None:
        if isinstance(step, FetchStepUrl):
            _check_place(step.url, at / "url", is_pattern=False)
        elif isinstance(step, FetchStepFilesGlob):
            _check_place(step.path, at / "path", is_pattern=True)
            check_value(lambda: check_order(step), at / "order")
            check_value(lambda: check_event_time(step), at / "eventTime")

    async def fetch(self, step: FetchStep, context: FetchContext) -> Fetched | UpToDate:
        if isinstance(step, FetchStepFilesGlob):
            return await fetch_next_object(step, context)
        assert isinstance(step, FetchStepUrl)
        return await fetch_object(step, context)


def _check_place(source: str, at: At, *, is_pattern: bool) -> None:
    check_no_password(source, at)
    check_value(lambda: parse_object_url(fill_templates(source), is_pattern=is_pattern), at)


class _FoundObject(msgspec.Struct):
    """What a reader says of an object; a store may give neither."""

    etag: str | None = None
    modified_ms: UnixMs | None = None


class _NextObject(msgspec.Struct):
    """What a reader says of the next object of a pattern."""

    name: str
    path: str
    has_more: bool
    waiting: tuple[str, ...]


async def fetch_object(step: FetchStepUrl, context: FetchContext) -> Fetched | UpToDate:
    """Fetch the object that a URL names; see ``SourceReader.fetch``."""
    if isinstance(step.event_time, EventTimeSourceFromPath):
        raise UnsupportedError("event time of a URL source", found="FromPath", supported="FromMetadata, FromSystemTime")
    place, target = parse_object_url(step.url), context.folder / f"fetched-{secrets.token_hex(8)}"
    modified_at = find_last_modified(context.state)
    known_ms = None if modified_at is None else _ms_of(modified_at)
    request = _request_of(place, context.limits) | {"known": find_etag(context.state) or known_ms}
    answer = await run_reader(_READER, request, target=target, name=place.shown_as, context=context)
    if answer.get("is_new") is not True:
        target.unlink()
        return UpToDate()
    found = read_answer(answer, _FoundObject, place.shown_as)
    etag = found.etag
    modified_at = None if found.modified_ms is None else Timestamp.from_unix_ms(found.modified_ms)
    dated = None if modified_at is None else last_modified_state(modified_at)
    return Fetched(
        path=target,
        name=place.shown_as,
        source_state=dated if etag is None else etag_state(etag),
        event_time=context.now if isinstance(step.event_time, EventTimeSourceFromSystemTime) else modified_at,
    )


async def fetch_next_object(step: FetchStepFilesGlob, context: FetchContext) -> Fetched | UpToDate:
    """Fetch the object whose name follows the one in ``state``, in order of names; see ``SourceReader.fetch``."""
    check_order(step)
    check_event_time(step)
    place, target = parse_object_url(step.path, is_pattern=True), context.folder / f"fetched-{secrets.token_hex(8)}"
    last_name = find_etag(context.state)
    asked = {"is_pattern": True, "last_name": last_name, "waiting": context.waiting}
    request = _request_of(place, context.limits) | asked
    answer = await run_reader(_READER, request, target=target, name=place.shown_as, context=context)
    if answer.get("is_new") is not True:
        target.unlink()
        return UpToDate()
    found = read_answer(answer, _NextObject, place.shown_as)
    return Fetched(
        path=target,
        name=place.shown_as.removesuffix(f"{place.address.bucket}/{place.address.prefix}") + found.path,
        source_state=etag_state(found.name),
        event_time=read_event_time(step, found.name, context.now),
        has_more=found.has_more,
        waiting=found.waiting,
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
        "waiting": (),
        "known": None,
        "size_bytes": limits.size_bytes,
        "connect_s": limits.connect_s,
        "request_s": limits.read_s,
    }


def _ms_of(time: Timestamp) -> int:
    return time.seconds * 1000 + time.nanoseconds // _NANOSECONDS_PER_MS


SOURCE: Final = BucketSource()
