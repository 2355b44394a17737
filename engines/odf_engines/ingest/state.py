"""The projected state: what a merge must know of history, so that it need not read it.

For snapshots and upserts it holds, per primary key, the current row (all columns but offset, operation and system
time), of several the one that was given last; for ledgers, every key that ever occurred. It is one Parquet file, sorted
by key, in carrier types, and says in its metadata what it belongs to. Losing it costs time only: `rebuild_state` makes
it from the slices.

Source: ODF "project" of a changelog; spec/ingest.md ING-12; QUERY-3 in ``spec/query.md``.
"""

import json
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.errors import EngineFailureError
from odf_engines.ingest.columns import APPEND, CORRECT_TO, Columns
from odf_engines.ingest.slice_writer import fill_event_time, iter_groups, plain_column
from odf_engines.records.carriers import (
    carrier_of,
    from_carrier,
    one_array,
    slice_field_of,
    to_carrier,
)
from odf_engines.records.source_records import ROW_GROUP_ROWS, value_name
from odf_engines.strategies.contract import Keeps
from odf_engines.strategies.registry import strategy_of
from odf_protocol.events import MergeStrategy
from odf_protocol.row_fingerprints import FINGERPRINT, RowFingerprints
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

_MARKS = b"odf.state"
_VERSION = 1
_KEY_BYTES = 32
_HIGH, _LOW, _COUNT, _GIVEN, _PLACE = "\0high", "\0low", "\0count", "\0given", "\0place"
"""Columns beside those of the dataset, none of which is called so."""


def fits_state(path: Path, merge: MergeStrategy, next_offset: int, columns: Sequence[pa.Field]) -> bool:
    """Say whether a state file is the one that `merge` needs for the row of offset `next_offset`.

    Args:
        path: The file.
        merge: Strategy.
        next_offset: Of the row.
        columns: Of the dataset as its schema is now, without system columns: it may have gained some (SCHEMA-5).
    """
    if not _is_marked(path, merge, next_offset):
        return False
    keys = getattr(merge, "primary_key", ()) if _holds_keys(merge) else None
    wanted = [field for field in columns if keys is None or field.name in keys]
    found = {field.name: field.type for field in pq.read_schema(path)}
    return all(found.get(field.name) == carrier_of(slice_field_of(field).type) for field in wanted)


def _is_marked(path: Path, merge: MergeStrategy, next_offset: int) -> bool:
    raw = (pq.read_schema(path).metadata or {}).get(_MARKS)
    return raw is not None and json.loads(raw) == _marks_of(merge, next_offset)


def count_state_rows(path: Path) -> int:
    """Count the rows of a state file: of a snapshot the current rows, whatever its marks say."""
    return int(pq.read_metadata(path).num_rows)


def open_state(path: Path, merge: MergeStrategy, names: Sequence[str], next_offset: int) -> pa.Schema:
    """Return the columns of a state file that is to be merged with.

    Raises:
        EngineFailureError: It belongs to another strategy, key or offset, or lacks one of the columns `names`.
    """
    if not _is_marked(path, merge, next_offset):
        raise EngineFailureError(
            f"the projected state is not the one of {_describe(_marks_of(merge, next_offset))};"
            " rebuild it from the slices"
        )
    known = pq.read_schema(path)
    if missing := sorted(set(names) - set(known.names)):
        raise EngineFailureError(f"the projected state lacks the columns {', '.join(missing)}")
    return known


def state_indexes(merge: MergeStrategy, columns: Columns) -> tuple[int, ...]:
    """Say which columns the state of a strategy holds: for a ledger the key, otherwise whole rows."""
    return columns.keys if _holds_keys(merge) else columns.data


def write_state(
    rows: Iterable[pa.RecordBatch],
    target: Path,
    merge: MergeStrategy,
    columns: Columns,
    *,
    fallback_event_time: Timestamp,
    next_offset: int,
) -> None:
    """Write a new state to one file.

    Args:
        rows: Value columns of ``state_indexes``, sorted.
        target: File to write.
        merge: Strategy it is for.
        columns: Of the rows that were merged.
        fallback_event_time: For rows that have no event time.
        next_offset: Of the row that comes after those the state knows.
    """
    indexes = state_indexes(merge, columns)
    fields = [columns.schema.field(i) for i in indexes]
    schema = _state_schema(fields, merge, next_offset)
    with _open(target, schema) as writer:
        for table in iter_groups(rows):
            arrays = []
            for index, field in zip(indexes, fields, strict=True):
                value = plain_column(table, value_name(index), carrier_of(field.type))
                arrays.append(
                    fill_event_time(value, field.type, fallback_event_time) if index == columns.event_time else value
                )
            writer.write_table(pa.table(arrays, schema=schema), row_group_size=ROW_GROUP_ROWS)


def rebuild_state(slices: Sequence[Path], merge: MergeStrategy, vocabulary: Vocabulary, target: Path) -> None:
    """Make the state from all slices of a dataset; needs memory for the current rows and one slice, and no Spark.

    Args:
        slices: All data slices, oldest first.
        merge: Strategy it is for; it has a primary key.
        vocabulary: Names of the system columns.
        target: File to write.

    Raises:
        EngineFailureError: There are no slices.
    """
    if not slices:
        raise EngineFailureError("there is no slice to rebuild a projected state from")
    keys = list(merge.primary_key)  # type: ignore[union-attr]
    holds_keys = _holds_keys(merge)
    system = (vocabulary.offset, vocabulary.op, vocabulary.system_time)
    found = pq.read_schema(slices[0])
    names = keys if holds_keys else [name for name in found.names if name not in system]
    fields = [slice_field_of(found.field(name)) for name in names]
    hashes = RowFingerprints(secrets.token_bytes(_KEY_BYTES))
    state: pa.Table | None = None
    next_offset = 0
    for path in slices:
        rows = pq.read_table(path, columns=[*names, vocabulary.op, vocabulary.offset])
        next_offset = pc.max(rows.column(vocabulary.offset)).as_py() + 1
        plain = pa.table(
            [from_carrier(one_array(rows.column(f.name)), f.type) for f in fields], schema=pa.schema(fields)
        )
        marked = _mark(plain, rows.column(vocabulary.op), rows.column(vocabulary.offset), hashes)
        state = _fold(marked if state is None else pa.concat_tables([state, marked]), counts=not holds_keys)
    assert state is not None
    # A null never equals a key of a ledger, so it need not be remembered.
    state = state.select(range(len(fields))).drop_null() if holds_keys else _last_given(state, hashes, keys)
    # By number: Arrow takes a name that begins with a dot or bracket for a path.
    numbered = state.rename_columns([str(place) for place in range(len(names))])
    state = numbered.sort_by([(str(names.index(key)), "ascending") for key in keys]).rename_columns(names)
    schema = _state_schema(fields, merge, next_offset)
    with _open(target, schema) as writer:
        arrays = [to_carrier(one_array(state.column(field.name)), field.type) for field in fields]
        writer.write_table(pa.table(arrays, schema=schema), row_group_size=ROW_GROUP_ROWS)


def _mark(rows: pa.Table, operations: pa.ChunkedArray, offsets: pa.ChunkedArray, hashes: RowFingerprints) -> pa.Table:
    """Say of each row which rows equal it, how often it is there by its operation, and when it was given."""
    gives = pc.is_in(operations.cast(pa.int64()), pa.array((APPEND, CORRECT_TO), pa.int64()))
    table = _with_fingerprints(rows, hashes, rows.column_names)
    table = table.append_column(_COUNT, pc.if_else(gives, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64())))
    return table.append_column(_GIVEN, pc.if_else(gives, offsets.cast(pa.int64()), pa.scalar(-1, pa.int64())))


def _fold(rows: pa.Table, *, counts: bool) -> pa.Table:
    """Let equal rows be one, the one that was given last, there as often as all together.

    With ``counts`` rows that are not there are left out; those that were taken more often than given are kept, as a
    later block may give them.
    """
    at = rows.append_column(_PLACE, pa.array(np.arange(rows.num_rows), pa.int64()))
    groups = at.group_by([_HIGH, _LOW]).aggregate([(_COUNT, "sum"), (_GIVEN, "max"), (_PLACE, "max")])
    if counts:
        groups = groups.filter(pc.not_equal(groups.column(f"{_COUNT}_sum"), 0))
    last = groups.sort_by(f"{_PLACE}_max")
    folded = rows.take(last.column(f"{_PLACE}_max"))
    for name, found in ((_COUNT, "sum"), (_GIVEN, "max")):
        place = folded.schema.get_field_index(name)
        folded = folded.set_column(place, name, last.column(f"{name}_{found}"))
    return folded


def _last_given(folded: pa.Table, hashes: RowFingerprints, keys: list[str]) -> pa.Table:
    """Take of the rows that are there, per key, the one that was given last."""
    own = [_HIGH, _LOW, _COUNT, _GIVEN]
    there = folded.filter(pc.greater(folded.column(_COUNT), 0)).sort_by(_GIVEN)
    marked = _with_fingerprints(there.drop_columns(own), hashes, keys)
    marked = marked.append_column(_PLACE, pa.array(np.arange(there.num_rows), pa.int64()))
    last = marked.group_by([_HIGH, _LOW]).aggregate([(_PLACE, "max")]).column(f"{_PLACE}_max")
    return there.drop_columns(own).take(last)


def _with_fingerprints(rows: pa.Table, hashes: RowFingerprints, names: list[str]) -> pa.Table:
    """Add columns by which rows are equal as SQL groups them, in some of their columns."""
    batches = rows.select(names).to_batches()
    found = np.concatenate([np.empty(0, FINGERPRINT), *(hashes.of(batch, ()) for batch in batches)])
    high, low = (pa.array(np.ascontiguousarray(found[each]), pa.uint64()) for each in ("high", "low"))
    return rows.append_column(_HIGH, high).append_column(_LOW, low)


def _state_schema(fields: Sequence[pa.Field], merge: MergeStrategy, next_offset: int) -> pa.Schema:
    marks = json.dumps(_marks_of(merge, next_offset), sort_keys=True)
    return pa.schema([pa.field(field.name, carrier_of(field.type)) for field in fields], {_MARKS: marks})


def _open(target: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(target, schema, version="2.6", compression="zstd", store_schema=True)


def _marks_of(merge: MergeStrategy, next_offset: int) -> dict[str, Any]:
    holds = "keys" if _holds_keys(merge) else "rows"
    key = list(getattr(merge, "primary_key", ()))
    return {"version": _VERSION, "holds": holds, "primary_key": key, "next_offset": next_offset}


def _holds_keys(merge: MergeStrategy) -> bool:
    return strategy_of(merge).keeps is Keeps.KEYS


def _describe(marks: dict[str, Any]) -> str:
    return f"{marks['holds']} by {', '.join(marks['primary_key'])} before offset {marks['next_offset']}"
