"""One entry for every merge strategy of ODF."""

from typing import Any, Final

import pyarrow as pa
from pyspark.sql.functions import col, expr

from odf_engines.ingest.columns import ORD, Columns
from odf_engines.ingest.outcome import APPEND, CORRECT_TO, OP, RETRACT, MergeOutcome, Refusal
from odf_engines.records.source_records import value_name
from odf_engines.spark.ingest.handover import Handover
from odf_engines.spark.ingest.merge.keyed import merge_snapshot, merge_upserts
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from odf_protocol.timestamp import Timestamp

_DAY_S: Final = 86_400


def keeps_state(merge: MergeStrategy) -> bool:
    """Say whether a strategy needs to know what is already there."""
    return isinstance(merge, MergeStrategyLedger | MergeStrategySnapshot | MergeStrategyUpsertStream)


def merge_rows(
    merge: MergeStrategy, staged: Any, columns: Columns, state: Any | None, fallback: Timestamp, handover: Handover
) -> MergeOutcome:
    """Merge staged rows as `merge` says.

    Args:
        merge: Strategy; its columns exist.
        staged: Data frame of staged rows.
        columns: Of the staged rows.
        state: Data frame of the columns of `ingest.state.state_indexes`; None if nothing was ever written.
        fallback: Event time of rows that have none.
        handover: Keeps intermediate results.
    """
    match merge:
        case MergeStrategyAppend():
            return MergeOutcome(_appended(staged, columns, fallback), None)
        case MergeStrategyLedger():
            return _merge_ledger(staged, columns, state, fallback)
        case MergeStrategySnapshot(compare_columns=names):
            staged, refusals = _refuse_timeless_keys(staged, columns)
            compared = _compared(columns) if names is None else tuple(columns.schema.get_field_index(n) for n in names)
            outcome = merge_snapshot(staged, columns, compared, state, handover)
            return MergeOutcome(outcome.changes, outcome.state, (*refusals, *outcome.refusals))
        case MergeStrategyUpsertStream():
            staged, refusals = _refuse_timeless_keys(staged, columns)
            if columns.op is not None:
                op = f"coalesce(`{value_name(columns.op)}`, {APPEND})"
                wrong = staged.where(f"{op} NOT IN ({APPEND}, {RETRACT})")
                refusals += (_refusal_of_op(wrong, columns, "neither 0 (upsert) nor 1 (retract)"),)
                staged = staged.where(f"{op} IN ({APPEND}, {RETRACT})")
            outcome = merge_upserts(staged, columns, _compared(columns), state, handover)
            return MergeOutcome(outcome.changes, outcome.state, refusals)
        case MergeStrategyChangelogStream():
            return _pass_changelog(staged, columns)
    raise UnsupportedError("merge strategy", found=type(merge).__name__)


def _appended(staged: Any, columns: Columns, fallback: Timestamp) -> Any:

    values = [f"`{value_name(i)}`" for i in columns.data]
    kind = columns.schema.field(columns.event_time).type
    is_day = pa.types.is_date32(kind)
    stands_in = (
        f"date_from_unix_date({fallback.seconds // _DAY_S})" if is_day else f"timestamp_millis({fallback.unix_ms})"
    )
    time = expr(f"coalesce(`{value_name(columns.event_time)}`, {stands_in})")
    ordered = staged.orderBy(time.asc(), col(ORD).asc())
    return ordered.selectExpr(f"{APPEND} AS {OP}", *values)


def _merge_ledger(staged: Any, columns: Columns, state: Any | None, fallback: Timestamp) -> MergeOutcome:

    keys = [value_name(i) for i in columns.keys]
    new = staged if state is None else staged.join(state.select(*keys), keys, "left_anti")
    new_keys = staged.select(*keys).dropna()
    known = new_keys if state is None else state.select(*keys).unionAll(new_keys)
    ordered = known.distinct().orderBy(*[col(key).asc() for key in keys])
    return MergeOutcome(_appended(new.select(ORD, *[value_name(i) for i in columns.data]), columns, fallback), ordered)


def _pass_changelog(staged: Any, columns: Columns) -> MergeOutcome:

    assert columns.op is not None
    name = value_name(columns.op)
    is_operation = f"coalesce(`{name}` BETWEEN {APPEND} AND {CORRECT_TO}, false)"
    keys = [col(value_name(i)).asc_nulls_first() for i in columns.keys]
    # Within a key the order of the source: sorted by operation, a row that is retracted and appended again would end
    # as retracted.
    ordered = staged.where(is_operation).orderBy(*keys, col(ORD).asc())
    values = [f"`{value_name(i)}`" for i in columns.data]
    refusal = _refusal_of_op(staged.where(f"NOT {is_operation}"), columns, "not an operation (0 to 3)")
    return MergeOutcome(ordered.selectExpr(f"CAST(`{name}` AS INT) AS {OP}", *values), None, (refusal,))


def _refuse_timeless_keys(staged: Any, columns: Columns) -> tuple[Any, tuple[Refusal, ...]]:
    if columns.event_time not in columns.keys:
        return staged, ()
    # It would get the fallback time, another one in each ingest, and so never be the same key again.
    name = value_name(columns.event_time)
    column = columns.schema.field(columns.event_time).name
    refusal = Refusal(staged.where(f"`{name}` IS NULL"), "null event time in the primary key", (column,), "null-key")
    return staged.where(f"`{name}` IS NOT NULL"), (refusal,)


def _refusal_of_op(rows: Any, columns: Columns, message: str) -> Refusal:
    assert columns.op is not None
    return Refusal(rows, message, (columns.schema.field(columns.op).name,), "operation")


def _compared(columns: Columns) -> tuple[int, ...]:
    return tuple(i for i in columns.data if i not in columns.keys)
