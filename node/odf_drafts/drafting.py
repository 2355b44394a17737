"""Drafting a manifest: from nothing, or from the data that it is to describe, in whatever encoding.

Source: clause ING-24 in ``spec/plug-ins/drafts.md``.
"""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odf_drafts.columns import DraftColumn, guess_columns
from odf_drafts.keys import Key, find_key
from odf_drafts.manifest_text import draft_lines, template_text
from odf_drafts.records import Records, find_records, records_of
from odf_drafts.samples import Sample, SampleReader
from odf_node.errors import UsageError
from odf_node.ingest.encodings import ENCODINGS, UTF_8, find_codec
from odf_node.wording import count_of
from odf_protocol.errors import MalformedError
from odf_protocol.manifest import parse_snapshots
from odf_protocol.names import DatasetName

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


SAMPLE_BYTES: Final = 4 * 1024**2
"""Of a file that are looked at, unpacked.  # guess: most files as a whole"""

_XML_ENCODING: Final = re.compile(rb"""<\?xml[^>]{1,100}encoding=["']([A-Za-z0-9._-]{1,40})["']""")
_MARKUP: Final = re.compile(r"\s*<(?:(?P<page>!doctype html|html[\s>])|[\w?!])", re.IGNORECASE)
_MAX_COLUMNS: Final = 2_000  # guess: more are another format than it looks


@dataclass(frozen=True, slots=True)
class Draft:
    """A manifest, written.

    Attributes:
        text: YAML with comments.
        doubts: How many of its lines are guesses that the data could not settle.
        is_polled: The dataset fetches its data itself; else they are handed in.
    """

    text: str
    doubts: int = 0
    is_polled: bool = False


@dataclass(frozen=True, slots=True)
class Drafting:
    """The use case behind ``odf-node new``."""

    samples: SampleReader

    def draft_template(self, name: str) -> Draft:
        """Write a manifest to be filled in.

        Raises:
            MalformedError: It is no name.
        """
        return Draft(template_text(str(DatasetName.parse(name))))

    async def draft_from(self, name: str, source: str, *, encoding: str | None = None) -> Draft:
        """Write a manifest for the data of a file or URL, of which the beginning is read.

        Args:
            name: Of the dataset.
            source: Where the data are.
            encoding: Of the text, where somebody knows it.

        Raises:
            MalformedError: It is no name, or there is nothing to guess from.
            UsageError, UnsupportedError: An encoding, or a format, that is not read here.
            SourceNotFoundError, SourceUnavailableError: As ``SampleReader.read``.
        """
        dataset = str(DatasetName.parse(name))
        if encoding is not None and find_codec(encoding) is None:
            raise UsageError(f"--encoding {encoding}: known are {', '.join(ENCODINGS)}")
        sample = await self.samples.read_sample(source, limit_bytes=SAMPLE_BYTES)
        records, doubts, written = await self._find_records(sample, encoding)
        _check_names(records.names, sample.shown_as)
        columns, formats = guess_columns(records)
        key = find_key(columns, records.columns)
        doubts += records.doubts
        if records.broken:
            why = f"; the first: {records.reason}" if records.reason else ""
            doubts.append(f"{count_of(records.broken, 'record')} cannot be read so, and would go to quarantine{why}")
        lines = list(
            draft_lines(
                dataset,
                sample,
                records,
                columns,
                encoding=written,
                formats=formats,
                key=key,
                event_time=_choose_event_time(columns, key),
                doubts=doubts,
            )
        )
        text = "\n".join(lines) + "\n"
        # What the file's author wrote stands in it: it has to be the manifest that was meant, and nothing else.
        parse_snapshots(text, source_name="the draft")
        is_polled = not sample.is_local or sample.compression is not None
        return Draft(text, sum("# ? " in line for line in lines), is_polled)

    async def _find_records(self, sample: Sample, encoding: str | None) -> tuple[Records, list[str], str]:
        """Return the records of a sample, what is uncertain of its text, and its encoding."""
        name, whole = sample.shown_as, sample.is_whole
        if sample.table is not None:
            if encoding is not None:
                raise UsageError(f"--encoding is of texts, and {name} is none")
            content = sample.content if sample.path is None else sample.path
            return (
                records_of(sample.table, await self.samples.read_table(sample.table, content, shown_as=name)),
                [],
                UTF_8,
            )
        decoded = decode(sample.content, is_whole=whole, encoding=encoding or _xml_encoding(sample.content))
        doubts = [decoded.doubt] if decoded.doubt else []
        if (kind := _MARKUP.match(decoded.text)) is not None:
            if kind["page"]:
                raise MalformedError("data", where=name, expected="data, not a page about them", found="a web page")
            table = await self.samples.read_table("XmlRows", decoded.text.encode(), shown_as=name, is_whole=whole)
            return records_of("XmlRows", table), doubts, decoded.encoding
        return find_records(decoded.text, is_whole=whole, name=name), doubts, decoded.encoding


def _xml_encoding(content: bytes) -> str | None:
    """Return the encoding that an XML document says it has, where it is known here."""
    stated = _XML_ENCODING.match(content)
    return stated[1].decode() if stated and find_codec(stated[1].decode()) else None


def _check_names(names: Sequence[str], shown_as: str) -> None:
    """Reject columns that no manifest can name.

    Raises:
        MalformedError: There are none or too many, or one is called as another, or has no name.
    """
    if not 0 < len(names) <= _MAX_COLUMNS:
        raise MalformedError("data", where=shown_as, expected=f"1 to {_MAX_COLUMNS} columns", found=str(len(names)))
    for place, name in enumerate(names, 1):
        if not name:
            raise MalformedError(
                "header", where=shown_as, expected="a name for each column", found=f"none in field {place}"
            )
        if names.count(name) > 1:
            raise MalformedError(
                "header", where=shown_as, expected="a name of its own for each column", found=f"{name!r} twice"
            )


def _choose_event_time(columns: Sequence[DraftColumn], key: Key | None) -> DraftColumn | None:
    """Choose what says when a row happened: what is called so, or is of the key, or stands first."""
    times = [column for column in columns if column.is_time]
    in_key = key.names if key else ()
    return min(
        times, key=lambda each: (each.name != "event_time", each.name not in in_key, each.has_nulls), default=None
    )
