"""Quarantine as a table of questions: every row that was set aside, with its columns as texts and all its errors.

What the engine reads is written here, row by row, from what ``QuarantineReader`` gives; no kept file goes there.

Source: clause QUAR-6 in ``spec/quarantine.md``.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import QueryTable
from odf_engines.ingest.source_schema import find_declared
from odf_node.datasets.chains import load_view
from odf_node.datasets.quarantined_rows import KeptRow, QuarantineReader
from odf_node.errors import UsageError
from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

MAX_COLUMNS: Final = 1000
"""Of senders' names; what stands under others is in ``_original``.  # guess: more than tables have"""

_BATCH_ROWS: Final = 4096
_ERROR_FIELDS: Final = ("stage", "plug_in", "code", "column", "value", "expected", "message", "severity")


@dataclass(frozen=True, slots=True)
class QuarantineTables:
    """Makes the table ``NAME__quarantine`` of a dataset.

    Attributes:
        store: What the home keeps.
        reader: Of the rows.
        max_bytes: Size of the file that the engine is given.
    """

    store: MetadataStore
    reader: QuarantineReader
    max_bytes: int

    def make(self, record: DatasetRecord, name: str, folder: Path, *, as_of: Timestamp | None) -> QueryTable:
        """Write the rows that were set aside as a table.

        Args:
            record: The dataset.
            name: Of the table.
            folder: The file is put there.
            as_of: Only what was set aside by then; None for all.

        Raises:
            UsageError: There is more than an engine may be given.
        """
        entries = [each.id for each in self.reader.list_entries(record) if as_of is None or each.created_at <= as_of]
        columns = self._name_columns(record, entries)
        schema = _schema_of(columns.values())
        path = folder / "quarantine.parquet"
        rows = self.reader.iter_rows(record, entries=entries) if entries else iter(())
        with path.open("wb") as file, pq.ParquetWriter(file, schema, compression="snappy") as writer:
            for batch in _iter_batches(rows, columns, schema):
                writer.write_batch(batch)
                if file.tell() > self.max_bytes:
                    raise UsageError(
                        f"the quarantine of {record.name} has more than {self.max_bytes:,} bytes to be asked at once;"
                        f" 'odf-node quarantine show {record.name}' reads it entry by entry"
                    )
        schema_of_rows = data_schema_of(schema)
        return QueryTable(name=name, vocabulary=Vocabulary(), schema=schema_of_rows, slices=(path,), is_changelog=False)

    def _name_columns(self, record: DatasetRecord, entries: list[int]) -> dict[str, str]:
        """Name the columns of the table by those of the senders: declared ones first, then in the order they came."""
        view = load_view(self.store, record.id)
        reads = [source.read for source in view.push_sources.values()]
        if view.polling_source is not None:
            reads.append(view.polling_source.read)
        declared = [find_declared(read) for read in reads]
        found = dict.fromkeys(name for schema in declared if schema is not None for name in schema.names)
        for name in self.reader.iter_column_names(record, entries):
            if len(found) >= MAX_COLUMNS:
                break
            found.setdefault(name)
        # Engines do not tell names apart that differ in case alone.
        taken = {name.lower() for name in _schema_of(()).names}
        return {name: _free_name(name or "unnamed", taken) for name in found}


def _free_name(name: str, taken: set[str]) -> str:
    number, candidate = 1, name
    while candidate.lower() in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate.lower())
    return candidate


def _schema_of(columns: Iterable[str]) -> pa.Schema:
    error = pa.struct([(name, pa.string()) for name in _ERROR_FIELDS])
    return pa.schema(
        [
            ("_row", pa.string()),
            ("_entry", pa.int64()),
            ("_record", pa.int64()),
            ("_line", pa.int64()),
            ("_source", pa.string()),
            ("_set_aside_at", pa.timestamp("ms", "UTC")),
            ("_stage", pa.string()),
            ("_state", pa.string()),
            *((name, pa.string()) for name in columns),
            ("_errors", pa.list_(pa.field("item", error))),
            ("_original", pa.string()),
            ("_original_bytes", pa.binary()),
        ]
    )


def _iter_batches(rows: Iterable[KeptRow], columns: Mapping[str, str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = iter(rows)
    while some := list(islice(rows, _BATCH_ROWS)):
        yield pa.RecordBatch.from_pylist([_values_of(row, columns) for row in some], schema=schema)


def _values_of(row: KeptRow, columns: Mapping[str, str]) -> dict[str, object]:
    return {
        "_row": str(row.id),
        "_entry": row.id.entry,
        "_record": row.record,
        "_line": row.line,
        "_source": row.entry.source,
        "_set_aside_at": row.entry.created_at.unix_ms,
        "_stage": row.stage,
        "_state": row.state,
        **{name: row.given.get(sent) for sent, name in columns.items()},
        "_errors": [{"stage": row.stage, **error} for error in row.errors],
        "_original": row.original,
        "_original_bytes": row.original_bytes,
    }
