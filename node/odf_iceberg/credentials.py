"""Credentials for files of tables: what a reader of S3 signs its requests with (AWS Signature Version 4).

A reader that loads a table gets an access key that names the token it showed, if any, and a secret that follows
from the access key and a key of this node, so nothing is stored. At each request the signature is checked and the token
is looked up again: one that was revoked opens no file any more.

Source: clauses ICEBERG-14 to ICEBERG-16 in ``spec/plug-ins/iceberg.md``; AWS, "Authenticating Requests: Using the
Authorization Header (AWS Signature Version 4)".
"""

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, unquote

from yarl import URL

ALGORITHM: Final = "AWS4-HMAC-SHA256"
MAX_AGE_S: Final = 15 * 60
"""How far the clock of a reader may be from ours. Source: Amazon S3, error RequestTimeTooSkewed."""
LASTS_S: Final = 12 * 3600  # guess: the longest job that reads one table without loading it again
REGION: Final = "us-east-1"
"""Readers have to name one; it means nothing here."""
MAX_SIGNED_HEADERS: Final = 64  # guess: readers sign some ten
_ANONYMOUS: Final = "anonymous"
_ACCESS_KEY: Final = re.compile(r"ODF\.([0-9a-f]{64}|anonymous)\.(\d{1,12})", re.ASCII)
_PARTS: Final = re.compile(
    rf"{ALGORITHM}\s+Credential=([^/,\s]+)/(\d{{8}})/([a-z0-9-]+)/s3/aws4_request\s*,"
    r"\s*SignedHeaders=([a-z0-9;-]+)\s*,\s*Signature=([0-9a-f]{64})",
    re.ASCII,
)
_TIME: Final = "%Y%m%dT%H%M%SZ"


class SignatureError(Exception):
    """A request whose signature does not hold; says why."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a reader signs with."""

    access_key: str
    secret: str


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as it came.

    Attributes:
        method: In capitals.
        raw_path: As it was sent, with the query.
        headers: All values of each header, by its name in lower case.
    """

    method: str
    raw_path: str
    headers: Mapping[str, Sequence[str]]


class CredentialIssuer:
    """Gives credentials, and checks what is signed with them."""

    def __init__(self, key: bytes) -> None:
        """Begin; ``key`` is a secret of this node."""
        self._key = hmac.new(key, b"odf_iceberg credentials", hashlib.sha256).digest()

    def issue(self, token_hash: bytes | None, now_s: int) -> Credentials:
        """Give credentials to the holder of a token, named by the hash of its secret; None: to anybody."""
        access_key = f"ODF.{_ANONYMOUS if token_hash is None else token_hash.hex()}.{now_s + LASTS_S}"
        return Credentials(access_key, self._secret_of(access_key))

    def _secret_of(self, access_key: str) -> str:
        return hmac.new(self._key, access_key.encode(), hashlib.sha256).hexdigest()

    def verify(self, request: SignedRequest, now_s: int) -> bytes | None:
        """Return the hash of the token whose holder signed a request; None: anybody did.

        Raises:
            SignatureError: Its signature does not hold, or not any more.
        """
        found = _PARTS.fullmatch(_single(request, "authorization").strip())
        if found is None:
            raise SignatureError(f"expected an Authorization of {ALGORITHM} for s3")
        access_key, day, region, names, signature = found.groups()
        named = _ACCESS_KEY.fullmatch(access_key)
        if named is None:
            raise SignatureError("the access key is none of this node: load the table again")
        moment = _single(request, "x-amz-date")
        signed = names.split(";")
        if len(signed) > MAX_SIGNED_HEADERS or "host" not in signed or "x-amz-date" not in signed:
            raise SignatureError("expected signed headers with host and x-amz-date")
        text = f"{ALGORITHM}\n{moment}\n{day}/{region}/s3/aws4_request\n{_canonical_hash(request, signed)}"
        key = f"AWS4{self._secret_of(access_key)}".encode()
        for part in (day, region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        if not hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), signature):
            raise SignatureError("the signature does not match: load the table again")
        if moment[:8] != day or abs(_seconds_of(moment) - now_s) > MAX_AGE_S:
            raise SignatureError(f"the request was signed more than {MAX_AGE_S} s from this node's time")
        if int(named[2]) < now_s:
            raise SignatureError("the credentials have expired: load the table again")
        return None if named[1] == _ANONYMOUS else bytes.fromhex(named[1])


def _single(request: SignedRequest, name: str) -> str:
    values = request.headers.get(name, ())
    if len(values) != 1:
        raise SignatureError(f"expected one header {name}")
    return values[0]


def _seconds_of(moment: str) -> int:
    try:
        return int(datetime.strptime(moment, _TIME).replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise SignatureError("x-amz-date is no time") from None


def _canonical_hash(request: SignedRequest, signed: Sequence[str]) -> str:
    path, _, query = request.raw_path.partition("?")
    pairs = sorted(_encoded(name) + "=" + _encoded(value) for name, value in _pairs_of(query))
    headers = "".join(f"{name}:{','.join(_joined(request, name))}\n" for name in signed)
    payload = _single(request, "x-amz-content-sha256")
    lines = (request.method, path or "/", "&".join(pairs), headers, ";".join(signed), payload)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _joined(request: SignedRequest, name: str) -> list[str]:
    values = request.headers.get(name)
    if not values:
        raise SignatureError(f"the signed header {name} is not there")
    return [" ".join(value.split()) for value in values]


def _pairs_of(query: str) -> list[tuple[str, str]]:
    parts = [part.partition("=") for part in query.split("&") if part]
    return [(unquote(name), unquote(value)) for name, _, value in parts]


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")


def endpoint_of(public_url: str | None, scheme: str, host: str) -> str:
    """Give the address at which readers reach this node's files: the one that is set, else the one that they asked."""
    return str(URL(public_url).origin()) if public_url else f"{scheme}://{host}"
