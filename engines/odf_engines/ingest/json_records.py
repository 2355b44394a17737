"""Read JSON into records of text: one object per line, one array in a document, or GeoJSON features.

A value that is a JSON string becomes its text; any other value becomes its JSON text as written, so that a number keeps
every digit. Null and an absent key are null. Keys that no column asks for are counted. An object with a key twice is no
record, unless both values are equal.

Source: ODF ReadStepNdJson, ReadStepJson, ReadStepNdGeoJson, ReadStepGeoJson; spec/ingest.md ING-3.
"""

import mmap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from odf_engines.ingest.source_text import open_bytes
from odf_engines.ingest_parts import MAX_IGNORED
from odf_engines.records.converted_texts import RFC_3339
from odf_engines.records.json_members import BrokenJsonError, decode_members, has_key_twice
from odf_engines.records.json_texts import NOT_JSON, text_of_json
from odf_engines.records.record_writer import RecordWriter
from odf_engines.records.source_records import FieldError, OriginalRecord, SourceRecords, split_each
from odf_engines.records.time_patterns import TimePatterns

GEOMETRY = "geometry"
ID = "id"

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_DECODED = msgspec.json.Decoder(dict[str, Any])


class JsonPathError(Exception):
    """A document does not hold an array where it should.

    Attributes:
        reason: What was found instead.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


Lines = Iterator[tuple[int | None, bytes]]
Source = Callable[[], Lines]


def lines_of(path: Path) -> Source:
    """Give the records of a file that has one on each line, with their line numbers; empty lines are no records."""

    def iter_lines() -> Lines:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                raw = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if raw := raw.strip(b" \t\r\n"):
                    yield number, raw

    return iter_lines


def elements_of(path: Path, sub_path: str | None) -> Source:
    """Give the elements of the array that a document holds at `sub_path` (keys joined by dots), or is.

    Raises:
        JsonPathError: The document is not JSON, has no array there, or has a key twice on the way.
    """
    with open_bytes(path) as data:
        raw: bytes | msgspec.Raw | mmap.mmap = data[:]
    assert isinstance(raw, bytes)
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    for key in sub_path.split(".") if sub_path else ():
        try:
            members = {name: bytes(value) for name, value in _OBJECT.decode(raw).items()}
        except NOT_JSON as error:
            raise JsonPathError(f"no JSON object with the key {key!r}: {error}") from error
        if key not in members:
            raise JsonPathError(f"no key {key!r} of the path {sub_path!r}")
        if has_key_twice(raw, members):
            raise JsonPathError(f"beside the key {key!r} of the path {sub_path!r} a key is there twice")
        raw = members[key]
    try:
        elements = [bytes(element).strip() for element in _ARRAY.decode(raw)]
    except NOT_JSON as error:
        raise JsonPathError(f"no JSON array{f' at {sub_path!r}' if sub_path else ''}: {error}") from error
    return lambda: ((None, element) for element in elements)


def features_of(path: Path) -> Source:
    """Give the features of a GeoJSON document.

    Raises:
        JsonPathError: It is not a feature collection.
    """
    return elements_of(path, "features")


def parse_object(raw: bytes) -> dict[str, str | None]:
    """Read one JSON object into its values as texts.

    Raises:
        BrokenJsonError: It is not one, or has a key twice with different values.
    """
    try:
        return {key: text_of_json(value) for key, value in decode_members(raw).items()}
    except NOT_JSON as error:
        raise BrokenJsonError(f"not a JSON object: {error}") from error


def parse_feature(raw: bytes) -> dict[str, str | None]:
    """Read one GeoJSON feature into the texts of its properties, of its `geometry` and, where they have none, its `id`.

    Raises:
        BrokenJsonError: It is not one, or has a key twice with different values.
    """
    try:
        feature = decode_members(raw)
        properties = feature.get("properties", b"{}")
        values = {} if properties == b"null" else parse_object(properties)
        values = {**values, GEOMETRY: text_of_json(feature["geometry"]) if "geometry" in feature else None}
        # A property of that name is a column already; the id has a place of its own (RFC 7946, section 3.2).
        return {ID: text_of_json(feature[ID]), **values} if ID in feature else values
    except NOT_JSON as error:
        raise BrokenJsonError(f"not a GeoJSON feature: {error}") from error


def split_object(
    raw: bytes, parse: Callable[[bytes], dict[str, str | None]] = parse_object
) -> Iterable[tuple[str, str | None]]:
    """Take an object apart into keys and texts; nothing if it is broken."""
    try:
        return parse(raw).items()
    except BrokenJsonError:
        return ()


def sample(source: Source, limit: int, *, is_geo: bool) -> Iterator[dict[str, Any]]:
    """Decode the first `limit` records, leaving out the broken ones; a geometry is its JSON text."""
    for _, raw in islice(source(), limit):
        try:
            found = _DECODED.decode(raw)
            if not is_geo:
                yield found
            elif isinstance(properties := found.get("properties") or {}, dict):
                yield {**properties, GEOMETRY: None if found.get("geometry") is None else ""}
        except NOT_JSON:
            continue


def read_json(
    source: Source,
    records_path: Path,
    parse: Callable[[bytes], dict[str, str | None]],
    names: tuple[str, ...],
    target: pa.Schema | None,
    times: TimePatterns = RFC_3339,
) -> SourceRecords:
    """Write the values under `names` of every record of `source`; for `target` and `times` see ``RecordWriter``."""
    writer = RecordWriter(records_path, names, target, times)
    broken: dict[int, tuple[FieldError, ...]] = {}
    number, known, ignored = 0, frozenset(names), Counter[str]()
    try:
        for number, (_, raw) in enumerate(source(), start=1):
            try:
                values = parse(raw)
            except BrokenJsonError as error:
                broken[number] = (FieldError(str(error)),)
                continue
            writer.write(number, [values.get(name) for name in names])
            if more := values.keys() - known:
                _count_ignored(ignored, (name for name in more if values[name] is not None))
    finally:
        writer.close()

    def find_originals(numbers: Iterable[int]) -> Iterator[OriginalRecord]:
        wanted = iter(numbers)
        wanted_next = next(wanted, None)
        for found, (line, raw) in enumerate(source(), start=1):
            if found == wanted_next:
                yield OriginalRecord(found, line, raw)
                wanted_next = next(wanted, None)
            if wanted_next is None:
                return

    found = writer.result(number, broken, find_originals, split_each(lambda raw: split_object(raw, parse)))
    return replace(found, ignored=dict(ignored))


def _count_ignored(ignored: Counter[str], names: Iterable[str]) -> None:
    """Count fields that no column names; of more than ``MAX_IGNORED`` the others together, under the empty name."""
    for name in names:
        ignored[name if name in ignored or len(ignored) < MAX_IGNORED else ""] += 1
