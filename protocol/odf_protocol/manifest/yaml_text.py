"""YAML text to node trees, one per document.

MAN-8: Only the parts of YAML that a manifest needs are let in:

* no anchors and aliases: they make a small text expand without bound, and hide which value a field has;
* no tags: the field decides the type;
* keys are scalars and unique (MAN-1);
* nesting, nodes and scalars are bounded while the text is scanned, not afterwards.

Works from libyaml's event stream with a stack of its own, so hostile nesting costs neither recursion nor memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import yaml
from yaml import CSafeLoader

from odf_protocol.manifest import limits
from odf_protocol.manifest.errors import ManifestError
from odf_protocol.manifest.nodes import ListNode, MapNode, Node, ScalarNode, shorten

# Where libyaml counts a new line.
_LINE_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def parse_yaml(text: str, *, source_name: str) -> list[Node]:
    """Read every document of ``text``; empty documents are skipped.

    Args:
        text: Already bounded in size by the caller.
        source_name: Shown in errors, for example a file's name.

    Raises:
        ManifestError: Not YAML, or YAML outside the subset above.
    """
    _reject_surrogates(text, source_name)
    loader = CSafeLoader(text)
    try:
        return list(_iter_documents(loader, source_name))
    except yaml.reader.ReaderError as error:
        _raise_unreadable(error, text, source_name)
    except yaml.MarkedYAMLError as error:
        _raise_malformed(error, text, source_name)
    finally:
        loader.dispose()


def _iter_documents(loader: Any, source_name: str) -> Iterator[Node]:
    budget = limits.MAX_NODES
    documents = 0
    # Without its position an error is worth little, so the position of the newest event is kept at hand.
    while True:
        event = loader.get_event()
        kind = type(event)
        if kind is yaml.StreamEndEvent:
            return
        if kind is not yaml.DocumentStartEvent:
            continue
        documents += 1
        if documents > limits.MAX_DOCUMENTS:
            _reject(event, source_name, f"at most {limits.MAX_DOCUMENTS} documents", "more")
        root, budget = _read_document(loader, source_name, budget)
        if not (isinstance(root, ScalarNode) and root.is_null):
            yield root


def _read_document(loader: Any, source_name: str, budget: int) -> tuple[Node, int]:
    """Read events up to the document's end. Returns its root and how many nodes may still come."""
    root: Node | None = None
    open_nodes: list[tuple[ListNode | MapNode, ScalarNode | None, set[str]]] = []
    while True:
        event = loader.get_event()
        kind = type(event)
        if kind is yaml.DocumentEndEvent:
            assert root is not None, "libyaml gives every document a root"
            return root, budget
        if kind is yaml.SequenceEndEvent or kind is yaml.MappingEndEvent:
            open_nodes.pop()
            continue
        budget -= 1
        if budget < 0:
            _reject(event, source_name, f"at most {limits.MAX_NODES} values", "more")
        node = _node_of(event, kind, source_name)
        if not open_nodes:
            root = node
        else:
            parent, key, seen = open_nodes[-1]
            if type(parent) is ListNode:
                parent.items.append(node)
            elif key is None:
                open_nodes[-1] = (parent, _key_of(node, seen, source_name), seen)
                continue
            else:
                assert isinstance(parent, MapNode), "a container is a list or a map"
                parent.entries.append((key, node))
                open_nodes[-1] = (parent, None, seen)
        if type(node) is not ScalarNode:
            if len(open_nodes) >= limits.MAX_DEPTH:
                _reject(event, source_name, f"nesting of at most {limits.MAX_DEPTH} levels", "a deeper one")
            assert not isinstance(node, ScalarNode), "checked one line above; mypy does not narrow by type()"
            open_nodes.append((node, None, set()))


def _node_of(event: Any, kind: type, source_name: str) -> Node:
    mark = event.start_mark
    line, column = mark.line + 1, mark.column + 1
    if event.anchor is not None:
        what = "alias" if kind is yaml.AliasEvent else "anchor"
        _reject(
            event, source_name, "the value itself", f"the {what} {shorten(event.anchor)!r}; anchors are not allowed"
        )
    if event.tag is not None:
        _reject(
            event, source_name, "a value without a tag", f"the tag {shorten(event.tag)!r}; the field decides the type"
        )
    if kind is yaml.ScalarEvent:
        text = event.value
        if len(text) > limits.MAX_SCALAR_CHARACTERS:
            _reject(event, source_name, f"at most {limits.MAX_SCALAR_CHARACTERS} characters", f"{len(text)}")
        return ScalarNode(text, event.style == "", line, column)
    if kind is yaml.SequenceStartEvent:
        return ListNode([], line, column)
    return MapNode([], line, column)


def _key_of(node: Node, seen: set[str], source_name: str) -> ScalarNode:
    if not isinstance(node, ScalarNode):
        raise ManifestError(source_name, node.line, node.column, expected="a field name", found="a map or a list")
    check_key(node, seen, source_name)
    return node


def check_key(key: ScalarNode, seen: set[str], source_name: str) -> None:
    """Reject a repeated or oversized key, and remember it in ``seen``.

    Raises:
        ManifestError: The key is there already, or too long.
    """
    if len(key.text) > limits.MAX_KEY_CHARACTERS:
        expected = f"a field name of at most {limits.MAX_KEY_CHARACTERS} characters"
        raise ManifestError(source_name, key.line, key.column, expected=expected, found=f"one of {len(key.text)}")
    if key.text in seen:
        found = f"{shorten(key.text)!r} a second time"
        raise ManifestError(source_name, key.line, key.column, expected="each field once", found=found)
    seen.add(key.text)


def _reject(event: Any, source_name: str, expected: str, found: str) -> NoReturn:
    mark = event.start_mark
    raise ManifestError(source_name, mark.line + 1, mark.column + 1, expected=expected, found=found)


def _reject_surrogates(text: str, source_name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line, column = position_of(text, error.start)
        found = f"the lone surrogate U+{ord(text[error.start]):04X}"
        raise ManifestError(source_name, line, column, expected="Unicode text", found=found) from None


def _raise_unreadable(error: yaml.reader.ReaderError, text: str, source_name: str) -> NoReturn:
    # libyaml counts bytes here, everybody else counts characters.
    index = len(text.encode()[: error.position].decode("utf-8", "ignore"))
    line, column = position_of(text, index)
    found = f"the character U+{ord(text[index]):04X}" if index < len(text) else "something else"
    raise ManifestError(source_name, line, column, expected="printable text", found=found) from error


def _raise_malformed(error: yaml.MarkedYAMLError, text: str, source_name: str) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    lines = _LINE_BREAK.split(text)
    at_mark = lines[line][column : column + 1] if line < len(lines) else ""
    if at_mark == "\t":
        found, expected = "a tab", "spaces for indentation"
    else:
        context = f" ({error.context})" if error.context else ""
        found, expected = f"a mistake: {error.problem}{context}", "YAML"
    raise ManifestError(source_name, line + 1, column + 1, expected=expected, found=found) from error


def position_of(text: str, index: int) -> tuple[int, int]:
    """Line and column, both from 1, of the character at ``index``."""
    line = text.count("\n", 0, index) + 1
    return line, index - (text.rfind("\n", 0, index) + 1) + 1
