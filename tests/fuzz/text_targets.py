"""Entrances of texts that are read outside of a sandbox and that no other target reaches: SQL, headers, addresses."""

import io
import json

import msgspec

from fuzz.target import Target
from odf_engines.errors import InvalidQueryError
from odf_engines.host.query_bounds import check_query_bounds
from odf_engines.host.query_tokens import split_statements
from odf_foreign.archive.tar_entries import iter_entries
from odf_gossip_protocol.messages import decode_reply, decode_request
from odf_node.remote_names import find_remote_names, require_undefined
from odf_protocol.errors import MalformedError, RejectedError, UnsupportedError
from odf_protocol.exchange.messages import HeadMessage, decode_message
from odf_protocol.exchange.object_parts import find_content_range, find_range, matches_etag
from odf_protocol.http_signatures import decode_signature
from odf_protocol.judging import decode_bundle, judge
from odf_protocol.peer_addresses import PeerAddress
from odf_protocol.schema_spark import parse_spark_schema

__all__ = ["TEXT_TARGETS"]

_DECODING = (MalformedError, UnsupportedError)


def _read_sql(data: bytes) -> None:
    """The first byte chooses whose SQL it is; one way of reading after another, whatever the others reject."""
    engine = ("spark", "datafusion")[data[:1] == b"d"]
    sql = data[1:].decode("utf-8", "replace")
    refusals: list[InvalidQueryError] = []
    for read in (
        lambda: check_query_bounds(sql, has_escapes=engine == "spark"),
        lambda: split_statements(sql, engine),
        lambda: find_remote_names(sql, engine),
        lambda: require_undefined("a.b", sql, engine),
    ):
        try:
            read()
        except InvalidQueryError as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]


def _read_headers(data: bytes) -> None:
    text = data.decode("latin-1")
    find_range(text, 1_000)
    find_content_range(text)
    matches_etag(text, "etag")
    first, _, rest = text.partition("\n")
    decode_signature(first, rest)


def _read_address(data: bytes) -> None:
    PeerAddress.parse(data.decode("utf-8", "replace"))


def _read_json(data: bytes) -> None:
    """Every JSON document that a request or an answer may be."""
    errors: list[Exception] = []
    for read in (
        decode_request,
        decode_reply,
        lambda raw: decode_message(raw, HeadMessage),
        lambda raw: judge(decode_bundle(raw)),
        lambda raw: parse_spark_schema(raw.decode("utf-8", "replace")),
    ):
        try:
            read(data)
        except (*_DECODING, RejectedError) as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _read_tar(data: bytes) -> None:
    for _entry, content in iter_entries(io.BytesIO(data)):
        while content.read(1 << 16):
            pass


def _tar() -> bytes:
    import tarfile

    file = io.BytesIO()
    with tarfile.open(mode="w", fileobj=file, format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("a/" + "é" * 120)
        info.size = 3
        archive.addfile(info, io.BytesIO(b"abc"))
    return file.getvalue()


TEXT_TARGETS = (
    Target(
        "sql",
        _read_sql,
        (InvalidQueryError,),
        lambda: [
            b"s/* a */ WITH `x` AS (SELECT 'a''b', \"c\" FROM a.b) SELECT CASE WHEN 1 THEN 2 END FROM x -- end",
            b'dSELECT * FROM "http://a.b/c" JOIN `x/y` ON a = b; SELECT EXTRACT(YEAR FROM t) FROM t;',
        ],
    ),
    Target(
        "headers",
        _read_headers,
        _DECODING,
        lambda: [
            b"bytes=1-2",
            b"bytes 1-2/3",
            b'W/"a", "etag"',
            b'a=("@method" "x");keyid="k";created=1\na=:' + b"A" * 86 + b"==:",
        ],
    ),
    Target("address", _read_address, _DECODING, lambda: [b"https://a.example:443", b"http://[2001:db8::1]:80"]),
    Target(
        "json",
        _read_json,
        (*_DECODING, RejectedError),
        lambda: [
            b'{"documents":[]}',
            json.dumps({"type": "struct", "fields": []}).encode(),
            msgspec.json.encode({"items": [], "peers": []}),
        ],
    ),
    Target("tar", _read_tar, _DECODING, lambda: [_tar()]),
)
