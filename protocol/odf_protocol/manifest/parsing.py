"""Text of manifests to objects: the entry points of reading.

Text is untrusted: it is bounded, then parsed, then read by the declarations, then judged (MAN-9). Every failure is a
:class:`~odf_protocol.manifest.errors.ManifestError` with line and column.

A name of the text that ends in ``.json`` says that it is JSON, any other that it is YAML. Templates such as
``${{ env.NAME }}`` are left as they are, to be filled in when data is fetched.
"""

from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from odf_protocol.events import Event
from odf_protocol.events.declaration import union_kind_of
from odf_protocol.manifest import limits
from odf_protocol.manifest.documents import VERSIONS, BlockManifest, DatasetSnapshot, Manifest
from odf_protocol.manifest.errors import ManifestError, Path, Place, SnapshotError, Step, find_nearest, list_words
from odf_protocol.manifest.json_text import parse_json
from odf_protocol.manifest.nodes import ListNode, MapNode, Node, ScalarNode, describe
from odf_protocol.manifest.reading import read_kind, read_table
from odf_protocol.manifest.snapshot_rules import normalize_snapshot
from odf_protocol.manifest.yaml_text import parse_yaml, position_of
from odf_protocol.wire.envelope import MetadataBlock

_EVENT: Final = union_kind_of(Event)
_ENVELOPE_FIELDS: Final = ("kind", "version", "content")
_CONTENT: Final[Path] = (None, "content")


def parse_snapshots(
    text: str | bytes, *, source_name: str, check: Callable[[DatasetSnapshot], None] | None = None
) -> tuple[DatasetSnapshot, ...]:
    """Read every document of a text as a snapshot, check the snapshot rules and normalize it.

    Args:
        text: The file's text, or its bytes in UTF-8.
        source_name: What errors call the text.
        check: Looks for what the reader's own program cannot do; its ``SnapshotError`` is told with its place.

    Raises:
        ManifestError: Malformed, of another kind, or against a rule.
    """
    place = Place(source_name)
    return tuple(_read_snapshot(node, place, check) for node in _parse_text(text, source_name))


def parse_manifests(text: str | bytes, *, source_name: str) -> tuple[Manifest, ...]:
    """Read every document of a text, whatever its kind; rules are applied to snapshots only.

    Args:
        text: The file's text, or its bytes in UTF-8.
        source_name: What errors call the text.

    Raises:
        ManifestError: Malformed, or a snapshot against a rule.
    """
    place = Place(source_name)
    manifests: list[Manifest] = []
    for node in _parse_text(text, source_name):
        kind, version, content = _read_envelope(node, place, tuple(VERSIONS))
        match kind:
            case "DatasetSnapshot":
                manifests.append(_read_snapshot(node, place))
            case "MetadataBlock":
                manifests.append(_read_block(version, content, place))
            case _:
                manifests.append(read_kind(_EVENT, content, _CONTENT, place))
    return tuple(manifests)


def _parse_text(text: str | bytes, source_name: str) -> list[Node]:
    """Bound and decode the text and split it into documents."""
    size_bytes = len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode(errors="replace"))
    if size_bytes > limits.MAX_TEXT_BYTES:
        expected = f"at most {limits.MAX_TEXT_BYTES} bytes"
        raise ManifestError(source_name, 1, 1, expected=expected, found=str(size_bytes))
    if isinstance(text, bytes):
        text = _decode_utf8(text, source_name)
    # A byte order mark says nothing in UTF-8, and editors still write it.
    text = text.removeprefix("\ufeff")
    if source_name.lower().endswith(".json"):
        return [parse_json(text, source_name=source_name)]
    return parse_yaml(text, source_name=source_name)


def _decode_utf8(text: bytes, source_name: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        line, column = position_of(text[: error.start].decode(), error.start)
        found = f"the byte {text[error.start]:#04x}"
        raise ManifestError(source_name, line, column, expected="text in UTF-8", found=found) from error


def _read_snapshot(node: Node, place: Place, check: Callable[[DatasetSnapshot], None] | None = None) -> DatasetSnapshot:
    _, _, content = _read_envelope(node, place, ("DatasetSnapshot",))
    _check_event_count(content, place)
    snapshot: DatasetSnapshot = read_table(DatasetSnapshot, content, _CONTENT, place)
    try:
        normalized = normalize_snapshot(snapshot)
        if check is not None:
            check(normalized)
    except SnapshotError as error:
        _fail_rule(error, content, place)
    return normalized


def _read_block(version: int, content: Node, place: Place) -> BlockManifest:
    block: MetadataBlock = read_table(MetadataBlock, content, _CONTENT, place)
    return BlockManifest(
        version=version,
        system_time=block.system_time,
        prev_block_hash=block.prev_block_hash,
        sequence_number=block.sequence_number,
        event=block.event,
    )


def _read_envelope(node: Node, place: Place, kinds: tuple[str, ...]) -> tuple[str, int, Node]:
    """Read ``kind``, ``version`` and ``content``; the content is not looked at."""
    if not isinstance(node, MapNode):
        place.fail(node, None, f"a manifest with {list_words(_ENVELOPE_FIELDS)}", describe(node))
    fields = {key.text: value for key, value in node.entries}
    for key, _ in node.entries:
        if key.text not in _ENVELOPE_FIELDS:
            expected = f"a field of a manifest ({list_words(_ENVELOPE_FIELDS)})"
            place.fail(key, None, expected, repr(key.text), find_nearest(key.text, _ENVELOPE_FIELDS))
    for name in _ENVELOPE_FIELDS:
        if name not in fields:
            found = f"only {list_words(fields)}" if fields else describe(node)
            place.fail(node, None, f"the field {name!r} of a manifest", found)
    kind, version = fields["kind"], fields["version"]
    if not isinstance(kind, ScalarNode) or kind.text not in kinds:
        word = kind.text if isinstance(kind, ScalarNode) else ""
        place.fail(kind, (None, "kind"), list_words(kinds), describe(kind), find_nearest(word, kinds))
    known = {str(number): number for number in VERSIONS[kind.text]}
    if not isinstance(version, ScalarNode) or not version.is_plain or version.text not in known:
        expected = f"version {' or '.join(known)} of {kind.text}"
        place.fail(version, (None, "version"), expected, describe(version))
    return kind.text, known[version.text], fields["content"]


def _check_event_count(content: Node, place: Place) -> None:
    """Reject a long list before its events are read."""
    events = find_node(content, ("metadata",))
    if isinstance(events, ListNode) and len(events.items) > limits.MAX_EVENTS:
        path: Path = (_CONTENT, "metadata")
        place.fail(events, path, f"at most {limits.MAX_EVENTS} events", str(len(events.items)))


def _fail_rule(error: SnapshotError, content: Node, place: Place) -> NoReturn:
    path: Path = _CONTENT
    for step in error.path:
        path = (path, step)
    nearest = find_nearest(error.found, error.known)
    place.fail(find_node(content, error.path), path, error.expected, error.found, nearest)


def find_node(node: Node, steps: Sequence[Step]) -> Node:
    """Follow ``steps`` down as far as the text goes: what a rule names may be missing or in short form."""
    for step in steps:
        match node:
            case ListNode() if isinstance(step, int) and step < len(node.items):
                node = node.items[step]
            case MapNode():
                below = next((value for key, value in node.entries if key.text == step), None)
                if below is None:
                    return node
                node = below
            case _:
                return node
    return node
