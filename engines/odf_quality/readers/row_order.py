"""The order of the rows of a workbook's sheets.

The library takes the rows of a sheet in one pass and leaves out, without a word, one whose number is not above that of
the row before.

Source: clause READ-5 in ``spec/plug-ins/quality.md``.
"""

import zipfile
from typing import IO, BinaryIO, Final
from xml.parsers import expat

from odf_engines.readers.contract import BrokenFileError

_CHUNK_BYTES: Final = 64 * 1024
_SHEET: Final = "worksheet"


def check_row_order(file: BinaryIO) -> None:
    """Reject a workbook in which the library would leave out rows.

    Raises:
        BrokenFileError: It is no zip, or the numbers of a sheet's rows do not grow.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            for each in archive.infolist():
                with archive.open(each) as part:
                    _check_part(part, each.filename)
    except BrokenFileError:
        raise
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, EOFError, RuntimeError) as error:
        raise BrokenFileError("it is no Excel workbook of the kind .xlsx; save it so, without a password") from error


def _check_part(part: IO[bytes], name: str) -> None:
    parser, last = expat.ParserCreate(), 0
    root: list[str] = []

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

    parser.StartElementHandler = begin
    try:
        # What is no sheet is looked at up to its first element.
        while root in ([], [_SHEET]) and (chunk := part.read(_CHUNK_BYTES)):
            parser.Parse(chunk, False)
    except expat.ExpatError:
        return  # pictures and the like; what has to be XML, the library rejects
