"""In which encoding a text is.

UTF-8 and UTF-16 show themselves. Encodings of one byte a character do not: statistics of languages name the wrong one
for short tables as often as the right one, so the commonest is taken, shown, and left to whoever knows the file.
"""

import codecs
import re
from dataclasses import dataclass
from typing import Final

from odf_node.text_encodings import UTF_8, find_codec

_MARKS: Final = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_WESTERN: Final = ("iso-8859-1", "windows-1252")
_CONTROLS_OF_LATIN_1: Final = frozenset(range(0x80, 0xA0))  # signs in windows-1252
_FOREIGN_SHARE: Final = 0.3  # guess: of the letters of a Western text far fewer have accents
_LONGEST_CHARACTER: Final = 4  # bytes, in UTF-8


@dataclass(frozen=True, slots=True)
class DecodedText:
    """A text, the name of its encoding, and why that may be another."""

    text: str
    encoding: str
    doubt: str | None = None


def decode(content: bytes, *, is_whole: bool, encoding: str | None = None) -> DecodedText:
    """Decode the beginning of a file.

    Args:
        content: Its first bytes.
        is_whole: They are all; else the last character may be cut off.
        encoding: What somebody says it is; None: find out.
    """
    if encoding is not None:
        return DecodedText(_read(content, encoding), encoding)
    for mark, name in _MARKS.items():
        if content.startswith(mark):
            return DecodedText(_read(content, name), name)
    if _is_utf8(content, is_whole=is_whole):
        return DecodedText(content.decode("utf-8", "ignore").removeprefix("\ufeff"), UTF_8)
    for name, zeros in (("utf-16le", content[1::2]), ("utf-16be", content[::2])):
        # Of text in Latin letters every other byte is zero.
        if zeros.count(0) * 2 > len(zeros):
            return DecodedText(_read(content, name), name)
    name = _WESTERN[not _CONTROLS_OF_LATIN_1.isdisjoint(content)]
    text = _read(content, name)
    shown = next((word for word in re.findall(r"\w+", text) if not word.isascii()), "")[:30]
    letters = [letter for letter in text if letter.isalpha()]
    is_foreign = sum(not letter.isascii() for letter in letters) > _FOREIGN_SHARE * len(letters)
    if is_foreign:
        return DecodedText(text, name, f"the encoding is not {name}: {shown!a} is no word; say it with --encoding")
    return DecodedText(text, name, f"not UTF-8; in {name} a word reads {shown!r}, if that is wrong say --encoding NAME")


def _read(content: bytes, encoding: str) -> str:
    codec = find_codec(encoding)
    assert codec is not None  # the caller's to check
    return content.decode(codec, "ignore").removeprefix("\ufeff")


def _is_utf8(content: bytes, *, is_whole: bool) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return not is_whole and error.end == len(content) and len(content) - error.start < _LONGEST_CHARACTER
    return b"\0" not in content[:1024]
