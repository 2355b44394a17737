"""Corrections by hand: rows that stand are retracted, or others put in their place, with a reason.

1. Which rows: a condition in SQL over the current rows, or the offsets of a file. Engines answer from rows that were
   checked, as any question; what the rows have is asked by offset, so that no condition can give them other values.
2. Each has to be in force: given, and not taken away since, counted by content (QUERY-3).
3. What they become is compared with the key of the dataset's sources, judged by its validators, and shown.
4. One block has all of it: retractions, or pairs of correct-from and correct-to, with the reason. It names no projected
   state, so the next ingest makes it anew from what is in force then.

Source: clauses ING-27 to ING-29 in ``spec/plug-ins/corrections.md``.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from odf_corrections.corrected_rows_check import check_corrected
from odf_corrections.current_rows import VALUE, CurrentRows, content_of, read_values, whole
from odf_engines.contract import QuarantineReason, ReferencedRows
from odf_engines.host.slices import open_slice_file
from odf_engines.records.carriers import from_carrier, to_carrier
from odf_node.datasets.chains import load_view
from odf_node.datasets.changelogs import Changelogs
from odf_node.datasets.queries import QueryRunner
from odf_node.datasets.redefinition import require_changeable
from odf_node.datasets.referencing import References
from odf_node.datasets.writer import ChainWriter, StagedOutputs
from odf_node.errors import UsageError
from odf_node.home import Home
from odf_node.ingest.ingest_rules import find_rules
from odf_node.records.datasets import DatasetRecord
from odf_protocol.block_notes import LookedUp, note_correction, note_lookups
from odf_protocol.comparison_form import with_comparison_forms
from odf_protocol.dataset_view import DatasetView
from odf_protocol.enums import DatasetKind
from odf_protocol.events import AddData, OffsetInterval
from odf_protocol.events.extra_attributes import ExtraAttributes
from odf_protocol.timestamp import Timestamp

_RETRACT, _CORRECT_FROM, _CORRECT_TO = 1, 2, 3  # Source: ODF OperationType


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction that was looked at and not made yet.

    Attributes:
        record: The dataset.
        view: Of its chain, which has not moved since (the writer sees to it).
        before: The rows as they stand, by offset, with all columns of the dataset.
        after: The same rows as they are to be, in the same order; None: they are retracted.
        note: The reason, and which datasets validators looked into.
        writer: Of the block.
        warnings: What validators said of rows that may stand all the same, the commonest.
    """

    record: DatasetRecord
    view: DatasetView
    before: "pa.Table"
    after: "pa.Table | None"
    note: ExtraAttributes
    writer: ChainWriter
    warnings: tuple[QuarantineReason, ...] = ()

    @property
    def row_count(self) -> int:
        """How many rows are retracted or corrected."""
        return int(self.before.num_rows)


@dataclass(frozen=True, slots=True)
class Correcting:
    """The use case behind ``odf-node correct``."""

    home: Home
    queries: QueryRunner
    references: References

    def plan_retraction(self, record: DatasetRecord, condition: str, reason: str) -> Correction:
        """Find the current rows for which a condition holds, to retract them.

        Raises:
            UsageError: The dataset is not this node's own root, no current row is meant, or more than ``MAX_ROWS``.
            InvalidQueryError: The condition is none.
            MalformedError: The reason is none.
        """
        view, note, writer = self._begin(record, reason)
        before, _ = CurrentRows(self.queries, record, view).find(condition, ())
        return Correction(record, view, before, None, note, writer)

    def plan_setting(
        self, record: DatasetRecord, condition: str, expressions: Mapping[str, str], reason: str, now: Timestamp
    ) -> Correction:
        """Find the current rows for which a condition holds, and compute columns of them anew.

        Raises:
            UsageError: As ``plan_retraction``; or a column is unknown, of the system, or in a key, or cannot have the
                value.
            InvalidQueryError, MalformedError: As ``plan_retraction``; or an expression is none.
            InvalidCorrectionError: Validators of the dataset reject what a row would become.
        """
        view, note, writer = self._begin(record, reason)
        assert view.schema is not None
        known = [field.name for field in view.schema.fields]
        if unknown := [name for name in expressions if name not in known]:
            raise UsageError(f"'{record.name}' has no column '{unknown[0]}'; it has {', '.join(known)}")
        before, found = CurrentRows(self.queries, record, view).find(condition, tuple(expressions.values()))
        values = {name: found.column(VALUE.format(number)) for number, name in enumerate(expressions)}
        return self._checked(self._correction(record, view, before, values, note, writer), now)

    def plan_file(self, record: DatasetRecord, path: Path, reason: str, now: Timestamp) -> Correction:
        """Read corrected rows from a file; see ``read_values``.

        Raises:
            UsageError: As ``plan_setting``; or a row of the file is not in force.
            InvalidEditError, MalformedError: The file cannot be read, or the reason is none.
            InvalidCorrectionError: As ``plan_setting``.
        """
        view, note, writer = self._begin(record, reason)
        self.home.folder.staging.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=self.home.folder.staging, prefix="source-") as folder:
            found = read_values(self.queries.engines, view, path, Path(folder), now)
        offset = view.vocabulary.offset
        found = found.sort_by(offset)
        offsets = found.column(offset).to_pylist()
        before = CurrentRows(self.queries, record, view).get(offsets)
        values = {name: found.column(name) for name in found.schema.names if name != offset}
        return self._checked(self._correction(record, view, before, values, note, writer), now)

    def apply(self, correction: Correction, *, system_time: Timestamp) -> DatasetRecord:
        """Write a correction of at least one row as one block.

        Raises:
            HeadMovedError: Somebody else wrote meanwhile; nothing was written.
        """
        view, writer = correction.view, correction.writer
        rows = _changes_of(correction, system_time)
        interval = OffsetInterval(start=view.next_offset, end=view.next_offset + rows.num_rows - 1)
        self.home.folder.staging.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            stack.enter_context(self.home.objects.writing())
            folder = stack.enter_context(TemporaryDirectory(dir=self.home.folder.staging, prefix="source-"))
            path = Path(folder, "correction.parquet")
            with open_slice_file(path, rows.schema) as file:
                file.write_table(rows)
            outputs = StagedOutputs(self.home.objects, stack)
            new_data = outputs.stage_slice(path, interval, None)
            assert new_data is not None
            Changelogs(self.home.store, self.home.objects, self.queries.engines.rows).require_sound(
                view, new_data, outputs.staged[new_data.physical_hash].path
            )
            event = AddData(
                prev_checkpoint=view.prev_checkpoint,
                prev_offset=view.last_offset,
                new_data=new_data,
                new_watermark=view.watermark,
                # What a block does not repeat is forgotten: a source would be read from its beginning.
                new_source_state=view.source_state,
                extra=correction.note,
            )
            writer.add(event, system_time=system_time)
            return writer.commit(
                signed_at=system_time, objects=self.home.objects, staged=outputs.staged, named=(new_data.physical_hash,)
            )

    def _begin(self, record: DatasetRecord, reason: str) -> tuple[DatasetView, ExtraAttributes, ChainWriter]:
        require_changeable(record)
        if record.kind is not DatasetKind.ROOT:
            raise UsageError(f"'{record.name}' is a derivative: correct its inputs, and pull it again")
        note = note_correction(reason)
        # Before the rows are read: who writes in between makes the commit fail.
        writer = ChainWriter.continue_chain(self.home.store, self.home.keys, record.id)
        view = load_view(self.home.store, record.id)
        if view.schema is None or view.last_offset is None:
            raise UsageError(f"'{record.name}' has no rows yet")
        return view, note, writer

    def _checked(self, correction: Correction, now: Timestamp) -> Correction:
        """Ask the validators of the dataset, where it has some, what they say of the rows as they are to be."""
        looked_up: list[LookedUp] = []

        def find_rows(name: str) -> ReferencedRows:
            rows, where = self.references.get(name, now)
            looked_up.append(where)
            return rows

        validators = tuple(each.find_call(find_rows) for each in find_rules(correction.view.attachments).validators)
        if correction.after is None or not correction.row_count or not validators:
            return correction
        self.home.folder.staging.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=self.home.folder.staging, prefix="source-") as folder:
            warnings = check_corrected(
                self.queries.engines,
                correction.record.name,
                correction.view,
                validators,
                correction.after,
                Path(folder),
                now,
            )
        seen = note_lookups(looked_up)
        both = correction.note.to_dict() | (seen.to_dict() if seen else {})
        return replace(correction, warnings=warnings, note=ExtraAttributes.of(both))

    def _correction(
        self,
        record: DatasetRecord,
        view: DatasetView,
        before: "pa.Table",
        values: "Mapping[str, pa.ChunkedArray]",
        note: ExtraAttributes,
        writer: ChainWriter,
    ) -> Correction:
        """Put new values in the place of old ones; rows that stay as they are are left out."""
        if system := sorted({*values} - {*content_of(view)}):
            raise UsageError(f"column '{system[0]}' is the node's own and cannot be corrected")
        after = before
        for name, given in values.items():
            place = before.schema.get_field_index(name)
            field = before.schema.field(place)
            try:
                column = from_carrier(to_carrier(whole(given), field.type), field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise UsageError(f"column '{name}': expected {field.type}, found {given.type}: {error}") from error
            if not field.nullable and column.null_count:
                raise UsageError(f"column '{name}': the dataset requires a value, found null")
            after = after.set_column(place, field, column)
        differs = pa.array(_find_differences(before, after, [*values]), pa.bool_())
        sources = view.polling_source, *view.push_sources.values()
        keys = {name for each in sources if each for name in getattr(each.merge, "primary_key", ())}
        keyed = (each for each in values if each in keys)
        moved = next((each for each in keyed if True in _find_differences(before, after, [each])), None)
        if moved is not None:
            raise UsageError(
                f"column '{moved}' is part of the key of '{record.name}': a row of another key is another row; "
                "retract the row and ingest the other one"
            )
        return Correction(record, view, before.filter(differs), after.filter(differs), note, writer)


def _changes_of(correction: Correction, system_time: Timestamp) -> "pa.Table":
    """Make the rows of the block: each taken as it stands, and given as it is to be right behind."""
    before, after, known = correction.before, correction.after, correction.view.vocabulary
    rows, count = before, before.num_rows
    operations = [_RETRACT] * count
    if after is not None:
        operations = [_CORRECT_FROM, _CORRECT_TO] * count
        rows = pa.concat_tables([before, after]).take(np.arange(2 * count).reshape(2, count).T.ravel())
    start = correction.view.next_offset
    times = pa.repeat(pa.scalar(system_time.unix_ms, pa.int64()), rows.num_rows)
    made = {
        known.offset: pa.array(range(start, start + rows.num_rows)),
        known.op: pa.array(operations),
        known.system_time: times.cast(pa.timestamp("ms", "UTC")),
    }
    arrays = [
        made[field.name].cast(field.type) if field.name in made else whole(rows.column(number))
        for number, field in enumerate(rows.schema)
    ]
    return pa.table(arrays, schema=rows.schema)


def _find_differences(before: "pa.Table", after: "pa.Table", names: Sequence[str]) -> list[bool]:
    """Say of each row whether it changes; Arrow does not compare lists, and corrections are few."""
    before, after = (with_comparison_forms(rows, names) for rows in (before, after))
    pairs = [(before.column(name).to_pylist(), after.column(name).to_pylist()) for name in names]
    return [any(repr(old[row]) != repr(new[row]) for old, new in pairs) for row in range(before.num_rows)]
