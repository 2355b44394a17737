"""Blocks laid out alike: decode one with care, then read the others by position.

Blocks of one writer differ in a few values only; offsets, lengths, tags and names are the same bytes at the same
places. A ``Shape`` is those bytes of one block that was decoded and accepted, and the places of its values. Bytes that
match a shape decode the same way, so no offset needs to be followed again.

What makes this safe: a shape is only made of a block that equals its own canonical encoding, so no value overlaps an
offset or another value; everything that is not one of the few values is compared; and values that could be invalid by
themselves (times, text) are judged by whoever reads them.

Source: ODF metadata block serialization; clause CHAIN-50 of ``spec/chain.md``.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from odf_protocol.block import Block, encode_block
from odf_protocol.block_traits import traits_of
from odf_protocol.did import DatasetId
from odf_protocol.enums import Scalar
from odf_protocol.events import AddData, ExecuteTransform, SourceState
from odf_protocol.events.declaration import BytesKind, Field, Kind
from odf_protocol.multihash import ARROW0_SHA3_256, SHA3_256, Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.wire.decoder import Decoder
from odf_protocol.wire.envelope import Manifest, MetadataBlock

_TIME_PARTS = ("year", "day", "second", "nanosecond")

# The record that ``Shape.read`` returns; absent values are None.
_VALUES = (
    *(f"system_time.{part}" for part in _TIME_PARTS),
    "prev_block_hash",
    "sequence_number",
    "event.prev_checkpoint",
    "event.prev_offset",
    "event.new_data.offset_interval.start",
    "event.new_data.offset_interval.end",
    "event.new_checkpoint.physical_hash",
    *(f"event.new_watermark.{part}" for part in _TIME_PARTS),
    "event.new_source_state.value",
)
INPUT_VALUES = ("prev_block_hash", "new_block_hash", "prev_offset", "new_offset")

# Values that no rule looks at; they may differ all the same.
_IGNORED = (
    "event.new_data.logical_hash",
    "event.new_data.physical_hash",
    "event.new_data.size",
    "event.new_checkpoint.size",
)
_ABSENT_ZEROS = {"event.new_data.offset_interval.start", "event.new_data.offset_interval.end"}
_ABSENT = (None, 0)  # what stands for values that are left out
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Shape:
    """A layout of AddData or ExecuteTransform blocks.

    Attributes:
        traits: What every block of the shape is good for (``block_traits``).
        has_data: Every block of the shape has a slice.
        has_watermark: Every block of the shape has one.
        has_new_input: Every block of the shape takes a new block of some input.
        source_state: Every block of the shape has this source state, but for its value.
        input_ids: Inputs of every block of the shape.
    """

    traits: int
    has_data: bool
    has_watermark: bool
    has_new_input: bool
    source_state: SourceState | None
    input_ids: tuple[DatasetId, ...]
    _mask: int
    _layout: int
    _struct: struct.Struct
    _order: "itemgetter[Any]"

    def matches(self, number: int) -> bool:
        """Tell whether a block of the same length, as a little-endian number, is laid out like this."""
        return number & self._mask == self._layout

    def read(self, raw: bytes) -> tuple[Any, ...]:
        """Read the values of a block that matches.

        Returns:
            16 values: system time (year, day of year, second of day, nanosecond), link, number, previous checkpoint,
            previous offset, first and last row, new checkpoint, watermark (four parts), value of the source state.
            Then 4 for every input: ``INPUT_VALUES``. Hashes are their 32 bytes of SHA3-256, text is bytes. Rows are
            0 where the block leaves them out. Times and text are as found: whoever uses them must check them.
        """
        values: tuple[Any, ...] = self._order(self._struct.unpack(raw) + _ABSENT)
        return values


def find_shape(block: Block) -> Shape | None:
    """Make a shape out of a block, or None if the block is not of a kind or form that has one."""
    event = block.event
    if not isinstance(event, AddData | ExecuteTransform) or not _has_usual_hashes(block):
        return None
    if _encoded(block) != block.raw:
        return None
    inputs = event.query_inputs if isinstance(event, ExecuteTransform) else ()
    names = [*_VALUES, *(f"event.query_inputs.{n}.{name}" for n in range(len(inputs)) for name in INPUT_VALUES)]
    varying = {*names, *_IGNORED}
    spans = sorted(span for span in _find_spans(block.raw) if varying.issuperset(span.value_names))
    mask = _mask_of(spans, len(block.raw))
    found = [name for span in spans for name in span.value_names]
    # Behind the values that are found stand None and 0, for those that are absent.
    places = {name: len(found) + (name in _ABSENT_ZEROS) for name in names}
    places |= {name: place for place, name in enumerate(found)}
    return Shape(
        traits=traits_of(event),
        has_data=event.new_data is not None,
        has_watermark=event.new_watermark is not None,
        has_new_input=any(item.new_block_hash for item in inputs),
        source_state=event.new_source_state if isinstance(event, AddData) else None,
        input_ids=tuple(item.dataset_id for item in inputs),
        _mask=mask,
        _layout=int.from_bytes(block.raw, "little") & mask,
        _struct=_struct_of(spans, len(block.raw)),
        _order=itemgetter(*(places[name] for name in names)),
    )


def _mask_of(spans: "list[_Span]", size_bytes: int) -> int:
    """Return a number with a one for every bit that does not vary."""
    mask = bytearray(b"\xff" * size_bytes)
    for span in spans:
        for start, end in span.varying:
            mask[span.position + start : span.position + end] = bytes(end - start)
    return int.from_bytes(mask, "little")


def _struct_of(spans: "list[_Span]", size_bytes: int) -> struct.Struct:
    """Return what unpacks the values of a whole block, in the order of ``spans``."""
    formats, position = ["<"], 0
    for span in spans:
        formats.append(f"{span.position - position}x{span.format}")
        position = span.position + struct.calcsize("<" + span.format)
    return struct.Struct("".join(formats) + f"{size_bytes - position}x")


@dataclass(frozen=True, slots=True, order=True)
class _Span:
    """Where one value lies, how ``struct`` reads it, and which of its bytes may vary."""

    position: int
    name: str
    format: str
    varying: tuple[tuple[int, int], ...]

    @property
    def value_names(self) -> tuple[str, ...]:
        if self.format == _TIMESTAMP_FORMAT:
            return tuple(f"{self.name}.{part}" for part in _TIME_PARTS)
        return (self.name,)


_TIMESTAMP_FORMAT = "iHxxII"


def _find_spans(raw: bytes) -> list[_Span]:
    outer = _Tracer(raw, 0)
    manifest = outer.decode_root(Manifest)
    (content,) = (span for span in outer.spans if span.name == "content")
    inner = _Tracer(manifest.content, content.position)
    inner.decode_root(MetadataBlock)
    return inner.spans


class _Tracer(Decoder):
    """A decoder that notes where it found each value."""

    def __init__(self, data: bytes, base: int) -> None:
        super().__init__(data)
        self.spans: list[_Span] = []
        self._base = base
        self._path: list[str] = []
        self._counters: list[int] = []

    def _note(self, position: int, format_: str, *varying: tuple[int, int]) -> None:
        self.spans.append(_Span(self._base + position, ".".join(self._path), format_, varying))

    def _field(self, name: str, field: Field, *place: Any) -> Any:
        self._path.append(field.name)
        value = super()._field(name, field, *place)
        self._path.pop()
        return value

    def _vector(self, element: Kind, position: int, depth: int, name: str) -> tuple[Any, ...]:
        self._counters.append(0)
        value = super()._vector(element, position, depth, name)
        self._counters.pop()
        return value

    def _element(self, element: Kind, position: int, depth: int, name: str) -> Any:
        self._path.append(str(self._counters[-1]))
        self._counters[-1] += 1
        value = super()._element(element, position, depth, name)
        self._path.pop()
        return value

    def _scalar(self, scalar: Scalar, position: int, name: str) -> int:
        self._note(position, scalar.format.removeprefix("<"), (0, scalar.size_bytes))
        return super()._scalar(scalar, position, name)

    def _timestamp(self, position: int, name: str) -> Timestamp:
        self._note(position, _TIMESTAMP_FORMAT, (0, 6), (8, 16))  # two bytes of padding do not vary
        return super()._timestamp(position, name)

    def _text(self, position: int, name: str) -> str:
        start, length = self._length(position, 1, name)
        self._note(start, f"{length}s", (0, length))
        return super()._text(position, name)

    def _bytes(self, kind: BytesKind, position: int, name: str) -> Any:
        start, length = self._length(position, 1, name)
        value = super()._bytes(kind, position, name)
        if isinstance(value, Multihash):
            # Code and length do not vary.
            self._note(start + length - _DIGEST_BYTES, f"{_DIGEST_BYTES}s", (0, _DIGEST_BYTES))
        else:
            self._note(start, f"{length}s", (0, length))
        return value


def _has_usual_hashes(block: Block) -> bool:
    """Whether every hash that is compared is SHA3-256, so that comparing digests is comparing hashes."""
    event = block.event
    assert isinstance(event, AddData | ExecuteTransform)
    hashes = [block.prev_block_hash, event.prev_checkpoint]
    hashes += [file.physical_hash for file in (event.new_data, event.new_checkpoint) if file]
    if isinstance(event, ExecuteTransform):
        for item in event.query_inputs:
            hashes += [item.prev_block_hash, item.new_block_hash]
    if event.new_data and event.new_data.logical_hash.code != ARROW0_SHA3_256:
        return False
    return all(found is None or found.code == SHA3_256 for found in hashes)


def _encoded(block: Block) -> bytes:
    return encode_block(
        block.event,
        system_time=block.system_time,
        prev_block_hash=block.prev_block_hash,
        sequence_number=block.sequence_number,
        version=block.version,
    )


_MAX_LENGTHS = 64  # guess: ordinary chains have a handful of shapes; this bounds memory against others
_MAX_SHAPES_PER_LENGTH = 4


class KnownShapes:
    """Shapes of blocks that were decoded with care, newest first."""

    __slots__ = ("_shapes",)

    def __init__(self) -> None:
        self._shapes: dict[int, list[Shape]] = {}

    def iter_matching(self, raw: bytes) -> Iterator[Shape]:
        """Yield the known shapes that a block is laid out like; its values are not judged."""
        shapes = self._shapes.get(len(raw))
        if shapes is not None:
            number = int.from_bytes(raw, "little")
            for shape in shapes:
                if shape.matches(number):
                    yield shape

    def remember(self, block: Block) -> None:
        """Keep the shape of a block, where it has one."""
        shape = find_shape(block)
        if shape is None:
            return
        shapes = self._shapes.setdefault(len(block.raw), [])
        shapes.insert(0, shape)
        del shapes[_MAX_SHAPES_PER_LENGTH:]
        if len(self._shapes) > _MAX_LENGTHS:
            del self._shapes[next(iter(self._shapes))]
