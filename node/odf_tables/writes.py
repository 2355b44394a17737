"""Writes of tables: the one commit that has all of a write, or nothing.

A write gives the core a batch of rows with operations, and the merge strategy that they meet the current rows by.

Source: clauses TABLE-3 to TABLE-8 in ``spec/plug-ins/tables.md``.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import pyarrow as pa

from odf_engines.contract import IngestResponse
from odf_node.composition import Node
from odf_node.datasets import row_files
from odf_node.datasets.redefinition import require_changeable
from odf_node.datasets.writer import find_writing_time
from odf_node.errors import UsageError
from odf_node.front.table_operations import WriteOptions, Written
from odf_node.ingest.batch import Batch, Root, WriteTerms
from odf_node.ingest.keyed import check_key
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import VersionMovedError
from odf_node.records.ingests import IngestKey
from odf_node.row_counts import RowCounts
from odf_protocol.dataset_view import DatasetView
from odf_protocol.enums import DatasetKind
from odf_protocol.events import (
    AddPushSource,
    DataField,
    DataSchema,
    DataTypeInt32,
    DataTypeOption,
    ReadStepParquet,
)
from odf_protocol.events.extra_attributes import ExtraAttributes
from odf_tables.errors import SHOWN_ROWS, RowsRejectedError
from odf_tables.frames import fit_frame, list_fields
from odf_tables.notes import note_write
from odf_tables.planning import PlannedRows, Target, Write, frame_of, write_into
from odf_tables.queries import FRAME, NOW, Relations, frame_table, quote, quote_forms

_SOURCE: Final = "odf-tables"
"""The name of the source of a write, under which sizes of batches are compared."""
_CONSUMER: Final = "consumer"
"""Whose keys those of consumers are: no token is called so."""


def run_write(node: Node, record: DatasetRecord, write: Write, options: WriteOptions) -> Written:
    """Write, by one commit or none.

    Raises:
        UsageError: The dataset is no own root, has no columns yet, or the write makes no sense there.
        SchemaMismatchError, RowsRejectedError: The frame does not fit.
        VersionMovedError: Another version is the newest.
        WritersBusyError: Others wrote all the time.
        OdfError: As of an ingest.
    """
    require_changeable(record)
    if record.kind is not DatasetKind.ROOT:
        raise UsageError(f"'{record.name}' is a derivative: write its inputs, and pull it")
    key = _key_of(write, options)
    home = node.home
    node.sweeper.clean_up()
    home.folder.staging.mkdir(parents=True, exist_ok=True)
    with home.objects.writing(), TemporaryDirectory(dir=home.folder.staging, prefix="source-") as folder:

        def prepare(current: DatasetRecord, view: DatasetView) -> tuple[Root, Batch]:
            if options.if_version is not None and current.head.sequence_number != options.if_version:
                raise VersionMovedError(current.name, options.if_version, current.head.sequence_number)
            if view.schema is None:
                raise UsageError(f"'{current.name}' has no columns yet; the first rows come by 'odf-node ingest'")
            path = Path(folder, "rows.arrows")
            target = Target(Relations(node, current), view)
            planned = write.plan(target, path)
            time = max(find_writing_time(home.store, home.clock, current.id), view.system_time)
            terms = _Terms(node, target, write, planned, options)
            batch = Batch(
                path,
                f"a write of {current.name}",
                time,
                time,
                view.source_state,
                has_limits=False,
                is_converted=True,
                key=key,
                terms=terms,
            )
            return Root(current, view, _source_of(view, planned, path)), batch

        report = node.ingestor.writes.take(record, prepare, key=key)
    home.objects.delete_unnamed(home.store.is_referenced_object)
    counts = report.counts
    if not (report.up_to_date or report.is_repeated):
        node.record(write.operation, record.name, counts.describe())
    return Written(
        version=report.record.head.sequence_number,
        operation=write.operation,
        added=counts.added,
        corrected=counts.corrected,
        retracted=counts.retracted,
        is_repeated=report.is_repeated,
    )


@dataclass(frozen=True, slots=True)
class _Terms(WriteTerms):
    """All rows of a write or none, and what its block states."""

    node: Node
    target: Target
    write: Write
    planned: PlannedRows
    options: WriteOptions

    def check(self, response: IngestResponse, counts: RowCounts) -> None:
        """See ``WriteTerms``."""
        name = self.target.name
        if response.batch_faults:
            raise RowsRejectedError(name, "; ".join(response.batch_faults), ())
        if response.quarantined_rows and response.quarantine_path is not None:
            kept = row_files.read_first(response.quarantine_path, SHOWN_ROWS, ("record", "errors"))
            shown = [
                {
                    "row": None if each["record"] is None else each["record"] - 1 - self.planned.rows_before,
                    **{error["column"] or "row": error["message"] for error in each["errors"]},
                }
                for each in kept
            ]
            raise RowsRejectedError(name, "values do not fit", shown, response.quarantined_rows)
        if self.planned.adds_only and (counts.corrected or counts.unchanged):
            known = _find_known(self.target, frame_of(self.write))
            raise RowsRejectedError(name, "rows of these keys are there already (upsert corrects them)", known)

    def describe(self, counts: RowCounts) -> ExtraAttributes:
        """See ``WriteTerms``."""
        return note_write(self.write.operation, counts, self.write.detail)


def _key_of(write: Write, options: WriteOptions) -> IngestKey | None:
    if options.consumed is not None:
        # Whatever is made of the same changes anew is the same write: it need not have the same bytes.
        asked = hashlib.sha3_256(options.consumed.key.encode()).digest()
        return IngestKey(caller=_CONSUMER, text=check_key(options.consumed.key), asked=asked)
    if options.key is None:
        return None
    digest = hashlib.sha3_256(msgspec.json.encode([write.operation, sorted(write.detail.items())]))
    if (frame := frame_of(write)) is not None:
        sink = pa.BufferOutputStream()
        write_into(frame, sink)
        digest.update(sink.getvalue())
    return IngestKey(caller="", text=check_key(options.key), asked=digest.digest())


def _source_of(view: DatasetView, planned: PlannedRows, path: Path) -> AddPushSource:
    """Say how the rows of a write are read: the columns that they have, in the types of the dataset."""
    assert view.schema is not None
    with pa.ipc.open_stream(path) as stream:
        names = stream.schema.names
    known = {each.name: each for each in view.schema.fields}
    known[view.vocabulary.op] = DataField(name=view.vocabulary.op, type=DataTypeInt32())
    times = known[view.vocabulary.event_time]
    # A row without a time gets that of the write.
    known[times.name] = (
        times if isinstance(times.type, DataTypeOption) else replace(times, type=DataTypeOption(inner=times.type))
    )
    fields = tuple(known[name] for name in names)
    return AddPushSource(
        source_name=_SOURCE, read=ReadStepParquet(schema=DataSchema(fields=fields)), merge=planned.merge
    )


def _find_known(target: Target, frame: pa.Table | None) -> list[dict[str, Any]]:
    if frame is None:
        return []
    keys = fit_frame(target.name, frame, target.view).select([*target.key])
    key = [each for each in list_fields(target.view) if each.name in target.key]
    pairs = zip(quote_forms(key, "f."), quote_forms(key, "s."), strict=True)
    alike = " AND ".join(f"{mine} = {theirs}" for mine, theirs in pairs)
    columns = ", ".join(f"f.{quote(name)}" for name in target.key)
    with frame_table(keys) as table:
        sql = f"SELECT {columns} FROM {FRAME} f JOIN {NOW}__state s ON {alike}"  # noqa: S608 - quoted
        found = target.relations.ask(sql, [table, target.relations.current(NOW)], max_rows=SHOWN_ROWS)
    return list(found.to_pylist())
