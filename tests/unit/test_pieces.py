from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_spark import chunks
from odf_spark.chunks import cut_even, fit_in_memory


@given(st.lists(st.integers(0, 40)), st.integers(1, 17))
def test_rows_are_cut_evenly_and_stay_in_order(lengths: list[int], rows: int) -> None:
    numbers = pa.table({"n": np.arange(sum(lengths))})
    starts = np.cumsum([0, *lengths])[:-1]
    tables = [numbers.slice(start, length) for start, length in zip(starts, lengths, strict=True)]

    cut = list(cut_even(tables, rows))

    assert [table.num_rows for table in cut[:-1]] == [rows] * (len(cut) - 1)
    assert all(0 < table.num_rows <= rows for table in cut)
    assert [value for table in cut for value in table.column(0).to_pylist()] == list(range(sum(lengths)))


def test_large_row_group_is_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"n": np.arange(10_000)})
    paths = [tmp_path / "small.parquet", tmp_path / "large.parquet"]
    for path, rows in zip(paths, (1_000, 10_000), strict=True):
        pq.write_table(table, path, row_group_size=rows, use_dictionary=False, compression="none")
    monkeypatch.setattr(chunks, "MAX_GROUP_BYTES", 20_000)
    assert fit_in_memory(paths[:1])
    assert not fit_in_memory(paths)
