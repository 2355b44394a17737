import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.host.slices import open_slice_file

TIME = pa.timestamp("ms", "UTC")
ROWS = {
    "offset": (pa.int64(), list(range(1000))),
    "op": (pa.int32(), [0, 1] * 500),
    "small": (pa.int8(), [-1, None] * 500),
    "large": (pa.uint64(), [2**64 - 1, 0] * 500),
    "event_time": (TIME, [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None] * 500),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)] * 500),
    "clock": (pa.time64("us"), [dt.time(1, 2, 3, 4), None] * 500),
    "word": (pa.string(), ["a", None] * 500),
    "raw": (pa.binary(), [b"\0", b""] * 500),
    "exact": (pa.decimal128(38, 3), [Decimal("1.5"), None] * 500),
    "float": (pa.float64(), [0.1, None] * 500),
    "yes": (pa.bool_(), [True, None] * 500),
    "numbers": (pa.list_(pa.int32()), [[1, None, 3], None] * 500),
    "words": (pa.list_(pa.string()), [["x", "y"], []] * 500),
    "nested": (pa.struct([("n", pa.int64()), ("s", pa.string())]), [{"n": 1, "s": "z"}, None] * 500),
}


def write(path: Path, table: pa.Table) -> pq.FileMetaData:
    with open_slice_file(path, table.schema) as writer:
        writer.write_table(table)
    return pq.read_metadata(path)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slice") / "slice.parquet"
    write(path, pa.table({name: pa.array(values, kind) for name, (kind, values) in ROWS.items()}))
    return path


def test_values_of_every_type_come_back(written: Path) -> None:
    read = pq.read_table(written)
    assert read.schema == pa.schema([(name, kind) for name, (kind, _) in ROWS.items()])
    assert read.to_pydict() == {name: values for name, (_, values) in ROWS.items()}


@pytest.mark.parametrize(
    ("column", "encoding"),
    [
        ("offset", "DELTA_BINARY_PACKED"),
        ("event_time", "DELTA_BINARY_PACKED"),
        ("day", "DELTA_BINARY_PACKED"),
        ("numbers.list.element", "DELTA_BINARY_PACKED"),
        ("nested.n", "DELTA_BINARY_PACKED"),
        ("word", "RLE_DICTIONARY"),
        ("words.list.element", "RLE_DICTIONARY"),
        ("nested.s", "RLE_DICTIONARY"),
        ("float", "PLAIN"),
        ("exact", "PLAIN"),
    ],
)
def test_column_has_the_encoding_that_fits_its_type(written: Path, column: str, encoding: str) -> None:
    group = pq.read_metadata(written).row_group(0)
    columns = {group.column(number).path_in_schema: group.column(number) for number in range(group.num_columns)}
    assert encoding in columns[column].encodings
    assert columns[column].has_dictionary_page == (encoding == "RLE_DICTIONARY")


def test_offsets_have_statistics_by_which_readers_leave_out_row_groups(written: Path) -> None:
    statistics = pq.read_metadata(written).row_group(0).column(0).statistics
    assert (statistics.min, statistics.max) == (0, 999)
