"""Fingerprints of the versions of a node's own table, and what stands after each of them."""

import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import odf_node
from odf_fingerprints import making
from odf_fingerprints.background import MAX_ATTEMPTS, FingerprintLook
from odf_fingerprints.computing import FingerprintReader
from odf_fingerprints.documents import RowsFingerprint
from odf_fingerprints.histograms import MAX_BITS, MIN_FLOOR, Histogram, bin_of
from odf_fingerprints.kept import FILE, FingerprintOrigin, KeptFingerprints
from odf_fingerprints.making import FingerprintMaker
from odf_fingerprints.reading import VersionFingerprint, read_fingerprints
from odf_node.composition import Node, open_node
from odf_node.front import OpenNode
from odf_node.home_folder import HomeFolder
from odf_node.records.datasets import DatasetRecord
from odf_protocol.block import decode_block
from odf_protocol.did import DatasetId
from odf_protocol.errors import UnavailableError
from odf_protocol.multihash import Multihash


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


def test_block_is_decoded_when_its_fingerprint_is_missing_and_not_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FP-11: work follows what is new, not how long the chain is."""
    (record,) = node.store.list_datasets()
    decoded = []

    def counted(raw: bytes, **options: Any) -> Any:
        decoded.append(raw)
        return decode_block(raw, **options)

    monkeypatch.setattr(making, "decode_block", counted)
    counts = []
    with FingerprintMaker(node.home) as maker:
        for limit in (2, 1, None, 20):
            maker.make(record, limit=limit)
            counts.append(len(decoded))
    assert counts == [2, 3, 4, 4]


def test_versions_of_another_history_are_forgotten_and_computed_of_the_present_one(node: Node) -> None:
    """FP-11."""
    record, first = make(node)
    kept = KeptFingerprints(node.home.folder)
    newest = kept.read(record.id)[-1]
    other = [replace(newest, sequence=number, block=Multihash.of_sha3_256(b"%d" % number)) for number in (7, 8)]
    kept.append(record.id, other, behind=newest.version)
    assert make(node)[1] == first
    assert [each.sequence for each in kept.read(record.id)] == [3, 4, 5, 6]


def test_what_was_computed_is_kept_behind_the_version_before_it_alone(node: Node) -> None:
    """FP-2: a cache that is emptied while versions are computed has no gap afterwards."""
    record, first = make(node)
    kept = KeptFingerprints(node.home.folder)
    computed = kept.read(record.id)
    (node.home.folder.cache / FILE).unlink()
    with pytest.raises(UnavailableError, match="was emptied while fingerprints were computed; try again"):
        kept.append(record.id, computed[1:], behind=computed[0].version)
    assert kept.read(record.id) == []
    assert make(node)[1] == first


def test_dataset_whose_reader_is_ended_does_not_keep_others_waiting(
    home: HomeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FP-11."""
    with odf_node.open(home.path) as opened:
        for name in ("after", "before"):
            opened.create_table(name, "id BIGINT", key=["id"]).insert([{"id": 1}])
    node = open_node(home.path)
    ended, *others = node.store.list_datasets()
    describe, asked = FingerprintReader.describe, []

    def killed(self: FingerprintReader, path: Path, dataset: DatasetId, *rest: Any, **options: Any) -> Any:
        if dataset == ended.id:
            asked.append(dataset)
            raise UnavailableError("the reader of slices was ended by SIGKILL; try again")
        return describe(self, path, dataset, *rest, **options)

    monkeypatch.setattr(FingerprintReader, "describe", killed)
    look = FingerprintLook(node)
    assert [look.look() for _ in range(MAX_ATTEMPTS + 1)] == [True, True, False, False]
    assert len(asked) == MAX_ATTEMPTS
    assert {len(read_fingerprints(node.home, each)) > 0 for each in others} == {True}
    node.close()


def test_look_forgets_datasets_that_are_gone(node: Node) -> None:
    """FP-11."""
    record, _ = make(node)
    kept = KeptFingerprints(node.home.folder)
    gone = DatasetId(bytes(32))
    kept.put(gone, [replace(each, current=None) for each in kept.read(record.id)])
    assert kept.list_datasets() == {str(gone), str(record.id)}
    FingerprintLook(node).look()
    assert kept.list_datasets() == {str(record.id)}


@pytest.mark.parametrize("page", [1, 2, 3])
def test_cache_that_is_damaged_anywhere_is_begun_anew(node: Node, page: int) -> None:
    """FP-2: also behind the first page, where it is found when rows are read."""
    _, first = make(node)
    path = node.home.folder.cache / FILE
    content = bytearray(path.read_bytes())
    start = (page - 1) * 4096 + (100 if page == 1 else 0)
    content[start : page * 4096] = b"\xa5" * (page * 4096 - start)
    path.write_bytes(content)
    assert (make(node)[1] or make(node)[1]) == first  # what is found when documents are read is computed afterwards
    assert make(node)[1] == first


def test_cache_without_its_tables_is_begun_anew(node: Node) -> None:
    """FP-2."""
    _, first = make(node)
    with sqlite3.connect(node.home.folder.cache / FILE) as connection:
        connection.execute("DROP TABLE fingerprints")
    connection.close()
    assert make(node)[1] == first


def test_cache_that_two_processes_begin_together_holds_what_both_put(tmp_path: Path) -> None:
    """FP-2."""
    dataset, rounds, processes = DatasetId(bytes(32)), 20, 4
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from odf_fingerprints.kept import FingerprintOrigin, KeptFingerprint, KeptFingerprints\n"
        "from odf_node.home_folder import HomeFolder\n"
        "from odf_protocol.did import DatasetId\n"
        "from odf_protocol.multihash import Multihash\n"
        "number = int(sys.argv[1])\n"
        "for line in sys.stdin:\n"
        "    each = KeptFingerprint(number, Multihash.of_sha3_256(b'x'), FingerprintOrigin.PEER, b'x')\n"
        "    KeptFingerprints(HomeFolder(Path(line.strip()))).put(DatasetId(bytes(32)), [each])\n"
        "    print(number, flush=True)\n"
    )
    with ExitStack() as opened:
        running = [
            opened.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", script, str(number)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(processes)
        ]
        for place in range(rounds):
            folder = tmp_path / str(place)
            for each in running:
                assert each.stdin is not None
                each.stdin.write(f"{folder}\n")
                each.stdin.flush()
            for number, each in enumerate(running):
                assert each.stdout is not None
                assert each.stdout.readline() == f"{number}\n"
            found = KeptFingerprints(HomeFolder(folder)).read(dataset)
            assert [each.sequence for each in found] == [*range(processes)]
