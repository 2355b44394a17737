"""Tables between Python and a node: its datasets, their rows and answers, and what is written into them.

What Python gives goes out as an Arrow stream, which the push source reads as it reads Parquet.

Source: clauses PYTHON-2 to PYTHON-4 and PYTHON-6 in ``spec/python.md``; clause ING-3 in ``spec/ingest.md``.
"""

import asyncio
import tempfile
from collections.abc import Collection, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, Self, TypeVar, overload

import pyarrow as pa

from odf_node.composition import Node
from odf_node.datasets.chains import iter_slices, load_view, with_newest_head
from odf_node.datasets.engine_rows import EngineRows
from odf_node.datasets.presence import Presence
from odf_node.datasets.row_files import read_events
from odf_node.errors import UsageError
from odf_node.front.table_operations import get_operations
from odf_node.front.writable import WritableTable, require_newest
from odf_node.ingest.push_sources import ARROW_STREAM, choose_push_source, list_media_types
from odf_node.ports.progress import Silence
from odf_node.records.datasets import DatasetRecord
from odf_node.remote_names import STATE_SUFFIX, quote_name
from odf_node.store import MetadataStore
from odf_protocol.enums import DatasetKind
from odf_protocol.events import DataSlice
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Dataset:
    """One dataset of a node.

    Attributes:
        name: What it is called there.
        id: Its ``did:odf``.
        kind: ``Root`` or ``Derivative``.
        blocks: Of its chain.
        rests_on: What its data rest on; of another node, what that node says.
        rows: How many; None where another node was asked, which does not say.
        watermark: Up to when its events are complete; None likewise, or where nothing was stated.
    """

    name: str
    id: str
    kind: str
    blocks: int
    rests_on: str
    rows: int | None = None
    watermark: datetime | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in memory."""

    arrow: "pa.Table"

    def to_arrow(self) -> "pa.Table":
        """Give them as an Arrow table."""
        return self.arrow

    def to_pandas(self) -> "pd.DataFrame":
        """Give them as a pandas frame (needs pandas)."""
        frame: pd.DataFrame = self.arrow.to_pandas()
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """Give them as a polars frame (needs polars)."""
        import polars as pl  # here: need not be installed

        frame = pl.from_arrow(self.arrow)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_spark(self, session: "SparkSession") -> "DataFrame":
        """Give them to a Spark session of the caller's."""
        return session.createDataFrame(self.arrow)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def _repr_html_(self) -> str:
        # For notebooks, which show no more either.
        return str(self.arrow.slice(0, 20).to_pandas()._repr_html_())


@dataclass(frozen=True, slots=True, repr=False)
class Table(WritableTable):
    """A dataset, as its events: every row that was ever written, with ``offset``, ``op`` and both times.

    Attributes:
        as_of: Only what was known by then; None for everything.
        after: Only rows with a greater offset.
        version: Only rows of blocks up to this one; None for all.
    """

    inner: Node
    record: DatasetRecord
    as_of: Timestamp | None = None
    after: int = -1
    version: int | None = None

    def __repr__(self) -> str:
        as_of = "" if self.as_of is None else f" as of {self.as_of}"
        as_of += "" if self.version is None else f" at version {self.version}"
        return f"<table {self.record.name}{as_of}{f', after offset {self.after}' if self.after >= 0 else ''}>"

    @property
    def schema(self) -> "pa.Schema":
        """The columns, system columns first; none where there was no data yet."""
        schema = load_view(self.inner.store, self.record.id, upto=self.version).schema
        return pa.schema([]) if schema is None else arrow_schema_of(schema)

    @overload
    def changes(self, *, after: int = -1) -> Self: ...

    @overload
    def changes(self, since: int, until: int | None = None) -> Rows: ...

    def changes(self, since: int | None = None, until: int | None = None, *, after: int = -1) -> "Self | Rows":
        """Give the events after an offset, or what changed between two versions.

        Args:
            since: The version behind which changes are given, each with its kind, version and time; -1: all.
            until: The version up to which; None: the newest.
            after: Without a version: the events behind this offset, as a table.

        Raises:
            UsageError: There is no such version, or no plug-in for them.
        """
        if since is None:
            return type(self)(self.inner, self.record, self.as_of, max(after, self.after), self.version)
        return Rows(get_operations().read_changes(self.inner, self.record, since, until))

    def _require_writable(self) -> None:
        require_newest(self.as_of, self.version, self.after)

    def state(self) -> Rows:
        """Give the current rows, as ``NAME__state`` of ``sql``.

        Raises:
            InvalidQueryError: The dataset has no such state.
        """
        if self.after >= 0:
            raise UsageError("a state is of all events; take it of the table, not of its changes")
        query = f"SELECT * FROM {quote_name(self.record.name + STATE_SUFFIX)}"  # noqa: S608 - quoted
        if self.version is not None:
            self._bring_slices()
            table = self.inner.queries.make_table(self.record, None, self.record.name, version=self.version)
            rows = self.inner.queries.run(query, as_of=None, max_rows=None, records=(), more=(table,)).rows
            # Columns that came later are none of this version's.
            return Rows(rows.select([name for name in rows.column_names if name in self.schema.names]))
        bring_files(self.inner, self.inner.queries.list_absent(query, as_of=self.as_of))
        return Rows(self.inner.queries.run(query, as_of=self.as_of, max_rows=None).rows)

    def quarantine(self) -> Rows:
        """Give the rows that ingests did not take, with all their errors, as ``NAME__quarantine`` of ``sql``.

        Raises:
            UsageError: More was set aside than can be read at once; or the dataset is a derivative, which ingests none.
        """
        if self.after >= 0:
            raise UsageError("quarantine is of the dataset; take it of the table, not of its changes")
        if self.record.kind is not DatasetKind.ROOT:
            raise UsageError(f"{self.record.name} is a derivative: nothing is ingested, and nothing set aside")
        return Rows(self.inner.queries.read_quarantine(self.record, as_of=self.as_of))

    def files(self) -> list[Path]:
        """List Parquet files with the events, in order, written by this node; whole slices, whatever ``after`` says.

        They are the node's: to be read, not to be changed, and soon.

        Raises:
            ObjectsAbsentError: Files of the dataset are not here by choice, and can be had nowhere now.
            RejectedError: Rows of a file are not what its block says.
        """
        record, slices = self._bring_slices()
        inner = self.inner
        inner.store.access.note_read(record, as_of=self.as_of, version=self.version)
        rows = EngineRows(inner.store, inner.objects, inner.objects.rows)
        schema = load_view(inner.store, self.record.id, upto=self.version).schema
        return [*rows.get_paths(self.record.id, slices, schema)]

    def _bring_slices(self) -> tuple[DatasetRecord, list[DataSlice]]:
        """Bring and check the slices with the events; gives the record as it is now, too."""
        inner = self.inner
        record = with_newest_head(inner.store, self.record)
        upto = record.head.sequence_number if self.version is None else self.version
        slices = [
            item
            for item in iter_slices(inner.store, record.id, as_of=self.as_of, upto=upto)
            if item.offset_interval.end > self.after
        ]
        needed = {item.physical_hash for item in slices}
        bring_files(inner, [(record, needed)])
        Presence(inner.store, inner.objects).require_checked(record, needed)
        return record, slices

    def to_arrow(self) -> "pa.Table":
        """Read the events, by offset, into memory."""
        offset = load_view(self.inner.store, self.record.id).vocabulary.offset
        return read_events(self.files(), self.schema, offset, self.after)

    def to_pandas(self) -> "pd.DataFrame":
        """Read the events into a pandas frame (needs pandas)."""
        return Rows(self.to_arrow()).to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """Read the events into a polars frame (needs polars)."""
        return Rows(self.to_arrow()).to_polars()

    def to_spark(self, session: "SparkSession") -> "DataFrame":
        """Give the events to a Spark session of the caller's, which reads them from files when it needs them."""
        files = [str(path) for path in self.files()]
        if not files:
            return Rows(self.to_arrow()).to_spark(session)
        frame = session.read.option("mergeSchema", "true").parquet(*files)
        offset = load_view(self.inner.store, self.record.id).vocabulary.offset
        return frame.where(frame[offset] > self.after) if self.after >= 0 else frame


_Result = TypeVar("_Result")


def finish(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Wait for work, in a thread of its own: a notebook's has a loop that runs already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def bring_files(node: Node, needed: Iterable[tuple[DatasetRecord, Collection[Multihash]]]) -> None:
    """Bring and check files that are read next and are not here by choice, or whose rows nobody checked (PART-9).

    Raises:
        ObjectsAbsentError: They can be had nowhere now.
        RejectedError: What came is not what its blocks say.
    """
    for record, hashes in needed:
        finish(node.bringing.bring(record, hashes, Silence()))


_BATCH_ROWS: Final = 65_536
"""In a batch of the stream, so that the same table is the same bytes however its columns are cut.  # guess"""


class ArrowTable(Protocol):
    """A table of pyarrow, polars or pandas, or a reader: whatever has Arrow's interface for streams of its batches."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        """Give the batches; see the Arrow PyCapsule interface."""
        ...


@contextmanager
def written_stream(
    store: MetadataStore, record: DatasetRecord, source: str | None, rows: ArrowTable
) -> Iterator[BinaryIO]:
    """Give a table as a stream in a file that is gone afterwards.

    Raises:
        UsageError: The push source reads no typed columns, or there is none.
    """
    view = load_view(store, record.id)
    chosen = choose_push_source(record, view, source)
    if ARROW_STREAM not in list_media_types(view, chosen):
        kind = type(chosen.read).__name__.removeprefix("ReadStep")
        expected = "tables go into a push source that reads Parquet, or declares its columns for CSV or JSON in UTF-8"
        raise UsageError(f"'{record.name}' reads {kind} as it is declared; {expected}")
    table = pa.RecordBatchReader.from_stream(rows).read_all().combine_chunks()
    with tempfile.TemporaryFile() as file:
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=_BATCH_ROWS)
        file.seek(0)
        yield file
