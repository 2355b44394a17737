"""The CSV grammar, exactly: where records and fields begin and end.

A record is one or more fields joined by the separator and ended by CR, LF or CRLF; empty lines are no records. A field
that begins with the quote character runs to the closing quote and may hold separators and line ends; inside it a
doubled quote and the escape character followed by any character stand for that character. What follows a closing quote
up to the separator belongs to the field. Anywhere else quote and escape characters are ordinary text.

Reading whole files is the task of `csv_records`, which lets Arrow do the work wherever Arrow's grammar agrees with this
one. This module is the exact and slow form: it reads headers, files that use both quotes and escapes, and the original
text of records that went to quarantine.

Source: spec/ingest.md ING-2.
"""

import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """The characters that give a CSV file its structure, one ASCII byte each.

    Attributes:
        separator: Between fields.
        quote: Around fields that hold separators or line ends.
        escape: Inside quoted fields, before a character to be taken as it is; None if there is no such character.
    """

    separator: bytes
    quote: bytes
    escape: bytes | None


@dataclass(frozen=True, slots=True)
class CsvRecord:
    """One record: its bytes without the line end, and its fields.

    Attributes:
        start: Position of its first byte in the file.
        end: Position behind its last byte, before the line end.
        fields: Unescaped bytes of each field.
        is_closed: False if the file ends inside a quoted field.
    """

    start: int
    end: int
    fields: tuple[bytes, ...]
    is_closed: bool


def iter_records(data: bytes | mmap.mmap, dialect: CsvDialect) -> Iterator[CsvRecord]:
    """Split `data` into records and fields, in order."""
    field, literal = _patterns(dialect)
    position, size = first_position(data), len(data)
    start, fields, is_closed = position, list[bytes](), True
    while position < size or fields:
        match = field.match(data, position)
        # The pattern matches the empty field before any end, so it matches everywhere.
        assert match is not None
        quoted, closing, tail, plain, end = match.groups()
        if quoted is None:
            fields.append(plain)
        else:
            is_closed = is_closed and bool(closing)
            fields.append(literal.sub(_unescape, quoted) + tail)
        position = match.end()
        if end == dialect.separator:
            continue
        if len(fields) > 1 or match.start(5) > start:
            yield CsvRecord(start, match.start(5), tuple(fields), is_closed)
        start, fields, is_closed = position, [], True


def iter_spans(data: bytes | mmap.mmap, dialect: CsvDialect) -> Iterator[tuple[int, int]]:
    """Split `data` into records without looking at their fields: start and end of each, in order."""
    one, separator = _field_pattern(dialect), re.escape(dialect.separator)
    record = re.compile(b"(?P<record>" + one + b"(?:" + separator + one + b")*+)" + rb"(?:\r\n|\r|\n|\Z)", re.DOTALL)
    position, size = first_position(data), len(data)
    while position < size:
        match = record.match(data, position)
        assert match is not None
        if match.end("record") > match.start("record"):
            yield match.span("record")
        position = match.end()


_CAPTURED_END = rb"(SEP|\r\n|\r|\n|\Z)"


def _field_pattern(dialect: CsvDialect) -> bytes:
    separator, quote = re.escape(dialect.separator), re.escape(dialect.quote)
    plain = b"([^" + separator + rb"\r\n]*+)"
    # An escape that ends the file has nothing to escape; it then stands for itself.
    escape = b"" if dialect.escape is None else re.escape(dialect.escape)
    escaped = b"" if dialect.escape is None else b"|" + escape + rb"(?:.|\Z)"
    inside = b"((?:[^" + quote + escape + b"]++|" + quote + quote + escaped + b")*+)"
    return b"(?:" + quote + inside + b"(" + quote + b"?)" + plain + b"|(?!" + quote + b")" + plain + b")"


@cache
def _patterns(dialect: CsvDialect) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Give the patterns of a field with its end, and of what stands for something else inside quotes."""
    end = _CAPTURED_END.replace(b"SEP", re.escape(dialect.separator))
    return re.compile(_field_pattern(dialect) + end, re.DOTALL), _literal_pattern(dialect)


def _literal_pattern(dialect: CsvDialect) -> re.Pattern[bytes]:
    quote = re.escape(dialect.quote)
    escaped = b"" if dialect.escape is None else b"|" + re.escape(dialect.escape) + b"(.)"
    return re.compile(quote + b"(" + quote + b")" + escaped, re.DOTALL)


def _unescape(match: re.Match[bytes]) -> bytes:
    found: bytes = match[match.lastindex or 0]
    return found


def first_position(data: bytes | mmap.mmap) -> int:
    """Say where the first record begins: behind a byte order mark."""
    return len(_BYTE_ORDER_MARK) if data[: len(_BYTE_ORDER_MARK)] == _BYTE_ORDER_MARK else 0
