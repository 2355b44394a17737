"""Slices that say one thing to whoever verifies them and another thing to an engine.

Each is pulled like any other root; then a question is asked of it, and a derivative over it is computed. Both have to
see the rows that were verified. Source: ENGINE-26 and ENGINE-27 in ``spec/extensions/engine-contract.md``.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from odf_node.datasets.queries import QueryRunner
from odf_protocol.events import DatasetKind, ExecuteTransform, Seed
from odf_protocol.timestamp import Timestamp
from support.homes import make_home
from support.lying_parquet import with_hidden_group, with_note, with_statistics, with_swapped_pages
from support.offers import NOON, Judge, PeerChain, PublisherHome, parquet_bytes, root_chain, select, slice_table
from support.signing import NEW_KEY

pytestmark = pytest.mark.spark

SLICE = 2  # the block that adds it
ROWS = [(f"city {n}", n) for n in range(3000)]
HASTINGS = datetime(1066, 10, 14, tzinfo=UTC)


@dataclass
class Reader:
    """A node that pulled a root with one slice, and what its engine makes of it."""

    judge: Judge
    chain: PeerChain

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with self.judge.opened() as store:
            runner = QueryRunner(make_home(self.judge.home, store), self.judge.engines)
            found = runner.run(sql, as_of=None, max_rows=None)
        return list(zip(*(column.to_pylist() for column in found.rows.columns), strict=True))

    def derive(self, query: str) -> list[tuple[Any, ...]]:
        """Compute a derivative of this node's own over it; give its rows without the system columns."""
        publisher = PublisherHome(self.judge)
        derivative = PeerChain(self.chain.folder, key=NEW_KEY, name="derived")
        derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
        publisher.keep(derivative.add(select(query, self.chain.id)))
        publisher.run(derivative, at=Timestamp(NOON.seconds + 100))
        event = derivative.blocks[-1].event
        assert isinstance(event, ExecuteTransform)
        if event.new_data is None:
            return []
        rows = pq.read_table(self.judge.objects.get_path(event.new_data.physical_hash))
        return list(zip(*(column.to_pylist() for column in rows.columns[4:]), strict=True))


@pytest.fixture
def pulled(tmp_path: Path, spark_session: Any) -> Callable[..., Reader]:
    """Pull a root whose one slice was changed in a way that its hashes and rows do not show."""

    def pull(lie: Callable[[bytes], bytes], rows: list[tuple[Any, Any]] = ROWS, **columns: Any) -> Reader:
        at = Timestamp(NOON.seconds + SLICE)
        table = slice_table(rows, first_offset=0, at=at, **columns)
        honest = parquet_bytes(table, row_group_size=1000, write_page_index=True, data_page_size=512)
        chain = root_chain(tmp_path, slices=0).add_slice(lie(honest), rows=len(rows))
        judge = Judge.create(tmp_path / "home", spark_session)
        judge.accept(chain)
        return Reader(judge, chain)

    return pull


def number(value: int) -> bytes:
    return struct.pack("<q", value)


def test_statistics_of_a_column_that_hide_its_rows_hide_none(pulled: Callable[..., Reader]) -> None:
    reader = pulled(lambda raw: with_statistics(raw, "people", number(0), number(1)))

    assert reader.ask("SELECT count(*) FROM cities WHERE people > 2000") == [(999,)]
    assert len(reader.derive("SELECT event_time, people FROM in0 WHERE people > 2000")) == 999


def test_statistics_of_offsets_that_hide_rows_hide_none(pulled: Callable[..., Reader]) -> None:
    reader = pulled(lambda raw: with_statistics(raw, "offset", number(10**6), number(10**6)))

    assert reader.ask("SELECT count(*) FROM cities WHERE offset < 10") == [(10,)]
    assert reader.derive("SELECT event_time, people FROM in0") == [(n,) for n in range(3000)]


def test_row_group_whose_middle_lies_outside_of_the_file_is_read(pulled: Callable[..., Reader]) -> None:
    reader = pulled(lambda raw: with_hidden_group(raw, 1))

    assert reader.ask("SELECT count(*) FROM cities") == [(3000,)]
    assert reader.derive("SELECT event_time, people FROM in0") == [(n,) for n in range(3000)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(b"org.apache.spark.version", b"2.4.8", id="spark-2"),
        pytest.param(b"org.apache.spark.legacyDateTime", b"", id="legacy-calendar"),
    ],
)
def test_note_of_an_old_writer_moves_no_date(pulled: Callable[..., Reader], key: bytes, value: bytes) -> None:
    notes = ((b"org.apache.spark.version", b"3.0.0"), (key, value))
    reader = pulled(
        lambda raw: with_note(with_note(raw, *notes[0]), *notes[1]),
        [("Hastings", 1)],
        event_time=[int(HASTINGS.timestamp() * 1000)],
    )

    assert reader.ask("SELECT event_time FROM cities") == [(HASTINGS,)]
    assert reader.derive("SELECT event_time, CAST(event_time AS STRING) AS day FROM in0") == [("1066-10-14 00:00:00",)]


def test_pages_that_an_index_names_in_another_order_keep_their_places(pulled: Callable[..., Reader]) -> None:
    reader = pulled(lambda raw: with_swapped_pages(raw, "people"))

    assert reader.ask("SELECT offset, people FROM cities WHERE people BETWEEN 400 AND 402") == [
        (400, 400), (401, 401), (402, 402)]  # fmt: skip
    derived = reader.derive("SELECT event_time, people FROM in0 WHERE people BETWEEN 400 AND 402")
    assert derived == [(400,), (401,), (402,)]
