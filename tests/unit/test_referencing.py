"""Datasets that rows are looked up in: as they were known then, in files of this node, and not too large (CONV-8)."""

from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.records.current_rows import plain_schema_of, read_current
from odf_engines.records.referenced_rows import ReferencedRows
from odf_node.adapters.rows_folder import RowsFolder
from odf_node.datasets import referencing
from odf_node.datasets.referencing import References
from odf_node.errors import UnknownDatasetError, UsageError
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.false_footers import saying_offsets_are_others
from support.offers import CITIES, MORE_CITIES, NOON, Judge, parquet_bytes, root_chain, slice_table


@contextmanager
def references(judge: Judge):
    with judge.opened() as store:
        yield References(store, judge.objects, RowsFolder(judge.home))


def name_of(judge: Judge) -> str:
    with judge.opened() as store:
        (record,) = store.list_datasets()
        return record.name


def cities(rows) -> set[tuple]:
    found = read_current(rows, pa.schema([plain_schema_of(rows).field(name) for name in ("city", "people")]))
    return {(row["city"], row["people"]) for row in found.to_pylist()}


def test_rows_are_those_known_at_the_time_and_the_head_says_so(tmp_path: Path) -> None:
    (tmp_path / "peer").mkdir()
    chain = root_chain(tmp_path / "peer")
    judge = Judge.create(tmp_path / "judge")
    judge.accept(chain)
    name = name_of(judge)
    with references(judge) as known:
        late = Timestamp(chain.blocks[-1].system_time.seconds + 1)
        rows, seen = known.get(name.upper(), late)
        assert cities(rows) == {*CITIES, *MORE_CITIES}
        assert (seen.dataset_id, seen.head) == (chain.id, chain.head.hash)
        before = chain.blocks[-2]
        rows, seen = known.get(str(chain.id), before.system_time)
        assert (cities(rows), seen.head) == ({*CITIES}, before.hash)
        assert plain_schema_of(rows).names == ["event_time", "city", "people"]
        assert known.find_columns(name, of="sales") == rows.__class__(vocabulary=rows.vocabulary, schema=rows.schema)


def test_row_of_the_other_zero_takes_a_row_back_query_3(tmp_path: Path) -> None:
    words = Vocabulary()
    for number, (op, values) in enumerate([(0, [0.0, -0.0, 1.0]), (1, [-0.0, 1.0])]):
        rows = {words.offset: [*range(len(values))], words.op: [op] * len(values), "x": values}
        pq.write_table(pa.table(rows), tmp_path / f"{number}.parquet")
    schema = data_schema_of(pa.schema([(words.offset, pa.int64()), (words.op, pa.int64()), ("x", pa.float64())]))
    rows = ReferencedRows(vocabulary=words, schema=schema, slices=(*sorted(tmp_path.glob("*.parquet")),))

    assert read_current(rows, plain_schema_of(rows)).to_pylist() == [{"x": 0.0}]


class Growing:
    """A store to which another process seems to commit its last block as soon as rows were looked at."""

    def __init__(self, store, last: int) -> None:
        self._store, self._last, self._has_grown = store, last, False

    def __getattr__(self, name: str):
        return getattr(self._store, name)

    def iter_blocks_backwards(self, dataset_id):
        found = self._store.iter_blocks_backwards(dataset_id)
        return (each for each in found if self._has_grown or each.sequence_number < self._last)

    def iter_blocks_with_rows(self, dataset_id, **options):
        found = [*self._store.iter_blocks_with_rows(dataset_id, **options)]
        yield from (each for each in found if self._has_grown or each.sequence_number < self._last)
        self._has_grown = True


def test_what_comes_while_rows_are_read_is_neither_read_nor_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "peer").mkdir()
    chain = root_chain(tmp_path / "peer")
    judge = Judge.create(tmp_path / "judge")
    judge.accept(chain)
    with judge.opened() as store:
        growing = Growing(store, chain.head.sequence_number)
        known = References(growing, judge.objects, RowsFolder(judge.home))
        late = Timestamp(chain.blocks[-1].system_time.seconds + 1000)
        rows, seen = known.get(str(chain.id), late)
        assert (cities(rows), seen.head) == ({*CITIES}, chain.blocks[-2].hash)
        rows, seen = known.get(str(chain.id), late)
        assert (cities(rows), seen.head) == ({*CITIES, *MORE_CITIES}, chain.head.hash)


def test_file_of_others_is_given_as_this_node_wrote_it(tmp_path: Path) -> None:
    (tmp_path / "peer").mkdir()
    chain = root_chain(tmp_path / "peer", slices=0)
    honest = parquet_bytes(slice_table(CITIES, first_offset=0, at=Timestamp(NOON.seconds + 2)))
    chain.add_slice(saying_offsets_are_others(honest, last=len(CITIES) - 1), rows=len(CITIES))
    judge = Judge.create(tmp_path / "judge")
    judge.accept(chain)
    with references(judge) as known:
        rows, _ = known.get(name_of(judge), Timestamp(NOON.seconds + 1000))
    assert cities(rows) == {*CITIES}
    assert all(judge.home.objects not in path.parents for path in rows.slices)


def test_dataset_that_cannot_be_looked_into_is_rejected_by_its_name(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "peer").mkdir()
    judge = Judge.create(tmp_path / "judge")
    empty = root_chain(tmp_path / "peer")
    judge.accept(empty)
    name = name_of(judge)
    with references(judge) as known:
        with pytest.raises(UnknownDatasetError, match=f"did you mean '{name}'"):
            known.get(f"{name}s", NOON)
        with pytest.raises(UnknownDatasetError, match="no dataset 'nobody'"):
            known.find_columns("nobody", of="sales")
        for limit in ("MAX_ROWS", "MAX_BYTES"):
            with monkeypatch.context() as patch:
                patch.setattr(referencing, limit, 1)
                with pytest.raises(UsageError, match=f"'{name}' is too large to look into"):
                    known.get(name, Timestamp(NOON.seconds + 1000))
