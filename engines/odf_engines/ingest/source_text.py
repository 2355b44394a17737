"""Bytes of a source file as text."""

import codecs
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class InvalidTextError(ValueError):
    """Bytes are not valid UTF-8."""


def decode_text(raw: bytes) -> str:
    """Decode UTF-8 strictly.

    Raises:
        InvalidTextError: They are not UTF-8.
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidTextError(f"byte {raw[error.start]:#04x} at position {error.start} is not UTF-8") from error


def is_utf8(data: bytes | mmap.mmap) -> bool:
    """Say whether all of `data` is valid UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    step = 1 << 20
    try:
        for start in range(0, len(data), step):
            decoder.decode(data[start : start + step])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def open_bytes(path: Path) -> Iterator[bytes | mmap.mmap]:
    """Give the bytes of a file without reading them into memory."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            yield mapped
