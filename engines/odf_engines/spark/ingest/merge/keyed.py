"""Merge of rows that have a primary key with the projected state, by one outer join.

Each key ends in one class: only new (`A`), only old (`K` kept or `R` retracted), changed (`C`), equal (`E`), or a
retraction of something unknown (`D`); rows of a batch that lost against another row of their key are apart (`X`).
Changes, the new state and refused rows all follow from the classes, so the join is computed once and stored.

Keys are equal if their values are, null to null: a null key then is a key like any other. (ODF's reference
implementation tests the first key column for null to see on which side a row is, and so breaks on null keys.)
"""

from typing import Any

from pyspark.sql.functions import col, expr

from odf_engines.ingest.columns import ORD, Columns
from odf_engines.ingest.outcome import (
    APPEND,
    CORRECT_FROM,
    CORRECT_TO,
    OP,
    RETRACT,
    MergeOutcome,
    Refusal,
)
from odf_engines.records.source_records import value_name
from odf_engines.spark.ingest.handover import Handover

_PLACE = "place"


def merge_snapshot(
    staged: Any, columns: Columns, compared: tuple[int, ...], state: Any | None, handover: Handover
) -> MergeOutcome:
    """Take staged rows as the whole truth: what is not among them is retracted.

    Args:
        staged: Rows; the first of several with one key counts, the others are refused.
        columns: Of the rows.
        compared: Indexes of the columns whose change is a change of the row.
        state: Projected state, None if there is none yet.
        handover: Keeps the join.
    """
    decided = f"WHEN n IS NULL THEN 'R' WHEN o IS NULL THEN 'A' WHEN {_is_changed(compared, columns)} THEN 'C' ELSE 'E'"
    classes = _classify(_ranked(staged, columns, "ASC"), columns, state, decided, handover)
    keys = tuple(columns.schema.field(i).name for i in columns.keys)
    lost = classes.where("class = 'X'").selectExpr("n.*")
    refusal = Refusal(lost, "duplicate primary key: an earlier record has it", keys, "duplicate-key")
    return MergeOutcome(_changes(classes, columns), _state(classes, columns), (refusal,))


def merge_upserts(
    staged: Any, columns: Columns, compared: tuple[int, ...], state: Any | None, handover: Handover
) -> MergeOutcome:
    """Take each staged row as the newest word about its key; the last one of a batch counts.

    Args and result are those of `merge_snapshot`; rows that another one overrules are not refused.
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
        old = state.selectExpr(f"{_struct([value_name(i) for i in columns.data])} AS o")
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
