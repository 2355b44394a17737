"""What a run wrote, beside what it wrote when it was started again: rows in order, without what is new each time.

Source: clause AUDIT-24 in ``spec/plug-ins/audit.md``.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_audit.lookups import AuditRecord
from odf_node.datasets.chains import load_view
from odf_node.datasets.row_files import plain_rows
from odf_node.ports.objects import StoredObjects
from odf_node.store import MetadataStore
from odf_protocol.block import Block, decode_block
from odf_protocol.did import DatasetId
from odf_protocol.events import AddData, ExecuteTransform, Seed
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

MAX_SHOWN: Final = 5
"""Rows that differ are shown, as many for each write.  # guess: enough to see what it is"""
_BATCH_ROWS: Final = 16_384  # guess: some megabytes in memory

RowPair = tuple[int, dict[str, Any] | None, dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class ComparedHome:
    """Where one of the two wrote."""

    store: MetadataStore
    objects: StoredObjects


@dataclass(slots=True, kw_only=True)
class ComparedWrite:
    """A write of a run, and that of the second run in its place.

    Attributes:
        dataset: Its name.
        versions: Block that each wrote last; None: it wrote none here.
        rows: How many each wrote.
        different: At how many places they have other rows.
        problem: What else differs; empty: nothing.
        shown: The first such rows: their place, from 0, and what stands there; None: nothing.
    """

    dataset: str
    versions: tuple[int | None, int | None]
    rows: tuple[int, int] = (0, 0)
    different: int = 0
    problem: str = ""
    shown: list[RowPair] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """Whether the second run wrote the same."""
        return not self.different and not self.problem


def compare_writes(
    first: ComparedHome, written: Sequence[AuditRecord], again: ComparedHome, rewritten: Sequence[AuditRecord]
) -> list[ComparedWrite]:
    """Compare the writes to each dataset, by name, in order."""
    pairs: dict[str, tuple[list[AuditRecord], list[AuditRecord]]] = defaultdict(lambda: ([], []))
    for place, records in enumerate((written, rewritten)):
        for each in records:
            pairs[str(each.told.get("name"))][place].append(each)
    found = []
    for name, (before, after) in pairs.items():
        mine = _Written(first, before), _Written(again, after)
        found += [_compare(name, mine, one, other) for one, other in zip_longest(before, after)]
    return found


class _Written:
    """Reads what a run wrote to one dataset."""

    def __init__(self, home: ComparedHome, writes: Sequence[AuditRecord]) -> None:
        self._home = home
        self._times = [block.system_time.truncated_to_ms() for each in writes for block in self.list_blocks(each)]

    def list_blocks(self, write: AuditRecord) -> list[Block]:
        dataset_id = DatasetId.parse(write.row.entry.subject)
        found = self._home.store.iter_blocks(dataset_id, after=write.told.get("first", 0) - 1, upto=write.number)
        return [decode_block(each.raw, expected_hash=each.hash) for each in found]

    def iter_batches(self, write: AuditRecord) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a write, without offsets and times of writing."""
        vocabulary = load_view(self._home.store, DatasetId.parse(write.row.entry.subject), upto=write.number).vocabulary
        for block in self.list_blocks(write):
            if isinstance(block.event, AddData | ExecuteTransform) and block.event.new_data is not None:
                path = self._home.objects.get_path(block.event.new_data.physical_hash)
                with pq.ParquetFile(path) as file:
                    for batch in file.iter_batches(_BATCH_ROWS):
                        yield self._without_times(batch, vocabulary)

    def _without_times(self, batch: pa.RecordBatch, vocabulary: Vocabulary) -> pa.RecordBatch:
        batch = batch.drop_columns(
            [each for each in (vocabulary.offset, vocabulary.system_time) if each in batch.schema.names]
        )
        if vocabulary.event_time not in batch.schema.names:
            return batch
        place = batch.schema.get_field_index(vocabulary.event_time)
        column = batch.column(place)
        is_own = pc.is_in(column, value_set=_times_of(self._times, column.type))
        # The event time of a row that has none is that of its write.
        return batch.set_column(place, vocabulary.event_time, pc.if_else(is_own, pa.scalar(None, column.type), column))


def _times_of(times: Sequence[Timestamp], kind: pa.DataType) -> pa.Array:
    instants = pa.array([each.unix_ms for each in times], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    return instants.cast(kind) if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else pa.array([], kind)


def _compare(
    name: str, sides: tuple[_Written, _Written], one: AuditRecord | None, other: AuditRecord | None
) -> ComparedWrite:
    versions = (None if one is None else one.number, None if other is None else other.number)
    found = ComparedWrite(dataset=name, versions=versions)
    if one is None or other is None:
        found.problem = "the first run has no such write" if one is None else "the second run has no such write"
        return found
    found.problem = _compare_definitions(sides[0].list_blocks(one), sides[1].list_blocks(other))
    _compare_rows(found, sides[0].iter_batches(one), sides[1].iter_batches(other))
    return found


def _compare_definitions(first: Sequence[Block], again: Sequence[Block]) -> str:
    kinds = [[type(block.event).__name__ for block in blocks] for blocks in (first, again)]
    if kinds[0] != kinds[1]:
        return f"the events are {', '.join(kinds[0])} and {', '.join(kinds[1])}"
    for one, other in zip(first, again, strict=True):
        if not isinstance(one.event, Seed | AddData | ExecuteTransform) and one.event != other.event:
            return f"the events {type(one.event).__name__} differ"
    return ""


def _compare_rows(found: ComparedWrite, first: Iterator[pa.RecordBatch], again: Iterator[pa.RecordBatch]) -> None:
    place, counts = 0, [0, 0]
    for one, other in _aligned(first, again):
        counts = [
            counts[0] + (0 if one is None else one.num_rows),
            counts[1] + (0 if other is None else other.num_rows),
        ]
        if one is None or other is None or not one.equals(other):
            mine, theirs = ([] if each is None else [*plain_rows([each])] for each in (one, other))
            for number, pair in enumerate(zip_longest(mine, theirs)):
                if repr(pair[0]) != repr(pair[1]):
                    found.different += 1
                    if len(found.shown) < MAX_SHOWN:
                        found.shown.append((place + number, *pair))
        place = max(counts)
    found.rows = counts[0], counts[1]


def _aligned(
    first: Iterator[pa.RecordBatch], again: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch | None, pa.RecordBatch | None]]:
    """Cut two streams of rows at the same places; what one has more stands beside None."""
    one, other = next(first, None), next(again, None)
    while one is not None or other is not None:
        if one is None or other is None:
            yield one, other
            one, other = next(first, None), next(again, None)
            continue
        count = min(one.num_rows, other.num_rows)
        if count:
            yield one.slice(0, count), other.slice(0, count)
        one = one.slice(count) if one.num_rows > count else next(first, None)
        other = other.slice(count) if other.num_rows > count else next(again, None)
