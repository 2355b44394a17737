"""The part of the chain state that ordinary blocks of data move, in the form in which they are read by position.

The cursor takes a block only if it is plain that every rule is kept; whatever else there is to say, about a breach or
a rare case, is left to ``append``. So it can reject too much and lose speed, but it must never take too much: a test
compares the two on valid and on damaged chains.

Source: clause CHAIN-50 of ``spec/chain.md``.
"""

from dataclasses import replace
from typing import Any, Final

from odf_protocol.block_shape import Shape
from odf_protocol.chain.rules.data_blocks import MAX_OFFSET
from odf_protocol.chain.state import ChainState, InputProgress
from odf_protocol.events import SourceState
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.timestamp import Timestamp

KEPT_BY_SHAPE: Final = frozenset({"CHAIN-9", "CHAIN-10", "CHAIN-13", "CHAIN-21", "CHAIN-22", "CHAIN-29"})
"""Rules about form alone: they held for the block of this chain that the shape was made of."""

KEPT_FROM_THE_START: Final = frozenset({"CHAIN-18", "CHAIN-20", "CHAIN-30"})
"""Rules that no block of data after the first one breaks: ``can_follow`` says when that is."""

KEPT_BY_VALUES: Final = frozenset(
    f"CHAIN-{number}" for number in (4, 5, 6, 7, 8, 14, 15, 16, 17, 19, 23, 24, 25, 26, 27, 28)
)
"""Rules that ``take`` looks at in every block."""

_Time = tuple[int, ...]  # year, day of year, second of day, nanosecond: compares as time does
_Taken = tuple[bytes | None, int | None]  # last block and last row of an input


class Cursor:
    """A chain after some block, moved in place.

    Rules are those of ``chain.rules``: a test fails if one of them, that judges blocks of data, stands in none of the
    three sets above.
    """

    __slots__ = (
        "_checkpoint",
        "_head",
        "_input_ids",
        "_inputs",
        "_last_offset",
        "_number",
        "_source",
        "_start",
        "_time",
        "_watermark",
    )

    def __init__(self, start: ChainState) -> None:
        """Begin at a state that ``can_follow``."""
        self._start = start
        self._head = start.head.digest
        self._number = start.sequence_number
        self._time: _Time = start.system_time.to_day_of_year()
        self._last_offset = start.last_offset
        self._checkpoint = start.checkpoint.digest if start.checkpoint else None
        self._watermark: _Time | None = start.watermark.to_day_of_year() if start.watermark else None
        self._source: tuple[SourceState, bytes] | None = None
        self._input_ids = tuple(item.dataset_id for item in start.inputs)
        self._inputs: list[_Taken] = [
            (item.block_hash.digest if item.block_hash else None, item.offset) for item in start.inputs
        ]

    @staticmethod
    def can_follow(state: ChainState) -> bool:
        """Tell whether the next block may be an ordinary one: none is before the second block of data."""
        hashes = [state.head, state.checkpoint, *(item.block_hash for item in state.inputs)]
        return (
            state.has_data_block
            and state.watermark == state.highest_watermark
            and state.transform_inputs in (None, tuple(item.dataset_id for item in state.inputs))
            and (state.coverage.has_step or state.transform_inputs is None)
            and all(known is None or known.code == SHA3_256 for known in hashes)
        )

    def take(self, shape: Shape, raw: bytes, digest: bytes) -> bool:
        """Move over a block, or leave everything as it is and return False.

        Args:
            shape: One that ``raw`` matches.
            raw: The block.
            digest: SHA3-256 of it.
        """
        values = shape.read(raw)
        time, watermark = values[:4], values[11:15] if shape.has_watermark else None
        link, number, prev_checkpoint, prev_offset, first_row, last_row, checkpoint = values[4:11]
        source = values[15]
        if link != self._head or number != self._number + 1 or time < self._time or not _is_valid(time):  # CHAIN-4 to 8
            return False
        if prev_offset != self._last_offset or prev_checkpoint != self._checkpoint:  # CHAIN-17, 23
            return False
        last_offset = prev_offset
        if shape.has_data:
            next_row = 0 if prev_offset is None else prev_offset + 1
            if not next_row == first_row <= last_row <= MAX_OFFSET:  # CHAIN-15, 16, 19
                return False
            last_offset = last_row
        if watermark is not None and not _is_valid(watermark):
            return False
        if self._watermark is not None and (watermark is None or watermark < self._watermark):  # CHAIN-24
            return False
        inputs = self._take_inputs(shape, values[16:])
        if inputs is None:
            return False
        changes = shape.has_data or shape.has_new_input or watermark != self._watermark or checkpoint != prev_checkpoint
        if not changes or (shape.source_state and not _is_text(source)):  # CHAIN-14
            return False
        self._head, self._number, self._time = digest, number, time
        self._last_offset, self._checkpoint, self._watermark, self._inputs = last_offset, checkpoint, watermark, inputs
        self._source = (shape.source_state, source) if shape.source_state else None
        return True

    def _take_inputs(self, shape: Shape, values: tuple[Any, ...]) -> list[_Taken] | None:
        """Return the progress of the inputs after a block, None if a rule may be broken."""
        if shape.input_ids is not self._input_ids:
            if shape.input_ids != self._input_ids:  # CHAIN-25
                return None
            self._input_ids = shape.input_ids  # equal, and next time the same object
        taken: list[_Taken] = []
        places = iter(values)
        for last in self._inputs:
            prev_block, new_block, prev_offset, new_offset = next(places), next(places), next(places), next(places)
            if (prev_block, prev_offset) != last or (new_block is not None and new_block == prev_block):  # CHAIN-26, 28
                return None
            if new_offset is not None and prev_offset is not None and new_offset <= prev_offset:  # CHAIN-27
                return None
            taken.append((new_block or prev_block, prev_offset if new_offset is None else new_offset))
        return taken

    @property
    def digest(self) -> bytes:
        """SHA3-256 of the newest block."""
        return self._head

    def to_state(self) -> ChainState:
        """Return the state after the last block taken."""
        if self._number == self._start.sequence_number:
            return self._start
        watermark = Timestamp.from_day_of_year(*self._watermark) if self._watermark else None
        return replace(
            self._start,
            head=Multihash(SHA3_256, self._head),
            sequence_number=self._number,
            system_time=Timestamp.from_day_of_year(*self._time),
            last_offset=self._last_offset,
            checkpoint=_hash(self._checkpoint),
            watermark=watermark,
            highest_watermark=watermark,
            source_state=replace(self._source[0], value=self._source[1].decode()) if self._source else None,
            inputs=tuple(
                InputProgress(dataset_id, _hash(block), offset)
                for dataset_id, (block, offset) in zip(self._input_ids, self._inputs, strict=True)
            ),
        )


def _is_valid(time: _Time) -> bool:
    year, day, second, nanosecond = time
    # The last day of a leap year is left to the decoder.
    return 1 <= year <= 9999 and 1 <= day <= 365 and second < 86_400 and nanosecond < 1_000_000_000


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _hash(digest: bytes | None) -> Multihash | None:
    return None if digest is None else Multihash(SHA3_256, digest)
