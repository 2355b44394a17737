"""What waits in quarantine, sent again: through the whole pipeline as it is declared now, and exactly once.

Rows become a batch of their own, which names them: the one commit that takes it settles them, whatever became of each.
A row that fails again is a new row of quarantine that names the one it was.

Source: clauses QUAR-2 to QUAR-5 in ``spec/quarantine.md``.
"""

import json
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from odf_node.datasets.chains import load_view
from odf_node.datasets.quarantined_rows import KeptRow, QuarantineReader
from odf_node.errors import UsageError
from odf_node.home import Home
from odf_node.ingest.batch import Batch, Root
from odf_node.ingest.ingest_rules import find_rules
from odf_node.ingest.report import IngestReport
from odf_node.ingest.taking import BatchTaker
from odf_node.records.datasets import DatasetRecord
from odf_node.records.quarantine import Fate, QuarantineFile, RowId, SettledError, SettledRows
from odf_protocol.dataset_view import DatasetView
from odf_protocol.events import (
    AddData,
    AddPushSource,
    DataField,
    DataSchema,
    DataTypeOption,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepNdJson,
    SetPollingSource,
)
from odf_protocol.timestamp import Timestamp

_SHOWN_AS = "quarantine"


@dataclass(frozen=True, slots=True)
class Resending:
    """The use case behind ``odf-node quarantine resend`` and ``drop``."""

    home: Home
    reader: QuarantineReader
    taker: BatchTaker

    def list_sendable(
        self, record: DatasetRecord, *, entries: Collection[int], rows: Collection[RowId]
    ) -> tuple[list[KeptRow], list[KeptRow]]:
        """List the waiting rows that can be sent again, and those that need to be fixed first.

        Raises:
            SettledError: A row or an entry was named that does not wait.
        """
        found = list(self.reader.iter_rows(record, entries=entries, rows=rows))
        waiting = [row for row in found if row.waits]
        for row in rows:
            if row not in {each.id for each in waiting}:
                raise SettledError(row)
        for entry in entries:
            if all(each.id.entry != entry for each in waiting):
                raise SettledError(entry)
        return [row for row in waiting if _is_sendable(row)], [row for row in waiting if not _is_sendable(row)]

    def resend_rows(
        self, record: DatasetRecord, rows: Sequence[KeptRow], *, system_time: Timestamp
    ) -> Iterator[IngestReport]:
        """Send rows again, those of each source in a batch and commit of their own.

        Raises:
            UsageError: The source that they came through is gone.
            SettledError: One was settled meanwhile; nothing was done with its batch.
            InvalidSourceError: As ``BatchTaker.take``.
        """
        for (push_source, _), same in groupby(sorted(rows, key=_source_of), key=_source_of):
            view = load_view(self.home.store, record.id)
            source = _find_source(record, view, push_source or None)
            sent = list(same)
            with self._batch_folder() as folder:
                path = folder / "rows.ndjson"
                path.write_text(
                    "".join(json.dumps(dict(row.columns), ensure_ascii=False) + "\n" for row in sent), encoding="utf-8"
                )
                ids = tuple(row.id for row in sent)
                batch = Batch(
                    path,
                    _SHOWN_AS,
                    system_time,
                    system_time,
                    new_state=view.source_state,
                    settlement=SettledRows(fate=Fate.RESENT, rows=ids),
                    resent_from=ids,
                    has_limits=False,
                    is_converted=sent[0].record is None,
                )
                report = self.taker.take(Root(record, view, _for_rows(source, view, sent)), batch)
            record = report.record
            yield report

    def resend_batch(
        self,
        record: DatasetRecord,
        entry: QuarantineFile,
        *,
        system_time: Timestamp,
        has_limits: bool,
        file: Path | None,
    ) -> IngestReport:
        """Send a waiting batch again.

        Args:
            record: The dataset.
            entry: The batch.
            system_time: Of the block to be.
            has_limits: Whether the limits of the rules as they are now hold; a person may let it pass.
            file: What takes its place, None: it is sent as it is.

        Raises:
            SettledError: It does not wait any more.
            BatchRejectedError: It breaks a limit again, and goes on waiting.
        """
        waiting = entry.batch
        if waiting is None or waiting.file is None:
            raise SettledError(entry.id)
        view = load_view(self.home.store, record.id)
        source = _find_source(record, view, entry.push_source)
        with self._batch_folder() as folder:
            # What reads it may write beside it.
            path = folder / "batch"
            shutil.copyfile(file or self.home.objects.get_path(waiting.file), path)
            # A source that went on meanwhile does not go back.
            new_state = waiting.new_state if view.source_state == waiting.known_state else view.source_state
            batch = Batch(
                path,
                entry.source,
                waiting.event_time,
                system_time,
                new_state=new_state,
                settlement=SettledRows(fate=Fate.RESENT, batches=(entry.id,)),
                has_limits=has_limits,
            )
            return self.taker.take(Root(record, view, source), batch)

    def drop_rows(self, record: DatasetRecord, rows: Sequence[RowId]) -> None:
        """Give rows up: they stay to be looked at, and wait no more.

        Raises:
            SettledError: One does not wait; none was dropped.
        """
        self.home.store.settle(record.id, SettledRows(fate=Fate.DROPPED, rows=tuple(rows)))

    def drop_batch(self, record: DatasetRecord, entry: QuarantineFile, *, system_time: Timestamp) -> DatasetRecord:
        """Give a waiting batch up; a polled source goes on behind it, where it was the next one.

        Raises:
            SettledError: It does not wait any more.
        """
        waiting = entry.batch
        if waiting is None or waiting.fate is not None:
            raise SettledError(entry.id)
        settlement = SettledRows(fate=Fate.DROPPED, batches=(entry.id,))
        view = load_view(self.home.store, record.id)
        with self._batch_folder():
            superfluous = self.taker.waiting.list_files(record, settlement)
            if waiting.new_state in (None, view.source_state) or view.source_state != waiting.known_state:
                self.home.store.settle(record.id, settlement)
            else:
                event = AddData(
                    prev_checkpoint=view.prev_checkpoint,
                    prev_offset=view.last_offset,
                    new_watermark=view.watermark,
                    new_source_state=waiting.new_state,
                )
                record = self.taker.commit_event(record, view, event, settlement, system_time=system_time)
            self.home.objects.delete_later(superfluous)
        return record

    @contextmanager
    def _batch_folder(self) -> Iterator[Path]:
        """Give a folder for a batch, under a writing lease; what nothing names any more goes after it."""
        self.home.folder.staging.mkdir(parents=True, exist_ok=True)
        with self.home.objects.writing(), TemporaryDirectory(dir=self.home.folder.staging, prefix="source-") as folder:
            yield Path(folder)
        self.home.objects.delete_unnamed(self.home.store.is_referenced_object)


def _is_sendable(row: KeptRow) -> bool:
    """Say whether a row has columns to be sent with; a record that was not taken apart has none of meaning."""
    return bool(row.columns) and (row.stage != "read" or row.note.columns is not None)


def _source_of(row: KeptRow) -> tuple[str, bool]:
    return row.entry.push_source or "", row.record is None


def _find_source(record: DatasetRecord, view: DatasetView, push_source: str | None) -> SetPollingSource | AddPushSource:
    found = view.polling_source if push_source is None else view.push_sources.get(push_source)
    if found is None:
        name = "polling source" if push_source is None else f"push source {push_source}"
        raise UsageError(f"'{record.name}' has no {name} any more; its rows cannot be sent again, only dropped")
    return found


def _for_rows(
    source: SetPollingSource | AddPushSource, view: DatasetView, rows: Sequence[KeptRow]
) -> SetPollingSource | AddPushSource:
    """Make of a source one for single rows of it, or of what its query gave, as objects of texts.

    A few rows of a snapshot are not the whole truth about it: they are merged as what they say about their keys.
    """
    merge = source.merge
    if isinstance(merge, MergeStrategySnapshot):
        merge = MergeStrategyUpsertStream(primary_key=merge.primary_key)
    read, names = source.read, {name for row in rows for name in row.columns}
    if rows[0].record is None:
        # What a query gave goes in behind it.
        return replace(source, read=ReadStepNdJson(schema=_find_schema(view, names)), preprocess=None, merge=merge)
    schema = read.schema
    if schema is None and read.ddl_schema is None and source.preprocess is None and not _has_converters(view):
        # Types would be guessed anew, from a few texts.
        schema = _find_schema(view, names)
    read = ReadStepNdJson(
        schema=schema,
        ddl_schema=read.ddl_schema,
        date_format=getattr(read, "date_format", None),
        timestamp_format=getattr(read, "timestamp_format", None),
    )
    return replace(source, read=read, merge=merge)


def _has_converters(view: DatasetView) -> bool:
    return bool(find_rules(view.attachments).converters)


def _find_schema(view: DatasetView, names: Collection[str]) -> DataSchema | None:
    """Find the columns that rows bring themselves in what the dataset has; None before its first rows."""
    if view.schema is None:
        return None
    system = {view.vocabulary.offset, view.vocabulary.op, view.vocabulary.system_time}
    fields = [field for field in view.schema.fields if field.name in names and field.name not in system]
    # A row may lack an event time although no slice does: it gets one with the others.
    return DataSchema(
        fields=tuple(_optional(field) if field.name == view.vocabulary.event_time else field for field in fields)
    )


def _optional(field: DataField) -> DataField:
    return field if isinstance(field.type, DataTypeOption) else replace(field, type=DataTypeOption(inner=field.type))
