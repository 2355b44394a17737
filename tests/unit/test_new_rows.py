"""The file that a follower of a dataset is given (ING-43)."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.reading.new_rows import write_new_rows
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.vocabulary import Vocabulary

LOG = [("offset", pa.int64()), ("op", pa.int32()), ("system_time", pa.timestamp("ms", "UTC"))]
BEFORE = pa.schema([*LOG, ("event_time", pa.timestamp("ms", "UTC")), ("city", pa.string())])
AFTER = pa.schema([*LOG, ("event_time", pa.timestamp("ms", "UTC")), ("people", pa.int64()), ("city", pa.string())])


def test_columns_that_came_later_are_null_in_rows_before(tmp_path: Path) -> None:
    files = tmp_path / "before", tmp_path / "after"
    pq.write_table(pa.table([[0, 1], [0, 0], [9, 9], [1, 2], ["Bern", "Rome"]], schema=BEFORE), files[0])
    pq.write_table(pa.table([[2], [0], [9], [3], [7], ["Oslo"]], schema=AFTER), files[1])
    target, schema = tmp_path / "new", data_schema_of(AFTER)
    write_new_rows(files, schema, Vocabulary(), target, after=0, name="cities", has_operations=False)
    found = pq.read_table(target)
    assert found.schema.names == ["event_time", "people", "city"]
    assert found.select(["people", "city"]).to_pylist() == [
        {"people": None, "city": "Rome"},
        {"people": 7, "city": "Oslo"},
    ]
    write_new_rows(files, schema, Vocabulary(), target, after=1, name="cities", has_operations=True)
    assert pq.read_table(target).column("op").to_pylist() == [0]
