"""Clause ENGINE-19: what a hostile output costs to read is bounded, and stays in the sandbox that reads it."""

import fcntl
import os
import signal
import sys
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
from odf_engines.sandbox.resources import Usage, usage_of
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
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutputReader]:
    """One reader for all files, also for those that it does not survive."""
    folder = tmp_path_factory.mktemp("done")
    reader = OutputReader(folder, LIMITS)
    yield reader
    reader.close()


@pytest.fixture
def small_reader(tmp_path: Path) -> Iterator[OutputReader]:
    reader = OutputReader(tmp_path, replace(LIMITS, memory_bytes=300 * MIB))
    yield reader
    reader.close()


def innermost_of(reader: OutputReader) -> int:
    """The process that reads: the one without children."""
    assert reader._process is not None
    (found,) = (
        each
        for each in usage_of(reader._process.process_id).process_ids
        if not Path(f"/proc/{each}/task/{each}/children").read_text()
    )
    return found


def write_rows(reader: OutputReader, column: pa.Array, schema: pa.Schema = SCHEMA, **options: Any) -> Path:
    rows = len(column)
    times = pa.array(np.zeros(rows, np.int64)).cast(INSTANT)
    table = pa.table(
        [pa.array(np.arange(rows)), pa.array(np.zeros(rows, np.int32)), times, times, column],
        schema=schema.set(4, schema.field(4).with_type(column.type)),
    )
    path = reader._folder / "data.parquet"
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
        most_rows=limits.output_rows,
        most_decoded_bytes=limits.decoded_bytes,
    )


def test_honest_slice_has_the_hash_that_its_rows_have(reader: OutputReader) -> None:
    path = write_rows(reader, pa.array([f"row {n}" for n in range(200_000)]), row_group_size=70_000)
    assert reader.check(path, check_of(200_000), wall_s=WALL_S).logical_hash == logical_hash_of(path)
    assert reader.check(path, SizeCheck(most_decoded_bytes=100 * MIB), wall_s=WALL_S).logical_hash is None


def test_dictionary_of_one_long_text_costs_bounded_memory_and_the_next_file_is_read(reader: OutputReader) -> None:
    path = write_rows(reader, repeated("a" * 100_000, 65_536), dictionary_pagesize_limit=1 << 30)
    assert path.stat().st_size < 1 * MIB
    with pytest.raises(LimitExceededError) as caught:
        reader.check(path, check_of(65_536), wall_s=WALL_S)
    assert (caught.value.limit, caught.value.allowed) == ("memory_bytes", 640 * MIB)

    path = write_rows(reader, pa.array(["a", None]))
    assert reader.check(path, check_of(2), wall_s=WALL_S).logical_hash == logical_hash_of(path)


def test_values_that_fit_into_memory_one_batch_at_a_time_are_counted_together(reader: OutputReader) -> None:
    rows = 2_000_000
    path = write_rows(reader, repeated("a" * 300, rows))
    assert path.stat().st_size < 16 * MIB
    with pytest.raises(LimitExceededError) as caught:
        reader.check(path, check_of(rows), wall_s=WALL_S)
    assert (caught.value.limit, caught.value.allowed) == ("decoded_bytes", 512 * MIB)
    with pytest.raises(LimitExceededError, match="decoded_bytes"):
        reader.check(path, SizeCheck(most_decoded_bytes=512 * MIB), wall_s=WALL_S)

    # The control: under a wider limit the same file passes.
    assert reader.check(path, SizeCheck(most_decoded_bytes=1024 * MIB), wall_s=WALL_S).logical_hash is None


def test_list_of_which_only_the_length_is_written_costs_bounded_memory(small_reader: OutputReader) -> None:
    items = 40_000_000
    array = pa.ListArray.from_arrays(pa.array([0, items], pa.int32()), pa.array(np.zeros(items, np.int64)))
    path = write_rows(small_reader, array, LISTS, compression="snappy")
    schema = LISTS.set(4, pq.read_schema(path).field(4))
    with pytest.raises(LimitExceededError, match=f"memory_bytes reached: allowed {300 * MIB}"):
        small_reader.check(path, check_of(1, schema), wall_s=WALL_S)


def test_time_to_read_is_bounded(reader: OutputReader, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_rows(reader, pa.array(["a"]))
    stop_before_it_is_asked(monkeypatch)
    with pytest.raises(LimitExceededError, match="wall_s reached at reading the output"):
        reader.check(path, check_of(1), wall_s=0.001)


def test_what_is_no_parquet_is_told_as_that(reader: OutputReader) -> None:
    path = reader._folder / "data.parquet"
    path.write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    with pytest.raises(EngineFailureError, match="not readable as Parquet"):
        reader.check(path, check_of(1), wall_s=WALL_S)


def test_reader_that_dies_of_a_file_is_a_failure_and_replaced(reader: OutputReader) -> None:
    path = write_rows(reader, pa.array(["a"]))
    reader.check(path, check_of(1), wall_s=WALL_S)
    assert reader._process is not None
    # Frozen, so that it is in the middle of the file when it ends.
    os.kill(innermost_of(reader), signal.SIGSTOP)
    asked = reader._process._stdin

    def end_when_asked() -> None:
        while int.from_bytes(fcntl.ioctl(asked, termios.FIONREAD, bytes(4)), sys.byteorder) == 0:
            time.sleep(0.01)
        reader.stop()

    end = threading.Thread(target=end_when_asked, daemon=True)
    end.start()
    with pytest.raises(EngineFailureError, match="output could not be read"):
        reader.check(path, check_of(1), wall_s=WALL_S)
    end.join()
    assert reader.check(path, check_of(1), wall_s=WALL_S).logical_hash == logical_hash_of(path)


def test_reader_that_used_half_of_its_processor_time_is_replaced(small_reader: OutputReader) -> None:
    path = write_rows(small_reader, pa.array(["a"]))
    small_reader.check(path, check_of(1), wall_s=WALL_S)
    first = small_reader._process
    assert first is not None
    small_reader.check(path, check_of(1), wall_s=WALL_S)
    assert small_reader._process is first

    first._cpu.add(Usage(0, 0, cpu_s=LIMITS.cpu_s * 0.6))
    assert small_reader.check(path, check_of(1), wall_s=WALL_S).logical_hash == logical_hash_of(path)
    assert small_reader._process is not first


def test_reader_is_confined_like_an_engine_and_has_nothing_of_it(reader: OutputReader) -> None:
    path = write_rows(reader, pa.array(["a"]))
    reader.check(path, check_of(1), wall_s=WALL_S)
    assert reader._process is not None
    inner = innermost_of(reader)
    status = Path(f"/proc/{inner}/status").read_text()
    assert "Seccomp:\t2\n" in status
    assert "CapEff:\t0000000000000000\n" in status
    for name in ("ipc", "mnt", "net", "pid", "user", "uts"):
        assert Path(f"/proc/{inner}/ns/{name}").readlink() != Path(f"/proc/self/ns/{name}").readlink()
    shown = reader._profile().mounts
    assert not any(mount.is_writable for mount in shown)
    assert not any(word in mount.target for mount in shown for word in ("java", "pyspark", "/exchange/out"))
