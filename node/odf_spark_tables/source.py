"""The format ``odf`` of Spark: datasets of a home, or of another node, by their names and addresses.

``register`` makes the format known to a session. Spark loads the class in Python processes of its own, so all that it
needs stands in attributes of a class that is made for the session, or for one dataset of it.

Source: clauses SPARKTABLE-7 to SPARKTABLE-11 in ``spec/plug-ins/spark-tables.md``.
"""

from pathlib import Path
from typing import ClassVar, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter
from pyspark.sql.types import StructType

from odf_node.datasets.chains import load_view
from odf_node.errors import UsageError
from odf_protocol.schema_arrow import rows_schema_of
from odf_protocol.schema_spark import spark_columns_of
from odf_spark_tables.columns import describe_difference, written_columns
from odf_spark_tables.places import TableLocation, moment_of
from odf_spark_tables.reading import ChangesReader, TableReader
from odf_spark_tables.versions import COLUMNS
from odf_spark_tables.writing import TableWriter

FORMAT: Final = "odf"

_OPTIONS: Final = ("path", "dataset", "asof", "timestampasof", "changes", "startingoffset")
_EARLIEST, _LATEST = "earliest", "latest"
_YES: Final = ("true", "1", "yes")


class OdfSource(DataSource):  # type: ignore[misc]  # pyspark is not looked into
    """A dataset as Spark reads and writes it.

    Attributes:
        home: The folder of the node's home.
        folder: That of the session.
        application: Spark's id of the application.
        dataset: Which; empty: that of the options ``path`` or ``dataset``.
    """

    home: ClassVar[str] = ""
    folder: ClassVar[str] = ""
    application: ClassVar[str] = ""
    dataset: ClassVar[str] = ""

    @classmethod
    def name(cls) -> str:
        """Name the format."""
        return f"{FORMAT}:{cls.dataset}" if cls.dataset else FORMAT

    def schema(self) -> str:
        """Give the columns of what is read; errors as ``TableLocation.publish``."""
        table = self._place().publish(COLUMNS)
        return spark_columns_of(table.schema if self._is_changelog() else table.rows_schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read the current rows, or the changelog with the option ``changes``."""
        return TableReader(self._place(), schema.fieldNames(), changes=self._is_changelog())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - as DataSource has it
        """Read the rows of the changelog as they come.

        Raises:
            UsageError: The stream was told of a time, or of a dataset at an address.
        """
        place = self._place()
        if place.as_of is not None or place.is_remote:
            raise UsageError("a stream reads what comes into a dataset of the home; pull it there, and leave asOf out")
        if not self._is_changelog():
            raise UsageError("a stream reads the changelog: add .option('changes', 'true')")
        begin = self.options.get("startingOffset", _EARLIEST)
        if begin not in (_EARLIEST, _LATEST):
            raise UsageError(f"startingOffset is {_EARLIEST} or {_LATEST}, found {begin!r}")
        return ChangesReader(place, schema.fieldNames(), from_latest=begin == _LATEST)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Check that what is to be written fits the dataset, before any row of it is computed.

        Raises:
            UsageError: It takes no rows from Spark, or the columns differ: which, and how.
        """
        place = self._place()
        if overwrite:
            raise UsageError(f"'{place.dataset}' keeps what was written: write with mode append (INSERT INTO)")
        if place.is_remote or place.as_of is not None:
            raise UsageError("Spark writes into datasets of the home, and now: leave the address and asOf out")
        with place.opened() as found:
            expected = written_columns(found.record, load_view(found.node.store, found.record.id))
        given = [(each.name, each.dataType.simpleString()) for each in schema.fields]
        if difference := describe_difference(expected, given):
            raise UsageError(
                f"the columns are not those of '{place.dataset}' (- expected, + given): {difference}; "
                "nothing was written"
            )
        names = set(schema.fieldNames())
        columns = [each for each in rows_schema_of(expected.schema) if each.name in names]
        required = [each.name for each in columns if not each.nullable]
        return TableWriter(place, columns, required)

    def _place(self) -> TableLocation:
        for name in self.options:
            if name.lower() not in _OPTIONS:
                raise UsageError(f"the format odf has no option {name!r}; it has asOf, changes and startingOffset")
        dataset = self.dataset or self.options.get("dataset") or self.options.get("path")
        if not dataset:
            raise UsageError("which dataset? spark.read.format('odf').load('NAME')")
        as_of = self.options.get("asOf") or self.options.get("timestampAsOf")
        moment = None if as_of is None else moment_of(as_of)
        return TableLocation(self.home, self.folder, dataset, moment, self.application)

    def _is_changelog(self) -> bool:
        return str(self.options.get("changes", "")).lower() in _YES


def source_for(home: Path, folder: Path, application: str, dataset: str = "") -> type[OdfSource]:
    """Make the format for a session, or for one dataset of it: a table's own options do not reach its reader."""
    attributes = {"home": str(home), "folder": str(folder), "application": application, "dataset": dataset}
    return type("OdfTable", (OdfSource,), attributes)
