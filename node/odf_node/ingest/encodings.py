"""Read steps whose text is not in UTF-8: checked when they are declared, undone before an engine reads.

Source: clause ING-21 in ``spec/ingest.md``.
"""

from dataclasses import replace
from pathlib import Path

from odf_node.ports.sources import SourceReader
from odf_node.text_encodings import ENCODINGS, UTF_8, find_codec
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import ReadStep, ReadStepCsv, ReadStepJson, ReadStepNdJson
from odf_protocol.manifest.errors import At


def check_encoding(read: ReadStep, at: At) -> None:
    """Refuse an encoding that is not read here; ``at`` is the place of the read step in its manifest.

    Raises:
        SnapshotError: It is one.
    """
    encoding = getattr(read, "encoding", None)
    if encoding is not None and find_codec(encoding) is None:
        (at / "encoding").reject(f"an encoding that is read here ({', '.join(ENCODINGS)})", encoding, ENCODINGS)


def as_utf8(read: ReadStep) -> ReadStep:
    """Give the read step for the same text in UTF-8."""
    if isinstance(read, ReadStepCsv | ReadStepJson | ReadStepNdJson) and read.encoding is not None:
        return replace(read, encoding=None)
    return read


def decode_source(sources: SourceReader, read: ReadStep, *, path: Path, name: str) -> Path:
    """Write a file in UTF-8 beside it, where it is in something else; return where the text is.

    Raises:
        UnsupportedError: An encoding that is not read here, in a chain that another node wrote.
        SourceTooLargeError, HomeFullError: As ``SourceReader.decode``.
    """
    encoding = getattr(read, "encoding", None) or UTF_8
    codec = find_codec(encoding)
    if codec is None:
        raise UnsupportedError("encoding of a read step", found=encoding, supported=", ".join(ENCODINGS))
    return path if codec == UTF_8 else sources.decode(codec, path=path, name=name)
