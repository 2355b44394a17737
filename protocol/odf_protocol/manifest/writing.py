"""ODF objects to text of manifests: YAML as the reference implementation prints it, to the letter, and JSON.

``kind`` comes first, fields in the order of their declaration, absent ones are left out, unions are written in full.
A text gets quotes exactly when it would be read as something else without; one with line breaks becomes a ``|`` block.

Source: ODF manifests (YAML and JSON); layout as observed with the reference implementation.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import yaml
from yaml import CSafeDumper

from odf_protocol.block import Block
from odf_protocol.events import Event
from odf_protocol.events.declaration import (
    BytesKind,
    EnumKind,
    Kind,
    ScalarKind,
    TableKind,
    TextKind,
    TimestampKind,
    UnionKind,
    VectorKind,
    declaration_of,
    union_kind_of,
)
from odf_protocol.events.extra_attributes import ExtraAttributes
from odf_protocol.manifest.documents import BlockManifest, DatasetSnapshot, Manifest
from odf_protocol.manifest.nodes import format_float, needs_quotes
from odf_protocol.wire.envelope import MetadataBlock

#: A tree that JSON can hold; maps keep their order.
Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]

_EVENT: Final = union_kind_of(Event)

#: libyaml folds no line when its width is negative.
_UNFOLDED: Final = -1

_END_MARK: Final = "...\n"

#: Characters without meaning of their own. Source: Unicode, Private Use Area.
_PRIVATE_USE: Final = range(0xE000, 0xF900)


def manifest_to_plain(written: Manifest | Block) -> dict[str, Plain]:
    """Return the manifest of a snapshot, an event or a block as a tree."""
    match written:
        case DatasetSnapshot():
            kind, version, content = "DatasetSnapshot", 1, to_plain(TableKind(DatasetSnapshot), written)
        case Block() | BlockManifest():
            block = MetadataBlock(
                system_time=written.system_time,
                prev_block_hash=written.prev_block_hash,
                sequence_number=written.sequence_number,
                event=written.event,
            )
            kind, version, content = "MetadataBlock", written.version, to_plain(TableKind(MetadataBlock), block)
        case _:
            kind, version, content = "MetadataEvent", 1, to_plain(_EVENT, written)
    return {"kind": kind, "version": version, "content": content}


def manifest_to_yaml(written: Manifest | Block) -> str:
    """Write a manifest as a YAML document without ``---``."""
    text = _emit(manifest_to_plain(written))
    # libyaml marks the end after a block that keeps its last line breaks; the reference implementation does not.
    return text.removesuffix(_END_MARK) if text.endswith("\n" + _END_MARK) else text


def manifest_to_json(written: Manifest | Block) -> str:
    """Write a manifest as JSON, two spaces per level, with a line break at the end."""
    return json.dumps(manifest_to_plain(written), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_plain(kind: Kind, value: Any) -> Plain:
    """Turn an object of a declared kind into a tree of plain values."""
    return _converter_of(kind)(value)


def iter_log_yaml(blocks: Iterable[Block]) -> Iterator[str]:
    """Write blocks as documents of one text, each under a comment with its hash.

    As the reference implementation prints a chain, but for one thing: after a text that ends in several line breaks the
    document's end is marked, because the blank lines that follow would be read as part of the text.
    """
    for block in blocks:
        yield f"---\n# Block: {block.hash}\n{_emit(manifest_to_plain(block))}\n\n"


def _emit(tree: Plain) -> str:
    events: list[yaml.Event] = [yaml.StreamStartEvent(), yaml.DocumentStartEvent(explicit=False)]
    _append_node(tree, events)
    events += [yaml.DocumentEndEvent(explicit=False), yaml.StreamEndEvent()]
    restore = _hide_astral(events)
    text: str = yaml.emit(events, Dumper=CSafeDumper, width=_UNFOLDED, allow_unicode=True)
    return text.translate(restore) if restore else text


def _hide_astral(events: list[yaml.Event]) -> dict[int, int]:
    """Replace characters beyond the basic plane, which libyaml would escape, by stand-ins that it leaves alone.

    Returns:
        The translation that brings them back; empty if there was nothing to do.
    """
    scalars = [event for event in events if type(event) is yaml.ScalarEvent]
    used = {ord(character) for event in scalars if not event.value.isascii() for character in event.value}
    astral = sorted(code for code in used if code > 0xFFFF)
    stand_ins = [code for code in _PRIVATE_USE if code not in used]
    # More different ones than stand-ins: the rest is escaped, which reads back all the same.
    hide = dict(zip(astral, stand_ins, strict=False))
    if hide:
        for event in scalars:
            event.value = event.value.translate(hide)
    return {stand_in: code for code, stand_in in hide.items()}


_Converter = Callable[[Any], Plain]


@cache
def _converter_of(kind: Kind) -> _Converter:
    match kind:
        case TextKind() | ScalarKind():
            return _same
        case EnumKind():
            return _enum_text
        case TimestampKind():
            return str
        case BytesKind():
            return _base64 if kind.type is bytes else str
        case VectorKind():
            return lambda values: [_converter_of(kind.element)(value) for value in values]
        case UnionKind():
            return lambda value: {
                "kind": kind.name_of(type(value)),
                **_fields_to_plain(TableKind(type(value)), value),
            }
        case TableKind():
            if kind.type is ExtraAttributes:
                return _extra_to_plain
            return lambda value: _fields_to_plain(kind, value)


@cache
def _fields_of(kind: TableKind) -> tuple[tuple[str, str, Kind], ...]:
    return tuple((field.name, field.camel_name, field.kind) for field in declaration_of(kind.type).fields)


def _fields_to_plain(kind: TableKind, table: Any) -> dict[str, Plain]:
    fields: dict[str, Plain] = {}
    for name, camel_name, field_kind in _fields_of(kind):
        value = getattr(table, name)
        if value is not None:
            fields[camel_name] = _converter_of(field_kind)(value)
    return fields


def _same(value: Any) -> Plain:
    plain: Plain = value
    return plain


def _enum_text(value: Any) -> Plain:
    text: str = value.text
    return text


def _base64(value: bytes) -> Plain:
    return base64.b64encode(value).decode("ascii")


def _extra_to_plain(extra: ExtraAttributes) -> Plain:
    attributes: dict[str, Plain] = extra.canonical().to_dict()
    return attributes


def _append_node(tree: Plain, events: list[yaml.Event]) -> None:
    match tree:
        case Mapping():
            is_flow = not tree
            events.append(yaml.MappingStartEvent(anchor=None, tag=None, implicit=True, flow_style=is_flow))
            for key, value in tree.items():
                events.append(_text_event(key))
                _append_node(value, events)
            events.append(yaml.MappingEndEvent())
        case str():
            events.append(_text_event(tree))
        case Sequence():
            is_flow = not tree
            events.append(yaml.SequenceStartEvent(anchor=None, tag=None, implicit=True, flow_style=is_flow))
            for item in tree:
                _append_node(item, events)
            events.append(yaml.SequenceEndEvent())
        case None:
            events.append(_scalar_event("null", None))
        case bool():
            events.append(_scalar_event("true" if tree else "false", None))
        case int():
            events.append(_scalar_event(str(tree), None))
        case float():
            events.append(_scalar_event(format_float(tree), None))


def _text_event(text: str) -> yaml.ScalarEvent:
    # libyaml quotes by itself what YAML's grammar needs quoted, and gives up on "|" where a block cannot hold the text.
    return _scalar_event(text, "|" if "\n" in text else "'" if needs_quotes(text) else None)


def _scalar_event(text: str, style: str | None) -> yaml.ScalarEvent:
    return yaml.ScalarEvent(anchor=None, tag=None, implicit=(True, True), value=text, style=style)
