"""From when on rows before a step count for its sessions (WINDOW-11)."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import Lookback
from odf_engines.reading.event_times import read_times_beside
from odf_node.derive.earlier_rows import MAX_ROWS, EarlierRows, InputRows, find_open_since
from odf_protocol.events import DataSlice, OffsetInterval
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.times_in_files import read_event_times

Row = tuple[int, int | None, str]  # event time in ms, and what tells rows apart
BESIDE = ("k", "s")


class Slices:
    """Slices of an input, and how many of them were read."""

    def __init__(self, folder: Path, slices: Sequence[Sequence[Row]]) -> None:
        self.paths = {}
        self.read = 0
        folder.mkdir(exist_ok=True)
        for number, rows in enumerate(slices):
            name = Multihash.of_sha3_256(f"{folder} {number}".encode())
            self.paths[name] = folder / f"{number}.parquet"
            times, keys, texts = zip(*rows, strict=True)
            columns = {
                "t": pa.array(times).cast(pa.timestamp("ms", "UTC")),
                "k": pa.array(keys, pa.int32()),
                "s": texts,
            }
            pq.write_table(pa.table(columns), self.paths[name])
        self.slices = [
            DataSlice(logical_hash=name, physical_hash=name, offset_interval=OffsetInterval(start=n, end=n), size=1)
            for n, name in enumerate(self.paths)
        ]

    def rows(self) -> InputRows:
        def read(slices: Sequence[DataSlice], beside: Sequence[str]) -> list[pa.Table | None]:
            self.read += len(slices)
            return [read_times_beside(self.paths[each.physical_hash], "t", beside) for each in slices]

        times = {each.physical_hash: read_event_times(self.paths[each.physical_hash], "t") for each in self.slices}
        return InputRows(self.slices, (), (), lambda slices: [times[each.physical_hash] for each in slices], read, read)


def first_of_open(rows: Sequence[Row], since: int, gap: int) -> int:
    """What the clause says, one row after the other."""
    alike: dict[tuple[int | None, str], list[int]] = defaultdict(list)
    for time, key, text in rows:
        alike[key, text].append(time)
    firsts = [since]
    for times in alike.values():
        session: list[int] = []
        for time in sorted(times, reverse=True):
            if time >= since or (session and session[-1] - time <= gap):
                session.append(time)
        firsts += session
    return min(firsts)


@pytest.mark.parametrize("seed", range(60))
def test_rows_count_from_the_first_row_of_the_oldest_open_session(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    gap, since = random.choice([1, 3, 10]), random.randrange(60, 130)
    slices = [
        [
            (hour * 10 + random.randrange(-10, 20), random.choice([None, 1, 2]), random.choice("xy"))
            for _ in range(random.randrange(1, 4))
        ]
        for hour in range(12)
    ]
    found = find_open_since(since * 1000, gap * 1000, [Slices(tmp_path, slices).rows()], BESIDE)
    assert found == 1000 * first_of_open([row for rows in slices for row in rows], since, gap)


def test_slices_before_open_sessions_are_not_read(tmp_path: Path) -> None:
    """Two keys in turn, so that there is no time without rows."""
    slices = Slices(tmp_path, [[(10 * number, number // 10 % 2, "x")] for number in range(200)])
    assert find_open_since(1_990_000, 12_000, [slices.rows()], ("k",)) == 1_900_000
    assert slices.read < 60
    assert find_open_since(1_990_000, 12_000, [slices.rows()], ()) == 0


def test_long_session_is_read_a_few_times_and_not_once_for_each_row(tmp_path: Path) -> None:
    slices = Slices(tmp_path, [[(10 * number, 1, "x")] for number in range(200)])
    assert find_open_since(1_990_000, 12_000, [slices.rows()], ("k",)) == 0
    assert slices.read < 3 * 200


def test_rows_of_several_inputs_follow_one_another(tmp_path: Path) -> None:
    inputs = [
        Slices(tmp_path / "a", [[(0, 1, "x")], [(10, 1, "x")], [(30, 1, "x")]]).rows(),
        Slices(tmp_path / "b", [[(20, 2, "y")]]).rows(),
    ]
    assert find_open_since(30_000, 10_000, inputs, ()) == 0
    assert find_open_since(30_000, 10_000, inputs[:1], ()) == 30_000


def test_rows_that_are_too_many_at_once_are_not_looked_at(tmp_path: Path) -> None:
    """A publisher chooses how many rows a session has; every node gives up at as many (WINDOW-11)."""
    slices = Slices(tmp_path, [[(0, 1, "x")], [(10, 1, "x")], [(1000, 1, "x")]])
    many = OffsetInterval(start=0, end=MAX_ROWS - 1)
    slices.slices[0] = replace(slices.slices[0], offset_interval=many)
    assert find_open_since(1_000_000, 5_000, [slices.rows()], ("k",)) == 1_000_000
    slices.read = 0
    assert find_open_since(10_000, 10_000, [slices.rows()], ("k",)) is None
    assert slices.read == 2  # those that are not many


def test_long_texts_are_told_apart_from_all_others(tmp_path: Path) -> None:
    long, other = "a" * 65, "a" * 64 + "b"
    stand_in = read_texts(tmp_path, [long])[0]
    texts = ["a" * 64, long, other, long, None, stand_in, stand_in[:-1], "é" * 65]
    found = read_texts(tmp_path, texts)
    assert [found.index(each) for each in found] == [0, 1, 2, 1, 4, 5, 6, 7]
    assert max(len((each or "").encode()) for each in found) == 65


def read_texts(folder: Path, texts: list[str | None]) -> list[str | None]:
    times = pa.array(range(len(texts)), pa.int64()).cast(pa.timestamp("us"))
    pq.write_table(pa.table({"t": times, "k": texts}), folder / "texts.parquet")
    found = read_times_beside(folder / "texts.parquet", "t", ("k",))
    assert found is not None
    known: list[str | None] = found.column("0").to_pylist()
    return known


def test_columns_that_texts_do_not_tell_apart_are_as_if_they_were_alike(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    columns = {
        "t": pa.array([1, 2], pa.timestamp("us")),
        "k": [b"a", b"b"],
        "d": [date(2020, 1, 1)] * 2,
        "n": [7, None],
    }
    pq.write_table(pa.table(columns), path)
    read = read_times_beside(path, "t", ("k", "d", "n", "absent"))
    assert read is not None
    assert read.to_pydict() == {"1": ["2020-01-01"] * 2, "2": ["7", None], "3": [None, None], "time": [1, 2]}
    assert read_times_beside(path, "absent", ("k",)) is None
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("ns"))}), path)
    assert read_times_beside(path, "t", ()) is None


_NAN, _OTHER_NAN = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)


@pytest.mark.parametrize(
    ("values", "alike"),
    [
        (pa.array([0.0, -0.0, _NAN, _OTHER_NAN, 5e-324, None, -math.inf, None]), [0, 0, 2, 2, 4, 5, 6, 5]),
        (pa.array([0.1, -0.0, 0.0, _NAN, math.nan, 0.1], pa.float32()), [0, 1, 1, 3, 3, 0]),
        (pa.array([Decimal("1E-9"), Decimal("1.10"), Decimal("1.1"), None], pa.decimal128(38, 9)), [0, 1, 1, 3]),
        (pa.array([Decimal(10**37), Decimal(10**37 + 1), Decimal(10**37)], pa.decimal128(38, 0)), [0, 1, 0]),
        (pa.array([1, 2, 1, None], pa.timestamp("ms", "UTC")), [0, 1, 0, 3]),
        (pa.array([1000, 2000, -1000], pa.timestamp("ns")), [0, 1, 2]),
    ],
)
def test_values_that_sql_takes_for_equal_are_equal_texts(tmp_path: Path, values: pa.Array, alike: list[int]) -> None:
    path, times = tmp_path / "rows.parquet", pa.array(range(len(values)), pa.int64()).cast(pa.timestamp("us"))
    pq.write_table(pa.table({"t": times, "k": values}), path)
    found = read_times_beside(path, "t", ("k",))
    assert found is not None
    texts = found.column("0").to_pylist()
    assert [texts.index(each) for each in texts] == alike


def test_key_that_is_finer_than_a_microsecond_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("us")), "k": pa.array([1001], pa.timestamp("ns"))}), path)
    assert read_times_beside(path, "t", ("k",)) is None


def test_slices_of_closed_sessions_are_left_out(tmp_path: Path) -> None:
    rows = Slices(tmp_path, [[(0, 1, "x")], [(50, 1, "x")], [(70, 2, "x")], [(60, 1, "x"), (95, 2, "x")]]).rows()
    lookback = Lookback(waits_for={"o": 0}, behind_us=20_000, follows_us=20_000, alike=("k",))
    choice = EarlierRows({"o": lookback}, {"o": Timestamp.from_unix_ms(100)}, {"o": rows})
    assert [each.offset_interval.start for each in choice.choose("o")] == [3]
    assert choice.get_since_us("o") == 80_000
    choice = EarlierRows({"o": lookback}, {"o": Timestamp.from_unix_ms(80)}, {"o": rows})
    assert ([each.offset_interval.start for each in choice.choose("o")], choice.get_since_us("o")) == (
        [1, 2, 3],
        50_000,
    )
    choice = EarlierRows({"o": lookback}, {"o": None}, {"o": rows})
    assert (len(choice.choose("o")), choice.get_since_us("o")) == (4, None)
