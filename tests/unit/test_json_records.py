from pathlib import Path

import pytest

from odf_engines.ingest.json_records import (
    JsonPathError,
    elements_of,
    features_of,
    lines_of,
    parse_feature,
    parse_object,
)
from odf_engines.records.json_members import BrokenJsonError


def test_values_keep_their_text_and_strings_lose_their_quotes() -> None:
    raw = b'{"a": 1.50, "b": "x\\u00fc\\n", "c": [1, {"x": 2}], "d": null, "f": 1234567890123456789012}'
    assert parse_object(raw) == {
        "a": "1.50",
        "b": "xü\n",
        "c": '[1, {"x": 2}]',
        "d": None,
        "f": "1234567890123456789012",
    }


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": 1} x',
        b'{"a": 1}{"a": 2}',
        b"5",
        b"[]",
        b'{"a": 01}',
        b'{"a": [1,}',
        b'{"a": "\xff"}',
        b'{"a": nul}',
        b"{",
    ],
)
def test_what_is_no_json_object_is_broken(raw: bytes) -> None:
    with pytest.raises(BrokenJsonError, match="not a JSON object"):
        parse_object(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": 1, "a": 2}',
        b'{"a": 1, "a": true}',
        b'{"a": 1, "b": 2, "\\u0061": "1"}',
        b'{"a": {"b": 1, "b": 2}}',
        b'{"a": [0, [{"b:c": 1, "b:c": 2}]]}',
        b'{"a": null, "a": 1}',
        b'{"x:y": "::", "x\\u003ay": ":"}',
        b'{"\\u003a\\u003A": 1, "a": 2, "a": 3, "b": ":"}',
        b'{"o": {"\\u003a\\u003a": 1, "a": 2, "a": 3, "b": [":"]}}',
    ],
)
def test_object_with_a_key_twice_and_two_values_is_no_record_ing_49(raw: bytes) -> None:
    with pytest.raises(BrokenJsonError, match="is there twice, with different values"):
        parse_object(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": 1, "a": 1}',
        b'{"a": {"b": 1}, "b": 1, "c": [{"b": 2}, {"b": 3}]}',
        b'{"a:b": "c:d", "e": {"f:": ["g:", {":": ":"}]}}',
        b'{"x\\u003ay": "\\u003a", "o": {"z": "\\u003a"}}',
        b'{"a": {"b": 1, "b": 1}}',
    ],
)
def test_object_with_each_key_once_is_a_record_whatever_its_colons_ing_49(raw: bytes) -> None:
    assert "a" in parse_object(raw) or "a:b" in parse_object(raw) or "x:y" in parse_object(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"type": "Feature", "properties": {"a": 1, "a": 2}, "geometry": null}',
        b'{"type": "Feature", "properties": {"a": 1}, "properties": {"b": 2}, "geometry": null}',
        b'{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "type": "Line"}}',
    ],
)
def test_feature_with_a_key_twice_is_no_record_ing_49(raw: bytes) -> None:
    with pytest.raises(BrokenJsonError, match="is there twice"):
        parse_feature(raw)


def test_document_with_its_array_twice_is_rejected_ing_49(tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.write_bytes(b'{"features": [{"a": 1}], "features": []}')
    with pytest.raises(JsonPathError, match="a key is there twice"):
        features_of(path)


def test_lines_are_numbered_and_empty_ones_left_out(tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\n\n  \r\n{"a":2}')
    assert list(lines_of(path)()) == [(1, b'{"a":1}'), (4, b'{"a":2}')]


def test_elements_are_found_by_path(tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.write_bytes(b'{"x": {"y": [ {"a": 1} , 2 ]}}')
    assert [raw for _, raw in elements_of(path, "x.y")()] == [b'{"a": 1}', b"2"]


@pytest.mark.parametrize(
    ("sub_path", "message"),
    [
        ("x.z", "no key 'z' of the path 'x.z'"),
        ("x", "no JSON array at 'x'"),
        (None, "no JSON array"),
        ("x.y.0", "key '0'"),
    ],
)
def test_path_that_leads_to_no_array_is_told(tmp_path: Path, sub_path: str | None, message: str) -> None:
    path = tmp_path / "source"
    path.write_bytes(b'{"x": {"y": [1]}}')
    with pytest.raises(JsonPathError, match=message):
        elements_of(path, sub_path)


def test_features_give_properties_and_geometry(tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.write_bytes(
        b'{"type": "FeatureCollection", "features": [{"properties": {"a": 1}, "geometry": {"type": "Point"}}]}'
    )
    ((_, raw),) = features_of(path)()
    assert parse_feature(raw) == {"a": "1", "geometry": '{"type": "Point"}'}
