"""Files of typed columns, and headers, that cost more than they are large: a limit, or an answer at once (ING-3)."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.errors import InvalidSourceError
from odf_engines.ingest.parquet_records import read_parquet
from odf_engines.ingest.read import read_source
from odf_engines.ingest.source_schema import check_columns, check_distinct
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import ReadStepCsv

MAX_BYTES = 1024**3
NUMBER = pa.schema([("n", pa.int64())])
TEXT = pa.schema([("n", pa.string())])


def stream_of(batch: pa.RecordBatch) -> bytes:
    written = io.BytesIO()
    with pa.ipc.new_stream(written, batch.schema) as writer:
        writer.write_batch(batch)
    return written.getvalue()


def write(path: Path, column: pa.Array) -> Path:
    path.write_bytes(stream_of(pa.record_batch({"n": column})))
    return path


@pytest.mark.timeout(60)
def test_header_of_millions_of_names_is_compared_at_once() -> None:
    """Each name with each other would be hours; the file is a few MB, and others wait behind it."""
    names = [f"c{number}" for number in range(1_000_000)]
    check_distinct(names, "s")
    with pytest.raises(InvalidSourceError, match="same name: c7"):
        check_distinct([*names, "c7"], "s")
    with pytest.raises(InvalidSourceError, match="missing: n"):
        check_columns(names, NUMBER, "s")
    wide = pa.schema([(name, pa.int8()) for name in names[:50_000]])
    with pytest.raises(InvalidSourceError, match="not in the schema: c50000"):
        check_columns(names, wide, "s")


def test_header_that_is_longer_than_a_record_may_be_is_not_taken_apart(tmp_path: Path) -> None:
    """Clause ING-2: one line of any length has as many fields as bytes, of which each is an object."""
    source = tmp_path / "line"
    with source.open("wb") as file:
        for _ in range(17):
            file.write(b"," * 1024**2)
    with pytest.raises(InvalidSourceError, match="longer than"):
        read_source(ReadStepCsv(header=True), source, "s", None, tmp_path)


@pytest.mark.timeout(60)
def test_value_that_does_not_fit_costs_no_look_at_a_dictionary_for_each_row(tmp_path: Path) -> None:
    """A dictionary that is looked through for each row would be minutes of work for each megabyte."""
    values = np.append(np.arange(3_000_000, dtype=np.uint64), np.uint64(2**63))
    indices = np.append(np.arange(100_000, dtype=np.int32), np.int32(3_000_000))
    column = pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(values))
    source = write(tmp_path / "coded", column)
    records, _ = read_parquet(source, "s", NUMBER, None, tmp_path / "records")
    assert (records.record_count, list(records.broken)) == (100_001, [100_001])


def _shared_items() -> pa.Array:
    """600 kB that stand for 20 GB: all rows are the same items."""
    starts, sizes = pa.array([0] * 50_000, pa.int32()), pa.array([50_000] * 50_000, pa.int32())
    return pa.ListViewArray.from_arrays(starts, sizes, pa.array([0] * 50_000))


def _shared_text() -> pa.Array:
    """2 MB of views that all are of one text of 1 MB: 131 GB."""
    one = pa.array(["x" * 1_000_000], pa.string_view()).buffers()
    return pa.Array.from_buffers(pa.string_view(), 131_072, [None, pa.py_buffer(one[1].to_pybytes() * 131_072), one[2]])


@pytest.mark.parametrize("make", [_shared_items, _shared_text])
def test_views_that_share_what_they_show_are_bounded_by_memory(tmp_path: Path, make: Callable[[], pa.Array]) -> None:
    """ENGINE-16: what they stand for counts, not what they are."""
    source = write(tmp_path / "views", make())
    assert source.stat().st_size < 5_000_000
    program = f"""
        import resource, sys
        from pathlib import Path
        from odf_engines.ingest.parquet_records import read_parquet

        resource.setrlimit(resource.RLIMIT_DATA, ({MAX_BYTES}, {MAX_BYTES}))
        try:
            read_parquet(Path(sys.argv[1]), "s", None, None, Path(sys.argv[1] + ".records"))
        except MemoryError:
            print("limited")
    """
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    done = subprocess.run(
        [sys.executable, "-c", dedent(program), source], env=environment, capture_output=True, text=True
    )
    assert done.stdout == "limited\n", done.stderr


def test_views_are_read_as_the_values_that_they_show(tmp_path: Path) -> None:
    """Clause ING-3: what does not fit its type goes alone."""
    texts = write(tmp_path / "texts", pa.array([b"a" * 30, None, b"\xff"], pa.binary_view()))
    records, _ = read_parquet(texts, "s", TEXT, None, tmp_path / "records")
    assert (records.record_count, list(records.broken)) == (3, [3])
    lists = write(tmp_path / "lists", pa.array([[1], None, [2, 3], []], pa.list_view(pa.int64())))
    records, target = read_parquet(lists, "s", None, None, tmp_path / "records")
    assert target.field("n").type == pa.list_(pa.int64())
    assert pq.read_table(records.path).column("v0").to_pylist() == [[1], None, [2, 3], []]


@pytest.mark.parametrize(
    "column", [pa.array([{}], pa.struct([])), pa.array([[{}]]), pa.array([b""], pa.binary(0))], ids=str
)
def test_column_that_no_slice_can_have_is_told_as_that(tmp_path: Path, column: pa.Array) -> None:
    """Parquet has no structs without members and no bytes without length: writing them fails, whoever tries."""
    source = write(tmp_path / "nothing", column)
    with pytest.raises(UnsupportedError, match=r"without members|of length 0"):
        read_parquet(source, "s", None, None, tmp_path / "records")
