"""JSON text becomes the same nodes; repeated keys, which the standard library lets pass, are rejected."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_protocol.manifest import limits
from odf_protocol.manifest.errors import ManifestError
from odf_protocol.manifest.json_text import parse_json
from odf_protocol.manifest.nodes import ListNode, MapNode, Node, ScalarNode

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def plain(node: Node):
    match node:
        case MapNode():
            return {key.text: plain(value) for key, value in node.entries}
        case ListNode():
            return [plain(item) for item in node.items]
        case ScalarNode(is_plain=True):
            return json.loads(node.text)
    return node.text


def message_of(text: str) -> str:
    with pytest.raises(ManifestError) as caught:
        parse_json(text, source_name="m.json")
    return str(caught.value)


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_whatever_json_writes_is_read(value, indent, ensure_ascii):
    assert plain(parse_json(json.dumps(value, indent=indent, ensure_ascii=ensure_ascii), source_name="m")) == value


def test_positions_are_those_of_the_text():
    root = parse_json('{\n  "a": [1,\n    "x"]\n}', source_name="m")
    assert isinstance(root, MapNode)
    key, items = root.entries[0]
    assert (key.line, key.column, items.line, items.column) == (2, 3, 2, 8)
    assert isinstance(items, ListNode)
    assert [(item.line, item.column) for item in items.items] == [(2, 9), (3, 5)]


REJECTED = {
    "nothing": ("", "m.json:1:1: expected a JSON value, found the end of the text"),
    "repeated-key": ('{"a": 1,\n "a": 2}', "m.json:2:2: expected each field once, found 'a' a second time"),
    "repeated-key-in-escapes": ('{"a": 1, "\\u0061": 2}', "m.json:1:10: expected each field once"),
    "bare-key": ("{a: 1}", "m.json:1:2: expected a field name in quotes, found 'a'"),
    "last-comma": ('{"a": 1,}', "m.json:1:9: expected a field name in quotes, found '}'"),
    "last-comma-in-list": ("[1,]", "m.json:1:4: expected a JSON value, found ']'"),
    "missing-comma": ("[1 2]", "m.json:1:4: expected ',' or ']', found '2'"),
    "missing-colon": ('{"a" 1}', "m.json:1:6: expected ':', found '1'"),
    "unclosed": ('{"a": [1', "m.json:1:9: expected ',' or ']', found the end of the text"),
    "second-document": ("{}\n{}", "m.json:2:1: expected the end of the document, found '{'"),
    "nan": ("[NaN]", "m.json:1:2: expected a JSON value, found 'NaN'"),
    "leading-zero": ("[01]", "m.json:1:3: expected ',' or ']', found '1'"),
    "plus": ("[+1]", "m.json:1:2: expected a JSON value, found '+1'"),
    "single-quotes": ("['a']", "m.json:1:2: expected a JSON value"),
    "comment": ("[1] // x", "m.json:1:5: expected the end of the document, found '//'"),
    "control-character": ('["a\nb"]', "m.json:1:4: expected a JSON string, found a mistake: invalid control character"),
    "unclosed-string": ('["a', "expected a JSON string, found a mistake: unterminated string"),
    "bad-escape": ('["a\\x"]', "expected a JSON string, found a mistake: invalid \\escape"),
    "lone-surrogate": ('["\\ud800"]', "m.json:1:2: expected Unicode text, found a lone surrogate"),
    "deep": ("[" * 100_000, "expected nesting of at most 128 levels, found a deeper one"),
    "deep-maps": ('{"a":' * 100_000, "expected nesting of at most 128 levels, found a deeper one"),
}


@pytest.mark.parametrize(("text", "expected"), REJECTED.values(), ids=REJECTED.keys())
def test_mistake_is_rejected_with_its_position(text, expected):
    assert expected in message_of(text)


def test_counts_and_sizes_are_bounded(monkeypatch):
    monkeypatch.setattr(limits, "MAX_SCALAR_CHARACTERS", 3)
    assert message_of('["abcd"]') == "m.json:1:2: expected at most 3 characters, found 4"
    monkeypatch.setattr(limits, "MAX_NODES", 2)
    assert message_of("[1,\n2]") == "m.json:2:1: expected at most 2 values, found more"
    monkeypatch.setattr(limits, "MAX_DEPTH", 2)
    assert plain(parse_json("[[]]", source_name="m")) == [[]]
    monkeypatch.setattr(limits, "MAX_NODES", 9)
    assert "at most 2 levels" in message_of("[[[]]]")
