"""Rows of a dataset as a person looks at them: some at a time, as of a block, and every row that a key ever had.

Blocks are found by halving: a chain of a hundred thousand blocks costs some twenty of them. What slices hold is read
in a process of its own, at bounded cost (``SliceProcess``).

Source: clauses PAGES-9 to PAGES-11 in ``spec/plug-ins/pages.md``.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from odf_node.datasets.chains import last_offset_at, load_view, with_head_of
from odf_node.datasets.presence import Presence, explained_damage
from odf_node.errors import UsageError
from odf_node.ports.objects import StoredObjects
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import BlockNotFoundError
from odf_node.rows.slice_process import SliceProcess
from odf_node.store import MetadataStore
from odf_protocol.block import Block, decode_block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.did import DatasetId
from odf_protocol.events import AddData, DataSlice, ExecuteTransform
from odf_protocol.timestamp import Timestamp

Cell = tuple[str, int] | None
"""The beginning of a cell's text, and how many characters it has whole; None: there is no value."""

MAX_SLICES: Final = 500
"""In which the rows of a key are looked for, the newest ones.  # guess: some seconds"""
MAX_SLICE_BYTES: Final = 512 * 1024 * 1024  # guess: some seconds
MAX_LIKE: Final = 100  # guess: more are no history that anybody reads


@dataclass(frozen=True, slots=True)
class RowWindow:
    """Some rows of a dataset.

    Attributes:
        names: Of all columns of the schema.
        columns: Of those that are shown.
        rows: Number of each row, and its cells.
        last: The number of the last row as of the block that was asked for; None: there was none.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[Cell, ...]], ...]
    last: int | None


@dataclass(frozen=True, slots=True)
class RowHistory:
    """Every row of one key, oldest first.

    Attributes:
        window: They.
        keys: The columns of the key.
        looked_from: The number of the first row that was looked at; those before it were not.
        is_cut: There are more, older ones.
    """

    window: RowWindow
    keys: tuple[str, ...]
    looked_from: int
    is_cut: bool


@dataclass(frozen=True, slots=True)
class RowWindows:
    """The use case behind the pages with rows; nothing is brought here that is not here by choice (PART-4)."""

    store: MetadataStore
    objects: StoredObjects

    def read(
        self,
        record: DatasetRecord,
        *,
        first: int | None,
        count: int,
        columns: slice,
        upto: int | None = None,
        max_characters: int,
    ) -> RowWindow:
        """Read rows by their numbers.

        Args:
            record: Whose.
            first: The first; None: so that the newest one is the last.
            count: How many at most.
            columns: Which of the schema's.
            upto: As of this block; None: the newest.
            max_characters: Longer cells are cut there.

        Raises:
            ObjectsAbsentError: Files are not here by choice, or nobody compared them with their blocks (PART-12).
            RejectedError, MalformedError, UnsupportedError: They cannot be read at bounded cost.
        """
        view = load_view(self.store, record.id, upto=upto)
        names = () if view.schema is None else tuple(field.name for field in view.schema.fields)
        shown, last = names[columns], view.last_offset
        if last is None or not shown:
            return RowWindow(names, shown, (), last)
        start = max(0, last - count + 1) if first is None else max(0, first)
        end = min(last, start + count - 1)
        slices = self._find_slices(record, view, start, end)
        Presence(self.store, self.objects).require_checked(record, (item.physical_hash for item in slices))
        self.store.access.note_read(with_head_of(record, view))
        rows: list[tuple[int, tuple[Cell, ...]]] = []
        with SliceProcess() as reader:
            for item in slices:
                interval = item.offset_interval
                begin = max(start, interval.start)
                with explained_damage(self.store, self.objects, record.id, item.physical_hash):
                    found = reader.read_window(
                        self.objects.get_path(item.physical_hash),
                        first=begin - interval.start,
                        count=min(end, interval.end) - begin + 1,
                        columns=shown,
                        max_characters=max_characters,
                    )
                rows += ((begin + number, tuple(cells)) for number, cells in enumerate(found))
        return RowWindow(names, shown, tuple(rows), last)

    def read_history(
        self, record: DatasetRecord, offset: int, keys: Sequence[str], *, columns: slice, max_characters: int
    ) -> RowHistory:
        """Read every row with the key of one row.

        Args:
            record: Whose.
            offset: The number of the row.
            keys: The columns of the key; empty: that row alone.
            columns: Which of the schema's to give.
            max_characters: Longer cells are cut there.

        Raises:
            UsageError: There is no such row, or no such column.
            ObjectsAbsentError, RejectedError, MalformedError, UnsupportedError: As ``read``.
        """
        view = load_view(self.store, record.id)
        names = () if view.schema is None else tuple(field.name for field in view.schema.fields)
        if view.last_offset is None or not 0 <= offset <= view.last_offset:
            raise UsageError(f"'{record.name}' has no row {offset}")
        if unknown := [key for key in keys if key not in names]:
            raise UsageError(f"'{record.name}' has no column '{unknown[0]}'")
        self.store.access.note_read(with_head_of(record, view))
        found, looked_from = {offset}, offset
        rows: list[tuple[int, tuple[Cell, ...]]] = []
        with SliceProcess() as reader:
            reader.start()
            if keys:
                found, looked_from = self._find_like(reader, record, view, offset, keys)
            numbers = sorted(found | {offset})
            kept = sorted({*numbers[-MAX_LIKE:], offset})
            runs = [*self._group(record, view, kept)]
            needed = (item.physical_hash for item, _, _ in runs)
            Presence(self.store, self.objects).require_checked(record, needed)
            for item, start, count in runs:
                interval = item.offset_interval
                path = self.objects.get_path(item.physical_hash)
                asked = {"count": count, "columns": names[columns], "max_characters": max_characters}
                cells = reader.read_window(path, first=start - interval.start, **asked)  # type: ignore[arg-type]
                rows += ((start + number, tuple(each)) for number, each in enumerate(cells))
        window = RowWindow(names, names[columns], tuple(rows), view.last_offset)
        return RowHistory(window, tuple(keys), looked_from, len(numbers) > len(kept))

    def _find_like(
        self, reader: SliceProcess, record: DatasetRecord, view: DatasetView, offset: int, keys: Sequence[str]
    ) -> tuple[set[int], int]:
        """Look for the key in the newest slices; give the numbers found, and the first that was looked at."""
        (origin,) = self._find_slices(record, view, offset, offset)
        found, looked_from = set[int](), offset
        Presence(self.store, self.objects).require_checked(record, [origin.physical_hash])
        pattern, left_bytes = self.objects.get_path(origin.physical_hash), MAX_SLICE_BYTES
        absent = self.store.list_absent_objects(record.id)
        for stored in islice(self.store.iter_blocks_with_rows(record.id, newest_first=True), MAX_SLICES):
            item = _slice_of(decode_block(stored.raw, expected_hash=stored.hash))
            if item is None or item.physical_hash in absent or left_bytes < item.size or len(found) > MAX_LIKE:
                break
            left_bytes -= item.size
            numbers = reader.find_rows_like(
                self.objects.get_path(item.physical_hash),
                pattern=pattern,
                row=offset - origin.offset_interval.start,
                keys=keys,
                most=MAX_LIKE + 1,
            )
            looked_from = min(looked_from, item.offset_interval.start)
            found |= {item.offset_interval.start + number for number in numbers}
        return found, looked_from

    def _group(
        self, record: DatasetRecord, view: DatasetView, numbers: Sequence[int]
    ) -> Iterator[tuple[DataSlice, int, int]]:
        """Yield the slice, the first row and the count of each run of rows that follow one another in a slice."""
        runs: list[tuple[DataSlice, int, int]] = []
        for number in numbers:
            if runs and runs[-1][1] + runs[-1][2] == number and number <= runs[-1][0].offset_interval.end:
                item, start, count = runs.pop()
                runs.append((item, start, count + 1))
                continue
            known = runs[-1][0] if runs and number <= runs[-1][0].offset_interval.end else None
            runs.append((known or self._find_slices(record, view, number, number)[0], number, 1))
        yield from runs

    def _find_slices(self, record: DatasetRecord, view: DatasetView, first: int, last: int) -> list[DataSlice]:
        """Find the slices with rows from ``first`` to ``last``, oldest first."""
        if last < first:
            return []
        numbers = range(view.sequence_number + 1)
        begin = bisect_left(numbers, first, key=lambda number: self._end_at(record.id, number))
        found = []
        for number in numbers[begin:]:
            item = _slice_of(self._get_block(record.id, number))
            if item is None or item.offset_interval.end < first:
                continue
            if item.offset_interval.start > last:
                break
            found.append(item)
            if item.offset_interval.end >= last:
                break
        return found

    def _end_at(self, dataset_id: DatasetId, number: int) -> int:
        last = last_offset_at(self.store, dataset_id, number)
        return -1 if last is None else last

    def list_versions(self, record: DatasetRecord, most: int) -> list[tuple[int, Timestamp]]:
        """List blocks from the first to the newest with their times; of more than ``most`` some, evenly."""
        head = record.head.sequence_number
        step = max(1, -(-head // max(1, most - 1)))
        numbers = sorted({*range(0, head + 1, step), head})
        return [(number, self._get_block(record.id, number).system_time) for number in numbers]

    def _get_block(self, dataset_id: DatasetId, number: int) -> Block:
        stored = self.store.find_block_by_number(dataset_id, number)
        if stored is None:
            raise BlockNotFoundError(dataset_id, number)
        return decode_block(stored.raw, expected_hash=stored.hash)


def find_keys(view: DatasetView) -> tuple[str, ...]:
    """Return the columns by which the source in force tells rows of a root apart; none where nothing says so."""
    sources = [view.polling_source, *view.push_sources.values()]
    keys = {getattr(source.merge, "primary_key", ()) for source in sources if source is not None}
    return keys.pop() if len(keys) == 1 else ()


def _slice_of(block: Block) -> DataSlice | None:
    return block.event.new_data if isinstance(block.event, AddData | ExecuteTransform) else None
