"""Rows of Spark on their way into a dataset: one commit for a write, however often its tasks ran.

Each task writes a file of its own. Where all succeeded, Spark names those that count; these are ingested together,
under a key, by the use case of ``odf-node ingest``. Where one fails, the files go and nothing was written.

Source: clauses SPARKTABLE-8 to SPARKTABLE-10 in ``spec/plug-ins/spark-tables.md``.
"""

import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

import odf_node
from odf_node.errors import UsageError
from odf_node.ports.access import calling
from odf_spark_tables.places import TableLocation, spark_requester
from odf_spark_tables.versions import TABLE

_SHOWN: Final = 3
"""Rows that an error shows."""


@dataclass(frozen=True)
class WrittenPart(WriterCommitMessage):  # type: ignore[misc]  # pyspark is not looked into
    """What a task wrote: its file, and how many rows it has."""

    path: str
    rows: int


class TableWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Writes the rows of one write of Spark; made where the write is planned, used by its tasks and at its end."""

    def __init__(self, place: TableLocation, columns: Sequence[pa.Field], required: Sequence[str]) -> None:
        self.place, self.required = place, frozenset(required)
        self.columns = pa.schema([each.with_nullable(True) for each in columns]).serialize().to_pybytes()
        self.key = f"spark-{secrets.token_hex(16)}"
        self.folder = str(Path(place.folder) / f"write-{secrets.token_hex(8)}")
        Path(self.folder).mkdir(mode=0o700)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task; see ``DataSourceArrowWriter``.

        Raises:
            UsageError: A value does not fit its column: nothing will be written.
        """
        task, rows = TaskContext.get(), 0
        schema = pa.ipc.read_schema(pa.py_buffer(self.columns))
        number = 0 if task is None else task.partitionId()
        path = Path(self.folder) / f"{number:06d}-{secrets.token_hex(4)}.arrow"
        with path.open("xb") as file, pa.ipc.new_stream(file, schema) as stream:
            for batch in iterator:
                stream.write_batch(_fitted(batch, schema, self.required))
                rows += batch.num_rows
        return WrittenPart(str(path), rows)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Ingest what the tasks that count wrote, as one commit; see ``DataSourceWriter``."""
        parts = sorted((each for each in messages if isinstance(each, WrittenPart)), key=lambda each: each.path)
        try:
            if any(each.rows for each in parts):
                with tempfile.TemporaryFile(dir=self.folder) as file:
                    _join(parts, pa.ipc.read_schema(pa.py_buffer(self.columns)), file)
                    file.seek(0)
                    with (
                        calling(spark_requester(self.place.application)),
                        odf_node.open(Path(self.place.home)) as node,
                    ):
                        node.ingest(self.place.dataset, file, key=self.key)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.place.publish(TABLE)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - they name what goes
        """Forget what the tasks wrote; see ``DataSourceWriter``."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _join(parts: Sequence[WrittenPart], schema: pa.Schema, target: BinaryIO) -> None:
    with pa.ipc.new_stream(target, schema) as stream:
        for part in parts:
            with Path(part.path).open("rb") as file, pa.ipc.open_stream(file) as rows:
                for batch in rows:
                    stream.write_batch(batch)


def _fitted(batch: pa.RecordBatch, schema: pa.Schema, required: frozenset[str]) -> pa.RecordBatch:
    """Give rows in the types of the dataset, where no value changes by it."""
    columns = []
    for field in schema:
        values = batch.column(field.name)
        if values.null_count and field.name in required:
            rows = batch.filter(pc.is_null(values)).slice(0, _SHOWN).to_pylist()
            raise UsageError(f"column {field.name} may not be null, and is in {rows}; nothing was written")
        try:
            columns.append(values.cast(field.type))
        except pa.ArrowInvalid as error:
            raise UsageError(
                f"column {field.name}: a value cannot be kept as {field.type} without a change ({error}); "
                "nothing was written"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
