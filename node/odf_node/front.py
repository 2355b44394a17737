"""Python's way in: a node, its datasets as tables, questions, pulls and verifications.

Example:
    >>> import odf_node
    >>> with odf_node.open() as node:                                   # doctest: +SKIP
    ...     node.pull("https://example.org:8085/covid.countries")
    ...     frame = node.table("covid.countries").state().to_pandas()

Every method calls the use case that the command of the same name calls, and raises the same errors, all of them
``OdfError``. What is read was verified when it was accepted. A node is used by one thread at a time.

Source: clauses PYTHON-1 to PYTHON-6 in ``spec/python.md``.
"""

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from odf_node.composition import Node, open_node
from odf_node.datasets.chains import iter_slices, load_view
from odf_node.datasets.engine_rows import EngineRows
from odf_node.datasets.grounds import describe_ground
from odf_node.datasets.naming import get_dataset, select_datasets
from odf_node.datasets.presence import Presence
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.node_settings import keep_to_settings
from odf_node.ports import DatasetRecord, RemoteDirection
from odf_node.ports.progress import Silence
from odf_protocol.chain_progress import decode_progress
from odf_protocol.errors import MalformedError
from odf_protocol.names import fits_pattern
from odf_protocol.policy import Policy
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from odf_node.exchange.pulling import PullReport
    from odf_node.trust.verifying import Finding

_Result = TypeVar("_Result")

__all__ = ["Dataset", "OpenNode", "Rows", "Table", "open_front"]

Moment = datetime | Timestamp | str
"""A time; a text is RFC 3339, or a date for its first moment in UTC."""


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
        import polars as pl

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


@dataclass(frozen=True, slots=True)
class Table:
    """A dataset, as its events: every row that was ever written, with ``offset``, ``op`` and both times.

    Attributes:
        as_of: Only what was known by then; None for everything.
        after: Only rows with a greater offset.
    """

    node: "OpenNode"
    record: DatasetRecord
    as_of: Timestamp | None = None
    after: int = -1

    @property
    def schema(self) -> "pa.Schema":
        """The columns, system columns first; none where there was no data yet."""
        import pyarrow as pa

        schema = load_view(self.node.inner.store, self.record.id).schema
        return pa.schema([]) if schema is None else arrow_schema_of(schema)

    def changes(self, *, after: int = -1) -> Self:
        """Give the events after an offset: what is new for whoever has seen those up to it."""
        return type(self)(self.node, self.record, self.as_of, max(after, self.after))

    def state(self) -> Rows:
        """Give the newest row of each primary key, as ``NAME__state`` of ``sql``; of a derivative, the rows in force.

        Raises:
            InvalidQueryError: The dataset has no such state.
        """
        if self.after >= 0:
            raise UsageError("a state is of all events; take it of the table, not of its changes")
        # Without quotes, which differ between engines; a name has no spaces (QUERY-2).
        query = f"SELECT * FROM {self.record.name}__state"  # noqa: S608 - names are checked (NAME-1)
        return self.node.sql(query, as_of=self.as_of)

    def files(self) -> list[Path]:
        """List Parquet files with the events, in order, written by this node; whole slices, whatever ``after`` says.

        They are the node's: to be read, not to be changed, and soon.

        Raises:
            ObjectsAbsentError: Files of the dataset are not here by choice.
        """
        inner = self.node.inner
        slices = [
            item
            for item in iter_slices(inner.store, self.record.id, as_of=self.as_of)
            if item.offset_interval.end > self.after
        ]
        Presence(inner.store, inner.objects).require(self.record, (item.physical_hash for item in slices))
        rows = EngineRows(inner.store, inner.objects, inner.objects.rows)
        return [*rows.get_paths(self.record.id, slices)]

    def to_arrow(self) -> "pa.Table":
        """Read the events, by offset, into memory."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        schema = self.schema
        parts = [pq.read_table(path) for path in self.files()]
        if not parts:
            return schema.empty_table()
        # Columns may have been added since the first slice.
        table = pa.concat_tables([schema.empty_table(), *parts], promote_options="permissive").select(schema.names)
        offset = load_view(self.node.inner.store, self.record.id).vocabulary.offset
        return table.filter(pc.greater(table.column(offset), self.after)) if self.after >= 0 else table

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
        offset = load_view(self.node.inner.store, self.record.id).vocabulary.offset
        return frame.where(frame[offset] > self.after) if self.after >= 0 else frame


class OpenNode:
    """A node that Python works with; a context manager, which ends its engines."""

    def __init__(self, inner: Node, *, url: str | None = None, cleanup: ExitStack | None = None) -> None:
        self.inner = inner
        self._url = url
        self._cleanup = cleanup or ExitStack()
        self._cleanup.callback(inner.close)
        keep_to_settings(inner)

    def datasets(self, *patterns: str) -> list[Dataset]:
        """List the datasets of the node, or those that names or ``%`` patterns mean.

        Raises:
            UnknownDatasetError: A name or pattern means none.
            UnavailableError: The node at the address does not answer.
        """
        if self._url is not None:
            return self._list_offered(self._url, patterns)
        store = self.inner.store
        records = select_datasets(store, patterns) if patterns else store.list_datasets()
        return [self._describe(record) for record in records]

    def table(self, name: str, *, as_of: Moment | None = None) -> Table:
        """Give a dataset as a table; of another node it is pulled, and so verified, first.

        Args:
            name: Its name or ``did:odf``.
            as_of: Show only what was known by then.

        Raises:
            UnknownDatasetError: There is none.
            RefusedError: Another node offers what is not accepted.
        """
        if self._url is not None:
            self.pull(name)
        return Table(self, get_dataset(self.inner.store, name), _moment(as_of))

    def sql(
        self, query: str, *, as_of: Moment | None = None, engine: str | None = None, max_rows: int | None = None
    ) -> Rows:
        """Ask a question; datasets are tables under their names, ``NAME__state`` the newest row of each primary key.

        Args:
            query: In the engine's SQL.
            as_of: Answer as was known by then.
            engine: Which answers; None for the one that the settings name.
            max_rows: Cut the answer there; None for all of it.

        Raises:
            InvalidQueryError: It is no query, or names what is not there.
            ObjectsAbsentError: Files of a dataset are not here by choice.
            EngineError: No such engine, or it failed.
        """
        if self._url is not None:
            for each in self.datasets():
                if each.name.lower() in query.lower():
                    self.pull(each.name)
        return Rows(self.inner.queries.run(query, as_of=_moment(as_of), max_rows=max_rows, engine=engine))

    def pull(self, *sources: str, policy: str | None = None) -> "list[PullReport]":
        """Bring datasets up to date, inputs first: ingest roots, compute derivatives, accept news of others.

        Args:
            sources: Names, patterns, references or addresses, as ``odf-node pull`` takes them.
            policy: What proof is enough for others' datasets: ``reexecute``, ``integrity`` or ``unsigned``.

        Raises:
            RefusedError: What a peer offers is not accepted; that dataset did not change.
            OdfError: What the command says.
        """
        node = self.inner
        node.clean_up()
        reports: list[PullReport] = []
        for target in node.planner.plan(self._addressed(sources)):
            report = _finish(
                node.pulling.pull(
                    target,
                    local_name=None,
                    policy=None if policy is None else Policy(policy),
                    expected_id=None,
                    progress=Silence(),
                )
            )
            if report.new_blocks:
                node.record("pull", report.record.name, f"block {report.record.head.sequence_number}")
            if target.alias is not None:
                node.remotes.add_alias(report.record, RemoteDirection.PULL, target.alias)
            reports.append(report)
        return reports

    def verify(self, *subjects: str, replay: bool = True) -> "list[Finding]":
        """Verify datasets again, here or at addresses; what is wrong is said in what is returned, not raised.

        Args:
            subjects: Names, patterns or addresses.
            replay: Re-execute derivatives.

        Raises:
            UnknownDatasetError: A name or pattern means none.
        """
        from odf_node.audits import list_tasks
        from odf_node.trust.auditing import run_tasks
        from odf_node.trust.verifying import VerifyOptions

        def work() -> "list[Finding]":
            options = VerifyOptions(replay=replay)
            tasks = list_tasks(self.inner, self._addressed(subjects), recursive=False, options=options, own_nodes=False)
            return [*run_tasks(tasks, 1, lambda _name, _text: None)]

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(work).result()

    def close(self) -> None:
        """End the engines, and remove what was kept of another node."""
        self._cleanup.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _addressed(self, sources: Sequence[str]) -> list[str]:
        if self._url is None:
            return list(sources)
        return [each if "://" in each else f"{self._url.rstrip('/')}/{each}" for each in sources]

    def _list_offered(self, url: str, patterns: Sequence[str]) -> list[Dataset]:
        offered = [
            Dataset(each.name, each.dataset_id, each.kind, each.head.sequence_number + 1, each.trust)
            for each in _finish(self.inner.outgoing.list_offered(url))
        ]
        for pattern in patterns:
            if not any(fits_pattern(pattern, each.name) for each in offered):
                raise UnknownDatasetError(f"{url} offers this node no dataset '{pattern}'")
        return [each for each in offered if not patterns or any(fits_pattern(p, each.name) for p in patterns)]

    def _describe(self, record: DatasetRecord) -> Dataset:
        _head, raw = self.inner.store.get_chain_state(record.id)
        progress = decode_progress(raw)
        return Dataset(
            record.name,
            str(record.id),
            record.kind.text,
            record.head.sequence_number + 1,
            describe_ground(self.inner.store, record),
            progress.row_count,
            None if progress.watermark is None else datetime.fromtimestamp(progress.watermark.unix_ms / 1000, UTC),
        )


def open_front(home_or_url: str | Path | None = None) -> OpenNode:
    """Open a node.

    Args:
        home_or_url: The folder of a home, which is made when something is first written (None: the default one); or
            the address of another node, whose datasets are pulled and verified here, in a home that ``close`` removes.

    Raises:
        UsageError: The folder is used for something else.
        ConfigurationError: The settings of the home cannot be used.
    """
    if isinstance(home_or_url, str) and "://" in home_or_url:
        cleanup = ExitStack()
        folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="odf-node-"))
        return OpenNode(open_node(Path(folder) / "home"), url=home_or_url, cleanup=cleanup)
    return OpenNode(open_node(None if home_or_url is None else Path(home_or_url).expanduser()))


def _finish(work: Coroutine[Any, Any, _Result]) -> _Result:
    # In a thread of its own: a notebook's has a loop that runs already.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _moment(given: Moment | None) -> Timestamp | None:
    if given is None or isinstance(given, Timestamp):
        return given
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise UsageError(f"{given} has no time zone; say datetime(..., tzinfo=UTC)")
        given = given.astimezone(UTC).isoformat().replace("+00:00", "Z")
    try:
        return Timestamp.parse(f"{given}T00:00:00Z" if len(given) == len("2020-10-01") else given)
    except MalformedError as error:
        raise UsageError(f"as_of {given!r} is not a time; write it as 2020-10-01T12:00:00Z") from error
