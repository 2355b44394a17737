"""YAML text becomes nodes with positions; what a manifest does not need, and what would cost too much, is rejected."""

import time

import pytest

from odf_protocol.manifest import limits
from odf_protocol.manifest.errors import ManifestError
from odf_protocol.manifest.nodes import ListNode, MapNode, ScalarNode
from odf_protocol.manifest.parsing import parse_manifests
from odf_protocol.manifest.yaml_text import parse_yaml


def message_of(text: str | bytes) -> str:
    with pytest.raises(ManifestError) as caught:
        parse_manifests(text, source_name="m.yaml")
    return str(caught.value)


def test_nodes_keep_order_quotes_and_positions():
    (root,) = parse_yaml("a: no\nb:\n- 'no'\n- {c: é}\n", source_name="m")
    assert isinstance(root, MapNode)
    (a, no), (b, items) = root.entries
    assert (a.text, a.line, a.column) == ("a", 1, 1)
    assert (no.text, no.is_plain, no.line, no.column) == ("no", True, 1, 4)
    assert (b.text, items.line, items.column) == ("b", 3, 1)
    assert isinstance(items, ListNode)
    quoted, inner = items.items
    assert quoted == ScalarNode("no", is_plain=False, line=3, column=3)
    assert isinstance(inner, MapNode)


def test_columns_count_characters_and_not_bytes():
    (root,) = parse_yaml("{é日\U0001f600: x}", source_name="m")
    assert isinstance(root, MapNode)
    assert root.entries[0][1].column == 7


def test_empty_documents_are_skipped():
    assert parse_yaml("", source_name="m") == []
    assert parse_yaml("# only a comment\n---\n---\nnull\n...\n", source_name="m") == []
    assert len(parse_yaml("---\na: 1\n---\n\n---\nb: 2\n", source_name="m")) == 2


def test_byte_order_mark_is_ignored():
    with pytest.raises(ManifestError, match="expected a manifest"):
        parse_manifests(b"\xef\xbb\xbf- a", source_name="m.yaml")


REJECTED = {
    "anchor": (
        "a: &x 1\nb: 2\n",
        "m.yaml:1:4: expected the value itself, found the anchor 'x'; anchors are not allowed",
    ),
    "alias": ("a: 1\nb: *x\n", "m.yaml:2:4: expected the value itself, found the alias 'x'; anchors are not allowed"),
    "tag": ("a: !!python/object:os.system x\n", "m.yaml:1:4: expected a value without a tag, found the tag"),
    "own-tag": ("a: !x 1\n", "m.yaml:1:4: expected a value without a tag, found the tag '!x'"),
    "repeated-field": ("a: 1\nb: 2\na: 3\n", "m.yaml:3:1: expected each field once, found 'a' a second time"),
    "repeated-field-in-another-spelling": ("a: 1\n'a': 3\n", "m.yaml:2:1: expected each field once, found 'a'"),
    "map-as-key": ("? {a: 1}\n: 2\n", "m.yaml:1:3: expected a field name, found a map or a list"),
    "tab": ("a:\n\t- b\n", "m.yaml:2:1: expected spaces for indentation, found a tab"),
    "bell": ("a: b\nc: \x07\n", "m.yaml:2:4: expected printable text, found the character U+0007"),
    "lone-surrogate": ("a: b\nc: \ud800\n", "m.yaml:2:4: expected Unicode text, found the lone surrogate U+D800"),
    "bad-utf-8": (b"a: b\nc: \xff\n", "m.yaml:2:4: expected text in UTF-8, found the byte 0xff"),
    "cut-utf-8": ("a: é".encode()[:-1], "m.yaml:1:4: expected text in UTF-8, found the byte 0xc3"),
    "utf-16": ("a: b".encode("utf-16"), "m.yaml:1:1: expected text in UTF-8, found the byte 0xff"),
    "unclosed-quote": ("a: 'x\n", "m.yaml:2:1: expected YAML, found a mistake: found unexpected end of stream"),
    "unclosed-list": ("a: [1,\n", "m.yaml:2:1: expected YAML, found a mistake: did not find expected node content"),
    "two-colons": ("a: b: c\n", "m.yaml:1:5: expected YAML, found a mistake: mapping values are not allowed"),
    "unknown-directive": ("%FOO\n---\na\n", "m.yaml:1:5: expected YAML, found a mistake: found unknown directive"),
}


@pytest.mark.parametrize(("text", "expected"), REJECTED.values(), ids=REJECTED.keys())
def test_unwanted_text_is_rejected_with_its_position(text, expected):
    assert message_of(text).startswith(expected)


def test_billion_laughs_are_rejected_at_the_first_anchor():
    text = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    assert "m.yaml:1:4: expected the value itself, found the anchor 'a'" in message_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "\n".join(" " * i + "a:" for i in range(2_000)),
        "[{a: " * 50_000,
    ],
    ids=["lists", "maps", "dashes", "indentation", "mixed"],
)
def test_deep_nesting_is_rejected_before_it_costs(text):
    started = time.process_time()
    assert f"expected nesting of at most {limits.MAX_DEPTH} levels, found a deeper one" in message_of(text)
    # A guard against quadratic scanning; the real figure is some milliseconds of processor time.
    assert time.process_time() - started < 10


def test_deepest_nesting_allowed_is_read():
    depth = limits.MAX_DEPTH
    assert len(parse_yaml("[" * depth + "]" * depth, source_name="m")) == 1
    assert len(parse_yaml("[" * depth + "x" + "]" * depth, source_name="m")) == 1


def test_large_text_scalar_and_counts_are_bounded(monkeypatch):
    monkeypatch.setattr(limits, "MAX_TEXT_BYTES", 100)
    assert message_of("é" * 51) == "m.yaml:1:1: expected at most 100 bytes, found 102"
    assert message_of(b"a" * 101) == "m.yaml:1:1: expected at most 100 bytes, found 101"
    monkeypatch.setattr(limits, "MAX_SCALAR_CHARACTERS", 10)
    assert message_of("a: " + "b" * 11) == "m.yaml:1:4: expected at most 10 characters, found 11"
    monkeypatch.setattr(limits, "MAX_KEY_CHARACTERS", 5)
    assert message_of("- abcdef: 1").startswith(
        "m.yaml:1:3: expected a field name of at most 5 characters, found one of 6"
    )
    monkeypatch.setattr(limits, "MAX_NODES", 3)
    assert message_of("[1, 2,\n 3]") == "m.yaml:2:2: expected at most 3 values, found more"
    monkeypatch.setattr(limits, "MAX_DOCUMENTS", 1)
    assert message_of("--- a\n--- b\n") == "m.yaml:2:1: expected at most 1 documents, found more"


def test_long_list_of_events_is_rejected_before_they_are_read(monkeypatch):
    monkeypatch.setattr(limits, "MAX_EVENTS", 1)
    text = "kind: DatasetSnapshot\nversion: 1\ncontent: {name: a, kind: Root, metadata: [x, y]}\n"
    assert message_of(text) == "m.yaml:3:42: content.metadata: expected at most 1 events, found 2"
