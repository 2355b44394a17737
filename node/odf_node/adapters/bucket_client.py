"""Buckets of S3, or of a server that speaks its protocol: which one an address names, and the client that asks it.

The client is the one that comes with Arrow: credentials, regions and retries are those of Amazon's own library.

Source: clauses LAYOUT-7 in ``spec/extensions/layout.md`` and ING-45 in ``spec/plug-ins/sources.md``.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pyarrow.fs import S3FileSystem

from odf_protocol.errors import MalformedError

BUCKET_SCHEMES: Final = frozenset({"s3", "s3+http", "s3+https"})
CONNECT_S: Final = 10.0
REQUEST_S: Final = 60.0

_AMAZONS_REGION: Final = "us-east-1"
_NO_REGION: Final = "aws-global"
"""Requests are signed for us-east-1, what servers that know no regions expect, and no redirect is followed.

Source: AWS SDK for C++, ``FollowRedirectsPolicy``: "DEFAULT" follows redirects but for this region.
"""
_FORBIDDEN: Final = ("ACCESS_DENIED", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "HTTP status 403")
_ABSENT: Final = ("NoSuchBucket", "NO_SUCH_BUCKET", "Bucket not found")
_CREDENTIAL_VARIABLES: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Where Amazon's library looks for credentials without asking the network (AWS SDKs "Credential providers")."""


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """A place in a bucket: ``endpoint`` None means Amazon's own, or that of ``AWS_ENDPOINT_URL``."""

    url: str
    endpoint: str | None
    is_encrypted: bool
    bucket: str
    prefix: str


@dataclass(frozen=True, slots=True)
class BucketKeys:
    """An access key and its secret."""

    access: str
    secret: str = field(repr=False)


class Trouble(Enum):
    """What an error of the client means."""

    NO_FILE = auto()
    NO_BUCKET = auto()
    FORBIDDEN = auto()
    UNAVAILABLE = auto()


def parse_bucket_url(address: str) -> BucketAddress:
    """Read ``s3://bucket/prefix``, ``s3+http://host:port/bucket/prefix`` or ``s3+https://…``.

    Raises:
        MalformedError: Not such an address, or one without a bucket or a prefix in it.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise MalformedError("address", expected="s3://bucket/prefix", found=repr(address)) from error
    segments = [unquote(segment) for segment in parts.path.split("/") if segment]
    if parts.scheme == "s3":
        segments.insert(0, parts.netloc)
        endpoint = None
    else:
        endpoint = f"{parts.hostname}:{port}" if port else parts.hostname
    if "@" in parts.netloc:
        raise MalformedError("address", expected="no user and password in it; set AWS_ACCESS_KEY_ID", found="some")
    if len(segments) < 2 or not segments[0] or any(segment in {".", ".."} for segment in segments):
        raise MalformedError("address", expected="a bucket and the dataset's place in it", found=repr(address))
    return BucketAddress(address.rstrip("/"), endpoint, parts.scheme != "s3+http", segments[0], "/".join(segments[1:]))


def connect_bucket(
    address: BucketAddress,
    environment: Mapping[str, str] = os.environ,
    *,
    keys: BucketKeys | None = None,
    connect_s: float = CONNECT_S,
    request_s: float = REQUEST_S,
) -> "S3FileSystem":
    """Make the client of the server at an address; asks nothing yet.

    Args:
        address: Where.
        environment: Says the region, whether there are credentials, and where ``s3://`` is, if not at Amazon's.
        keys: What to sign with; None: what Amazon's library finds where the environment says that there is anything.
        connect_s: How long a connection may take.
        request_s: How long there may be silence.
    """
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    scheme, endpoint = "https" if address.is_encrypted else "http", address.endpoint
    if endpoint is None and (url := environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")):
        scheme, _, endpoint = url.rstrip("/").partition("://")
    return S3FileSystem(
        access_key=keys and keys.access,
        secret_key=keys and keys.secret,
        # Without credentials a bucket may still be public; the machine's role is asked for only where that is said.
        anonymous=keys is None and not _has_credentials(environment),
        region=region or (_AMAZONS_REGION if endpoint is None else _NO_REGION),
        endpoint_override=endpoint,
        scheme=scheme,
        connect_timeout=connect_s,
        request_timeout=request_s,
    )


def judge(error: OSError) -> tuple[Trouble, str]:
    """Say what an error of the client means, and its reason in the words of the library."""
    text = str(error)
    reason = (text.partition(": ")[2] or text)[:300]
    if isinstance(error, FileNotFoundError):
        return Trouble.NO_FILE, reason
    if any(word in text for word in _ABSENT):
        return Trouble.NO_BUCKET, reason
    return (Trouble.FORBIDDEN if any(word in text for word in _FORBIDDEN) else Trouble.UNAVAILABLE), reason


def _has_credentials(environment: Mapping[str, str]) -> bool:
    if any(environment.get(name) for name in _CREDENTIAL_VARIABLES):
        return True
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "false":
        return True
    file = environment.get("AWS_SHARED_CREDENTIALS_FILE") or str(Path("~/.aws/credentials").expanduser())
    return Path(file).is_file()
