"""The form of what goes into a sandbox and comes out of it: a header of JSON, and bytes behind it.

A message is the size of its header (4 bytes) and of its body (8 bytes), unsigned and big-endian; the header, an object
of JSON; the body. Requests have ``operation`` and ``arguments``. Before its answer a program may send any number of
``{"part": true}``, whose body is the next part of a file, and ``{"progress": COUNT}``. Its answer is
``{"result": ...}`` or ``{"error": ...}``; ``{"ready": true}`` comes before the first request, where it is waited for.

Source: clauses SANDBOX-20 and ENGINE-4 in ``spec/extensions``.
"""

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

HEADER_BYTES: Final = 4 * 1024 * 1024
"""Of a header at most. Guess: results are small, data travels in files and bodies."""
PART_BYTES: Final = 1024 * 1024
"""Of a part of a file at most. Guess: large enough that its header costs nothing."""
_SIZES: Final = struct.Struct(">IQ")


def pack_message(header: Mapping[str, Any], body: bytes | memoryview = b"") -> bytes:
    """Write a message.

    Raises:
        ValueError: The header is too large, or has a number that JSON has not.
    """
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode("ascii")
    if len(text) > HEADER_BYTES:
        raise ValueError(f"a header of {len(text)} bytes is more than the {HEADER_BYTES} allowed")
    return b"".join((_SIZES.pack(len(text), len(body)), text, body))


def read_message(
    read: Callable[[int], bytes], find_max: Callable[[dict[str, Any]], int]
) -> tuple[dict[str, Any], bytes]:
    """Read a message, of which nothing is believed.

    Args:
        read: Reads so many bytes, neither more nor fewer.
        find_max: How many bytes may follow a header.

    Returns:
        The header and the body.

    Raises:
        ValueError, RecursionError: It is no message, or too large. Any error of ``read`` and ``find_max``.
    """
    header_bytes, body_bytes = _SIZES.unpack(read(_SIZES.size))
    if header_bytes > HEADER_BYTES:
        raise ValueError(f"a header has more than {HEADER_BYTES} bytes")
    header = json.loads(read(header_bytes))
    if not isinstance(header, dict):
        raise ValueError("a header is no object")  # noqa: TRY004 - no fault of the caller's
    if body_bytes > find_max(header):
        raise ValueError(f"{body_bytes} bytes follow a header")
    return header, read(body_bytes)
