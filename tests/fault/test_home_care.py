"""Backup, restore, scrub and garbage collection beside others that use the home (HOME-40 to HOME-47)."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import threading
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.acceptance.refusals import Rejections
from odf_node.adapters.home_backup import back_up, restore
from odf_node.adapters.key_backup import back_up_keys, restore_keys
from odf_node.adapters.key_files import KeyFiles
from odf_node.composition import open_node
from odf_node.errors import UsageError
from odf_node.home_folder import HomeFolder
from odf_node.records.errors import HomeVersionError, ObjectCorruptError, ObjectMismatchError
from odf_node.upkeep.scrubbing import Scrubber, read_scrub_state
from odf_protocol.errors import MalformedError
from odf_protocol.multihash import Multihash
from support.command_line import run_command as run
from support.exchange_nodes import NOON, Chain, TestNode
from support.homes import make_home
from support.syscall_steps import SUPPORTED, run_step_by_step


def nobody_waits(seconds: float) -> bool:
    return False


def nobody_hears(_: object) -> None:
    return


def make_node(folder: Path, name: str = "demo.data") -> tuple[TestNode, Chain]:
    node, chain = TestNode.create(folder), Chain(name, has_schema=True)
    for number in range(5):
        chain.add(f"slice {number}".encode() * 1000, b"checkpoint")
    node.keep(chain)
    return node, chain


def decay(node: TestNode, content: bytes) -> Path:
    path = node.objects.get_path(Multihash.of_sha3_256(content))
    path.chmod(0o600)
    path.write_bytes(content[:-1] + b"\0")
    return path


def assert_same(node: TestNode, chain: Chain) -> None:
    assert [block.raw for block in node.store.iter_blocks(chain.id)] == [block.raw for block in chain.blocks]
    for object_hash in chain.objects:
        node.objects.check(object_hash)


@pytest.mark.parametrize("name", ["backup", "backup.tar"])
def test_backup_is_restored_to_the_same_node_without_its_keys(tmp_path: Path, name: str) -> None:
    node, chain = make_node(tmp_path / "home")
    KeyFiles(node.home).get_or_create_node_key()
    report = back_up(node.home, tmp_path / name, nobody_hears)
    assert (report.datasets, report.objects, report.copied) == (1, 6, 6)
    restored = restore(HomeFolder(tmp_path / "other"), tmp_path / name, nobody_hears)
    assert (restored.datasets, restored.objects) == (1, 6)
    other = TestNode.create(tmp_path / "other")
    assert_same(other, chain)
    assert list(other.home.keys.rglob("*.pem")) == []
    # It goes on where the first one was.
    other.keep(chain.add(b"one more"))
    assert_same(other, chain)
    left = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert left == []


def test_folder_is_brought_up_to_date_and_copies_only_what_is_new(tmp_path: Path) -> None:
    node, chain = make_node(tmp_path / "home")
    back_up(node.home, tmp_path / "backup", nobody_hears)
    node.keep(chain.add(b"one more"))
    assert back_up(node.home, tmp_path / "backup", nobody_hears).copied == 1
    node.store.delete_dataset(chain.id)
    assert back_up(node.home, tmp_path / "backup", nobody_hears).objects == 0
    assert [path for path in (tmp_path / "backup/objects").rglob("*") if path.is_file()] == []


def test_backup_into_a_folder_goes_on_after_what_stopped_it_was_fixed(tmp_path: Path) -> None:
    node, chain = make_node(tmp_path / "home")
    decayed = decay(node, b"slice 3" * 1000)
    with pytest.raises(ObjectCorruptError):
        back_up(node.home, tmp_path / "backup", nobody_hears)
    with pytest.raises(MalformedError):
        restore(HomeFolder(tmp_path / "early"), tmp_path / "backup", nobody_hears)
    decayed.write_bytes(b"slice 3" * 1000)
    assert back_up(node.home, tmp_path / "backup", nobody_hears).objects == 6
    restore(HomeFolder(tmp_path / "other"), tmp_path / "backup", nobody_hears)
    assert_same(TestNode.create(tmp_path / "other"), chain)
    left = [path.name for path in (tmp_path / "backup").iterdir() if path.name.startswith(".")]
    assert left == []


_KILLED = """
import os, signal, sys
from pathlib import Path
from odf_node.adapters.home_backup import back_up
from odf_node.home_folder import HomeFolder
back_up(HomeFolder(Path(sys.argv[1])), Path(sys.argv[2]), lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_backup_into_a_file_removes_what_a_killed_one_left_and_nothing_of_one_that_goes_on(tmp_path: Path) -> None:
    node, chain = make_node(tmp_path / "home")
    target = tmp_path / "b[1].tar"
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(node.home.path), str(target)], check=False)
    assert killed.returncode == -signal.SIGKILL
    others = [tmp_path / name for name in (".b[1].tar.notes", ".b1.tar.00000000", ".b[1].tar.00000000")]
    for each in others:
        each.mkdir()
    (left,) = {*tmp_path.glob(".b*")} - {*others}
    assert (left / "archive").is_file()
    met = []

    def meet(_: object) -> None:
        if not met:
            met.append({*tmp_path.glob(".b*")} - {*others})
            back_up(node.home, target, nobody_hears)
            assert met[0] == {*tmp_path.glob(".b*")} - {*others}

    back_up(node.home, target, meet)
    assert (len(met[0]), left in met[0]) == (1, False)
    assert {*tmp_path.glob(".b*")} == {*others}
    restore(HomeFolder(tmp_path / "other"), target, nobody_hears)
    assert_same(TestNode.create(tmp_path / "other"), chain)


def test_second_backup_into_a_folder_waits_for_the_first_and_changes_nothing(tmp_path: Path) -> None:
    """Each would remove objects that the other one's database names."""
    node, chain = make_node(tmp_path / "home")
    target = tmp_path / "backup"
    back_up(node.home, target, nobody_hears)
    node.keep(chain.add(b"one more"))
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}

    def meet(_: object) -> None:
        with pytest.raises(UsageError, match="another backup"):
            back_up(node.home, target, nobody_hears)
        met.append({path: path.read_bytes() for path in before})

    met: list[dict[Path, bytes]] = []
    assert back_up(node.home, target, meet).copied == 1
    assert met[0] == before
    restore(HomeFolder(tmp_path / "other"), target, nobody_hears)
    assert_same(TestNode.create(tmp_path / "other"), chain)


@pytest.mark.skipif(not SUPPORTED, reason="traces system calls of Linux on x86-64 and ARM64")
def test_folder_has_a_whole_backup_before_each_step_of_the_next_one(tmp_path: Path) -> None:
    """Whenever a backup is killed, one can be restored, and the next one goes on there."""
    node, chain = make_node(tmp_path / "home")
    unwanted = Chain("unwanted.data", has_schema=True).add(b"what the next one does not name")
    node.keep(unwanted)
    target, before = tmp_path / "backup", chain.head
    back_up(node.home, target, nobody_hears)
    node.keep(chain.add(b"one more"))
    node.store.delete_dataset(unwanted.id)
    seen: list[set[tuple[str, int]]] = []
    found = set()

    def look(step: int) -> None:
        there = {(path.name, path.stat().st_ino) for path in target.rglob("*")}
        if there in seen:
            return
        seen.append(there)
        copy, home = tmp_path / f"copy-{step}", tmp_path / f"home-{step}"
        shutil.copytree(target, copy)
        restore(HomeFolder(home), copy, nobody_hears)
        other = TestNode.create(home)
        found.add(other.store.get_head(chain.id))
        for object_hash in other.store.list_referenced_objects():
            other.objects.check(object_hash)
        back_up(other.home, copy, nobody_hears)

    run_step_by_step(lambda: back_up(node.home, target, nobody_hears) and None, look)
    assert found == {before, chain.head}
    assert len(seen) > 5


def test_backup_beside_a_writer_is_one_consistent_state(tmp_path: Path) -> None:
    node, chain = make_node(tmp_path / "home")
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            node.keep(chain.add(f"more {number}".encode()))
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(4):
            back_up(node.home, tmp_path / f"{number}.tar", nobody_hears)
    finally:
        stop.set()
        writer.join()
    for number in range(4):
        restore(HomeFolder(tmp_path / f"home-{number}"), tmp_path / f"{number}.tar", nobody_hears)
        other = TestNode.create(tmp_path / f"home-{number}")
        head = other.store.get_head(chain.id)
        assert chain.blocks[head.sequence_number].hash == head.hash
        for object_hash in other.store.list_referenced_objects():
            other.objects.check(object_hash)


def test_damaged_object_stops_the_backup_and_leaves_no_file(tmp_path: Path) -> None:
    node, _ = make_node(tmp_path / "home")
    decay(node, b"slice 3" * 1000)
    with pytest.raises(ObjectCorruptError):
        back_up(node.home, tmp_path / "backup.tar", nobody_hears)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


@pytest.mark.parametrize("spoil", ["cut", "object", "missing-object", "no-manifest"])
def test_backup_that_is_not_whole_leaves_no_node_behind(tmp_path: Path, spoil: str) -> None:
    node, _ = make_node(tmp_path / "home")
    source = tmp_path / ("backup.tar" if spoil == "cut" else "backup")
    back_up(node.home, source, nobody_hears)
    objects = sorted(path for path in source.rglob("f1620*")) if source.is_dir() else []
    match spoil:
        case "cut":
            os.truncate(source, source.stat().st_size // 2)
        case "object":
            objects[0].write_bytes(b"other bytes")
        case "missing-object":
            objects[0].unlink()
        case _:
            (source / "backup.json").unlink()
    with pytest.raises((MalformedError, ObjectMismatchError)):
        restore(HomeFolder(tmp_path / "other"), source, nobody_hears)
    assert not HomeFolder(tmp_path / "other").exists()


def test_backup_of_another_build_is_rejected_by_its_name(tmp_path: Path) -> None:
    node, _ = make_node(tmp_path / "home")
    back_up(node.home, tmp_path / "backup", nobody_hears)
    with closing(sqlite3.connect(tmp_path / "backup/odf-node.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 1")
    with pytest.raises(HomeVersionError, match=r"backup: expected a home of version .* found version 0-00001"):
        restore(HomeFolder(tmp_path / "other"), tmp_path / "backup", nobody_hears)
    assert not HomeFolder(tmp_path / "other").exists()


def test_places_that_hold_something_else_are_left_alone(tmp_path: Path) -> None:
    node, _ = make_node(tmp_path / "home")
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents/letter.txt").touch()
    with pytest.raises(UsageError, match="something else"):
        back_up(node.home, tmp_path / "documents", nobody_hears)
    back_up(node.home, tmp_path / "backup", nobody_hears)
    with pytest.raises(UsageError, match="there is a node already"):
        restore(node.home, tmp_path / "backup", nobody_hears)


def test_keys_travel_in_a_file_of_their_own_and_never_replace_others(tmp_path: Path) -> None:
    keys = KeyFiles(HomeFolder(tmp_path / "home"))
    node_key = keys.get_or_create_node_key()
    dataset_key = keys.generate()
    dataset = keys.put_dataset_key(dataset_key)
    assert back_up_keys(HomeFolder(tmp_path / "home"), tmp_path / "keys.tar") == 2
    assert (tmp_path / "keys.tar").stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="exists already"):
        back_up_keys(HomeFolder(tmp_path / "home"), tmp_path / "keys.tar")
    assert restore_keys(HomeFolder(tmp_path / "other"), tmp_path / "keys.tar") == 2
    other = KeyFiles(HomeFolder(tmp_path / "other"))
    assert other.get_or_create_node_key() == node_key
    assert other.get_dataset_key(dataset) == dataset_key
    third = KeyFiles(HomeFolder(tmp_path / "third"))
    own = third.get_or_create_node_key()
    assert restore_keys(HomeFolder(tmp_path / "third"), tmp_path / "keys.tar") == 1
    assert third.get_or_create_node_key() == own


def test_file_of_keys_cannot_write_anywhere_else(tmp_path: Path) -> None:
    (tmp_path / "evil").write_text("x")
    for name in ("../evil.pem", "datasets/../../evil.pem", "/tmp/evil.pem", "node.txt"):
        with tarfile.open(tmp_path / "keys.tar", "w") as archive:
            archive.add(tmp_path / "evil", name)
        with pytest.raises(MalformedError):
            restore_keys(HomeFolder(tmp_path / "home"), tmp_path / "keys.tar")
    assert not (tmp_path / "evil.pem").exists()


def test_scrub_finds_what_decayed_and_what_is_gone_and_sees_it_fixed(tmp_path: Path) -> None:
    node, _ = make_node(tmp_path / "home")
    scrubber = Scrubber(make_home(node.home, node.store))
    assert scrubber.run(now=lambda: NOON, bytes_per_second=0, wait=nobody_waits, on_damage=nobody_hears).damaged == ()
    decay(node, b"slice 3" * 1000)
    node.objects.delete(Multihash.of_sha3_256(b"slice 1" * 1000))
    heard: list[str] = []
    found = scrubber.run(now=lambda: NOON, bytes_per_second=0, wait=nobody_waits, on_damage=heard.append)
    lost = {str(Multihash.of_sha3_256(f"slice {number}".encode() * 1000)) for number in (1, 3)}
    assert set(found.damaged) == set(heard) == lost
    assert read_scrub_state(node.home.cache) == found
    node.put_objects([b"slice 1" * 1000, b"slice 3" * 1000])
    assert scrubber.run(now=lambda: NOON, bytes_per_second=0, wait=nobody_waits, on_damage=nobody_hears).damaged == ()


def test_scrub_that_is_stopped_goes_on_where_it_was_and_keeps_to_its_rate(tmp_path: Path) -> None:
    node, _ = make_node(tmp_path / "home")
    scrubber = Scrubber(make_home(node.home, node.store))
    waited: list[float] = []

    def stop_after_two(seconds: float) -> bool:
        waited.append(seconds)
        return len(waited) == 2

    state = scrubber.run(now=lambda: NOON, bytes_per_second=1000, wait=stop_after_two, on_damage=nobody_hears)
    assert (state.checked, state.ended_at) == (2, None)
    assert sum(waited) == pytest.approx(state.checked_bytes / 1000, abs=0.5)
    state = scrubber.run(now=lambda: NOON, bytes_per_second=0, wait=nobody_waits, on_damage=nobody_hears)
    assert (state.checked, state.ended_at) == (6, str(NOON))


def test_sweeps_beside_writers_never_take_what_is_committed(tmp_path: Path) -> None:
    node = TestNode.create(tmp_path / "home")
    stop, have_run = threading.Event(), [threading.Event(), threading.Event()]

    def sweep(has_run: threading.Event) -> None:
        sweeper = TestNode.create(tmp_path / "home")
        # With a breath between two sweeps: a writer that is always kept out would write nothing to be taken.
        while not stop.wait(0.002):
            if sweeper.objects.sweep(sweeper.store.list_referenced_objects, now=NOON).ran:
                has_run.set()

    threads = [threading.Thread(target=sweep, args=(each,)) for each in have_run]
    for thread in threads:
        thread.start()
    chains = [Chain(f"data.{number}", has_schema=True) for number in range(5)]
    for round_number in range(10):
        for chain in chains:
            node.keep(chain.add(f"{chain.name} {round_number}".encode()))
    for each in have_run:
        assert each.wait(240)
    stop.set()
    for thread in threads:
        thread.join()
    for chain in chains:
        assert_same(node, chain)


def write_rejections(folder: Path) -> None:
    for number in range(5):
        (folder / str(number)).mkdir(parents=True)
        (folder / str(number) / "report.json").write_bytes(b"x" * 1000)
        os.utime(folder / str(number), (number, number))


def test_rejections_beyond_their_share_go_oldest_first(tmp_path: Path) -> None:
    folder = tmp_path / "refused"
    write_rejections(folder)
    each = 4 * 4096  # a folder and a file, and what a disk keeps about them
    assert Rejections(folder, limit_bytes=3 * each - 1).trim() == (3, 3 * each)
    assert sorted(path.name for path in folder.iterdir()) == ["3", "4"]
    assert Rejections(folder, limit_bytes=1).trim() == (1, each)
    assert Rejections(folder).trim() == (0, 0)


def test_garbage_collection_keeps_as_much_evidence_as_the_settings_of_the_home_say(tmp_path: Path) -> None:
    node, _ = make_node(tmp_path)
    write_rejections(node.home.refused)
    for limit_bytes, kept in (("0", 5), ("100_000", 5), ("40_000", 2)):
        (tmp_path / "odf-node.toml").write_text(f"[storage]\nrefused_bytes = {limit_bytes}\n")
        assert run(tmp_path, "gc").returncode == 0
        assert len(list(node.home.refused.iterdir())) == kept


def test_share_of_rejections_that_changes_counts_at_once(tmp_path: Path) -> None:
    node = open_node(tmp_path)
    for limit_bytes in (0, 2500):
        node.refused_bytes = limit_bytes
        assert node.refusals.limit_bytes == limit_bytes
    node.close()


def test_commands_say_what_they_did_and_end_with_the_code_of_damage(tmp_path: Path) -> None:
    node, chain = make_node(tmp_path / "home")
    KeyFiles(node.home).get_or_create_node_key()
    target, keys = str(tmp_path / "backup"), str(tmp_path / "keys.tar")
    made = run(tmp_path / "home", "backup", target, "--keys", keys, "-o", "json")
    report = json.loads(made.stdout)
    assert report.pop("signer").startswith("did:key:z")
    assert report == {"datasets": 1, "objects": 6, "copied": 6, "copied_bytes": 35_010, "keys": 1}
    back = run(tmp_path / "other", "restore", target, "--keys", keys)
    assert (back.returncode, "1 dataset and 6 objects are back" in back.stdout) == (0, True)
    assert run(tmp_path / "home", "scrub").returncode == 0
    decay(node, b"slice 3" * 1000)
    found = run(tmp_path / "home", "scrub", "-o", "json")
    assert found.returncode == 6
    assert json.loads(found.stdout)["damaged"] == [str(Multihash.of_sha3_256(b"slice 3" * 1000))]
    node.store.delete_dataset(chain.id)
    freed = run(tmp_path / "home", "gc", "-o", "json")
    assert (freed.returncode, json.loads(freed.stdout)["objects"]) == (0, 6)
    with node.objects.writing():
        assert run(tmp_path / "home", "gc").returncode == 5
