"""Repair: every kind of loss, fixed from whoever has the same bytes, and from nobody else."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.layout_places import find_layout_target
from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Silence
from odf_node.records.datasets import Remote, RemoteDirection
from odf_node.upkeep.repairing import RepairReport
from support.offers import NOW, Judge, PeerChain, PublisherHome

NOWHERE = "http://127.0.0.1:9/cities"


@pytest.fixture
def home(tmp_path: Path, chain: PeerChain) -> HomeFolder:
    publisher = PublisherHome(Judge.create(tmp_path / "home"))
    publisher.keep(chain)
    return publisher.judge.home


@pytest.fixture
def source(tmp_path: Path, home: HomeFolder) -> str:
    """The same dataset, whole, in a folder."""
    with closing(Node(home, FixedClock(NOW))) as node:
        (record,) = node.store.list_datasets()
        target = find_layout_target(str(tmp_path / "backup" / "cities"), "cities")
        assert target is not None
        asyncio.run(node.exporting.export(record, target, Silence()))
        return target.url


def repair(home: HomeFolder, *sources: str) -> RepairReport:
    with closing(Node(home, FixedClock(NOW))) as node:
        (record,) = node.store.list_datasets()
        return asyncio.run(node.repairing.repair(record, sources, Silence()))


def audited(home: HomeFolder) -> list[tuple[str, str, str]]:
    with closing(Node(home, FixedClock(NOW))) as node:
        return [(e.command, e.subject, e.detail) for e in node.store.iter_audit(limit=9)]


def change(home: HomeFolder, statement: str, *values: object) -> None:
    """Change the database behind its back."""
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(statement, values)


def contents(home: HomeFolder, chain: PeerChain) -> tuple[object, ...]:
    """Everything that a repair has to bring back."""
    with closing(Node(home, FixedClock(NOW))) as node:
        blocks = list(node.store.iter_blocks(chain.id))
        return blocks, [node.objects.get_path(item).read_bytes() for item in chain.files]


def object_path(home: HomeFolder, chain: PeerChain, number: int = 0) -> Path:
    object_hash = list(chain.files)[number]
    return home.objects / object_hash.digest[:1].hex() / str(object_hash)


def flip(home: HomeFolder, chain: PeerChain) -> None:
    path = object_path(home, chain)
    path.write_bytes(b"x" + path.read_bytes()[1:])


def remove(home: HomeFolder, chain: PeerChain) -> None:
    object_path(home, chain).unlink()


def truncate(home: HomeFolder, chain: PeerChain) -> None:
    object_path(home, chain).write_bytes(b"")


def remove_all(home: HomeFolder, chain: PeerChain) -> None:
    for number in range(len(chain.files)):
        object_path(home, chain, number).unlink()


def rot_block(home: HomeFolder, chain: PeerChain) -> None:
    change(home, "UPDATE blocks SET raw = zeroblob(length(raw)) WHERE sequence_number = 2")


def rot_head(home: HomeFolder, chain: PeerChain) -> None:
    change(home, "UPDATE blocks SET raw = zeroblob(10) WHERE sequence_number = 3")


def rot_hash(home: HomeFolder, chain: PeerChain) -> None:
    change(home, "UPDATE blocks SET hash = zeroblob(3) WHERE sequence_number = 1")


def swap_block(home: HomeFolder, chain: PeerChain) -> None:
    change(home, "UPDATE blocks SET raw = (SELECT raw FROM blocks WHERE sequence_number = 0) WHERE sequence_number = 1")


def lose_block(home: HomeFolder, chain: PeerChain) -> None:
    change(home, "DELETE FROM blocks WHERE sequence_number = 1")


def rot_blocks(home: HomeFolder, chain: PeerChain) -> None:
    change(home, "UPDATE blocks SET raw = x'00'")


def rot_everything(home: HomeFolder, chain: PeerChain) -> None:
    rot_blocks(home, chain)
    remove_all(home, chain)


LOSSES = {
    "flipped byte": (flip, 0, 1),
    "missing file": (remove, 0, 1),
    "empty file": (truncate, 0, 1),
    "all files": (remove_all, 0, 2),
    "rotten block": (rot_block, 1, 0),
    "rotten head": (rot_head, 1, 0),
    "rotten hash": (rot_hash, 1, 0),
    "another block": (swap_block, 1, 0),
    "missing block": (lose_block, 1, 0),
    "all blocks": (rot_blocks, 4, 0),
    "everything": (rot_everything, 4, 2),
}


@pytest.mark.parametrize(("lose", "blocks", "objects"), LOSSES.values(), ids=LOSSES)
def test_what_was_lost_is_fixed_byte_by_byte(
    lose: Callable[[HomeFolder, PeerChain], None],
    blocks: int,
    objects: int,
    home: HomeFolder,
    chain: PeerChain,
    source: str,
) -> None:
    before = contents(home, chain)
    lose(home, chain)

    report = repair(home, source)

    assert (report.mended_blocks, report.mended_objects, report.left) == (blocks, objects, [])
    assert list(report.sources) == [source]
    assert contents(home, chain) == before
    assert not list(home.cache.glob("damaged-*"))
    assert audited(home) == [("repair", "cities", f"{blocks} blocks, {objects} objects")]


def test_whole_dataset_asks_nobody(home: HomeFolder) -> None:
    report = repair(home, NOWHERE)
    assert (report.is_whole, report.failures, report.checked_blocks, report.checked_objects) == (True, [], 4, 2)
    assert audited(home) == []


@pytest.mark.parametrize("lose", [flip, remove, rot_block, lose_block])
def test_loss_without_a_source_is_named_and_left_as_it_was(
    lose: Callable[[HomeFolder, PeerChain], None], home: HomeFolder, chain: PeerChain
) -> None:
    lose(home, chain)
    path = object_path(home, chain)
    before = path.read_bytes() if path.exists() else None

    report = repair(home, NOWHERE)

    assert len(report.left) == 1
    assert any("127.0.0.1" in text for text in report.failures)
    assert (path.read_bytes() if path.exists() else None) == before


def test_source_that_has_other_bytes_fixes_nothing(
    home: HomeFolder, chain: PeerChain, source: str, tmp_path: Path
) -> None:
    flip(home, chain)
    damaged = object_path(home, chain).read_bytes()
    lie = tmp_path / "backup" / "cities" / "data" / str(next(iter(chain.files)))
    lie.write_bytes(damaged)

    report = repair(home, source)

    assert len(report.left) == 1
    assert "EX-12 object-hash" in report.failures[0] or "hash" in report.failures[0]
    assert object_path(home, chain).read_bytes() == damaged


def test_block_of_another_hash_is_not_taken(home: HomeFolder, chain: PeerChain, source: str, tmp_path: Path) -> None:
    rot_block(home, chain)
    lie = tmp_path / "backup" / "cities" / "blocks" / str(chain.blocks[2].hash)
    lie.write_bytes(chain.blocks[1].raw)

    assert "block 2 is damaged" in repair(home, source).left


def test_next_source_gives_what_the_first_one_lacks(
    home: HomeFolder, chain: PeerChain, source: str, tmp_path: Path
) -> None:
    remove_all(home, chain)
    first, second = (str(item) for item in chain.files)
    other = tmp_path / "other" / "cities"
    (other / "data").mkdir(parents=True)
    held = tmp_path / "backup" / "cities" / "data"
    (held / first).rename(other / "data" / first)

    report = repair(home, other.as_uri(), source)

    assert (report.mended_objects, report.left) == (2, [])
    assert list(report.sources) == [other.as_uri(), source]
    assert (held / second).exists()


def test_own_dataset_is_fixed_from_where_it_was_pushed(home: HomeFolder, chain: PeerChain, source: str) -> None:
    with closing(Node(home, FixedClock(NOW))) as node:
        node.store.put_remote(Remote(chain.id, RemoteDirection.PUSH, source))
    flip(home, chain)
    assert repair(home).mended_objects == 1


def test_command_says_what_it_fixed_and_what_it_could_not(
    home: HomeFolder, chain: PeerChain, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(home, chain)
    assert main(["repair", "--home", str(home.path)]) == 6
    assert "NOT FIXED" in capsys.readouterr().out
    assert main(["repair", "cities", "--from", source, "--home", str(home.path)]) == 0
    assert "fixed 0 blocks and 1 object " in capsys.readouterr().out
    assert main(["repair", "--home", str(home.path)]) == 0
