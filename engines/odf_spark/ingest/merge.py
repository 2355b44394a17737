"""Merge strategies: how new rows meet the rows that are already there.

A strategy turns *staged* rows (`ord`, `v0`, …) and the projected *state* (`v0`, … of every key's last row) into

- *changes*: rows with `op` and the values, in the order of their offsets,
- *rejected* rows: those that would make the result ambiguous, with the reason,
- the new *state*.

None of them reads history: the state is all they need, and it grows with the number of keys, not of rows ever written.

Rows that have a primary key meet the state by one outer join. Each key ends in one class: only new (`A`), only old (`K`
kept or `R` retracted), changed (`C`), equal (`E`), or a retraction of something unknown (`D`); rows of a batch that
lost against another row of their key are apart (`X`). Changes, the new state and rejected rows all follow from the
classes, so the join is computed once and stored.

Keys are equal if their values are, null to null: a null key then is a key like any other. (ODF's reference
implementation tests the first key column for null to see on which side a row is, and so breaks on null keys.)

Source: ODF "Merge strategies"; spec/ingest.md ING-8 to ING-12.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.functions import col, expr

from odf_engines.ingest.columns import APPEND, CORRECT_FROM, CORRECT_TO, OP, ORD, RETRACT, Columns
from odf_engines.ingest.unread_keys import NO_KEYS, UnreadKeys
from odf_engines.records.source_records import value_name
from odf_engines.strategies.contract import Keeps
from odf_engines.strategies.registry import strategy_of
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
from odf_spark.handover import Handover

__all__ = ["MergeOutcome", "Rejection", "keeps_state", "merge_rows", "merge_snapshot", "merge_upserts"]


_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Rejection:
    """Rows that a merge cannot take.

    Attributes:
        rows: Data frame of staged rows.
        message: Why, for all of them.
        column_names: Whose values are at fault.
        code: A word for programs (ING-6).
    """

    rows: Any
    message: str
    column_names: tuple[str, ...]
    code: str


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """Result of a merge, as data frames that are not yet computed.

    Attributes:
        changes: `op` and the value columns, sorted in the order of offsets.
        state: Value columns of the new state, sorted by key; None if the strategy keeps none.
        rejections: Rows that were left out.
        kept: Classes of the rows of the state that a snapshot lacks and that stay (ING-48); None: there are none.
    """

    changes: Any
    state: Any | None
    refusals: tuple[Rejection, ...] = ()
    kept: Any | None = None


def keeps_state(merge: MergeStrategy) -> bool:
    """Say whether a strategy needs to know what is already there."""
    return strategy_of(merge).keeps is not Keeps.NOTHING


def merge_rows(
    merge: MergeStrategy,
    staged: Any,
    columns: Columns,
    state: Any | None,
    fallback: Timestamp,
    handover: Handover,
    unread: UnreadKeys = NO_KEYS,
) -> MergeOutcome:
    """Merge staged rows as `merge` says.

    Args:
        merge: Strategy; its columns exist.
        staged: Data frame of staged rows.
        columns: Of the staged rows.
        state: Data frame of the columns of `ingest.state.state_indexes`; None if nothing was ever written.
        fallback: Event time of rows that have none.
        handover: Keeps intermediate results.
        unread: Keys of rows that a snapshot has and that could not be taken.
    """
    match merge:
        case MergeStrategyAppend():
            return MergeOutcome(_appended(staged, columns, fallback), None)
        case MergeStrategyLedger():
            return _merge_ledger(staged, columns, state, fallback)
        case MergeStrategySnapshot(compare_columns=names):
            staged, refusals = _reject_timeless_keys(staged, columns)
            if state is not None and refusals and not refusals[0].rows.isEmpty():
                unread = replace(unread, has_unknown=True)
            compared = _compared(columns) if names is None else tuple(columns.schema.get_field_index(n) for n in names)
            outcome = merge_snapshot(staged, columns, compared, state, handover, unread)
            return replace(outcome, refusals=(*refusals, *outcome.refusals))
        case MergeStrategyUpsertStream():
            staged, refusals = _reject_timeless_keys(staged, columns)
            if columns.op is not None:
                op = f"coalesce(`{value_name(columns.op)}`, {APPEND})"
                wrong = staged.where(f"{op} NOT IN ({APPEND}, {RETRACT})")
                refusals += (_rejection_of_op(wrong, columns, "neither 0 (upsert) nor 1 (retract)"),)
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
    rejection = _rejection_of_op(staged.where(f"NOT {is_operation}"), columns, "not an operation (0 to 3)")
    return MergeOutcome(ordered.selectExpr(f"CAST(`{name}` AS INT) AS {OP}", *values), None, (rejection,))


def _reject_timeless_keys(staged: Any, columns: Columns) -> tuple[Any, tuple[Rejection, ...]]:
    if columns.event_time not in columns.keys:
        return staged, ()
    # It would get the fallback time, another one in each ingest, and so never be the same key again.
    name = value_name(columns.event_time)
    column = columns.schema.field(columns.event_time).name
    rejection = Rejection(
        staged.where(f"`{name}` IS NULL"), "null event time in the primary key", (column,), "null-key"
    )
    return staged.where(f"`{name}` IS NOT NULL"), (rejection,)


def _rejection_of_op(rows: Any, columns: Columns, message: str) -> Rejection:
    assert columns.op is not None
    return Rejection(rows, message, (columns.schema.field(columns.op).name,), "operation")


def _compared(columns: Columns) -> tuple[int, ...]:
    return tuple(i for i in columns.data if i not in columns.keys)


_PLACE = "place"


def merge_snapshot(
    staged: Any,
    columns: Columns,
    compared: tuple[int, ...],
    state: Any | None,
    handover: Handover,
    unread: UnreadKeys = NO_KEYS,
) -> MergeOutcome:
    """Take staged rows as the whole truth: what is not among them is retracted.

    Args:
        staged: Rows; the first of several with one key counts, the others are rejected.
        columns: Of the rows.
        compared: Indexes of the columns whose change is a change of the row.
        state: Projected state, None if there is none yet.
        handover: Keeps the join.
        unread: Keys of rows that the batch has and that could not be taken: theirs, or all that are missing, stay.
    """
    missing = f"if(o.{_STAYS}, 'K', 'R')" if state is not None and unread.path is not None else "'R'"
    if unread.has_unknown:
        missing = "'K'"
    elif state is not None:
        state = _marked(state, columns, unread)
    decided = (
        f"WHEN n IS NULL THEN {missing} WHEN o IS NULL THEN 'A' WHEN {_is_changed(compared, columns)} THEN 'C' ELSE 'E'"
    )
    classes = _classify(_ranked(staged, columns, "ASC"), columns, state, decided, handover)
    keys = tuple(columns.schema.field(i).name for i in columns.keys)
    lost = classes.where("class = 'X'").selectExpr("n.*")
    rejection = Rejection(lost, "duplicate primary key: an earlier record has it", keys, "duplicate-key")
    kept = None if state is None or unread.is_empty else classes.where("class = 'K'")
    return MergeOutcome(_changes(classes, columns), _state(classes, columns), (rejection,), kept)


_STAYS = "stays"


def _marked(state: Any, columns: Columns, unread: UnreadKeys) -> Any:
    """Mark rows of the state whose key is one of those."""
    if unread.path is None:
        return state
    names = [value_name(i) for i in columns.keys]
    keys = state.sparkSession.read.schema(state.select(*names).schema).parquet(str(unread.path)).distinct()
    keys = keys.selectExpr(*(f"`{name}` AS `u{name}`" for name in names))
    same = " AND ".join(f"`{name}` = `u{name}`" for name in names)
    return state.join(keys, expr(same), "left_outer").selectExpr(
        *(f"`{name}`" for name in state.columns), f"`u{names[0]}` IS NOT NULL AS {_STAYS}"
    )


def merge_upserts(
    staged: Any, columns: Columns, compared: tuple[int, ...], state: Any | None, handover: Handover
) -> MergeOutcome:
    """Take each staged row as the newest word about its key; the last one of a batch counts.

    Args and result are those of `merge_snapshot`; rows that another one overrules are not rejected.
    """
    op = APPEND if columns.op is None else f"coalesce(n.`{value_name(columns.op)}`, {APPEND})"
    decided = (
        f"WHEN n IS NULL THEN 'K' WHEN {op} = {RETRACT} THEN if(o IS NULL, 'D', 'R') WHEN o IS NULL THEN 'A'"
        f" WHEN {_is_changed(compared, columns)} THEN 'C' ELSE 'E'"
    )
    classes = _classify(_ranked(staged, columns, "DESC"), columns, state, decided, handover)
    return MergeOutcome(_changes(classes, columns), _state(classes, columns))


def _ranked(staged: Any, columns: Columns, direction: str) -> Any:
    keys = ", ".join(_column(i) for i in columns.keys)
    return staged.selectExpr("*", f"row_number() OVER (PARTITION BY {keys} ORDER BY {ORD} {direction}) AS {_PLACE}")


def _is_changed(compared: tuple[int, ...], columns: Columns) -> str:
    tests = []
    for index in compared:
        differs = f"NOT (n.{_column(index)} <=> o.{_column(index)})"
        # A source that does not know when something happened does not say that it happened at another time.
        is_event_time = index == columns.event_time
        tests.append(f"(n.{_column(index)} IS NOT NULL AND {differs})" if is_event_time else differs)
    return f"({' OR '.join(tests)})" if tests else "false"


def _classify(ranked: Any, columns: Columns, state: Any | None, decided: str, handover: Handover) -> Any:

    new_names = [ORD, _PLACE, *(value_name(i) for i in range(len(columns.schema)))]
    new = ranked.selectExpr(f"{_struct(new_names)} AS n")
    if state is None:
        types = dict(ranked.dtypes)
        old_type = ", ".join(f"{_column(i)}: {types[value_name(i)]}" for i in columns.data)
        joined = new.selectExpr("n", f"CAST(NULL AS STRUCT<{old_type}>) AS o")
    else:
        marks = [_STAYS] if _STAYS in state.columns else []
        old = state.selectExpr(f"{_struct([*(value_name(i) for i in columns.data), *marks])} AS o")
        same_key = " AND ".join(f"n.{_column(i)} <=> o.{_column(i)}" for i in columns.keys)
        joined = new.join(old, expr(f"{same_key} AND n.{_PLACE} = 1"), "full_outer")
    classes = joined.selectExpr(f"CASE WHEN n.{_PLACE} > 1 THEN 'X' {decided} END AS class", "n", "o")
    return handover.keep(classes, "classes")


def _changes(classes: Any, columns: Columns) -> Any:

    listed = (
        f"CASE class WHEN 'A' THEN array({_change(APPEND, 'n', columns)})"
        f" WHEN 'R' THEN array({_change(RETRACT, 'o', columns)})"
        f" WHEN 'C' THEN array({_change(CORRECT_FROM, 'o', columns)}, {_change(CORRECT_TO, 'n', columns)}) END"
    )
    changed = classes.where("class IN ('A', 'R', 'C')").selectExpr(f"inline({listed})")
    return changed.orderBy(*_key_order(columns), col(OP).asc())


def _state(classes: Any, columns: Columns) -> Any:
    kept = classes.where("class IN ('A', 'C', 'E', 'K')")
    values = [f"if(class IN ('A', 'C'), n.{_column(i)}, o.{_column(i)}) AS {_column(i)}" for i in columns.data]
    return kept.selectExpr(*values).orderBy(*_key_order(columns))


def _key_order(columns: Columns) -> list[Any]:

    return [col(value_name(i)).asc_nulls_first() for i in columns.keys]


def _change(op: int, side: str, columns: Columns) -> str:
    values = ", ".join(f"'{value_name(i)}', {side}.{_column(i)}" for i in columns.data)
    return f"named_struct('{OP}', {op}, {values})"


def _struct(names: list[str]) -> str:
    values = ", ".join(f"'{name}', `{name}`" for name in names)
    return f"named_struct({values})"


def _column(index: int) -> str:
    return f"`{value_name(index)}`"
