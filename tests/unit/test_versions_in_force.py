"""Which slices of a temporal table before a step are handed to an engine (ASOF-11)."""

import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import Lookback, Watermark
from odf_engines.reading.event_times import find_newest, read_times_beside
from odf_node.datasets.engine_rows import KeptTables
from odf_node.derive.earlier_rows import MAX_ROWS, EarlierRows, InputRows, find_current
from odf_node.ports.rows import EventTimes
from odf_protocol.events import DataSlice, OffsetInterval
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)
NOWHERE = Timestamp.from_unix_ms(0)


@dataclass(frozen=True)
class Row:
    """A change of a version: its operation, event time in ms, key and value."""

    op: int
    time: int
    key: int | None
    value: int = 0


@dataclass(frozen=True)
class Block:
    """Rows of a table, and the watermark that it states."""

    rows: Sequence[Row]
    mark: int | None = None


def table_of(folder: Path, before: Sequence[Block], new: Sequence[Block] = ()) -> InputRows:
    """A temporal table whose first blocks are before a step."""
    slices: list[DataSlice] = []
    paths, marks, offset = {}, [], 0
    folder.mkdir(exist_ok=True)
    for number, block in enumerate((*before, *new)):
        if block.rows:
            name = Multihash.of_sha3_256(f"{folder} {number}".encode())
            interval = OffsetInterval(start=offset, end=offset + len(block.rows) - 1)
            slices.append(DataSlice(logical_hash=name, physical_hash=name, offset_interval=interval, size=1))
            offset += len(block.rows)
            paths[name] = folder / f"{number}.parquet"
            columns = {
                "op": pa.array([each.op for each in block.rows], pa.int32()),
                "t": pa.array([each.time for each in block.rows]).cast(pa.timestamp("ms", "UTC")),
                "k": pa.array([each.key for each in block.rows], pa.int64()),
                "v": [float(each.value) * (-1 if number % 2 else 1) for each in block.rows],
                "b": [b"" for _ in block.rows],
            }
            pq.write_table(pa.table(columns), paths[name])
        if block.mark is not None and number < len(before):
            instant = Timestamp.from_unix_ms(block.mark)
            marks.append(Watermark(system_time=NOWHERE, event_time=instant, last_offset=offset - 1 if offset else None))

    def read(slices: Sequence[DataSlice], beside: Sequence[str]) -> list[pa.Table | None]:
        return [read_times_beside(paths[each.physical_hash], "t", beside) for each in slices]

    def read_newest(slices: Sequence[DataSlice], key: Sequence[str]) -> list[pa.Table | None]:
        found = read(slices, (*key, "op"))
        return [None if each is None or each.num_columns < len(key) + 2 else find_newest(each) for each in found]

    count = sum(1 for each in before if each.rows)
    return InputRows(slices[:count], slices[count:], marks, lambda each: [None for _ in each], read, read_newest)


def kept(table: InputRows, asked: int, key: Sequence[str] = ("k",)) -> list[int]:
    """Places of the slices that are handed over."""
    return [table.earlier.index(each) for each in find_current(asked * 1000, table, key)]


def version_at(blocks: Sequence[Block], left: Sequence[bool], time: int, key: int | None) -> Row | None:
    """What ASOF-2, 4, 5 and 6 say is in force, of the blocks that are left."""
    counts: Counter[Row] = Counter()
    given_last: dict[Row, int] = {}
    known = -1
    for number, block in enumerate(blocks):
        for place, each in enumerate(block.rows if left[number] else ()):
            content = Row(0, each.time, each.key, each.value)
            if known < time and each.key == key and each.time <= time:
                counts[content] += 1 if each.op in (APPEND, CORRECT_TO) else -1
                if each.op in (APPEND, CORRECT_TO):
                    given_last[content] = number * 100 + place
        known = max(known, -1 if block.mark is None else block.mark)
    live = [each for each, count in counts.items() if count > 0]
    return max(live, key=lambda each: (each.time, given_last[each]), default=None)


@pytest.mark.parametrize("seed", range(40))
def test_versions_that_are_asked_for_are_those_of_all_slices(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    live: list[Row] = []
    blocks = []
    for hour in range(14):
        rows = []
        for _ in range(random.randrange(1, 4)):
            kind, row = (
                random.randrange(6),
                Row(APPEND, hour * 10 + random.randrange(-25, 15), random.choice([None, 1, 2])),
            )
            if kind == 0 and live:
                rows.append(Row(RETRACT, *vars_of(live.pop(random.randrange(len(live))))))
            elif kind == 1 and live:
                old = live.pop(random.randrange(len(live)))
                live.append(Row(APPEND, old.time + random.choice([0, 0, 5]), old.key, old.value + 1))
                rows += [Row(CORRECT_FROM, *vars_of(old)), Row(CORRECT_TO, *vars_of(live[-1]))]
            else:
                live.append(row)
                rows.append(row)
        blocks.append(Block(rows, random.choice([None, hour * 10, hour * 10 - 15])))
    asked, count = random.randrange(20, 120), 12
    found = kept(table_of(tmp_path, blocks[:count], blocks[count:]), asked)
    left = [number in found or number >= count for number in range(len(blocks))]
    reported_times = {time for block in blocks for time in (block.mark or 0, *(each.time for each in block.rows))}
    for time in {asked, *(each + more for each in reported_times for more in (0, 1) if each >= asked)}:
        for key in (None, 1, 2):
            reported = f"time {time}, key {key}, asked {asked}, slices {found}: {blocks}"
            assert version_at(blocks, left, time, key) == version_at(blocks, [True] * len(blocks), time, key), reported


def vars_of(row: Row) -> tuple[int, int | None, int]:
    return row.time, row.key, row.value


def given(time: int, key: int, mark: int | None = None) -> Block:
    return Block([Row(APPEND, time, key)], time if mark is None else mark)


def test_slices_with_superseded_versions_are_left_out(tmp_path: Path) -> None:
    blocks = [given(10 * number, number % 3) for number in range(1, 100)]
    assert kept(table_of(tmp_path, blocks), 990) == [96, 97, 98]
    assert kept(table_of(tmp_path, [given(1, 7), *blocks]), 990) == [0, 97, 98, 99]  # in force since long ago


def test_slices_after_the_time_that_is_asked_are_kept(tmp_path: Path) -> None:
    blocks = [given(10 * number, number % 3) for number in range(1, 10)]
    assert kept(table_of(tmp_path, blocks), 65) == [3, 4, 5, 6, 7, 8]


def test_version_that_was_taken_supersedes_none(tmp_path: Path) -> None:
    blocks = [given(10, 1), given(20, 1), given(30, 1)]
    assert kept(table_of(tmp_path, [*blocks, Block([Row(RETRACT, 30, 1)])]), 40) == [1, 2, 3]
    assert kept(table_of(tmp_path, blocks, [Block([Row(RETRACT, 30, 1)])]), 40) == [1, 2]  # by the step itself


def test_late_version_supersedes_none(tmp_path: Path) -> None:
    """It does not count for the times up to the watermark that was known before it (ASOF-6)."""
    assert kept(table_of(tmp_path, [given(10, 1, 25), given(20, 1, 26)]), 25) == [0, 1]
    assert kept(table_of(tmp_path, [given(10, 1, 19), given(20, 1, 26)]), 25) == [1]


def test_slice_that_the_bound_of_a_step_cuts_supersedes_none(tmp_path: Path) -> None:
    table = table_of(tmp_path, [given(10, 1), given(20, 1), given(30, 1)])
    assert kept(table, 40) == [2]
    assert kept(replace(table, new=table.earlier[2:]), 40) == [1, 2]


def test_all_slices_are_kept_where_keys_are_not_told_apart_by_texts(tmp_path: Path) -> None:
    blocks = [given(10, 1), given(20, 1)]
    assert kept(table_of(tmp_path, blocks), 30, ("k", "b")) == [0, 1]
    assert kept(table_of(tmp_path, blocks), 30, ("k", "v")) == [1]  # zeros of either sign are one key, as to SQL
    assert kept(table_of(tmp_path, blocks), 30) == [1]


def test_old_row_among_the_new_ones_asks_for_old_versions(tmp_path: Path) -> None:
    versions = table_of(tmp_path, [given(10 * number, 1) for number in range(1, 10)])
    lookback = Lookback(waits_for={"v": 0}, behind_us=0, newest_by=("k",), asked_by=("o",))
    reached = {"v": Timestamp.from_unix_ms(90)}

    def chosen(times: EventTimes | None) -> int:
        new = versions.earlier[:1]
        asking = InputRows((), new, (), lambda _: [times], versions.read, versions.read_newest)
        return len(EarlierRows({"v": lookback}, reached, {"v": versions, "o": asking}).choose("v"))

    assert chosen(EventTimes(95_000, 99_000)) == 1
    assert chosen(EventTimes(35_000, 99_000)) == 7
    assert chosen(None) == 9


def test_tables_used_longest_ago_are_dropped() -> None:
    tables = KeptTables(limit_bytes=40)
    for number in range(4):
        tables.keep(number, pa.table({"a": pa.array([number, number], pa.int64())}))
        tables.find(0)
    assert [tables.find(number) is not None for number in range(4)] == [True, False, False, True]
    assert tables.size_bytes == 32


def test_tables_that_threads_keep_at_once_are_counted_once() -> None:
    before = sys.getswitchinterval()
    tables, made = KeptTables(limit_bytes=64), [pa.table({"a": pa.array([n, n], pa.int64())}) for n in range(9)]

    def work(step: int) -> None:
        for number in range(2_000):
            tables.keep(number * step % 9, made[number * step % 9])
            tables.find((number + step) % 9)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, (1, 2, 4, 5)))
    finally:
        sys.setswitchinterval(before)
    left = [each for each in map(tables.find, range(9)) if each is not None]
    assert tables.size_bytes == sum(each.nbytes for each in left) == 64


def test_all_versions_are_handed_over_where_they_are_too_many_to_be_looked_at(tmp_path: Path) -> None:
    """A publisher chooses how many keys a table has; every node gives up at as many (ASOF-11)."""
    table = table_of(tmp_path, [Block([Row(APPEND, 10, 1)], 10), Block([Row(APPEND, 20, 1)], 20)])
    assert kept(table, 20) == [1]
    first, last = table.earlier
    swollen = replace(first, offset_interval=OffsetInterval(start=0, end=MAX_ROWS))
    assert kept(replace(table, earlier=[swollen, last]), 20) == [0, 1]
    # As many in several slices are looked at one after the other.
    full = [replace(each, offset_interval=OffsetInterval(start=0, end=MAX_ROWS - 1)) for each in (first, last)]
    assert kept(replace(table, earlier=full), 20) == [1]
