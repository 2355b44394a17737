"""A node in the hands of Python.

Source: clauses PYTHON-1, PYTHON-5 and PYTHON-6 in ``spec/python.md``.
"""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from odf_node.audits import list_tasks
from odf_node.composition import Node, open_node
from odf_node.datasets.naming import get_dataset, select_datasets
from odf_node.datasets.writer import find_writing_time
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.exchange.pulling import PullOptions, PullReport
from odf_node.front.table_operations import get_operations, require_version
from odf_node.front.tables import ArrowTable, Dataset, Rows, Table, bring_files, finish, written_stream
from odf_node.ports.progress import NO_PROGRESS, Silence
from odf_node.remote_names import STATE_SUFFIX
from odf_node.remote_tables import RemoteTables
from odf_node.trust.auditing import run_tasks
from odf_node.trust.verifying import VerifyOptions
from odf_node.upkeep.listing import ListedDataset, Listing
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.names import fits_pattern
from odf_protocol.policy import Policy
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from odf_node.ingest.report import IngestReport
    from odf_node.trust.verifying import VerificationFinding

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Moment = datetime | Timestamp | str
"""A time; a text is RFC 3339, or a date for its first moment in UTC."""


class OpenNode:
    """A node that Python works with; a context manager, which ends its engines."""

    def __init__(self, inner: Node, *, url: str | None = None, cleanup: ExitStack | None = None) -> None:
        self.inner = inner
        self._url = url
        self._cleanup = cleanup or ExitStack()
        self._cleanup.callback(inner.close)
        inner.keep_to_settings()

    def datasets(self, *patterns: str) -> list[Dataset]:
        """List the datasets of the node, or those that names or ``%`` patterns mean.

        Raises:
            UnknownDatasetError: A name or pattern means none.
            UnavailableError: The node at the address does not answer.
        """
        if self._url is not None:
            return self._list_proposed(self._url, patterns)
        store = self.inner.store
        records = select_datasets(store, patterns) if patterns else store.list_datasets()
        listing = Listing(self.inner.home)
        return [_describe(each) for each in listing.summarize(records)]

    def table(self, name: str, *, as_of: Moment | None = None, version: int | None = None) -> Table:
        """Give a dataset as a table; of another node it is pulled, and so verified, first.

        Args:
            name: Its name or ``did:odf``.
            as_of: Show only what was known by then.
            version: Show only what this version of it had, a number of a block.

        Raises:
            UnknownDatasetError: There is none.
            UsageError: It has no such version, or a time is given, too.
            ProposalRejectedError: Another node offers what is not accepted.
        """
        if self._url is not None:
            self.pull(name)
        record = get_dataset(self.inner.store, name)
        if version is None:
            return Table(self.inner, record, _moment(as_of))
        if as_of is not None:
            raise UsageError(f"'{record.name}' is shown at a time or at a version, and not at both")
        found = require_version(record.name, version, record.head.sequence_number)
        return Table(self.inner, record, version=found)

    def create_table(
        self, name: str, schema: object, *, key: Sequence[str] = (), event_time: str | None = None
    ) -> Table:
        """Create a table that Python writes.

        Args:
            name: Of the dataset.
            schema: An Arrow schema, a frame with the columns, names with Arrow types, or columns as SQL writes them
                (``id BIGINT, price DOUBLE``).
            key: The columns by which rows are told apart; every row has a value in them.
            event_time: The column that says when a row happened; None: the time of the write.

        Raises:
            UsageError: The name is taken, a column cannot be, or the node is another one.
            MalformedError: The name or a definition is none.
        """
        if self._url is not None:
            raise UsageError(f"tables are created in a home, and {self._url} is another node")
        return Table(self.inner, get_operations().create(self.inner, name, schema, key=key, event_time=event_time))

    def sql(
        self, query: str, *, as_of: Moment | None = None, engine: str | None = None, max_rows: int | None = None
    ) -> Rows:
        """Ask a question; datasets are tables under their names, ``NAME__state`` has the current rows.

        ``NAME__quarantine`` has the rows that ingests did not take, with all their errors.

        Args:
            query: In the engine's own SQL.
            as_of: Answer as was known by then.
            engine: Which answers; None: DataFusion. "spark" costs the start of Spark.
            max_rows: Cut the answer there; None for all of it.

        Raises:
            InvalidQueryError: It is no query, or names what is not there.
            ObjectsAbsentError: Files of a dataset are not here by choice, and can be had nowhere now.
            EngineError: No such engine, or it failed.
        """
        if self._url is not None:
            # The names are that node's choice: of one called "e" every question would have a piece.
            for each in self.datasets():
                if re.search(rf"(?<![\w.-]){re.escape(each.name)}({STATE_SUFFIX})?(?![\w-])", query, re.IGNORECASE):
                    self.pull(each.name)
        moment = _moment(as_of)
        with RemoteTables(self.inner) as remote:
            asked = finish(remote.bring(query, engine=engine, as_of=moment, progress=Silence()))
            bring_files(self.inner, self.inner.queries.list_absent(asked.sql, as_of=moment))
            answer = self.inner.queries.run(
                asked.sql, as_of=moment, max_rows=max_rows, engine=engine, more=asked.tables
            )
        return Rows(answer.rows)

    def pull(self, *sources: str, policy: str | None = None) -> list[PullReport]:
        """Bring datasets up to date, inputs first: ingest roots, compute derivatives, accept news of others.

        Args:
            sources: Names, patterns, references or addresses, as ``odf-node pull`` takes them.
            policy: What proof is enough for others' datasets: ``reexecute``, ``integrity`` or ``unsigned``.

        Raises:
            ProposalRejectedError: What a peer offers is not accepted; that dataset did not change.
            OdfError: What the command says; of several failures the first, after all others were tried.
        """
        return finish(
            self._pull(self._addressed(sources), PullOptions(policy=None if policy is None else Policy(policy)))
        )

    async def _pull(self, sources: Sequence[str], pull_options: PullOptions) -> list[PullReport]:
        node, reports, failures = self.inner, list[PullReport](), list[OdfError]()
        node.sweeper.clean_up()
        async for outcome in node.batches.pull(
            node.planner.plan(sources), pull_options, _in_silence, keeps_aliases=True
        ):
            if outcome.failure is not None:
                failures.append(outcome.failure)
            if outcome.report is not None:
                reports.append(outcome.report)
        if failures:
            raise failures[0]
        return reports

    def ingest(
        self,
        name: str,
        rows: "Path | bytes | BinaryIO | ArrowTable",
        *,
        key: str | None = None,
        source: str | None = None,
        event_time: Moment | None = None,
    ) -> "IngestReport":
        """Push rows into a root dataset, as ``odf-node ingest`` does.

        Args:
            name: Its name or ``did:odf``.
            rows: A file, its bytes or a stream, in the format that the push source reads; or a table of pyarrow, polars
                or pandas, where that is Parquet.
            key: The same rows again under this key do nothing, and are answered as the first time (FEED-1).
            source: Of several push sources, which.
            event_time: Of rows that have none; None for now.

        Raises:
            UnknownDatasetError: There is none.
            UsageError: It takes no pushed rows, or the node is another one.
            InvalidSourceError: They cannot be read at all.
            KeyReusedError: Other rows were sent under the key.
        """
        node = self.inner
        if self._url is not None:
            raise UsageError(f"rows are pushed into a home, or by POST to {self._url}")
        node.sweeper.clean_up()
        record = get_dataset(node.store, name)
        shown_as = (
            os.fsencode(rows).decode(errors="backslashreplace") if isinstance(rows, Path) else "rows of a program"
        )
        with ExitStack() as stack:
            if isinstance(rows, bytes):
                rows = BytesIO(rows)
            elif hasattr(rows, "__arrow_c_stream__"):
                rows = stack.enter_context(written_stream(node.store, record, source, rows))
            report = node.ingestor.push(
                record,
                rows,
                source_name=source,
                shown_as=shown_as,
                event_time=_moment(event_time),
                system_time=find_writing_time(node.store, node.clock, record.id),
                key=key,
            )
        if not (report.up_to_date or report.is_repeated):
            node.record("ingest", record.name, f"{report.counts.describe()}, from {shown_as}")
        return report

    def verify(self, *subjects: str, replay: bool = True) -> "list[VerificationFinding]":
        """Verify datasets again, here or at addresses; what is wrong is said in what is returned, not raised.

        Args:
            subjects: Names, patterns or addresses.
            replay: Re-execute derivatives.

        Raises:
            UnknownDatasetError: A name or pattern means none.
        """

        def work() -> "list[VerificationFinding]":
            options = VerifyOptions(replay=replay)
            tasks = list_tasks(self.inner, self._addressed(subjects), recursive=False, options=options, own_nodes=False)
            return [*run_tasks(tasks, 1, NO_PROGRESS)]

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

    def _list_proposed(self, url: str, patterns: Sequence[str]) -> list[Dataset]:
        proposed = [
            Dataset(each.name, each.dataset_id, each.kind, each.head.sequence_number + 1, each.trust)
            for each in finish(self.inner.outgoing.list_proposed(url))
        ]
        for pattern in patterns:
            if not any(fits_pattern(pattern, each.name) for each in proposed):
                raise UnknownDatasetError(f"{url} offers this node no dataset '{pattern}'")
        return [each for each in proposed if not patterns or any(fits_pattern(p, each.name) for p in patterns)]


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


def _describe(summary: ListedDataset) -> Dataset:
    record, mark = summary.record, summary.watermark
    return Dataset(
        record.name,
        str(record.id),
        record.kind.text,
        record.head.sequence_number + 1,
        summary.ground,
        summary.rows,
        None if mark is None else _EPOCH + timedelta(milliseconds=mark.unix_ms),
    )


@contextmanager
def _in_silence(_target: object) -> Iterator[Silence]:
    yield Silence()


def _moment(given: Moment | None) -> Timestamp | None:
    if given is None or isinstance(given, Timestamp):
        return given
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise UsageError(f"{given} has no time zone; say datetime(..., tzinfo=UTC)")
        given = given.astimezone(UTC).isoformat().replace("+00:00", "Z")
    try:
        return Timestamp.parse_or_day(given)
    except MalformedError as error:
        raise UsageError(f"as_of {given!r} is not a time; write it as 2020-10-01T12:00:00Z") from error
