"""Of which format a text is, and its records as texts.

CSV is split by the grammar that reads it later (ING-2), JSON by the one of ING-3: an array or object inside a record is
its text.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from odf_drafts.dates import find_time_form
from odf_drafts.numbers import find_number_forms
from odf_engines.ingest.csv_grammar import CsvDialect, iter_records
from odf_engines.ingest.json_records import parse_feature, parse_object
from odf_engines.records.json_members import BrokenJsonError, RepeatedKeyError
from odf_node.wording import count_of
from odf_protocol.errors import MalformedError

if TYPE_CHECKING:
    from odf_engines.sampling.process import FoundTable


_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"\s*")
_BETWEEN: Final = re.compile(r"[\s,]*")

Object = dict[str, str | None]
_Row = Sequence[str | None]


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects whose values are texts; None stands for what is no object.

    Attributes:
        kind: Of the read step that reads them.
        found: They, in order.
        key: Of the document's member that is their array; empty where the document is.
        reason: Why the first of them is no object, where a key is there twice.
    """

    kind: str
    found: Sequence[Object | None]
    key: str = ""
    reason: str = ""


def find_objects(text: str, *, is_whole: bool) -> Objects | None:
    """Find the objects of a JSON text; None where it is no such text."""
    lines = [line for line in text.splitlines() if line.strip()]
    first = _parse(lines[0])
    if first is None and _find_repeated_key(lines[0]):
        first = next(filter(None, map(_parse, lines)), {})
    if first is not None and (len(lines) > 1 or _find_array(lines[0]) is None):
        complete = lines if is_whole or len(lines) == 1 else lines[:-1]
        is_geo = first.get("type") == "Feature"
        found = [_parse(line, is_feature=is_geo) for line in complete]
        return Objects("NdGeoJson" if is_geo else "NdJson", found, reason=_find_reason(complete, found))
    array = _find_array(text)
    if array is None:
        return None
    key, start = array
    is_geo = key == "features" and '"FeatureCollection"' in text
    elements = list(_iter_elements(text, start))
    found = [_parse(element, is_feature=is_geo) for element in elements]
    kind = "GeoJson" if is_geo else "Json"
    return Objects(kind, found, key, _find_reason(elements, found)) if any(found) else None


def _find_array(text: str) -> tuple[str, int] | None:
    """Find the array of objects that a document is, or has as a member: its key, and where its first element is."""
    at = _skip(_SPACE, text, 0)
    if text[at : at + 1] == "[":
        return "", at + 1
    at += 1
    while True:
        at = _skip(_BETWEEN, text, at)
        try:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(_SPACE, text, at)
            if not isinstance(key, str) or text[at : at + 1] != ":":
                return None
            at = _skip(_SPACE, text, at + 1)
            if text[at : at + 1] == "[" and text[_skip(_SPACE, text, at + 1) :][:1] == "{" and "." not in key:
                return key, at + 1
            _, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None


def _iter_elements(text: str, at: int) -> Iterator[str]:
    """Yield the elements of an array one by one, as far as they are there in whole."""
    while True:
        start = _skip(_BETWEEN, text, at)
        try:
            _, at = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            return
        yield text[start:at]


def _skip(what: re.Pattern[str], text: str, at: int) -> int:
    found = what.match(text, at)
    assert found is not None  # it matches the empty text, too
    return found.end()


def _parse(text: str, *, is_feature: bool = False) -> Object | None:
    try:
        return (parse_feature if is_feature else parse_object)(text.strip().encode())
    except (BrokenJsonError, UnicodeEncodeError):
        return None


def _find_repeated_key(text: str) -> str:
    """Say which key an object has twice; empty where it has none, or is no object."""
    try:
        parse_object(text.strip().encode())
    except RepeatedKeyError as error:
        return str(error)
    except (BrokenJsonError, UnicodeEncodeError):
        return ""
    return ""


def _find_reason(texts: Sequence[str], found: Sequence[Object | None]) -> str:
    """Say why the first text of which nothing was made was left out; empty where it goes without saying."""
    return next((_find_repeated_key(text) for text, each in zip(texts, found, strict=True) if each is None), "")


_SEPARATORS: Final = (",", ";", "\t", "|")
_TRIED_RECORDS: Final = 200
_TOTALS: Final = ("total", "sum", "summe", "gesamt", "insgesamt", "somme", "totale", "subtotal", "grand total")
"""First words of what stands below a table.  # guess: what spreadsheets in a few languages call it"""
_MIN_RECORDS: Final = 3  # above a total
MAX_RECORDS: Final = 100_000
"""That are looked at.  # guess: a second or two, however short they are"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What a text holds.

    Attributes:
        kind: Of the read step: ``Csv``, ``Json`` or ``NdJson``, ``GeoJson`` or ``NdGeoJson``, ``Parquet``,
            ``EsriShapefile``.
        names: Of the columns.
        columns: A list of texts for each; None: nothing is there.
        options: Of the read step, beside its schema.
        doubts: What is uncertain of these.
        is_whole: These are all records of the file.
        broken: Records that have another number of fields, or are no objects.
        reason: Why the first of these cannot be read, where that does not go without saying.
        types: ODF types of the columns whose type the file itself says.
        reader: Kind and parameters of the plug-in that takes the file apart (READ-1).
        total: Place of a column, and its text in the last record, which is a total and is not among these.
    """

    kind: str
    names: tuple[str, ...]
    columns: tuple[list[str | None], ...]
    options: dict[str, str | bool]
    is_whole: bool
    doubts: tuple[str, ...] = ()
    broken: int = 0
    reason: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    reader: Mapping[str, Any] | None = None
    total: tuple[int, str] | None = None

    @property
    def count(self) -> int:
        """How many records were looked at."""
        return len(self.columns[0]) if self.columns else 0

    @property
    def has_time_formats(self) -> bool:
        """Whether the read step can say how dates and times are written (ING-16)."""
        return "Geo" not in self.kind and self.kind != "EsriShapefile"


def records_of(kind: str, table: "FoundTable") -> Records:
    """Make records of what a file that is no plain text holds; ``kind`` as ``SampleReader.read_table``."""
    is_step = kind in {"Parquet", "EsriShapefile"}
    body, total = _without_total(table.records, is_whole=table.is_whole and kind == "Excel")
    return Records(
        kind=kind if is_step else "NdJson",
        names=table.names,
        columns=tuple(list(each) for each in zip(*body, strict=True)) or tuple([] for _ in table.names),
        options={name: str(value) for name, value in table.parameters.items()} if is_step else {},
        is_whole=table.is_whole,
        doubts=(*table.doubts, *_doubt_total(total)),
        total=total,
        broken=table.broken,
        reason=table.reason,
        types=table.types,
        reader=None if is_step else {"kind": kind, **table.parameters},
    )


def find_records(text: str, *, is_whole: bool, name: str) -> Records:
    """Split the beginning of a file into records.

    Args:
        text: It.
        is_whole: Nothing follows; else the last record may be cut off, and is left out.
        name: Of the file, for messages.

    Raises:
        MalformedError: There is no record in it.
    """
    first = text.lstrip()[:1]
    if not first or "\0" in text:
        found = "an empty file" if not first else "bytes that are no text"
        raise MalformedError("data", where=name, expected="CSV, JSON, or lines of JSON", found=found)
    objects = find_objects(text, is_whole=is_whole) if first in "[{" else None
    if objects is None:
        return _find_csv(text, is_whole=is_whole, name=name)
    good = [each for each in objects.found if each is not None]
    names = tuple(dict.fromkeys(name for each in good for name in each))
    return Records(
        kind=objects.kind,
        names=names,
        columns=tuple([each.get(name) for each in good] for name in names),
        options={"subPath": objects.key} if objects.kind == "Json" and objects.key else {},
        is_whole=is_whole,
        broken=len(objects.found) - len(good),
        reason=objects.reason,
    )


def _find_csv(text: str, *, is_whole: bool, name: str) -> Records:
    data = text.encode()
    separator = _choose_separator(data)
    escape, doubts = _choose_escape(data, separator)
    found = iter_records(data, CsvDialect(separator.encode(), b'"', escape))
    rows = [_texts(record.fields) for record in islice(found, MAX_RECORDS)]
    is_end = next(found, None) is None
    if is_end and not is_whole:
        rows.pop()  # it may be cut off
    if not rows:
        raise MalformedError("data", where=name, expected="a record", found="none that ends in the first part of it")
    width = Counter(map(len, rows)).most_common(1)[0][0]
    lead = next(number for number, row in enumerate(rows) if len(row) == width)
    if lead:
        doubts.append(
            f"the first {count_of(lead, 'record')} have another number of fields than the others: remove them from the "
            "file if they are a title, as no option skips them"
        )
    good = [row for row in rows if len(row) == width]
    if width == 1:
        doubts.append(_doubt_of_one_column(good))
    has_header, header_doubt = _has_header(good)
    if header_doubt:
        doubts.append(header_doubt)
    names = [str(each or "") for each in good[0]] if has_header else [f"column_{n}" for n in range(1, width + 1)]
    below = good[1:] if has_header else good
    body, total = _without_total(below, is_whole=is_end and is_whole)
    doubts += _doubt_total(total)
    options: dict[str, str | bool] = {"header": has_header}
    if separator != ",":
        options["separator"] = separator
    if escape is None:
        options["escape"] = ""
    return Records(
        kind="Csv",
        names=tuple(names),
        columns=tuple(map(list, zip(*body, strict=True))) if body else tuple([] for _ in names),
        options=options,
        is_whole=is_end and is_whole,
        doubts=tuple(doubts),
        broken=len(rows) - len(good),
        total=total,
    )


def _doubt_of_one_column(rows: Sequence[_Row]) -> str:
    """Say what else lines without a separator may be."""
    lengths = {len(row[0] or "") for row in rows}
    stated = "no separator was found (, ; | or a tab), so each line is one column"
    if len(lengths) > 1 or len(rows) <= 1 or not any(" " in (row[0] or "").strip() for row in rows):
        return stated
    return (
        f"{stated}. All have {lengths.pop()} characters: if values stand at fixed places, "
        "'read: {kind: NdJson, ...}' names the columns, and the reader FixedWidth their places: spec/readers.md begins "
        "with an example"
    )


def _without_total(rows: Sequence[_Row], *, is_whole: bool) -> tuple[Sequence[_Row], tuple[int, str] | None]:
    """Leave out the last row if it is a total; say where it says so, and how."""
    if not is_whole or len(rows) <= _MIN_RECORDS or (total := _find_total(rows[-1])) is None:
        return rows, None
    return rows[:-1], total


def _doubt_total(total: tuple[int, str] | None) -> list[str]:
    if total is None:
        return []
    text = (
        f"the last record begins with {total[1].strip()!r} and is taken for a total: the columns are guessed without "
        "it, and the converter LeaveOut leaves such records out, which reports count"
    )
    return [text]


def _find_total(row: Sequence[str | None]) -> tuple[int, str] | None:
    """Return the place and text that a record begins with if that is a word for a total."""
    place, first = next(((place, text) for place, text in enumerate(row) if text), (0, ""))
    is_total = first.strip().casefold().rstrip(":").partition(":")[0].strip() in _TOTALS
    return (place, first) if is_total else None


def _texts(fields: Sequence[bytes]) -> tuple[str | None, ...]:
    return tuple(field.decode() or None for field in fields)


def _choose_separator(data: bytes) -> str:
    """Choose the one by which most records have as many fields as the others, and more than one."""

    def score(separator: str) -> tuple[float, int]:
        records = list(islice(iter_records(data, CsvDialect(separator.encode(), b'"', None)), _TRIED_RECORDS))
        width, count = Counter(len(record.fields) for record in records).most_common(1)[0]
        return (count / len(records) if width > 1 else 0.0, width)

    return max(_SEPARATORS, key=score)


def _choose_escape(data: bytes, separator: str) -> tuple[bytes | None, list[str]]:
    r"""Say whether a backslash inside quotes takes the next sign as it is, or is a backslash."""
    if b"\\" not in data or b'"' not in data:
        return b"\\", []
    shapes = []
    for escape in (b"\\", None):
        records = list(iter_records(data, CsvDialect(separator.encode(), b'"', escape)))
        widths = Counter(len(record.fields) for record in records)
        shapes.append((widths.most_common(1)[0][1] / len(records), records[-1].is_closed))
    if shapes[0] == shapes[1] and b'\\"' not in data:
        return None, [r"backslashes inside quotes are taken for backslashes (escape: '')"]
    return (b"\\" if shapes[0] >= shapes[1] else None), [r"whether a backslash inside quotes escapes is a guess"]


def _has_header(rows: Sequence[Sequence[str | None]]) -> tuple[bool, str | None]:
    """Say whether the first record names the columns, and why that is uncertain."""
    first, body = rows[0], rows[1:]
    if any(_is_value(each) for each in first if each):
        return False, None
    if not body:
        return True, "the file has one record, which is taken for the names of the columns"
    values = [next((row[place] for row in body if row[place]), None) for place in range(len(first))]
    if any(value is not None and _is_value(value) for value in values):
        return True, None
    if len(set(first)) < len(first):
        return False, "every column is text, and the first record has a text twice: it is taken for no header"
    return True, "every column is text, so whether the first record names the columns is a guess (header)"


def _is_value(text: str) -> bool:
    return bool(find_number_forms([text]) or find_time_form([text]))
