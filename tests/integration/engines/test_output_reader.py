"""Clause ENGINE-19: what a hostile output costs to read is bounded, and stays in the sandbox that reads it."""

import fcntl
import os
import signal
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.host.output_checks import RowsCheck, SizeCheck
from odf_engines.host.output_reader import OutputReader
from odf_engines.reading.slices import logical_hash_of
from odf_engines.sandbox.resources import usage_of
from odf_protocol.events import OffsetInterval
from odf_protocol.vocabulary import Vocabulary
from support.sandboxes import stop_before_it_is_asked

MIB = 1024 * 1024
LIMITS = Limits(memory_bytes=640 * MIB, decoded_bytes=512 * MIB)
INSTANT = pa.timestamp("ms", "UTC")
WALL_S = 240.0
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", INSTANT, nullable=False),
        pa.field("event_time", INSTANT, nullable=False),
        pa.field("text", pa.string()),
    ]
)
LISTS = SCHEMA.set(4, pa.field("items", pa.list_(pa.int64())))


@pytest.fixture(scope="module")
def reader() -> Iterator[OutputReader]:
    """One reader for all files, also for those that it does not survive."""
    reader = OutputReader(LIMITS)
    yield reader
    reader.close()


@pytest.fixture
def small_reader() -> Iterator[OutputReader]:
    reader = OutputReader(replace(LIMITS, memory_bytes=300 * MIB))
    yield reader
    reader.close()


def innermost_of(reader: OutputReader) -> int:
    """The process that reads: the one without children."""
    assert reader._reader._process is not None
    (found,) = (
        each
        for each in usage_of(reader._reader._process.process_id).process_ids
        if not Path(f"/proc/{each}/task/{each}/children").read_text()
    )
    return found


def write_rows(folder: Path, column: pa.Array, schema: pa.Schema = SCHEMA, **options: Any) -> Path:
    rows = len(column)
    times = pa.array(np.zeros(rows, np.int64)).cast(INSTANT)
    table = pa.table(
        [pa.array(np.arange(rows)), pa.array(np.zeros(rows, np.int32)), times, times, column],
        schema=schema.set(4, schema.field(4).with_type(column.type)),
    )
    path = folder / "data.parquet"
    pq.write_table(table, path, store_schema=False, **options)
    return path


def repeated(text: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


def check_of(rows: int, schema: pa.Schema = SCHEMA, limits: Limits = LIMITS) -> RowsCheck:
    return RowsCheck(
        schema=schema,
        vocabulary=Vocabulary(),
        interval=OffsetInterval(start=0, end=rows - 1),
        system_time_ms=0,
        max_rows=limits.output_rows,
        max_decoded_bytes=limits.decoded_bytes,
    )


def test_honest_slice_has_the_hash_that_its_rows_have(reader: OutputReader, tmp_path: Path) -> None:
    path = write_rows(tmp_path, pa.array([f"row {n}" for n in range(200_000)]), row_group_size=70_000)
    assert reader.check(path, check_of(200_000), wall_s=WALL_S).logical_hash == logical_hash_of(path)
    assert reader.check(path, SizeCheck(max_decoded_bytes=100 * MIB), wall_s=WALL_S).logical_hash is None


def test_dictionary_of_one_long_text_costs_bounded_memory_and_the_next_file_is_read(
    reader: OutputReader, tmp_path: Path
) -> None:
    path = write_rows(tmp_path, repeated("a" * 100_000, 65_536), dictionary_pagesize_limit=1 << 30)
    assert path.stat().st_size < 1 * MIB
    with pytest.raises(LimitExceededError) as caught:
        reader.check(path, check_of(65_536), wall_s=WALL_S)
    assert (caught.value.limit, caught.value.allowed) == ("memory_bytes", 640 * MIB)

    path = write_rows(tmp_path, pa.array(["a", None]))
    assert reader.check(path, check_of(2), wall_s=WALL_S).logical_hash == logical_hash_of(path)


def test_values_that_fit_into_memory_one_batch_at_a_time_are_counted_together(
    reader: OutputReader, tmp_path: Path
) -> None:
    rows = 2_000_000
    path = write_rows(tmp_path, repeated("a" * 300, rows))
    assert path.stat().st_size < 16 * MIB
    with pytest.raises(LimitExceededError) as caught:
        reader.check(path, check_of(rows), wall_s=WALL_S)
    assert (caught.value.limit, caught.value.allowed) == ("decoded_bytes", 512 * MIB)
    with pytest.raises(LimitExceededError, match="decoded_bytes"):
        reader.check(path, SizeCheck(max_decoded_bytes=512 * MIB), wall_s=WALL_S)

    # The control: under a wider limit the same file passes.
    assert reader.check(path, SizeCheck(max_decoded_bytes=1024 * MIB), wall_s=WALL_S).logical_hash is None


def test_list_of_which_only_the_length_is_written_costs_bounded_memory(
    small_reader: OutputReader, tmp_path: Path
) -> None:
    items = 40_000_000
    array = pa.ListArray.from_arrays(pa.array([0, items], pa.int32()), pa.array(np.zeros(items, np.int64)))
    path = write_rows(tmp_path, array, LISTS, compression="snappy")
    schema = LISTS.set(4, pq.read_schema(path).field(4))
    with pytest.raises(LimitExceededError, match=f"memory_bytes reached: allowed {300 * MIB}"):
        small_reader.check(path, check_of(1, schema), wall_s=WALL_S)


def test_time_to_read_is_bounded(reader: OutputReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_rows(tmp_path, pa.array(["a"]))
    stop_before_it_is_asked(monkeypatch)
    with pytest.raises(LimitExceededError, match="wall_s reached at reading the output"):
        reader.check(path, check_of(1), wall_s=0.001)


def test_what_is_no_parquet_is_told_as_that(reader: OutputReader, tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    with pytest.raises(EngineFailureError, match="not readable as Parquet"):
        reader.check(path, check_of(1), wall_s=WALL_S)


def test_reader_that_dies_of_a_file_is_a_failure_and_replaced(reader: OutputReader, tmp_path: Path) -> None:
    path = write_rows(tmp_path, pa.array(["a"]))
    reader.check(path, check_of(1), wall_s=WALL_S)
    assert reader._reader._process is not None
    # Frozen, so that it is in the middle of the file when it ends.
    os.kill(innermost_of(reader), signal.SIGSTOP)
    asked_process = reader._reader._process
    asked = asked_process._stdin

    def end_when_asked() -> None:
        deadline = time.monotonic() + WALL_S / 2
        while not fcntl.ioctl(asked, termios.TIOCOUTQ, bytes(4)).strip(b"\0") and time.monotonic() < deadline:
            time.sleep(0.01)  # until something waits to be read there
        asked_process.stop()

    end = threading.Thread(target=end_when_asked, daemon=True)
    end.start()
    with pytest.raises(EngineFailureError, match="output could not be read"):
        reader.check(path, check_of(1), wall_s=WALL_S)
    end.join()
    assert reader.check(path, check_of(1), wall_s=WALL_S).logical_hash == logical_hash_of(path)


def test_each_file_has_the_whole_of_the_processor_time_for_itself(tmp_path: Path) -> None:
    rows, cpu_s = 1_000_000, 3
    path = write_rows(tmp_path, pa.array(np.arange(rows).astype(str)))
    reader = OutputReader(replace(LIMITS, cpu_s=cpu_s))
    try:
        reader.check(path, check_of(rows), wall_s=WALL_S)
        first = reader._reader._process
        assert first is not None
        while usage_of(first.process_id).cpu_s < cpu_s + 1:
            reader.check(path, check_of(rows), wall_s=WALL_S)
        assert reader._reader._process is first
    finally:
        reader.close()


def test_reader_is_confined_like_an_engine_and_has_nothing_of_it(reader: OutputReader, tmp_path: Path) -> None:
    path = write_rows(tmp_path, pa.array(["a"]))
    reader.check(path, check_of(1), wall_s=WALL_S)
    assert reader._reader._process is not None
    inner = innermost_of(reader)
    status = Path(f"/proc/{inner}/status").read_text()
    assert "Seccomp:\t2\n" in status
    assert "CapEff:\t0000000000000000\n" in status
    for name in ("ipc", "mnt", "net", "pid", "user", "uts"):
        assert Path(f"/proc/{inner}/ns/{name}").readlink() != Path(f"/proc/self/ns/{name}").readlink()
    command = Path(f"/proc/{reader._reader._process.process_id}/cmdline").read_text()
    assert "--ro-bind" in command
    assert not any(word in command for word in ("--bind\0", "java", "pyspark", "/exchange", str(tmp_path)))
