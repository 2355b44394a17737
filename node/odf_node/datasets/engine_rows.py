"""The one place that gives engines their files: what they read, this node wrote itself.

A slice that somebody else encoded is believed in one way by the reader that checks rows and in another by an engine, so
an engine never sees it. What it gets has the rows that were checked: the file that this node's own engine made, or one
that is written anew while the rows are checked once more, when an engine first needs them.

Source: clause ENGINE-26 in ``spec/extensions/engine-contract.md``, ROWS-9 in ``spec/extensions/acceptance.md``.
"""

import filecmp
import hashlib
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odf_engines.contract import TransformRequest
from odf_engines.reading.event_times import find_newest
from odf_engines.registry import is_of_this_distribution
from odf_node.datasets.chains import load_view
from odf_node.datasets.changelogs import data_of
from odf_node.datasets.presence import explained_damage
from odf_node.ports.objects import StoredObjects
from odf_node.ports.rows import EventTimes, RowsCache
from odf_node.rows.slice_process import SliceProcess
from odf_node.store import MetadataStore
from odf_protocol.block import Block, decode_block
from odf_protocol.dataset_view import apply, start_view
from odf_protocol.did import DatasetId
from odf_protocol.errors import NotFoundError, RejectedError
from odf_protocol.events import DataSchema, DataSlice, SetDataSchema
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import rows_schema_of
from odf_protocol.transform_plan import PlannedInput

if TYPE_CHECKING:
    import pyarrow as pa


class KeptTables:
    """Up to ``limit_bytes`` of values; used by many threads, as a daemon does several pieces of work at once."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self._tables: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, name: Hashable) -> "pa.Table | None":
        """Return a table that is still here."""
        with self._lock:
            if (found := self._tables.get(name)) is not None:
                self._tables.move_to_end(name)
            return found

    def keep(self, name: Hashable, table: "pa.Table") -> None:
        """Keep a table that is not here yet."""
        with self._lock:
            if name not in self._tables:
                self._tables[name] = table
                self.size_bytes += table.nbytes
            while self.size_bytes > self.limit_bytes:
                _, dropped = self._tables.popitem(last=False)
                self.size_bytes -= dropped.nbytes


EVOLVED: Final = ".evolved"
"""The end of the form in which rows of an earlier schema are kept in the columns of a later one (SCHEMA-5)."""

_FORM_DIGITS: Final = 16  # of a hash that nobody gains by finding again: it tells schemas of one chain apart

_newest: Final = KeptTables(128 * 1024 * 1024)  # guess: some million versions of temporal tables
"""Of one process, as a daemon opens its home for each piece of work. The rows of an object are the same in any home."""


@dataclass(frozen=True, slots=True)
class EngineRows:
    """Paths for requests to engines."""

    store: MetadataStore
    objects: StoredObjects
    cache: RowsCache

    def put_into(self, request: TransformRequest, inputs: Sequence[PlannedInput]) -> TransformRequest:
        """Complete the request for a step with the rows that it reads.

        Args:
            request: Without slices, from ``StepBuilder.build``.
            inputs: That it was built from.

        Raises:
            RejectedError, MalformedError, UnsupportedError, ObjectCorruptError: As ``get_paths``.
        """
        given = (
            replace(each, slices=self.get_paths(planned.recorded.dataset_id, planned.slices, each.schema))
            for each, planned in zip(request.inputs, inputs, strict=True)
        )
        return replace(request, inputs=tuple(given))

    def get_paths(
        self, dataset_id: DatasetId, slices: Sequence[DataSlice], schema: DataSchema | None
    ) -> tuple[Path, ...]:
        """Give a file that this node wrote for each slice, with exactly its rows, all in one schema (SCHEMA-5).

        Args:
            dataset_id: Whose blocks name the slices.
            slices: Whose objects are here.
            schema: Of the dataset, not older than any of the slices; what a slice lacks of it is null. None: each file
                has the columns that were in force when its slice was written, for who reads known ones by name.

        Raises:
            ObjectNotFoundError: An object is not here.
            ObjectCorruptError: The bytes of one have decayed.
            RejectedError, MalformedError, UnsupportedError: Its rows are not what its block says, or cost too much to
                read; nobody checked them before.
        """
        found = {item.physical_hash: self.cache.find(item.physical_hash) for item in slices}
        missing = {name for name, path in found.items() if path is None}
        if missing:
            with SliceProcess() as reader:
                for block, data in self._iter_blocks(dataset_id, missing):
                    self._rewrite(reader, dataset_id, block, data.physical_hash)
                    found[data.physical_hash] = self.cache.find(data.physical_hash)
            self.cache.trim()
        lost = next((name for name, path in found.items() if path is None), None)
        if lost is not None:
            raise NotFoundError("rows of object", str(lost))
        paths = [path for item in slices if (path := found[item.physical_hash]) is not None]
        return tuple(paths if schema is None else self._in_columns(dataset_id, slices, paths, schema))

    def _in_columns(
        self, dataset_id: DatasetId, slices: Sequence[DataSlice], paths: Sequence[Path], schema: DataSchema
    ) -> list[Path]:
        """Give files in the columns of a schema in the place of those that were written under an earlier one."""
        written = self._list_schemas(dataset_id)
        if not written:
            return [*paths]
        wanted = rows_schema_of(schema)
        form = f".{hashlib.sha3_256(wanted.serialize()).hexdigest()[:_FORM_DIGITS]}{EVOLVED}"
        given = []
        with SliceProcess() as reader:
            for item, path in zip(slices, paths, strict=True):
                is_alike = rows_schema_of(written[item.offset_interval.start]) == wanted
                given.append(path if is_alike else self._evolve(reader, item, path, schema, form))
        return given

    def _evolve(self, reader: SliceProcess, item: DataSlice, path: Path, schema: DataSchema, form: str) -> Path:
        found = self.cache.find(item.physical_hash, form)
        if found is None:
            with self.cache.making(item.physical_hash, form) as target:
                reader.write_in_columns(path, schema, target)
            found = self.cache.find(item.physical_hash, form)
        if found is None:
            raise NotFoundError("rows of object", str(item.physical_hash))
        return found

    def _list_schemas(self, dataset_id: DatasetId) -> dict[int, DataSchema]:
        """Say under which schema each slice was written, by the offset of its first row; empty where all have one.

        Blocks are read once, however many schemas a publisher declares (CHAIN-53).
        """
        numbers: list[int] = []
        schemas: list[DataSchema] = []
        view = None
        for stored in self.store.iter_landmarks(dataset_id):
            block = decode_block(stored.raw, expected_hash=stored.hash)
            view = start_view(block) if view is None else apply(view, block)
            if isinstance(block.event, SetDataSchema):
                assert view.schema is not None
                numbers.append(block.sequence_number)
                schemas.append(view.schema)
        if len(schemas) == 1:
            return {}
        return {
            data.offset_interval.start: schemas[bisect_right(numbers, block.sequence_number) - 1]
            for block, data in self._iter_data(dataset_id)
        }

    def get_event_times(
        self, dataset_id: DatasetId, slices: Sequence[DataSlice], column: str
    ) -> list[EventTimes | None]:
        """Give the event times of the rows of each slice; None where they cannot be told.

        Args:
            dataset_id: Whose blocks name the slices.
            slices: Whose objects are here.
            column: Of event times.

        Raises:
            ObjectNotFoundError, ObjectCorruptError, RejectedError, MalformedError, UnsupportedError: As ``get_paths``.
        """
        found = {each.physical_hash: self.cache.find_event_times(each.physical_hash, column) for each in slices}
        unknown = [each for each in slices if found[each.physical_hash] is None]
        with SliceProcess() as reader:
            for each, path in zip(unknown, self.get_paths(dataset_id, unknown, None), strict=True):
                times = found[each.physical_hash] = reader.read_event_times(path, column)
                if times is not None:
                    self.cache.remember_event_times(each.physical_hash, column, times)
        return [found[each.physical_hash] for each in slices]

    def read_times_beside(
        self, dataset_id: DatasetId, slices: Sequence[DataSlice], column: str, beside: Sequence[str]
    ) -> "list[pa.Table | None]":
        """Read the event times of all rows of each slice, and columns beside them, see ``reading.event_times``.

        Raises:
            ObjectNotFoundError, ObjectCorruptError, RejectedError, MalformedError, UnsupportedError: As ``get_paths``.
        """
        paths = self.get_paths(dataset_id, slices, None)
        with SliceProcess() as reader:
            return [reader.read_times_beside(path, column, beside) for path in paths]

    def get_newest(
        self, dataset_id: DatasetId, slices: Sequence[DataSlice], column: str, key: Sequence[str], op: str
    ) -> "list[pa.Table | None]":
        """Give the newest versions of each slice, see ``reading.event_times``; None: their times or keys are not known.

        Raises:
            ObjectNotFoundError, ObjectCorruptError, RejectedError, MalformedError, UnsupportedError: As ``get_paths``.
        """
        names = [(each.physical_hash, column, *key, op) for each in slices]
        found = [_newest.find(each) for each in names]
        unknown = [place for place, each in enumerate(found) if each is None]
        paths = self.get_paths(dataset_id, [slices[each] for each in unknown], None)
        with SliceProcess() as reader:
            for place, path in zip(unknown, paths, strict=True):
                table = reader.read_times_beside(path, column, (*key, op))
                if table is not None and table.num_columns == len(key) + 2:
                    found[place] = find_newest(table)
                    _newest.keep(names[place], found[place])
        return found

    def adopt(self, object_hash: Multihash, *engines: str) -> None:
        """Take an object that one of these engines has just written for what engines read; no copy is made."""
        if all(map(is_of_this_distribution, engines)):  # what others write is written anew
            self.cache.adopt(object_hash, self.objects.get_path(object_hash))

    def adopt_result(self, object_hash: Multihash, published: Path, made: Path, engine: str) -> None:
        """Take the rows that a step gave here, which are those of a published slice, for what engines read.

        Args:
            object_hash: Of the slice.
            published: The slice; taken itself where an engine here gives the same bytes, so that they are kept once.
            made: What the engine wrote.
            engine: Its name.
        """
        if is_of_this_distribution(engine):
            self.cache.adopt(object_hash, published if filecmp.cmp(published, made, shallow=False) else made)

    def get_merge_state(self, object_hash: Multihash) -> Path:
        """Give a projected state: only an ingest here records one, for a file that its engine has just written."""
        return self.objects.get_path(object_hash)

    def _iter_blocks(self, dataset_id: DatasetId, names: set[Multihash]) -> Iterator[tuple[Block, DataSlice]]:
        """Yield the first block that names each object."""
        left = set(names)
        for block, data in self._iter_data(dataset_id):
            if data.physical_hash in left:
                left.remove(data.physical_hash)
                yield block, data
            if not left:
                return

    def _iter_data(self, dataset_id: DatasetId) -> Iterator[tuple[Block, DataSlice]]:
        """Yield the blocks that add rows, each with its slice."""
        for stored in self.store.iter_blocks_with_rows(dataset_id):
            block = decode_block(stored.raw, expected_hash=stored.hash)
            yield block, data_of(block)

    def _rewrite(self, reader: SliceProcess, dataset_id: DatasetId, block: Block, object_hash: Multihash) -> None:
        view = load_view(self.store, dataset_id, upto=block.sequence_number)
        if view.schema is None:
            raise RejectedError("ROWS-1 schema-comes-before-data", sequence_number=block.sequence_number)
        path = self.objects.get_path(object_hash)
        with explained_damage(self.store, self.objects, dataset_id, object_hash), self.cache.making(object_hash) as to:
            reader.rewrite(path, block, view, to)
