"""The parts of a workbook, before any of them is believed: how large they are, and that rows stand in their order.

A library reads the sheets. It takes the rows of a sheet in one pass and leaves out, without a word, one whose number is
not above that of the row before.

Source: clause READ-5 in ``spec/readers.md``.
"""

import zipfile
from typing import IO, BinaryIO, Final
from xml.parsers import expat

from odf_engines.readers.contract import BrokenFileError

_MOST_ENTRIES: Final = 10_000  # guess: a workbook of a thousand sheets has some thousand
_MOST_BYTES: Final = 1024**3  # guess: ten times the largest sheets of a million rows
_MOST_TEXT_BYTES: Final = 256 * 1024**2  # guess: shared texts are held in memory
_MOST_RATIO: Final = 200  # as of archives (ING-1)
_FREE_BYTES: Final = 64 * 1024**2  # as there
_CHUNK_BYTES: Final = 64 * 1024
_SHEET: Final = "worksheet"


def check_parts(file: BinaryIO) -> None:
    """Look at all parts of a workbook.

    Raises:
        BrokenFileError: It is no zip, unpacks to too much, has a document type, or rows out of their order.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            check_sizes(entries)
            _check_texts(entries)
            for each in entries:
                with archive.open(each) as part:
                    _check_part(part, each.filename)
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, EOFError) as error:
        if isinstance(error, BrokenFileError):
            raise
        raise BrokenFileError("it is no Excel workbook of the kind .xlsx; save it as one") from error


def check_sizes(entries: list[zipfile.ZipInfo]) -> None:
    """Bound what the parts of a zip unpack to; each ends where the directory says, or it is refused when it is read.

    Raises:
        BrokenFileError: It is too much, two parts have one name, or one is encrypted.
    """
    packed, unpacked = sum(each.compress_size for each in entries), sum(each.file_size for each in entries)
    too_much = unpacked > _MOST_BYTES or unpacked > max(packed * _MOST_RATIO, _FREE_BYTES)
    if len(entries) > _MOST_ENTRIES or too_much:
        raise BrokenFileError(f"its {len(entries):,} parts unpack to {unpacked:,} bytes, which is too much")
    if len({each.filename for each in entries}) != len(entries):
        raise BrokenFileError("it has two parts of one name")
    if any(each.flag_bits & 1 for each in entries):
        raise BrokenFileError("it is encrypted")


def _check_texts(entries: list[zipfile.ZipInfo]) -> None:
    """Bound what is held in memory."""
    texts = sum(each.file_size for each in entries if not each.filename.startswith("xl/worksheets/"))
    if texts > _MOST_TEXT_BYTES:
        raise BrokenFileError(f"its parts beside the sheets unpack to {texts:,} bytes, which is too much")


def _check_part(part: IO[bytes], name: str) -> None:
    """Refuse a document type in any part, and rows of a sheet whose numbers do not grow."""
    parser, last = expat.ParserCreate(), 0
    root: list[str] = []

    def refuse(*_arguments: object) -> None:
        raise BrokenFileError(f"its part {name} has a document type, which could define entities")

    def begin(tag: str, attributes: dict[str, str]) -> None:
        nonlocal last
        element = tag.rpartition(":")[2]
        if not root:
            root.append(element)
        if element == "row" and root == [_SHEET]:
            number = int(float(attributes.get("r", last + 1)))
            if number <= last:
                raise BrokenFileError(f"in {name}, row {number} stands behind row {last}")
            last = number

    parser.StartDoctypeDeclHandler, parser.StartElementHandler = refuse, begin
    try:
        # What is no sheet is looked at up to its first element: a document type stands before it.
        while root in ([], [_SHEET]) and (chunk := part.read(_CHUNK_BYTES)):
            parser.Parse(chunk, False)
    except expat.ExpatError:
        return  # pictures and the like; what has to be XML, the library refuses
