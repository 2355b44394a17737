"""Clause VIEW-2: which rows of a small input are in force, and what is left to Spark."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_protocol.events import DataField, DataSchema, DataTypeInt64, DataTypeOption, DataTypeString
from odf_protocol.vocabulary import Vocabulary
from odf_spark import small_inputs
from odf_spark.small_inputs import RowsRead, Work, write_folded

DATA = DataSchema(
    fields=(
        DataField(name="event_time", type=DataTypeInt64()),
        DataField(name="s", type=DataTypeOption(inner=DataTypeString())),
    )
)
APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)


def slice_of(path: Path, start: int, *rows: tuple[int, int, str | None]) -> Path:
    columns = {
        "offset": pa.array(range(start, start + len(rows)), pa.int64()),
        "op": pa.array([op for op, _, _ in rows], pa.int32()),
        "event_time": pa.array([time for _, time, _ in rows], pa.int64()),
        "s": pa.array([text for _, _, text in rows], pa.string()),
    }
    pq.write_table(pa.table(columns), path)
    return path


def fold(folder: Path, slices: list[Path], upto: int, work: Work | None = None) -> RowsRead | None:
    work, target = work or Work(folder), folder / "folded"
    target.unlink(missing_ok=True)
    return write_folded(target, slices, DATA, Vocabulary(), upto, event_times_us=None, without=None, work=work)


def test_rows_are_taken_by_content_and_others_keep_their_offsets(tmp_path: Path) -> None:
    slices = [
        slice_of(tmp_path / "0", 0, (APPEND, 1, None), (APPEND, 1, None), (APPEND, 2, "a"), (APPEND, 2, "a")),
        slice_of(tmp_path / "1", 4, (RETRACT, 1, None), (CORRECT_FROM, 9, "never given"), (CORRECT_TO, 3, "b")),
        slice_of(tmp_path / "2", 7, (RETRACT, 2, "a"), (APPEND, 4, "c")),
    ]
    read = fold(tmp_path, slices, 6)
    assert read == {"rows": 7, "first": 0, "last": 6}
    rows = sorted(pq.read_table(tmp_path / "folded").to_pylist(), key=lambda row: row["offset"])
    assert [(row["offset"], row["event_time"], row["s"]) for row in rows] == [
        (1, 1, None),
        (2, 2, "a"),
        (3, 2, "a"),
        (6, 3, "b"),
    ]


def test_file_that_unpacks_to_much_is_left_to_spark(tmp_path: Path) -> None:
    """A thousand rows that share one megabyte, in a file of some kilobytes."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * (1 << 20)]))
    path = slice_of(tmp_path / "0", 0, *((APPEND, 1, None) for _ in range(1000)))
    pq.write_table(pq.read_table(path).drop_columns(["s"]).append_column("s", texts), path, store_schema=False)
    assert path.stat().st_size < 1_000_000
    read = write_folded(
        tmp_path / "folded", [path], DATA, Vocabulary(), 999, event_times_us=None, without=None, work=Work(tmp_path)
    )
    assert read is None
    assert not (tmp_path / "folded").exists()


def test_column_that_a_slice_lacks_is_left_to_spark(tmp_path: Path) -> None:
    path = slice_of(tmp_path / "0", 0, (APPEND, 1, "a"))
    pq.write_table(pq.read_table(path).drop_columns(["s"]), path)
    read = write_folded(
        tmp_path / "folded", [path], DATA, Vocabulary(), 0, event_times_us=None, without=None, work=Work(tmp_path)
    )
    assert read is None


def test_slices_are_read_once_for_the_results_of_one_request(tmp_path: Path) -> None:
    slices = [slice_of(tmp_path / str(n), n, (APPEND, n, "a")) for n in range(3)]
    work = Work(tmp_path)
    assert fold(tmp_path, slices, 2, work) == {"rows": 3, "first": 0, "last": 2}
    for path in slices:
        path.write_bytes(b"not read again")
    assert fold(tmp_path, slices[:2], 1, work) == {"rows": 2, "first": 0, "last": 1}
    assert pq.read_table(tmp_path / "folded").column("event_time").to_pylist() == [0, 1]


def test_bound_of_rows_counts_what_was_read_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slices = [slice_of(tmp_path / str(n), n * 2, (APPEND, n, "a"), (APPEND, n, "b")) for n in range(2)]
    monkeypatch.setattr(small_inputs, "_MAX_ROWS", 3)
    work = Work(tmp_path)
    assert fold(tmp_path, slices[:1], 1, work) is not None
    assert fold(tmp_path, slices, 3, work) is None
