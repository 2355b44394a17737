"""Arrow streams as files of typed columns: read as Parquet is, and rejected where they are not whole (ING-3)."""

import io
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odf_engines.errors import InvalidSourceError
from odf_engines.ingest.columnar_files import open_columns
from odf_engines.ingest.parquet_records import read_parquet

ROWS = pa.table(
    {
        "event_time": pa.array([1, None, 3], pa.timestamp("us", "UTC")),
        "name": pa.array(["a", "b", None]).dictionary_encode(),
        "view": pa.array(["a text longer than twelve bytes", None, "b"], pa.string_view()),
        "prices": pa.array([[1, 2], None, []], pa.list_(pa.int16())),
        "place": pa.array([{"x": 1.5}, None, {"x": None}]),
    }
)


def stream_of(table: pa.Table, path: Path, batch_rows: int = 2) -> bytes:
    written = io.BytesIO()
    with pa.ipc.new_stream(written, table.schema) as writer:
        writer.write_table(table, max_chunksize=batch_rows)
    path.write_bytes(written.getvalue())
    return written.getvalue()


def test_stream_gives_the_records_that_parquet_gives(tmp_path: Path) -> None:
    stream, parquet = tmp_path / "stream", tmp_path / "parquet"
    stream_of(ROWS, stream)
    pq.write_table(ROWS, parquet)
    found = []
    for source in (stream, parquet):
        records, target = read_parquet(source, "s", None, None, tmp_path / f"{source.name}.records")
        originals = [each.raw for each in records.find_originals([1, 3])]
        found.append((target, records.record_count, pq.read_table(records.path), originals))
    assert found[0] == found[1]
    assert found[0][1] == 3


@pytest.mark.parametrize("columns", [None, ["prices", "name"]])
def test_batches_have_the_size_and_columns_that_are_asked_for(tmp_path: Path, columns: list[str] | None) -> None:
    stream_of(ROWS, tmp_path / "stream", batch_rows=3)
    with open_columns(tmp_path / "stream", "s") as file:
        for _ in range(2):  # from its beginning each time
            batches = list(file.iter_batches(2, columns))
            assert [each.num_rows for each in batches] == [2, 1]
            assert pa.Table.from_batches(batches).equals(ROWS if columns is None else ROWS.select(columns))


def test_stream_that_is_cut_anywhere_is_rejected(tmp_path: Path) -> None:
    whole = stream_of(ROWS, tmp_path / "stream")
    for size in range(4, len(whole)):
        (tmp_path / "stream").write_bytes(whole[:size])
        with pytest.raises(InvalidSourceError), open_columns(tmp_path / "stream", "s") as file:
            list(file.iter_batches(10))


def list_names(fields: Iterable[pa.Field]) -> list[str]:
    """Give the names of fields and of all their parts."""
    kinds = {each.name: each.type for each in fields}
    parts = [list_names(kind.field(i) for i in range(kind.num_fields)) for kind in kinds.values()]
    return [*kinds, *(name for some in parts for name in some)]


@pytest.mark.parametrize("name", [b"name", b"x", b"prices"])
def test_stream_with_a_name_that_is_no_text_is_rejected(tmp_path: Path, name: bytes) -> None:
    whole = stream_of(ROWS, tmp_path / "stream")
    size = len(name).to_bytes(4, "little")
    assert size + name in whole
    (tmp_path / "stream").write_bytes(whole.replace(size + name, size + b"\xff" * len(name)))
    with pytest.raises(InvalidSourceError, match="UTF-8"):
        open_columns(tmp_path / "stream", "s")


def test_stream_of_a_type_that_arrow_does_not_have_is_rejected(tmp_path: Path) -> None:
    """A whole number of no bits, of which the library says that it was not built yet."""
    whole = stream_of(ROWS, tmp_path / "stream")
    (tmp_path / "stream").write_bytes(whole[:244] + bytes(1) + whole[245:])
    with pytest.raises(InvalidSourceError, match="not an Arrow stream"):
        open_columns(tmp_path / "stream", "s")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_stream_with_changed_bytes_is_rejected_or_has_values_of_its_types(tmp_path: Path, data: st.DataObject) -> None:
    whole = stream_of(ROWS, tmp_path / "stream")
    place = data.draw(st.integers(4, len(whole) - 1))
    change = data.draw(st.binary(min_size=1, max_size=8))
    (tmp_path / "stream").write_bytes(whole[:place] + change + whole[place + len(change) :])
    try:
        with open_columns(tmp_path / "stream", "s") as file:
            list_names(file.schema_arrow)
            for batch in file.iter_batches(10):
                batch.validate(full=True)
                list_names(batch.schema)
    except (InvalidSourceError, MemoryError):
        pass
