"""Encodings of text files that are read here: by the names that manifests write, and the codecs behind them.

Engines read UTF-8 alone. What is in another encoding is written in UTF-8 before an engine sees it.

Source: ODF ReadStep "encoding"; clause ING-21 in ``spec/ingest.md``. Names: WHATWG Encoding Standard, section 4.2.
"""

from typing import Final

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
