"""A state made anew is the fold of the changelog, whatever the order of rows within a slice (ING-12, QUERY-3)."""

import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_engines.ingest.state import rebuild_state
from odf_protocol.events import MergeStrategy, MergeStrategyLedger, MergeStrategyUpsertStream
from odf_protocol.vocabulary import Vocabulary

TIME = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", TIME, nullable=False),
        pa.field("event_time", TIME, nullable=False),
        pa.field("k", pa.float64()),
        pa.field("v", pa.string()),
        pa.field("items", pa.list_(pa.int64())),
    ]
)
Row = tuple[int, float | None, str | None, list[int] | None]

ROWS = st.tuples(
    st.integers(0, 3),
    st.sampled_from([None, 1.0, 2.0, 0.0, -0.0, math.nan]),
    st.sampled_from([None, "x", "y"]),
    st.sampled_from([None, [], [1]]),
)
SLICES = st.lists(st.lists(ROWS, min_size=1, max_size=8), min_size=1, max_size=4)


def key(value: float | None) -> str:
    return "0.0" if value == 0 else str(value)


def same(row: Row) -> tuple[str, str, str]:
    return key(row[1]), str(row[2]), str(row[3])


def fold(slices: list[list[Row]]) -> dict[str, tuple[str, str, str]]:
    """Say by key which current row was given last: a row is current that was given more often than taken."""
    counts: Counter[tuple[str, str, str]] = Counter()
    given_at: dict[tuple[str, str, str], int] = {}
    for place, row in enumerate(row for rows in slices for row in rows):
        counts[same(row)] += 1 if row[0] in {0, 3} else -1
        if row[0] in {0, 3}:
            given_at[same(row)] = place
    current = [row for row, count in counts.items() if count > 0]
    return {row[0]: row for row in sorted(current, key=given_at.__getitem__)}


def rebuild(slices: list[list[Row]], merge: MergeStrategy) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        paths, offset = [], 0
        for number, rows in enumerate(slices):
            paths.append(Path(folder, f"{number}.parquet"))
            found = [
                {"offset": offset + place, "op": op, "system_time": 0, "event_time": 0, "k": k, "v": v, "items": items}
                for place, (op, k, v, items) in enumerate(rows)
            ]
            offset += len(rows)
            pq.write_table(pa.Table.from_pylist(found, SCHEMA), paths[-1])
        rebuild_state(paths, merge, Vocabulary(), target := Path(folder, "state.parquet"))
        return pq.read_table(target).to_pylist()


@settings(derandomize=True, max_examples=200, deadline=None)
@given(slices=SLICES)
def test_state_has_the_current_row_of_each_key(slices: list[list[Row]]) -> None:
    found = rebuild(slices, MergeStrategyUpsertStream(primary_key=("k",)))

    assert len(found) == len({key(each["k"]) for each in found})
    assert {key(r["k"]): same((0, r["k"], r["v"], r["items"])) for r in found} == fold(slices)


@settings(derandomize=True, max_examples=50, deadline=None)
@given(slices=SLICES)
def test_state_of_a_ledger_has_each_key_that_ever_occurred_once(slices: list[list[Row]]) -> None:
    found = rebuild(slices, MergeStrategyLedger(primary_key=("k",)))

    keys = {key(row[1]) for rows in slices for row in rows if row[1] is not None}
    assert sorted(key(each["k"]) for each in found) == sorted(keys)


def test_key_of_any_name_is_a_key(tmp_path: Path) -> None:
    for name in (".k", "[0]", "../k", 'k"'):
        table = pa.table({"offset": [0, 1], "op": [0, 0], "system_time": [0, 0], "event_time": [0, 0], name: [2, 1]})
        pq.write_table(table, path := tmp_path / "slice.parquet")

        rebuild_state(
            [path], MergeStrategyUpsertStream(primary_key=(name,)), Vocabulary(), target := tmp_path / "state"
        )

        assert pq.read_table(target).column(name).to_pylist() == [1, 2]
