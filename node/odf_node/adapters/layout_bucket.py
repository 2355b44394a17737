"""A dataset in ODF's repository layout in a bucket of S3 or of a server that speaks its protocol (LAYOUT-7)."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final, Self, cast

from odf_node.adapters.bucket_client import BucketAddress, Trouble, connect_bucket, judge
from odf_node.ports.layouts import OpenedFile
from odf_node.ports.peer_errors import PeerForbidsError, PeerNotFoundError, PeerUnavailableError

PARALLEL: Final = 8  # guess: hides the waiting of small requests, costs 32 MiB of buffers

_COPY_BYTES: Final = 8 * 1024 * 1024


class LayoutBucket:
    """``LayoutTarget`` on a place in a bucket."""

    def __init__(self, address: BucketAddress, environment: Mapping[str, str] = os.environ) -> None:
        self._address = address
        self._files = connect_bucket(address, environment)

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

    def __exit__(self, *exception: object) -> None:
        """See ``LayoutTarget``; what was written before an error stays, and counts for nothing without the head."""

    def _place(self, path: str) -> str:
        return f"{self._address.bucket}/{self._address.prefix}/{path}"

    @contextmanager
    def _mapped_errors(self, path: str, what: str) -> Iterator[None]:
        where = f"{self._address.url}/{path}"
        try:
            yield
        except OSError as error:
            trouble, reason = judge(error)
            match trouble:
                case Trouble.NO_FILE:
                    raise PeerNotFoundError(where, what) from None
                case Trouble.NO_BUCKET:
                    raise PeerNotFoundError(self._address.url, "bucket") from error
                case Trouble.FORBIDDEN:
                    raise PeerForbidsError(where, 403, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") from error
            raise PeerUnavailableError(where, f"the bucket does not answer as it should ({reason})") from error
