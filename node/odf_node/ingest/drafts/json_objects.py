"""The objects in the beginning of a JSON text: one a line, or those of an array that may be cut off.

Source: ODF ReadStepNdJson, ReadStepJson, ReadStepNdGeoJson, ReadStepGeoJson; spec/ingest.md ING-3.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from odf_engines.ingest.json_records import BrokenJsonError, parse_feature, parse_object

_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"\s*")
_BETWEEN: Final = re.compile(r"[\s,]*")

Object = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects whose values are texts; None stands for what is no object.

    Attributes:
        kind: Of the read step that reads them.
        found: They, in order.
        key: Of the document's member that is their array; empty where the document is.
    """

    kind: str
    found: Sequence[Object | None]
    key: str = ""


def find_objects(text: str, *, is_whole: bool) -> Objects | None:
    """Find the objects of a JSON text; None where it is no such text."""
    lines = [line for line in text.splitlines() if line.strip()]
    first = _parse(lines[0])
    if first is not None and (len(lines) > 1 or _find_array(lines[0]) is None):
        complete = lines if is_whole or len(lines) == 1 else lines[:-1]
        if first.get("type") == "Feature":
            return Objects("NdGeoJson", [_parse(line, is_feature=True) for line in complete])
        return Objects("NdJson", [_parse(line) for line in complete])
    array = _find_array(text)
    if array is None:
        return None
    key, start = array
    is_geo = key == "features" and '"FeatureCollection"' in text
    found = [_parse(element, is_feature=is_geo) for element in _iter_elements(text, start)]
    return Objects("GeoJson" if is_geo else "Json", found, key) if any(found) else None


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
