"""The current rows of datasets in which rows were taken back, or that have many slices: one file, made once.

It is kept with the rows that engines read, and as these it can be dropped and made again at any time.

Source: clause SPARKTABLE-5 in ``spec/plug-ins/spark-tables.md``; QUERY-3 in ``spec/query.md``.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import QueryRequest, QueryTable
from odf_engines.host.tables import read_rows
from odf_node.composition import Node
from odf_node.records.datasets import DatasetRecord
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import NotFoundError
from odf_protocol.events import DataSlice

FORM: Final = ".current"
"""How the names of these files end in the cache of rows."""

_TABLE: Final = "changes"
_DIGITS: Final = 16  # of a hash that nobody gains by finding again
_ROWS: Final = 131_072  # guess: of a row group; some tens of them let as many tasks of Spark share a file


@dataclass(frozen=True, slots=True)
class CurrentRowsFiles:
    """Gives such files of datasets of one node."""

    node: Node

    def get(
        self,
        record: DatasetRecord,
        view: DatasetView,
        slices: Sequence[DataSlice],
        paths: Sequence[Path],
        columns: pa.Schema,
    ) -> Path:
        """Give the file with the current rows of the first slices of a dataset.

        Args:
            record: The dataset.
            view: Of its newest block.
            slices: Its first ones, one at least.
            paths: Verified files with their rows, in the columns of the schema in force.
            columns: Of the file.

        Raises:
            EngineError: The engine failed, or there is more than it may use.
            HomeFullError, HomeReadOnlyError: It cannot be written.
        """
        cache, last = self.node.objects.rows, slices[-1].physical_hash
        digest = hashlib.sha3_256(str(record.id).encode() + columns.serialize().to_pybytes())
        for each in slices:
            digest.update(str(each.physical_hash).encode())
        form = f".{digest.hexdigest()[:_DIGITS]}{FORM}"
        found = cache.find(last, form)
        if found is None:
            rows = self._ask(view, paths)
            with cache.making(last, form) as target, rows.open("rb") as file:
                _write(file, columns, target)
            rows.unlink(missing_ok=True)
            found = cache.find(last, form)
        if found is None:
            raise NotFoundError("current rows of", record.name)
        return found

    def _ask(self, view: DatasetView, paths: Sequence[Path]) -> Path:
        assert view.schema is not None
        table = QueryTable(name=_TABLE, vocabulary=view.vocabulary, schema=view.schema, slices=tuple(paths))
        request = QueryRequest(
            tables=(table,),
            sql=f"SELECT * FROM {_TABLE}__state",  # noqa: S608 - a name of ours
            as_of=None,
            max_rows=None,
            limits=self.node.engines.limits,
            known=(_TABLE,),
        )
        _, response = self.node.engines.query(request)
        assert response.rows_path is not None  # of every query
        return response.rows_path


def _write(file: IO[bytes], columns: pa.Schema, target: IO[bytes]) -> None:
    """Write rows that came out of the sandbox as Parquet, cell by cell checked, in the columns of the dataset."""
    _, batches = read_rows(file)
    with pq.ParquetWriter(target, columns, compression="zstd") as writer:
        waiting: list[pa.RecordBatch] = []
        count = 0
        for batch in batches:
            waiting.append(batch)
            count += batch.num_rows
            if count >= _ROWS:
                writer.write_table(_in_columns(waiting, columns), row_group_size=count)
                waiting, count = [], 0
        if waiting:
            writer.write_table(_in_columns(waiting, columns), row_group_size=max(count, 1))


def _in_columns(batches: Sequence[pa.RecordBatch], columns: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(batches).select(columns.names).cast(columns)
