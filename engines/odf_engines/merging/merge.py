"""Merges: rows and state are brought into one order, and each row is looked at once.

An engine orders (``RowOrder``): DataFusion on one machine, Spark where a cluster does it. What follows from the order
is decided here alone, so all engines give the same bytes.

Source: ODF "Merge strategies"; spec/ingest.md ING-8 to ING-12.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest
from odf_engines.errors import EngineError, EngineFailureError, InvalidSourceError
from odf_engines.ingest.columns import APPEND, OP, RETRACT, Columns
from odf_engines.ingest.merged import Merged, find_stand_in, iter_appended, iter_appends
from odf_engines.ingest.state import open_state
from odf_engines.ingest.unread_keys import NO_KEYS, UnreadKeys, has_null
from odf_engines.merging.keyed_rows import NEW, OLD, UNREAD, Decided, KeptRows, KeyedRows, iter_marked
from odf_engines.merging.rejected_rows import RejectedRows
from odf_engines.merging.row_order import ORD, SIDE, Input, RowOrder
from odf_engines.records.ahead import iter_ahead
from odf_engines.records.carriers import carrier_of
from odf_engines.records.source_records import RECORD, ROW_GROUP_ROWS, value_name
from odf_engines.strategies.contract import Keeps
from odf_engines.strategies.registry import strategy_of

_STATE = "state.arrow"


def merge_records(
    request: IngestRequest,
    records: Path,
    columns: Columns,
    unread: UnreadKeys = NO_KEYS,
    *,
    order: RowOrder,
    scratch: Path,
) -> Merged:
    """Merge a file of converted records as the request says.

    Args:
        request: Of the ingest.
        records: The file.
        columns: Of the rows.
        unread: Keys of rows that a snapshot has and that could not be taken.
        order: Puts rows into an order.
        scratch: Folder for files.

    Raises:
        EngineFailureError: The state is not the one of this dataset and offset.
        InvalidSourceError: The strategy of another package fails.
        MemoryError: There is too little.
    """
    merging = _Merging(request, records, columns, unread, order, scratch)
    if (added := request.strategy) is None:
        return strategy_of(request.merge).merge(request.merge, merging)
    try:
        return strategy_of(request.merge, added).merge(request.merge, merging)
    except (MemoryError, EngineError):
        raise
    except Exception as error:
        message = f"merge strategy {added.name} failed: {type(error).__name__}: {error}"
        raise InvalidSourceError(request.source_name, message) from error


class _Merging:
    """See ``RowsToMerge``; for the arguments ``merge_records``."""

    def __init__(
        self,
        request: IngestRequest,
        records: Path,
        columns: Columns,
        unread: UnreadKeys,
        order: RowOrder,
        scratch: Path,
    ) -> None:
        self._request, self._records, self._columns, self._unread = request, records, columns, unread
        self._order, self._scratch = order, scratch
        self._keys = tuple(value_name(index) for index in columns.keys)
        self._op = None if columns.op is None else value_name(columns.op)
        self._data = [value_name(index) for index in columns.data]
        self._time = value_name(columns.event_time)
        self._strategy = strategy_of(request.merge, request.strategy)

    def append(self) -> Merged:
        fallback, order = self._request.fallback_event_time, self._order.order_file
        return Merged(iter_appended(self._records, self._columns, fallback, order))

    def compare(self, compared: tuple[str, ...] | None, *, retracts_missing: bool) -> Merged:
        self._require(Keeps.ROWS, retracts_missing=retracts_missing)
        columns = self._columns
        takes_op = self._op is not None and self._strategy.takes_operation
        if compared is None:
            names = tuple(value_name(index) for index in columns.data if index not in columns.keys)
        else:
            names = tuple(value_name(columns.schema.get_field_index(name)) for name in compared)
        # Whose key cannot be read may be any of the rows that are missing.
        takes_back = retracts_missing and self._request.state_path is not None
        timeless = takes_back and any(has_null(self._records, name) for name in self._needed())
        keeps_all = self._unread.has_unknown or timeless
        op = self._op if takes_op else None
        deciding = KeyedRows(self._keys, names, self._time, op, retracts_missing, keeps_all=keeps_all)
        lost = self._refused("duplicate primary key: an earlier record has it", columns.keys, "duplicate-key")
        state = KeptRows(self._scratch / _STATE)
        rows = self._iter_sorted(columns.data, newest_first=not retracts_missing)

        def changes() -> Iterator[pa.RecordBatch]:
            with state:
                for decided in deciding.iter_decided(iter_marked(rows, self._keys)):
                    state.write(decided.take(decided.kept).select(self._data))
                    if retracts_missing:
                        lost.add(decided.take(decided.lost), ORD)
                    yield self._changes_of(decided)

        refused = [lost, *self._iter_rejections()] if retracts_missing else list(self._iter_rejections())
        return Merged(
            changes(),
            [each.iter_rows() for each in refused],
            iter_ahead(state.iter_batches()),
            lambda: deciding.kept_count,
        )

    def append_unknown(self) -> Merged:
        self._require(Keeps.KEYS)
        deciding = KeyedRows(self._keys, (), self._time, None, retracts_missing=False)
        state, new = KeptRows(self._scratch / _STATE), self._scratch / "new.parquet"
        rows = self._iter_sorted(self._columns.keys, newest_first=False)
        schema = pa.schema([(ORD, pa.int64()), *self._types().items()])
        with state, pq.ParquetWriter(new, schema, compression="lz4", use_dictionary=False) as writer:
            for decided in deciding.iter_decided(rows):
                keys = decided.take(decided.first).select(list(self._keys))
                # A null never equals a key, so it need not be remembered.
                state.write(keys.filter(_all_valid(keys)))
                writer.write_batch(decided.take(decided.unknown).select(schema.names).cast(schema))
        stand_ins = {self._time: find_stand_in(new, self._time, self._request.fallback_event_time)}
        ordered = self._order.order_file(new, (self._time, ORD), stand_ins)
        return Merged(iter_appends(ordered, self._columns), (), iter_ahead(state.iter_batches()))

    def pass_on(self) -> Merged:
        assert self._op is not None
        ordered = self._order.order_file(self._records, (*self._keys, RECORD), {})

        def changes() -> Iterator[pa.RecordBatch]:
            for found in ordered:
                batch = self._completed(found)
                good = batch.filter(_is_operation(batch.column(self._op), self._strategy.max_operation))
                values = [good.column(name) for name in self._data]
                yield pa.record_batch([good.column(self._op).cast(pa.int32()), *values], names=[OP, *self._data])

        return Merged(changes(), [each.iter_rows() for each in self._iter_rejections()])

    def _require(self, kept: Keeps, *, retracts_missing: bool = False) -> None:
        """Hold a strategy to what it says of itself: state, and rows whose key cannot be read, were seen to by it."""
        if self._strategy.keeps is not kept:
            raise ValueError(f"it keeps {self._strategy.keeps} and asked for a merge by {kept}")
        if retracts_missing and not self._strategy.retracts_missing:
            raise ValueError("it does not say that it retracts what is missing, and asked for it")

    def _changes_of(self, decided: Decided) -> pa.RecordBatch:
        rows = decided.take(decided.changed)
        return pa.record_batch([decided.operations, *(rows.column(name) for name in self._data)], [OP, *self._data])

    def _types(self) -> dict[str, pa.DataType]:
        return {value_name(i): carrier_of(field.type) for i, field in enumerate(self._columns.schema)}

    def _iter_sorted(self, state_indexes: tuple[int, ...], *, newest_first: bool) -> Iterator[pa.RecordBatch]:
        """Give the rows of the state and the new ones by key, those of the state first."""
        request, types = self._request, self._types()
        known = set(pq.read_schema(self._records).names)
        names = {name: name for name in types if name in known}
        inputs = [Input(self._records, NEW, names, RECORD, is_descending=newest_first)]
        if self._unread.path is not None:
            inputs.append(Input(self._unread.path, UNREAD, {name: name for name in self._keys}))
        if request.state_path is not None:
            old = {value_name(index): self._columns.schema.field(index).name for index in state_indexes}
            open_state(request.state_path, request.merge, list(old.values()), request.next_offset)
            inputs.append(Input(request.state_path, OLD, old, is_sorted=True))
        elif request.next_offset > 0:
            raise EngineFailureError("a dataset that has rows cannot be merged into without its projected state")
        checks_op = newest_first and self._op is not None
        for batch in self._order.order_inputs(inputs, types, self._keys):
            is_new = pc.equal(batch.column(SIDE), NEW)
            is_good = _all_valid(batch.select(list(self._needed())))
            if checks_op:
                op = batch.column(self._op)
                is_good = pc.and_(is_good, pc.or_(pc.is_null(op), _is_operation(op, RETRACT)))
            yield batch.filter(pc.or_(pc.invert(is_new), is_good))

    def _needed(self) -> tuple[str, ...]:
        """Give the columns without which a row is rejected: a key that would be another one each time."""
        return (self._time,) if self._time in self._keys and self._strategy.rejects_timeless_keys else ()

    def _refused(self, message: str, indexes: tuple[int, ...], code: str) -> RejectedRows:
        return RejectedRows(self._request, self._columns, message, indexes, code)

    def _iter_rejections(self) -> Iterator[RejectedRows]:
        """Give the rows that no merge looks at."""
        columns, strategy = self._columns, self._strategy
        checked: list[tuple[RejectedRows, str, int | None]] = []
        if self._needed():
            rejection = self._refused("null event time in the primary key", (columns.event_time,), "null-key")
            checked.append((rejection, self._time, None))
        if self._op is not None and strategy.takes_operation:
            assert columns.op is not None
            rejection = self._refused(strategy.operation_fault, (columns.op,), "operation")
            checked.append((rejection, self._op, strategy.max_operation))
        if not checked:
            return
        with pq.ParquetFile(self._records) as file:
            for found in file.iter_batches(batch_size=ROW_GROUP_ROWS):
                batch = self._completed(found)
                for rejection, name, most in checked:
                    column = batch.column(name)
                    is_good = pc.is_valid(column) if most is None else _is_operation(column, most)
                    if most is not None and strategy.takes_null_operation:
                        is_good = pc.or_(is_good, pc.is_null(column))
                    rejection.add(batch.filter(pc.invert(is_good)), RECORD)
                    batch = batch.filter(is_good)
        for rejection, _, _ in checked:
            yield rejection

    def _completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._time in batch.schema.names:
            return batch
        return batch.append_column(self._time, pa.nulls(batch.num_rows, self._types()[self._time]))


def _is_operation(column: pa.Array, most: int) -> pa.BooleanArray:
    return pc.fill_null(pc.and_(pc.greater_equal(column, APPEND), pc.less_equal(column, most)), False)


def _all_valid(rows: pa.RecordBatch) -> pa.BooleanArray:
    valid = pa.repeat(True, rows.num_rows)
    for column in rows.columns:
        valid = pc.and_(valid, pc.is_valid(column))
    return valid
