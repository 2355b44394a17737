"""A source too large to be kept in memory goes through files: nothing else may differ."""

import hashlib

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from odf_protocol.events import DataTypeInt64, DataTypeString, MergeStrategyAppend, MergeStrategySnapshot, ReadStepCsv
from odf_spark.handover import _SMALL_BYTES
from support.ingests import RootDataset, engine_session, quarantined, schema

pytestmark = pytest.mark.spark

ROWS = 1_500
READ = ReadStepCsv(schema=schema(id=DataTypeInt64(), text=DataTypeString(), v=DataTypeInt64()))
PADDING = "x" * 5_700  # what counts is bytes, and rows are what costs


def source(version: int) -> str:
    """Every tenth value changes with the version, every hundredth is broken."""
    lines = []
    for number in range(ROWS):
        value = "broken" if number % 100 == 7 else number + (version if number % 10 == 0 else 0)
        lines.append(f"{ROWS - number},{PADDING}{number},{value}")
    return "\n".join(lines)


def test_rows_keep_their_order_and_bad_ones_their_text() -> None:
    assert len(source(0)) > _SMALL_BYTES  # or nothing here would be about large sources
    response = RootDataset(READ, MergeStrategyAppend(), session=engine_session()).ingest(source(0))
    bad = quarantined(response)
    assert len(bad) == response.quarantined_rows == ROWS // 100
    assert (bad[1]["record"], bad[1]["line"]) == (108, 108)
    assert bad[1]["original"] == f"{ROWS - 107},{PADDING}107,broken"
    rows = pq.read_table(response.data_path)
    assert rows.num_rows + len(bad) == ROWS
    assert rows["offset"].to_pylist() == list(range(rows.num_rows))
    steps = pc.pairwise_diff(rows["id"].combine_chunks())
    assert pc.max(steps).as_py() == -1


def test_second_snapshot_holds_what_changed_and_the_same_input_gives_the_same_bytes() -> None:
    digests = []
    for _ in range(2):
        dataset = RootDataset(READ, MergeStrategySnapshot(primary_key=("id",)), session=engine_session())
        first, second = dataset.ingest(source(0)), dataset.ingest(source(1))
        digests.append([hashlib.sha256(path.read_bytes()).digest() for path in (*dataset.slices, dataset.state)])
    assert digests[0] == digests[1]
    assert first.statistics.rows_out == ROWS - ROWS // 100
    rows = pq.read_table(second.data_path)
    assert rows["op"].to_pylist() == [2, 3] * (ROWS // 10)
    before, after = rows["v"].to_pylist()[::2], rows["v"].to_pylist()[1::2]
    assert [old + 1 for old in before] == after
