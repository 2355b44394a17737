"""Fingerprints of the versions of a node's own table, and what stands after each of them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import odf_node
from odf_fingerprints.documents import RowsFingerprint
from odf_fingerprints.histograms import MAX_BITS, MIN_FLOOR, Histogram, bin_of
from odf_fingerprints.kept import FILE, FingerprintOrigin, KeptFingerprints
from odf_fingerprints.making import FingerprintMaker
from odf_fingerprints.reading import VersionFingerprint, read_fingerprints
from odf_node.composition import Node, open_node
from odf_node.front import OpenNode
from odf_node.home_folder import HomeFolder
from odf_node.records.datasets import DatasetRecord


@pytest.fixture
def home(tmp_path: Path) -> HomeFolder:
    """Blocks 3 to 6: two rows, one corrected and one more, one gone, one corrected."""
    with odf_node.open(tmp_path / "home") as opened:
        fill(opened)
    return HomeFolder(tmp_path / "home")


def fill(opened: OpenNode) -> None:
    table = opened.create_table("prices", "id BIGINT, price DOUBLE, town STRING", key=["id"])
    table.insert([row(1, 1.0, "Oslo"), row(2, 2.0, "Lima")])
    table.upsert([row(2, 2.5, "Lima"), row(3, 3.0, None)])
    table.delete(where="id = 1")
    table.upsert([row(2, 700.0, "La Paz")])


def row(number: int, price: float, town: str | None) -> dict[str, Any]:
    return {"id": number, "price": price, "town": town}


@pytest.fixture
def node(home: HomeFolder) -> Iterator[Node]:
    opened = open_node(home.path)
    yield opened
    opened.close()


def make(node: Node) -> tuple[DatasetRecord, list[VersionFingerprint]]:
    (record,) = node.store.list_datasets()
    with FingerprintMaker(node.home) as maker:
        maker.make(record)
    return record, [*read_fingerprints(node.home, record)]


def histogram_of(values: list[float]) -> Histogram:
    counts = Counter(bin_of(value, MAX_BITS, MIN_FLOOR) for value in values)
    return Histogram(MAX_BITS, MIN_FLOOR, tuple(sorted(counts.items())))


def prices_of(rows: RowsFingerprint) -> Histogram:
    column = rows.column("price")
    assert column is not None
    return column.histogram


def test_version_is_described_by_what_it_adds_and_takes_away(node: Node) -> None:
    """FP-1, FP-11."""
    _, versions = make(node)
    assert [each.sequence for each in versions] == [3, 4, 5, 6]
    assert [each.fingerprint.operations for each in versions] == [
        (2, 0, 0, 0),
        (1, 0, 1, 1),
        (0, 1, 0, 0),
        (0, 0, 1, 1),
    ]
    assert {each.origin for each in versions} == {FingerprintOrigin.OWN}
    assert prices_of(versions[1].added) == histogram_of([2.5, 3.0])
    assert prices_of(versions[1].removed) == histogram_of([2.0])


def test_what_stands_after_a_version_is_described_as_its_current_rows(node: Node) -> None:
    """FP-5: after each version, by what the table's current rows are."""
    _, versions = make(node)
    expected = [[1.0, 2.0], [1.0, 2.5, 3.0], [2.5, 3.0], [3.0, 700.0]]
    assert [prices_of(each.current) for each in versions] == [histogram_of(prices) for prices in expected]
    towns = [each.current.column("town") for each in versions]
    assert [None if town is None else (town.values, town.nulls) for town in towns] == [(2, 0), (2, 1), (1, 1), (1, 1)]


def test_what_was_dropped_from_the_cache_is_computed_to_the_same_bytes(node: Node) -> None:
    """FP-2."""
    record, first = make(node)
    documents = [each.document for each in KeptFingerprints(node.home.folder).read(record.id)]
    (node.home.folder.cache / FILE).unlink()
    assert read_fingerprints(node.home, record) == []
    assert make(node)[1] == first
    assert [each.document for each in KeptFingerprints(node.home.folder).read(record.id)] == documents


def test_damaged_cache_is_begun_anew(node: Node) -> None:
    """FP-2."""
    _, first = make(node)
    (node.home.folder.cache / FILE).write_bytes(b"no database" * 1_000)
    assert make(node)[1] == first


def test_versions_end_before_the_first_without_a_fingerprint(node: Node) -> None:
    """FP-5."""
    (record,) = node.store.list_datasets()
    with FingerprintMaker(node.home) as maker:
        assert maker.make(record, limit=2) == 2
        assert [each.sequence for each in read_fingerprints(node.home, record)] == [3, 4]
        assert maker.make(record) == 2
        assert maker.make(record) == 0
    assert [each.sequence for each in read_fingerprints(node.home, record)] == [3, 4, 5, 6]


def test_no_value_of_a_text_is_in_a_fingerprint(node: Node) -> None:
    """FP-14."""
    record, versions = make(node)
    raw = b"".join(each.document for each in KeptFingerprints(node.home.folder).read(record.id))
    for value in (b"Oslo", b"Lima", b"La Paz"):
        assert value not in raw
    town = versions[0].added.column("town")
    assert town is not None
    assert town.shapes == (("Aa", 2),)
    assert (town.min, town.max, town.top) == ("", "", ())
