"""Write a text file in UTF-8.

Source: clause ING-21 in ``spec/ingest.md``.
"""

import codecs
from pathlib import Path
from typing import Final

from odf_node.adapters.sources.limits import BoundedFile, SourceLimits

_CHUNK_BYTES: Final = 1024 * 1024
_MARK_INVALID: Final = "odf-node-invalid"


def write_as_utf8(codec: str, *, path: Path, target: Path, name: str, limits: SourceLimits) -> None:
    """Write the text in ``path`` to the new file ``target``, in pieces; see ``SourceReader.decode``."""
    decoder = codecs.getincrementaldecoder(codec)(errors=_MARK_INVALID)
    with path.open("rb") as source, BoundedFile(target, name, limits) as written:
        while chunk := source.read(_CHUNK_BYTES):
            written.write(_encode(decoder.decode(chunk)))
        written.write(_encode(decoder.decode(b"", final=True)))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogateescape")


def _mark_invalid(error: UnicodeError) -> tuple[str, int]:
    """Put a byte that UTF-8 never has, 0xFF, where bytes mean nothing: their record is refused, and no other one."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\udcff", error.end


codecs.register_error(_MARK_INVALID, _mark_invalid)
