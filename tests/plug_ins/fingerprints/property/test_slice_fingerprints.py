"""Fingerprints of slices against what plain Python counts, and against themselves under other settings."""

import hashlib
import math
import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_fingerprints import column_tallies, counted_texts
from odf_fingerprints.counted_values import CountedValues
from odf_fingerprints.documents import ENTROPY_UNIT, PROBABILITIES, RowsFingerprint, SliceFingerprint
from odf_fingerprints.histograms import MAX_BITS, MIN_FLOOR, Histogram, bin_of
from odf_fingerprints.number_bins import histogram_of
from odf_fingerprints.summaries import summarise_slice
from odf_protocol.vocabulary import Vocabulary

SYSTEM_TIME_MS = 1_600_000_000_000
FLOATS = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, math.nan, math.inf, 1.5, 270.0, 271.0]))
TEXTS = st.one_of(st.text(max_size=5), st.sampled_from(["Oslo", "AB-12", "ab 3", "é", "x" * 200]))
ROW = st.fixed_dictionaries(
    {
        "op": st.integers(0, 3),
        "event_time": st.datetimes(datetime(1969, 1, 1), datetime(2031, 1, 1)),  # noqa: DTZ001
        "whole": st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5),
        "number": st.none() | FLOATS,
        "text": st.none() | TEXTS,
        "flag": st.none() | st.booleans(),
        "day": st.none() | st.dates(date(1960, 1, 1), date(2040, 1, 1)),
    }
)
SCHEMA = pa.schema(
    {
        "offset": pa.int64(),
        "op": pa.int32(),
        "system_time": pa.timestamp("ms", "UTC"),
        "event_time": pa.timestamp("ms", "UTC"),
        "whole": pa.int64(),
        "number": pa.float64(),
        "text": pa.string(),
        "flag": pa.bool_(),
        "day": pa.date32(),
    }
)


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    whole = [
        {
            **row,
            "offset": place,
            "system_time": SYSTEM_TIME_MS,
            "event_time": int(row["event_time"].replace(tzinfo=UTC).timestamp() * 1000 // 1),
        }
        for place, row in enumerate(rows)
    ]
    return pa.Table.from_pylist(whole, SCHEMA)


def describe(table: pa.Table, path: Path, **options: Any) -> SliceFingerprint:
    pq.write_table(table, path, **options)
    return summarise_slice(path, Vocabulary(), system_time_ms=SYSTEM_TIME_MS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slices")


@settings(deadline=None)
@given(rows=st.lists(ROW, max_size=60), seed=st.integers(0, 2**32 - 1), group=st.integers(1, 7))
def test_fingerprint_is_the_same_in_any_order_and_layout(
    folder: Path, rows: list[dict[str, Any]], seed: int, group: int
) -> None:
    """FP-4."""
    table = table_of(rows)
    first = describe(table, folder / "one.parquet")
    order = np.random.default_rng(seed).permutation(len(rows))
    shuffled = table.take(pa.array(order, pa.int64()))
    other = describe(shuffled, folder / "other.parquet", row_group_size=group, use_dictionary=False)
    assert msgspec.json.encode(first, order="sorted") == msgspec.json.encode(other, order="sorted")


def values_of(rows: list[dict[str, Any]], name: str, taken: set[int]) -> list[Any]:
    return [row[name] for row in rows if row["op"] in taken]


def key_of(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def entropy(values: list[Any]) -> float:
    counts = Counter(map(key_of, values)).values()
    total = sum(counts)
    return -sum(count / total * math.log2(count / total) for count in counts)


def check_side(found: RowsFingerprint, rows: list[dict[str, Any]], operations: set[int], *, is_added: bool) -> None:
    count = sum(row["op"] in operations for row in rows)
    assert found.rows == count
    for column in found.columns:
        values = values_of(rows, column.name, operations)
        there = [value for value in values if value is not None]
        assert (column.values, column.nulls) == (len(there), len(values) - len(there))
        if is_added:
            assert column.distinct == len({key_of(value) for value in there})
            assert column.entropy is not None
            assert column.entropy * ENTROPY_UNIT == pytest.approx(entropy(there) if there else 0, abs=2 * ENTROPY_UNIT)
        if column.kind == "number":
            finite = sorted(float(value) for value in there if math.isfinite(value))
            assert column.not_finite == len(there) - len(finite)
            assert column.histogram.total == len(finite)
            if is_added and finite:
                assert (column.minimum, column.maximum) == (finite[0], finite[-1])
                for text, probability in zip(column.quantiles, PROBABILITIES, strict=True):
                    rank = -(-round(probability * 1000) * len(finite) // 1000)
                    assert float(text) == finite[rank - 1]
        if column.name == "event_time":
            days = Counter((value.replace(tzinfo=UTC).timestamp() * 1000) // 86_400_000 for value in there)
            assert dict(found.day_counts.counts) == days


@settings(deadline=None)
@given(rows=st.lists(ROW, max_size=60))
def test_figures_are_those_of_the_rows(folder: Path, rows: list[dict[str, Any]]) -> None:
    """FP-1, FP-8."""
    found = describe(table_of(rows), folder / "figures.parquet")
    assert found.operations == tuple(sum(row["op"] == each for row in rows) for each in range(4))
    check_side(found.added, rows, {0, 3}, is_added=True)
    check_side(found.removed, rows, {1, 2}, is_added=False)


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-9, 9).map(float)), max_size=300)
)
def test_histogram_of_many_numbers_is_that_of_each(values: list[float]) -> None:
    """FP-6, FP-7."""
    counts = Counter(bin_of(value, MAX_BITS, MIN_FLOOR) for value in values)
    one_by_one = Histogram(MAX_BITS, MIN_FLOOR, tuple(sorted(counts.items()))).bounded()
    numbers, times = np.unique(np.array(values, np.float64) + 0.0, return_counts=True)
    assert histogram_of(CountedValues(numbers, times.astype(np.int64))) == one_by_one


@settings(deadline=None, max_examples=10)
@given(rows=st.lists(ROW, min_size=9, max_size=40))
def test_slice_of_more_rows_than_are_sorted_at_once_has_what_joins(folder: Path, rows: list[dict[str, Any]]) -> None:
    """FP-8: counts stay exact, quantiles and distinct values are left out, and sketches join to the same."""
    for row in rows:
        row["op"] = 0
    whole = describe(table_of(rows), folder / "whole.parquet").added
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_tallies, "MAX_EXACT_ROWS", 3)
        patch.setattr(counted_texts, "MAX_EXACT_TEXTS", 0)
        parts = describe(table_of(rows), folder / "parts.parquet").added
    assert parts.day_counts == whole.day_counts
    for one, other in zip(whole.columns, parts.columns, strict=True):
        assert (one.values, one.nulls, one.not_finite) == (other.values, other.nulls, other.not_finite)
        assert (one.sketch, one.min, one.max) == (other.sketch, other.min, other.max)
        assert one.histogram.total == other.histogram.total
        if one.values > 3:
            assert other.distinct is None
            assert not other.quantiles


DESCRIBE = """
import hashlib, sys, msgspec
from pathlib import Path
from odf_fingerprints.summaries import summarise_slice
from odf_protocol.vocabulary import Vocabulary
found = summarise_slice(Path(sys.argv[1]), Vocabulary(), system_time_ms=1_600_000_000_000)
print(hashlib.sha256(msgspec.json.encode(found, order="sorted")).hexdigest())
"""


def test_fingerprint_has_the_same_bytes_under_other_settings_of_the_machine(folder: Path) -> None:
    """FP-4: cores, time zone, locale, hash seed, allocator."""
    random, count = np.random.default_rng(5), 150_000
    table = pa.table(
        {
            "offset": np.arange(count),
            "op": pa.array(np.zeros(count), pa.int32()),
            "system_time": pa.array(np.full(count, SYSTEM_TIME_MS), SCHEMA.field("system_time").type),
            "event_time": pa.array(random.integers(0, SYSTEM_TIME_MS, count), SCHEMA.field("event_time").type),
            "number": random.normal(size=count),
            "text": pa.array([f"İ{each % 5_000} ß" for each in range(count)]),
        }
    )
    path = folder / "settings.parquet"
    pq.write_table(table, path)
    found = msgspec.json.encode(summarise_slice(path, Vocabulary(), system_time_ms=SYSTEM_TIME_MS), order="sorted")
    machines = [
        {"TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "1"},
        {
            "TZ": "America/St_Johns",
            "LC_ALL": "C",
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "NPY_DISABLE_CPU_FEATURES": "",
        },
    ]
    for machine in machines:
        command = ["taskset", "-c", "0", sys.executable, "-c", DESCRIBE, str(path)]
        done = subprocess.run(
            command, env=os.environ | machine, capture_output=True, text=True, check=True, timeout=120
        )
        assert done.stdout.strip() == hashlib.sha256(found).hexdigest()
