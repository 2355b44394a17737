"""Reading without an engine: the newest rows, over as many slices as it takes and no more."""

from pathlib import Path
from typing import Any

import pytest

from odf_node.composition import Node
from odf_node.datasets.chains import iter_decoded
from odf_node.records.datasets import DatasetRecord
from odf_protocol.events import AddData
from odf_protocol.multihash import Multihash
from support.offers import Judge, PublisherHome, root_chain


@pytest.fixture
def record(judge: Judge, tmp_path: Path) -> DatasetRecord:
    """Rows 0 to 2, 3 to 5, 6, and 7 to 9 in four slices."""
    chain = root_chain(tmp_path)
    chain.add_rows([("six", 6)]).add_rows([("seven", 7), ("eight", 8), ("nine", 9)])
    return PublisherHome(judge).keep(chain)


def offsets(node: Node, record: DatasetRecord, **options: Any) -> list[int]:
    found: list[int] = node.reader.tail(record, **options).column("offset").to_pylist()
    return found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"count": 2}, [8, 9]),
        ({"count": 3}, [7, 8, 9]),
        ({"count": 4}, [6, 7, 8, 9]),
        ({"count": 6}, [4, 5, 6, 7, 8, 9]),
        ({"count": 100}, list(range(10))),
        ({"count": 0}, []),
        ({"count": 2, "skip": 1}, [7, 8]),
        ({"count": 2, "skip": 3}, [5, 6]),
        ({"count": 5, "skip": 8}, [0, 1]),
        ({"count": 5, "skip": 10}, []),
        ({"count": 5, "skip": 99}, []),
    ],
)
def test_tail_gives_the_newest_rows_oldest_first(
    node: Node, record: DatasetRecord, options: dict[str, int], expected: list[int]
) -> None:
    assert offsets(node, record, **options) == expected


def test_tail_opens_no_slice_that_it_does_not_need(node: Node, record: DatasetRecord) -> None:
    for object_hash in _slices(node, record)[:2]:
        node.objects.delete(object_hash)

    assert offsets(node, record, count=4) == [6, 7, 8, 9]


def _slices(node: Node, record: DatasetRecord) -> list[Multihash]:
    return [
        block.event.new_data.physical_hash
        for block in iter_decoded(node.store, record.id)
        if isinstance(block.event, AddData) and block.event.new_data
    ]


def test_dataset_without_rows_shows_its_columns(node: Node, judge: Judge, tmp_path: Path) -> None:
    record = PublisherHome(judge).keep(root_chain(tmp_path, slices=0))

    table = node.reader.tail(record, count=5)

    assert (table.num_rows, table.column_names[-2:]) == (0, ["city", "people"])
