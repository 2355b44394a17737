"""The datasets of a home as tables of one Spark session.

Source: clauses SPARKTABLE-1 to SPARKTABLE-6 and SPARKTABLE-13 in ``spec/plug-ins/spark-tables.md``.
"""

import atexit
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from odf_node.composition import Node, open_node
from odf_node.datasets.chains import load_view
from odf_node.datasets.naming import select_datasets
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.front.spark_sessions import SessionTables
from odf_node.ports.access import calling
from odf_node.records.datasets import DatasetRecord
from odf_protocol.dataset_view import DatasetView
from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError
from odf_protocol.events import DataSchema
from odf_protocol.multihash import Multihash
from odf_protocol.schema_spark import quote_spark_name, spark_columns_of, spark_type_of
from odf_spark_tables.columns import written_columns
from odf_spark_tables.folders import SessionFolder
from odf_spark_tables.following import VersionFollower
from odf_spark_tables.names import AS_OF, CHANGES, INSERT, SparkName, spark_name_of
from odf_spark_tables.places import TableLocation, moment_of, spark_requester
from odf_spark_tables.source import source_for
from odf_spark_tables.versions import READ, PublishedTable, Versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OURS: Final = "odf.dataset"
"""The property of views that this plug-in made; those of others are never replaced."""

_COUNT: Final = "`how often a row is`"
_ONE: Final = "`one of a row`"
"""Names that no column has by accident: were one called so, Spark would say that it is ambiguous."""


class SparkTables(SessionTables):
    """The tables of a session. Of the home, nothing but its cache is changed by them."""

    def __init__(self, session: "SparkSession", home: Path | None, names: Sequence[str]) -> None:
        self._session, self._names = session, tuple(names)
        self._node: Node = open_node(home)
        self._node.keep_to_settings()
        if self._names:
            select_datasets(self._node.store, self._names)
        self._home = self._node.home.folder.path
        self._folder = SessionFolder(self._node.home.folder)
        atexit.register(self._folder.close)
        self._shown: dict[DatasetId, _Shown] = {}
        self._problems: dict[str, str] = {}
        self._requester = spark_requester(str(session.sparkContext.applicationId))
        self._follower = VersionFollower(self._home, self._folder.path, self._requester)
        self._register("")
        self.refresh()

    @property
    def problems(self) -> dict[str, str]:
        """By name, why a dataset is no table of the session."""
        return {**self._problems, **self._follower.problems}

    def refresh(self) -> None:
        """Show datasets that are new and columns that changed, and show no more what is gone."""
        store = self._node.store
        every = store.list_datasets()
        records = [*every]
        if self._names:
            with suppress(UnknownDatasetError):  # it was there, and is gone
                records = [*select_datasets(store, self._names)]
        taken, problems = {each.name.lower() for each in every}, dict[str, str]()
        names = {each.id: each.name for each in records}
        for dataset_id, shown in [*self._shown.items()]:
            if names.get(dataset_id) != shown.name:
                self._drop(dataset_id)
        with calling(self._requester):
            for record in records:
                try:
                    self._show(record, taken)
                except OdfError as error:
                    problems[record.name] = str(error)
        self._problems = problems
        self._follower.follow({dataset_id: shown.head for dataset_id, shown in self._shown.items()})

    def table(self, name: str, *, as_of: str | None = None, changes: bool = False) -> "DataFrame":
        """Give a dataset, or one at an address, as a frame of the session, read from files.

        Args:
            name: Its name, ``did:odf`` or address.
            as_of: Only what was known by then.
            changes: Every row that was written, in place of the current ones.

        Raises:
            UnknownDatasetError: There is none.
            UsageError: The time is none.
            OdfError: As ``Versions.publish``.
        """
        place = TableLocation(
            str(self._home),
            str(self._folder.path),
            name,
            None if as_of is None else moment_of(as_of),
            self._requester.application,
        )
        table = place.publish(READ).in_version()
        folder, schema = (table.changes, table.schema) if changes else (table.rows, table.rows_schema)
        frame = self._session.read.schema(spark_columns_of(schema)).parquet(str(folder))
        return frame.select(*(quote_spark_name(each.name) for each in schema.fields))

    def close(self) -> None:
        """Take the tables out of the session, and remove the links to their files."""
        self._follower.close()
        for dataset_id in [*self._shown]:
            self._drop(dataset_id)
        self._folder.close()
        self._node.close()

    def _drop(self, dataset_id: DatasetId) -> None:
        for made in reversed(self._shown.pop(dataset_id).made):
            with suppress(Exception):  # the session may have ended before
                self._session.sql(f"DROP {made.kind} IF EXISTS {made.name}")

    def _show(self, record: DatasetRecord, taken: set[str]) -> None:
        table = Versions(self._node, self._folder.path, self._node.store.access).publish(record)
        columns = spark_columns_of(table.schema)
        before = self._shown.get(record.id)
        if before is not None and before.columns == columns:
            before.head = record.head.hash
            return
        view = load_view(self._node.store, record.id)
        shown = _Shown(record.name, columns, record.head.hash, [] if before is None else before.made)
        self._shown[record.id] = shown
        try:
            self._make_view(record, shown, spark_name_of(record.name), table.rows, table.rows_schema)
            for suffix in (CHANGES, AS_OF, INSERT):
                if f"{record.name}{suffix}".lower() in taken:
                    continue  # a dataset has this name itself
                name = spark_name_of(record.name, suffix)
                if suffix == CHANGES:
                    self._make_view(record, shown, name, table.changes, table.schema)
                elif suffix == AS_OF:
                    self._make_function(shown, name, table, view)
                else:
                    self._make_insert(record, shown, name, view)
        except OdfError:
            self._drop(record.id)
            raise

    def _make_view(
        self, record: DatasetRecord, shown: "_Shown", name: SparkName, folder: Path, schema: DataSchema
    ) -> None:
        self._require_free(record, shown, name)
        columns = ", ".join(quote_spark_name(each.name) for each in schema.fields)
        how, mark = ("TEMPORARY VIEW", "") if name.is_temporary else ("VIEW", _mark(record))
        self._session.sql(f"CREATE OR REPLACE {how} {name.sql} {mark} AS SELECT {columns} FROM {_files(folder)}")  # noqa: S608 - quoted
        shown.add("VIEW", name)

    def _make_function(self, shown: "_Shown", name: SparkName, table: PublishedTable, view: DatasetView) -> None:
        """Make what was known at a time a function: of each row as often as it was given and not taken back by then."""
        fields, known = table.rows_schema.fields, view.vocabulary
        columns = ", ".join(quote_spark_name(each.name) for each in fields)
        returned = ", ".join(f"{quote_spark_name(each.name)} {spark_type_of(each.type)}" for each in fields)
        op, time = quote_spark_name(known.op), quote_spark_name(known.system_time)
        counted = (
            f"SELECT {columns}, sum(IF({op} IN (0, 3), 1, -1)) AS {_COUNT} FROM {_files(table.changes)} "  # noqa: S608 - quoted
            f"WHERE {time} <= known_by GROUP BY {columns}"
        )
        kind = "TEMPORARY FUNCTION" if name.is_temporary else "FUNCTION"
        self._session.sql(
            f"CREATE OR REPLACE {kind} {name.sql} (known_by TIMESTAMP) RETURNS TABLE ({returned}) RETURN "  # noqa: S608
            f"SELECT {columns} FROM ({counted}) "
            f"LATERAL VIEW explode(array_repeat(0, CAST({_COUNT} AS INT))) AS {_ONE} WHERE {_COUNT} > 0"
        )
        shown.add(kind, name)

    def _make_insert(self, record: DatasetRecord, shown: "_Shown", name: SparkName, view: DatasetView) -> None:
        try:
            columns = written_columns(record, view)
        except UsageError:
            return  # it takes no rows from Spark, which who writes is told
        source, ddl = self._register(record.name), spark_columns_of(columns.schema)
        self._require_free(record, shown, name)
        if name.is_temporary:
            self._session.read.format(source).schema(ddl).load().createOrReplaceTempView(name.sql)
            shown.add("VIEW", name)
            return
        self._session.sql(f"DROP TABLE IF EXISTS {name.sql}")
        self._session.sql(f"CREATE TABLE {name.sql} ({ddl}) USING {quote_spark_name(source)} {_mark(record)}")
        shown.add("TABLE", name)

    def _register(self, dataset: str) -> str:
        """Make the format known, of one dataset or of any; gives its name."""
        source = source_for(self._home, self._folder.path, self._requester.application, dataset)
        with own_python(self._session):
            try:
                self._session.dataSource.register(source)
            except PySparkException as error:
                if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                    raise
                # Another session has it, and is the active one: Spark looks there. A frame makes this one active.
                self._session.createDataFrame([(0,)], "number INT")
                self._session.dataSource.register(source)
        return source.name()

    def _require_free(self, record: DatasetRecord, shown: "_Shown", name: SparkName) -> None:
        """Stop where the session has a table of this name that is not ours.

        Raises:
            UsageError: It has.
        """
        if name.schema is not None:
            self._session.sql(f"CREATE SCHEMA IF NOT EXISTS {quote_spark_name(name.schema)}")
        if any(made.name == name.sql for made in shown.made) or not self._session.catalog.tableExists(name.sql):
            return
        properties = [] if name.is_temporary else self._session.sql(f"SHOW TBLPROPERTIES {name.sql}").collect()
        if not any(row[0] == _OURS for row in properties):
            raise UsageError(f"the session has a table {name.sql} already, and '{record.name}' would take its place")


@dataclass(frozen=True, slots=True)
class _Made:
    kind: str
    name: str


@dataclass(slots=True)
class _Shown:
    """What a session has of a dataset."""

    name: str
    columns: str
    head: Multihash
    made: list[_Made]

    def add(self, kind: str, name: SparkName) -> None:
        if (made := _Made(kind, name.sql)) not in self.made:
            self.made.append(made)


def _mark(record: DatasetRecord) -> str:
    return f"TBLPROPERTIES ('{_OURS}' = '{record.id}')"


def _files(folder: Path) -> str:
    return f"parquet.{quote_spark_name(str(folder))}"


@contextmanager
def own_python(session: "SparkSession") -> Iterator[None]:
    """Let Spark start this Python, which has odf-node, for what is registered, and not the first one on the path.

    With a cluster its own setting holds, ``PYSPARK_PYTHON``: what is where on its machines is not known here.
    """
    context = session.sparkContext
    before = context.pythonExec
    if context.master.startswith("local"):
        context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = before
