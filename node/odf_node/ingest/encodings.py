"""Encodings of text files: their names in manifests, and how text in others than UTF-8 is read.

They are checked when they are declared, and undone before an engine reads.

Source: ODF ReadStep "encoding"; clause ING-21 in ``spec/ingest.md``. Names: WHATWG Encoding Standard, section 4.2.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from odf_node.ports.sources import SourceReader
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import ReadStep, ReadStepCsv, ReadStepJson, ReadStepNdJson
from odf_protocol.manifest.errors import At

UTF_8: Final = "utf8"
"""As ODF spells it."""

_CODECS: Final = {
    "iso-8859-1": "latin-1",
    "windows-1252": "cp1252",
    "utf-16": "utf-16",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "iso-8859-2": "iso8859-2",
    "iso-8859-5": "iso8859-5",
    "iso-8859-7": "iso8859-7",
    "iso-8859-9": "iso8859-9",
    "iso-8859-15": "iso8859-15",
    "windows-1250": "cp1250",
    "windows-1251": "cp1251",
    "windows-1253": "cp1253",
    "windows-1254": "cp1254",
    "windows-1257": "cp1257",
    "ibm850": "cp850",
    "macintosh": "mac-roman",
    "koi8-r": "koi8-r",
    "shift-jis": "cp932",
    "euc-jp": "euc-jp",
    "euc-kr": "cp949",
    "gb18030": "gb18030",
    "big5": "big5hkscs",
}

ENCODINGS: Final = (UTF_8, *_CODECS)
"""Every name in its usual spelling."""

_SPELLINGS: Final = {"utf8": UTF_8, "latin1": "iso88591", "cp1252": "windows1252", "ansi": "windows1252"}
_BY_KEY: Final = {name.replace("-", ""): codec for name, codec in _CODECS.items()}


def find_codec(name: str) -> str | None:
    """Return Python's name of an encoding; ``utf8`` where nothing is to be done, None where it is not read here."""
    key = name.lower().replace("-", "").replace("_", "")
    key = _SPELLINGS.get(key, key)
    return UTF_8 if key == UTF_8 else _BY_KEY.get(key)


def check_encoding(read: ReadStep, at: At) -> None:
    """Reject an encoding that is not read here; ``at`` is the place of the read step in its manifest.

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
