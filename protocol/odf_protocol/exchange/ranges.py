"""Byte ranges of objects and conditions on them, as HTTP writes them.

Source: RFC 9110 sections 8.8.3 (ETag), 13.1 (conditions), 14 (ranges).
"""

import re
from dataclasses import dataclass
from typing import Final

from odf_protocol.errors import MalformedError

_RANGE: Final = re.compile(r"bytes=(\d{0,19})-(\d{0,19})", re.ASCII | re.IGNORECASE)
_CONTENT_RANGE: Final = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)", re.ASCII | re.IGNORECASE)
_ETAG: Final = re.compile(r'(?:W/)?"([^"]*)"')


class UnsatisfiableRangeError(MalformedError):
    """The range begins after the end of the object."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes ``start`` up to and without ``end`` of ``size_bytes`` (None: the sender does not say)."""

    start: int
    end: int
    size_bytes: int | None

    @property
    def content_range(self) -> str:
        """The value of ``Content-Range``."""
        return f"bytes {self.start}-{self.end - 1}/{'*' if self.size_bytes is None else self.size_bytes}"


def find_range(header: str | None, size_bytes: int) -> ByteRange | None:
    """Read a ``Range`` header for an object of ``size_bytes``.

    Returns:
        None where the whole object is to be sent: no header, several ranges, another unit, or nonsense.

    Raises:
        UnsatisfiableRangeError: Nothing of the object lies in the range.
    """
    found = _RANGE.fullmatch(header.strip()) if header else None
    if found is None:
        return None
    first, last = found.groups()
    if not first and not last:
        return None
    if not first:
        start, end = max(0, size_bytes - int(last)), size_bytes
    else:
        start = int(first)
        end = min(int(last) + 1, size_bytes) if last else size_bytes
        if last and int(last) < start:
            return None
    if start >= end:
        raise UnsatisfiableRangeError("Range", expected=f"a part of {size_bytes} bytes", found=header)
    return ByteRange(start, end, size_bytes)


def find_content_range(header: str | None) -> ByteRange | None:
    """Read a ``Content-Range`` header; None where it is absent or nonsense."""
    found = _CONTENT_RANGE.fullmatch(header.strip()) if header else None
    if found is None:
        return None
    first, last, size = found.groups()
    return ByteRange(int(first), int(last) + 1, None if size == "*" else int(size))


def matches_etag(header: str | None, etag: str) -> bool:
    """Say whether ``If-None-Match`` or ``If-Range`` names ``etag`` (without quotes), or any."""
    if header is None:
        return False
    return header.strip() == "*" or etag in _ETAG.findall(header)
