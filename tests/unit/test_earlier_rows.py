"""Which slices before a step are handed to an engine (WINDOW-10, ASOF-10)."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import Lookback, Watermark
from odf_node.adapters.rows_folder import RowsFolder
from odf_node.derive.earlier_rows import EarlierRows, InputRows, needed_watermarks
from odf_node.home_folder import HomeFolder
from odf_node.ports.rows import EventTimes
from odf_protocol.events import DataSlice, OffsetInterval
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.false_footers import saying_offsets_are_others
from support.times_in_files import read_event_times

HOUR_US = 3_600_000_000
WINDOW = Lookback(waits_for={"o": 0, "p": HOUR_US}, behind_us=2 * HOUR_US)
PROBES = Lookback(waits_for={"p": 0}, behind_us=0, meets_new=True)


def at(hour: float) -> Timestamp:
    return Timestamp.from_unix_ms(round(hour * 3_600_000))


def some_slice(number: int) -> DataSlice:
    name = Multihash.of_sha3_256(b"%d" % number)
    interval = OffsetInterval(start=10 * number, end=10 * number + 9)
    return DataSlice(logical_hash=name, physical_hash=name, offset_interval=interval, size=1)


def nothing(slices: Sequence[DataSlice], _columns: Sequence[str]) -> list[None]:
    return [None for _ in slices]


def choose(
    lookback: Lookback,
    reached: dict[str, float | None],
    earlier: Sequence[tuple[float, float] | None],
    new: Sequence[tuple[float, float] | None] = (),
    *,
    cut: bool = False,
) -> list[int]:
    """Numbers of the slices that are kept, of which the first and last event time are given in hours."""
    given = [some_slice(number) for number in range(len(earlier) + len(new))]
    times = dict(zip((each.physical_hash for each in given), [*earlier, *new], strict=True))

    def event_times(slices: Sequence[DataSlice]) -> list[EventTimes | None]:
        found = (times[each.physical_hash] for each in slices)
        return [None if each is None else EventTimes(*(round(hour * HOUR_US) for hour in each)) for each in found]

    marks = {name: None if mark is None else at(mark) for name, mark in reached.items()}
    before, after = given[: len(earlier)], given[len(earlier) :]
    rows = InputRows(before, [*before[-1:], *after] if cut else after, (), event_times, nothing, nothing)
    kept = EarlierRows({"o": lookback}, marks, {"o": rows}).choose("o")
    return [each.offset_interval.start // 10 for each in kept]


def test_slices_older_than_what_is_closed_and_the_size_of_a_window_are_left_out() -> None:
    times = [(0, 1), (1, 2.9), (2, 3), (3, 4)]
    assert choose(WINDOW, {"o": 5, "p": 9}, times) == [2, 3]
    assert choose(WINDOW, {"o": 9, "p": 6}, times) == [2, 3]  # its delay is an hour


def test_slice_with_one_row_that_counts_is_kept_wherever_it_stands() -> None:
    assert choose(WINDOW, {"o": 5, "p": 9}, [(0, 99), (1, 2), (3, 4)]) == [0, 2]


def test_all_slices_are_kept_while_an_input_has_stated_no_watermark() -> None:
    assert choose(WINDOW, {"o": 5, "p": None}, [(0, 1), (5, 6)]) == [0, 1]
    assert choose(WINDOW, {"o": 5}, [(0, 1), (5, 6)]) == [0, 1]


def test_slice_whose_event_times_nobody_knows_is_kept() -> None:
    assert choose(WINDOW, {"o": 5, "p": 9}, [(0, 1), None, (0, 1), (5, 6)]) == [1, 3]
    assert choose(PROBES, {"p": 5}, [(0, 1), (5, 6)], [None]) == [0, 1]


def test_probes_that_new_rows_may_be_about_are_kept() -> None:
    times = [(0, 1), (1, 2), (2, 3), (5, 6)]
    assert choose(PROBES, {"p": 5}, times, [(6, 7)]) == [3]
    assert choose(PROBES, {"p": 5}, times, [(1.5, 1.5), (6, 7)]) == [1, 3]
    assert choose(PROBES, {"p": 5}, times, [(2, 7)]) == [1, 2, 3]


def test_slice_that_the_bound_of_a_step_cuts_is_kept() -> None:
    assert choose(WINDOW, {"o": 5, "p": 9}, [(0, 1), (0, 1)], [(5, 6)], cut=True) == [1]


def test_of_watermarks_before_the_rows_that_are_kept_the_highest_is_enough() -> None:
    def mark(hour: float, last: int | None) -> Watermark:
        return Watermark(system_time=at(0), event_time=at(hour), last_offset=last)

    stated = [mark(1, None), mark(3, 9), mark(2, 19), mark(4, 29), mark(5, 39)]
    assert needed_watermarks(stated, [some_slice(2), some_slice(3)]) == (stated[1], *stated[3:])
    assert needed_watermarks(stated, [some_slice(0)]) == tuple(stated)
    assert needed_watermarks(stated, []) == (stated[4],)
    assert needed_watermarks([], []) == ()


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.timestamp("ms", "UTC"), [5, -7, 3], (-7_000, 5_000)),
        (pa.timestamp("ns", "UTC"), [1_500, -1_500], (-2, 2)),
        (pa.timestamp("s"), [2, 1], (1_000_000, 2_000_000)),
        (pa.date32(), [1, 0], (0, 86_400_000_000)),
        (pa.timestamp("ms", "UTC"), [5, None], None),
        (pa.timestamp("ms", "UTC"), [], None),
        (pa.int64(), [1], None),
    ],
)
def test_event_times_are_those_of_the_values(tmp_path: Path, kind, values, expected) -> None:
    integers = pa.array(values, pa.int32() if kind == pa.date32() else pa.int64())
    pq.write_table(pa.table({"t": integers.cast(kind)}), tmp_path / "rows.parquet", row_group_size=1)
    found = read_event_times(tmp_path / "rows.parquet", "t")
    assert found == (None if expected is None else EventTimes(*expected))
    assert read_event_times(tmp_path / "rows.parquet", "other") is None


def test_event_times_are_not_those_of_a_footer(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"t": pa.array([1, 77_777]).cast(pa.timestamp("ms", "UTC"))}), path)
    path.write_bytes(saying_offsets_are_others(path.read_bytes(), 77_777))  # a number of eight bytes like any
    assert pq.read_metadata(path).row_group(0).column(0).statistics.max.timestamp() < 1
    assert read_event_times(path, "t") == EventTimes(1_000, 77_777_000)


def test_event_times_that_were_found_once_are_remembered_when_a_home_is_opened_again(tmp_path: Path) -> None:
    """A daemon opens its home for each piece of work."""
    name = Multihash.of_sha3_256(str(tmp_path).encode())
    assert RowsFolder(HomeFolder(tmp_path)).find_event_times(name, "t") is None
    RowsFolder(HomeFolder(tmp_path)).remember_event_times(name, "t", EventTimes(1, 2))
    again = RowsFolder(HomeFolder(tmp_path))
    assert (again.find_event_times(name, "t"), again.find_event_times(name, "u")) == (EventTimes(1, 2), None)
