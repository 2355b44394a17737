"""A dataset in ODF's repository layout in a bucket of S3 or of a server that speaks its protocol (LAYOUT-7).

The client is the one that comes with Arrow: credentials, regions and retries are those of Amazon's own library.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self, cast
from urllib.parse import unquote, urlsplit

from pyarrow.fs import S3FileSystem

from odf_node.ports.layouts import OpenedFile
from odf_node.ports.peer_errors import PeerForbidsError, PeerNotFoundError, PeerUnavailableError
from odf_protocol.errors import MalformedError

BUCKET_SCHEMES: Final = frozenset({"s3", "s3+http", "s3+https"})
PARALLEL: Final = 8  # guess: hides the waiting of small requests, costs 32 MiB of buffers
CONNECT_S: Final = 10.0
REQUEST_S: Final = 60.0
DEFAULT_REGION: Final = "us-east-1"  # Source: what servers that know no regions expect

_COPY_BYTES: Final = 8 * 1024 * 1024
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
    """Where a dataset is: ``endpoint`` None means Amazon's own."""

    url: str
    endpoint: str | None
    is_encrypted: bool
    bucket: str
    prefix: str


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


class LayoutBucket:
    """``LayoutTarget`` on a place in a bucket."""

    def __init__(self, address: BucketAddress, environment: Mapping[str, str] = os.environ) -> None:
        self._address = address
        self._files = _connect(address, environment)

    @property
    def url(self) -> str:
        return self._address.url

    @property
    def name(self) -> str:
        return self._address.prefix.rpartition("/")[2]

    def open(self, path: str, what: str) -> OpenedFile:
        with self._mapped_errors(path, what):
            file = self._files.open_input_file(self._place(path))
            return OpenedFile(cast("BinaryIO", file), file.size())

    def find_size(self, path: str) -> int | None:
        with self._mapped_errors(path, "file"):
            found = self._files.get_file_info(self._place(path))
        return found.size if found.is_file else None

    def write(self, path: str, content: BinaryIO, size_bytes: int) -> None:
        place = self._place(path)
        with self._mapped_errors(path, "bucket"):
            stream = self._files.open_output_stream(place)
            try:
                shutil.copyfileobj(content, stream, _COPY_BYTES)
                is_whole = stream.tell() == size_bytes
            except BaseException:
                is_whole = False
                raise
            finally:
                # Closing is what makes it appear, also after an error.
                stream.close()
                if not is_whole:
                    with suppress(OSError):
                        self._files.delete_file(place)

    def settle(self) -> None:
        """See ``LayoutTarget``; what a bucket has taken is durable."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """See ``LayoutTarget``; what was written before an error stays, and counts for nothing without the head."""

    def _place(self, path: str) -> str:
        return f"{self._address.bucket}/{self._address.prefix}/{path}"

    @contextmanager
    def _mapped_errors(self, path: str, what: str) -> Iterator[None]:
        where = f"{self._address.url}/{path}"
        try:
            yield
        except FileNotFoundError:
            raise PeerNotFoundError(where, what) from None
        except OSError as error:
            text = str(error)
            if any(word in text for word in _ABSENT):
                raise PeerNotFoundError(self._address.url, "bucket") from error
            if any(word in text for word in _FORBIDDEN):
                raise PeerForbidsError(where, 403, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") from error
            reason = text.partition(": ")[2] or text
            raise PeerUnavailableError(where, f"the bucket does not answer as it should ({reason[:300]})") from error


def _connect(address: BucketAddress, environment: Mapping[str, str]) -> "S3FileSystem":
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    return S3FileSystem(
        # Without credentials a bucket may still be public; the machine's role is asked for only where that is said.
        anonymous=not _has_credentials(environment),
        region=region or DEFAULT_REGION,
        endpoint_override=address.endpoint,
        scheme="https" if address.is_encrypted else "http",
        connect_timeout=CONNECT_S,
        request_timeout=REQUEST_S,
    )


def _has_credentials(environment: Mapping[str, str]) -> bool:
    if any(environment.get(name) for name in _CREDENTIAL_VARIABLES):
        return True
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "false":
        return True
    file = environment.get("AWS_SHARED_CREDENTIALS_FILE") or str(Path("~/.aws/credentials").expanduser())
    return Path(file).is_file()
