"""Questions in SQL over the datasets of this node, as they are or as they were known at a time."""

import re
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from odf_engines.contract import Limits, QueryRequest, QueryTable
from odf_engines.errors import InvalidQueryError
from odf_engines.host.tables import table_in
from odf_node.datasets.chains import iter_slices, load_view, with_newest_head
from odf_node.datasets.engine_rows import EngineRows
from odf_node.datasets.presence import Presence
from odf_node.datasets.quarantine_table import QuarantineTables
from odf_node.datasets.quarantined_rows import QuarantineReader
from odf_node.datasets.row_files import read_table
from odf_node.engines.sessions import EngineHost
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import mapped_os_errors
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import OdfError
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    import pyarrow as pa

QUARANTINE_SUFFIX: Final = "__quarantine"
"""Behind the name of a dataset: its rows that were not taken (QUAR-6)."""

_STATE_SUFFIX: Final = "__state"  # Source: QUERY-3


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """What a question gave.

    Attributes:
        rows: In the order of the query.
        engine: Which engine answered.
    """

    rows: "pa.Table"
    engine: str


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """An answer as the engine wrote it.

    Attributes:
        path: Arrow's stream, as ``host.tables`` reads it, in the session's workspace; gone with it, so whoever keeps
            it moves it.
        engine: As of an ``QueryAnswer``.
    """

    path: Path
    engine: str


@dataclass(frozen=True, slots=True)
class QueryRunner:
    """The use case behind ``odf-node sql``."""

    home: Home
    engines: EngineHost

    def list_absent(self, sql: str, *, as_of: Timestamp | None) -> list[tuple[DatasetRecord, frozenset[Multihash]]]:
        """List the files that a query needs and that are not here by choice, by dataset (PART-9)."""
        found = []
        for record in _named(sql, self.home.store.list_datasets()):
            absent = self.home.store.list_absent_objects(record.id)
            if absent:
                slices = iter_slices(self.home.store, record.id, as_of=as_of)
                needed = absent & {item.physical_hash for item in slices}
                found += [(record, needed)] if needed else []
        return found

    def run(
        self,
        sql: str,
        *,
        as_of: Timestamp | None,
        max_rows: int | None,
        engine: str | None = None,
        records: Sequence[DatasetRecord] | None = None,
        limits: Limits | None = None,
        more: Sequence[QueryTable] = (),
    ) -> QueryAnswer:
        """QueryAnswer one query.

        Args:
            sql: In the SQL of the engine that answers; datasets that have data are tables under their
                names, and what ingests set aside under ``NAME__quarantine``.
            as_of: Only rows that had been written by then are seen.
            max_rows: Cut the answer there, None for all of it.
            engine: Which answers; None: DataFusion (QUERY-7).
            records: The datasets that are tables, by the names that whoever asks knows them by; None: all,
                and what their ingests set aside, which is for the operator alone.
            limits: What the answer may cost; None: what the session's requests may.
            more: Tables beside those of datasets of this node (QUERY-12).

        Raises:
            EngineMissingError: No such engine is installed, or it answers no questions.
            ObjectsAbsentError: It names a dataset whose files are not all here.
            InvalidQueryError: It is no query, names what is not there, or fails on a value.
            UsageError: More was set aside than can be asked at once.
        """
        found = self.ask(sql, as_of=as_of, max_rows=max_rows, engine=engine, records=records, limits=limits, more=more)
        with found.path.open("rb") as file:
            return QueryAnswer(table_in(file), found.engine)

    def ask(
        self,
        sql: str,
        *,
        as_of: Timestamp | None,
        max_rows: int | None,
        engine: str | None = None,
        records: Sequence[DatasetRecord] | None = None,
        limits: Limits | None = None,
        more: Sequence[QueryTable] = (),
    ) -> AnswerFile:
        """Answer one query with a file; arguments and errors as ``run``."""
        of_operator = records is None
        records = self.home.store.list_datasets() if records is None else records
        tables, withheld = self._tables(_named(sql, records), as_of)
        tables += more
        with ExitStack() as stack:
            asked = (
                each for each in records if of_operator and f"{each.name}{QUARANTINE_SUFFIX}".lower() in sql.lower()
            )
            tables += [self._set_aside(each, as_of, stack) for each in asked if each.kind is DatasetKind.ROOT]
            request = QueryRequest(
                tables=tuple(tables),
                sql=sql,
                as_of=as_of,
                max_rows=max_rows,
                limits=limits or self.engines.limits,
                known=tuple(each.name for each in records),
            )
            try:
                answered_by, response = self.engines.query(request, engine)
            except InvalidQueryError as error:
                stated = str(error).lower()
                if (damage := next((found for name, found in withheld.items() if name in stated), None)) is not None:
                    raise damage from error
                empty = [each.name for each in records if self._is_asked_in_vain(each, sql)]
                if not empty:
                    raise
                reason = f"{', '.join(empty)} has no rows yet: 'odf-node pull' or 'odf-node ingest' brings some"
                raise InvalidQueryError(reason, position=error.position) from error
            assert response.rows_path is not None  # of every question
            return AnswerFile(response.rows_path, answered_by)

    def read_quarantine(self, record: DatasetRecord, *, as_of: Timestamp | None) -> "pa.Table":
        """Read the rows that ingests set aside, as ``NAME__quarantine`` has them; no engine is asked.

        Raises:
            UsageError: More was set aside than can be read at once.
        """
        with ExitStack() as stack:
            (path,) = self._set_aside(record, as_of, stack).slices
            return read_table(path)

    def list_tables(self) -> dict[str, tuple[str, ...]]:
        """List the datasets that have data, in the order of their names, and their columns."""
        records = sorted(self.home.store.list_datasets(), key=lambda each: each.name)
        views = ((each.name, load_view(self.home.store, each.id).schema) for each in records)
        return {name: tuple(field.name for field in schema.fields) for name, schema in views if schema is not None}

    def _set_aside(self, record: DatasetRecord, as_of: Timestamp | None, stack: ExitStack) -> QueryTable:
        with mapped_os_errors(self.engines.workspace):
            folder = stack.enter_context(TemporaryDirectory(dir=self.engines.workspace, prefix="set-aside-"))
            name = f"{record.name}{QUARANTINE_SUFFIX}"
            reader = QuarantineReader(self.home.store, self.home.objects)
            tables = QuarantineTables(self.home.store, reader, self.engines.limits.output_bytes)
            self.home.store.access.note_read(record, as_of=as_of, what="quarantine")
            return tables.make(record, name, Path(folder), as_of=as_of)

    def _tables(
        self, records: Iterable[DatasetRecord], as_of: Timestamp | None
    ) -> tuple[list[QueryTable], dict[str, OdfError]]:
        """Return the tables that can be asked, and by name in small letters why others cannot (QUERY-16).

        A word may be called like a dataset and be none, as of a column: only a query that lacks the table fails.
        """
        tables: list[QueryTable] = []
        withheld: dict[str, OdfError] = {}
        for each in records:
            try:
                table = self._table(each, as_of)
            except OdfError as error:
                withheld[each.name.lower()] = error
            else:
                tables += [] if table is None else [table]
        return tables, withheld

    def _table(self, record: DatasetRecord, as_of: Timestamp | None) -> QueryTable | None:
        if load_view(self.home.store, record.id).schema is None:
            return None
        return self.make_table(record, as_of, record.name)

    def make_table(
        self,
        record: DatasetRecord,
        as_of: Timestamp | None,
        name: str,
        *,
        version: int | None = None,
        after_version: int = -1,
    ) -> QueryTable:
        """Give a dataset as a table of a question, under any name, with rows that engines may read.

        Args:
            record: Which.
            as_of: Only rows that were written by then; None: all.
            name: Of the table.
            version: Only rows of blocks up to this one.
            after_version: Only rows of blocks behind this one.

        Raises:
            ObjectsAbsentError: Files are not here, or nobody checked their rows.
            InvalidQueryError: It never had data.
        """
        view = load_view(self.home.store, record.id)
        if view.schema is None:
            raise InvalidQueryError(f"{record.origin_url or name} has no rows yet")
        record = with_newest_head(self.home.store, record)
        upto = record.head.sequence_number if version is None else version
        slices = tuple(iter_slices(self.home.store, record.id, as_of=as_of, after=after_version, upto=upto))
        Presence(self.home.store, self.home.objects).require_checked(record, (item.physical_hash for item in slices))
        paths = EngineRows(self.home.store, self.home.objects, self.engines.rows).get_paths(
            record.id, slices, view.schema
        )
        self.home.store.access.note_read(record, as_of=as_of, version=version)
        return QueryTable(name=name, vocabulary=view.vocabulary, schema=view.schema, slices=paths)

    def _is_asked_in_vain(self, record: DatasetRecord, sql: str) -> bool:
        """Say whether a query names a dataset that never had data, and so is no table."""
        word = rf"(?<![\w.-]){re.escape(record.name)}(?![\w-])"
        return re.search(word, sql, re.IGNORECASE) is not None and load_view(self.home.store, record.id).schema is None


def _named(sql: str, records: Iterable[DatasetRecord]) -> list[DatasetRecord]:
    """Return the datasets whose own rows a query may read: their names stand in its text, wherever that is.

    Nothing parses the text here: that is for the engine, in its sandbox (QUERY-14). A name is a whole word, so that a
    dataset with a short name is not read for every query that has its letters somewhere (QUERY-16).
    """
    lowered = sql.lower()
    return [each for each in records if each.name.lower() in lowered and _is_word(each.name, sql)]


def _is_word(name: str, sql: str) -> bool:
    word = rf"(?<![\w-]){re.escape(name)}(?:{_STATE_SUFFIX})?(?![\w-])"
    return re.search(word, sql, re.IGNORECASE) is not None
