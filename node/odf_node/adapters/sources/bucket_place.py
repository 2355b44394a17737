"""URLs and patterns of objects in buckets: which server, which bucket, and with which keys.

No message shows one as it stands: it may hold a secret.

Source: clause ING-45 in ``spec/ingest.md``.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from odf_node.adapters.bucket_client import BUCKET_SCHEMES, BucketAddress, BucketKeys, parse_bucket_url
from odf_protocol.errors import MalformedError

_EXPECTED: Final = "s3://bucket/path/of/object, s3+https://host/bucket/path or s3+http://host:port/bucket/path"


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """An object or a pattern of objects, ``shown_as`` without keys; ``keys`` None: as the environment says."""

    address: BucketAddress
    keys: BucketKeys | None
    shown_as: str


def is_in_bucket(source: str) -> bool:
    """Say whether a URL or a pattern is of objects in a bucket."""
    return source.partition("://")[0].lower() in BUCKET_SCHEMES


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
