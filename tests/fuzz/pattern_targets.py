"""Entrances of patterns, and of texts that plug-ins read: rules in attachments, images, Flight SQL, fingerprints."""

import hashlib
import io
import json
import platform
from collections.abc import Callable

import pyarrow as pa

from fuzz.target import Target
from odf_engines.records.time_patterns import parse_pattern
from odf_fingerprints.documents import decode_fingerprint, decode_rows
from odf_flight.messages import READ, decode_message, encode_message
from odf_foreign.archive.image import find_image
from odf_foreign.archive.tar_entries import EntryKind, TarEntry
from odf_node.ingest.ingest_rules import parse_rules
from odf_node.sources.files import check_event_time, read_event_time
from odf_protocol.canonical_json import encode_canonical
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import EventTimeSourceFromPath, FetchStepFilesGlob
from odf_protocol.manifest.errors import ManifestError
from odf_protocol.timestamp import Timestamp
from odf_schedules.declared_schedule import parse_schedule
from plug_ins.fingerprints.unit.test_fingerprint_documents import fingerprint

__all__ = ["PATTERN_TARGETS"]

_DECODING = (MalformedError, UnsupportedError)
_PARTS = 3
_ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def _raise_after(*reads: Callable[[], object]) -> None:
    """Read in one way after another, whatever the others reject; raise the first error that is declared."""
    errors: list[Exception] = []
    for read in reads:
        try:
            read()
        except (*_DECODING, ManifestError) as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _read_file_time(data: bytes) -> None:
    """Lines: the pattern of an event time, its format, and the name of a file."""
    pattern, time_format, name = [*data.decode("utf-8", "replace").split("\n"), "", ""][:_PARTS]
    source = EventTimeSourceFromPath(pattern=pattern, timestamp_format=time_format or None)
    step = FetchStepFilesGlob(path="/a/*", event_time=source)
    _raise_after(lambda: check_event_time(step), lambda: read_event_time(step, name, Timestamp(0)))


def _read_time_format(data: bytes) -> None:
    """The first byte says whether it is a format of dates; texts have its form, nearly its form, and none."""
    text = data[1:].decode("utf-8", "replace")
    found = parse_pattern(text, has_time=data[:1] != b"d")
    if found is not None:
        texts = pa.array(["2020-01-02 03:04:05", text[:100], "1", "", None])
        assert len(found.rewrite(texts)) == len(texts)


def _read_attachment(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    _raise_after(lambda: parse_rules(text), lambda: parse_schedule(text, "a"))


def _read_image(data: bytes) -> None:
    """Documents between zero bytes; the digests that name others are made anew, so that mutations get behind them."""
    first, *others = data.split(b"\0", _PARTS)
    files: dict[str, bytes] = {"config.json": others[-1] if others else b""}
    known: dict[bytes, bytes] = {}
    for place, raw in reversed([*enumerate(others)]):
        for mark, digest in known.items():
            raw = raw.replace(mark, digest)
        digest = hashlib.sha256(raw).hexdigest()
        files[f"blobs/sha256/{digest}"] = raw
        known[b"sha256:HASH%d" % place] = b"sha256:" + digest.encode()
    for mark, digest in known.items():
        first = first.replace(mark, digest)
    is_docker = first[:1] == b"["
    files |= {"manifest.json": first} if is_docker else {"index.json": first, "oci-layout": b"{}"}
    members, content = {}, b""
    for path, raw in files.items():
        members[path] = TarEntry(path, EntryKind.FILE, len(raw), "", False, False, len(content))
        content += raw
    find_image(io.BytesIO(content), members)


def _images() -> list[bytes]:
    config = {
        "os": "linux",
        "architecture": _ARCHITECTURE,
        "rootfs": {"diff_ids": ["sha256:" + "0" * 64]},
        "config": {"Entrypoint": ["/a"], "Env": ["A=b"], "Labels": {"org.opencontainers.image.version": "1"}},
    }
    docker = [{"Config": "config.json", "Layers": ["config.json"], "RepoTags": ["a:1"]}]
    index = {"manifests": [{"digest": "sha256:HASH0", "mediaType": "application/vnd.oci.image.manifest.v1+json"}]}
    manifest = {"config": {"digest": "sha256:HASH1"}, "layers": [{"digest": "sha256:HASH1"}]}
    return [
        b"\0".join(json.dumps(each).encode() for each in documents)
        for documents in ((docker, config), (index, manifest, config))
    ]


def _read_flight(data: bytes) -> None:
    """The first byte chooses: a whole message, or the fields of one of those that are read."""
    if data[:1] == b"w":
        decode_message(data[1:])
        return
    name = [*READ][data[0] % len(READ)] if data else "CommandGetTables"
    url = f"type.googleapis.com/arrow.flight.protocol.sql.{name}".encode()
    fields = data[1:]
    decode_message(_field(1, url) + _field(2, fields))


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes as protocol buffers have it."""
    size, left = b"", len(content)
    while left > 0x7F:
        size, left = size + bytes([left & 0x7F | 0x80]), left >> 7
    return bytes([number << 3 | 2]) + size + bytes([left]) + content


def _messages() -> list[bytes]:
    asked = {"catalog": "", "db_schema_filter_pattern": "%", "table_name_filter_pattern": "a_%", "table_types": ["T"]}
    return [
        b"w" + encode_message("CommandGetTables", **asked, include_schema=True),
        b"w" + encode_message("CommandStatementQuery", query="SELECT 1"),
        *(bytes([place]) + _field(1, b"a") for place in range(len(READ))),
    ]


def _read_fingerprint(data: bytes) -> None:
    _raise_after(lambda: decode_fingerprint(data), lambda: decode_rows(data))


PATTERN_TARGETS = (
    Target(
        "file-time",
        _read_file_time,
        _DECODING,
        lambda: [
            rb"d-(\d+-\d+-\d+)\.csv" + b"\n\nd-2020-01-02.csv",
            b"(?P<t>[0-9]{4}(x|y)*)\n%Y\na2020xyb",
            b"(.*)$\n%Y-%m-%dT%H:%M:%S%z\n2020-01-02T03:04:05+01:00",
        ],
    ),
    Target(
        "time-format",
        _read_time_format,
        _DECODING,
        lambda: [b"d%d.%m.%y", b"t%Y-%m-%d %H:%M:%S", b"t%Y%m%d%H%M%S.%f%z", b"d%Y (%%) [%m] \\%d"],
    ),
    Target(
        "attachment",
        _read_attachment,
        (*_DECODING, ManifestError),
        lambda: [
            b"largestBadShare: 0.1\nvalidators:\n  - {kind: Range, column: a, least: 0}\nconverters: []\n",
            b"reader: {kind: Xml, rows: /a/b}\nsinks:\n  - {kind: Webhook, url: 'http://a/'}\n",
            b"cron: 30 4 * * 1-5/2\ntimeZone: Europe/Berlin\n",
            b"every: 15m\njitter: 10s\n",
        ],
    ),
    Target("image", _read_image, _DECODING, _images),
    Target("flight", _read_flight, _DECODING, _messages),
    Target(
        "fingerprint",
        _read_fingerprint,
        _DECODING,
        lambda: [encode_canonical(fingerprint()), encode_canonical(fingerprint().added)],
    ),
)
