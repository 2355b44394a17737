"""Rows for engines on disk: HOME-24 and HOME-25."""

import os
import threading
import time
from pathlib import Path

import pytest

from odf_node.adapters.object_folder import ObjectFolder
from odf_node.adapters.rows_folder import IN_USE_S, RowsFolder
from odf_node.home_folder import HomeFolder
from odf_node.ports.rows import RowsRoom
from odf_protocol.multihash import Multihash


@pytest.fixture
def home(tmp_path: Path) -> HomeFolder:
    return HomeFolder(tmp_path / "home")


@pytest.fixture
def rows(home: HomeFolder) -> RowsFolder:
    return RowsFolder(home)


def store(home: HomeFolder, content: bytes) -> Multihash:
    """Keep an object."""
    name, objects = Multihash.of_sha3_256(content), ObjectFolder(home)
    with objects.writing(), objects.stage() as staged:
        staged.write(content)
        objects.put(staged, name)
    return name


def make(rows: RowsFolder, name: Multihash, content: bytes) -> Path:
    with rows.making(name) as file:
        file.write(content)
    path = rows.find(name)
    assert path is not None
    return path


def test_rows_are_found_once_they_are_made(home: HomeFolder, rows: RowsFolder) -> None:
    name = store(home, b"object")
    assert rows.find(name) is None

    path = make(rows, name, b"rows")

    assert path.read_bytes() == b"rows"
    assert path.stat().st_mode & 0o777 == 0o600
    assert (rows.measure(), rows.get_size(name)) == (RowsRoom(1, 4), 4)


def test_rows_whose_making_fails_leave_nothing(home: HomeFolder, rows: RowsFolder) -> None:
    name = store(home, b"object")

    def fail() -> None:
        with rows.making(name) as file:
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert rows.find(name) is None
    assert [path.name for path in home.staging.iterdir() if path.name.startswith("rows-")] == []


@pytest.mark.parametrize("damage", [b"rowz", b"ro", b""], ids=["changed", "cut", "empty"])
def test_damaged_rows_count_as_absent_and_can_be_made_again(home: HomeFolder, rows: RowsFolder, damage: bytes) -> None:
    name = store(home, b"object")
    make(rows, name, b"rows").write_bytes(damage)

    assert rows.find(name) is None
    assert make(rows, name, b"rows").read_bytes() == b"rows"
    assert rows.measure().files == 1


def test_rows_that_are_made_anew_are_never_absent_for_another_command(home: HomeFolder, rows: RowsFolder) -> None:
    name = store(home, b"object")
    make(rows, name, b"rows")
    is_made, seen = threading.Event(), []

    def look() -> None:
        while not is_made.is_set():
            path = RowsFolder(home).find(name)
            seen.append(path is not None and path.read_bytes() == b"rows")

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(300):
            make(rows, name, b"rows")
    finally:
        is_made.set()
        looking.join()

    assert len(seen) > 10
    assert all(seen)


def test_object_of_our_own_writer_is_taken_without_a_copy(home: HomeFolder, rows: RowsFolder) -> None:
    name = store(home, b"object")
    path = ObjectFolder(home).get_path(name)

    rows.adopt(name, path)

    found = rows.find(name)
    assert found is not None
    assert found.samefile(path)
    assert (rows.measure(), rows.get_size(name)) == (RowsRoom(1, 0), 0)


def test_decayed_object_that_was_taken_counts_as_absent(home: HomeFolder, rows: RowsFolder) -> None:
    name = store(home, b"object")
    path = ObjectFolder(home).get_path(name)
    rows.adopt(name, path)
    path.write_bytes(b"objekt")

    assert rows.find(name) is None


def test_clearing_removes_what_takes_room_and_nothing_else(home: HomeFolder, rows: RowsFolder) -> None:
    own, other = store(home, b"own"), store(home, b"other")
    rows.adopt(own, ObjectFolder(home).get_path(own))
    make(rows, other, b"rows")

    assert rows.clear() == RowsRoom(1, 4)
    assert rows.find(other) is None
    assert rows.find(own) is not None


def test_rows_go_with_their_object(home: HomeFolder, rows: RowsFolder) -> None:
    own, other = store(home, b"own"), store(home, b"other")
    rows.adopt(own, ObjectFolder(home).get_path(own))
    make(rows, other, b"rows")

    ObjectFolder(home).delete(own)
    ObjectFolder(home).delete(other)

    assert rows.measure() == RowsRoom()


def test_beyond_the_bound_what_was_used_longest_ago_goes_first(home: HomeFolder) -> None:
    rows = RowsFolder(home, 25)
    names = [store(home, b"%d" % n) for n in range(4)]
    now = time.time()
    for age, name in enumerate(names):
        path = make(rows, name, bytes(10))
        os.utime(path, (now, now - IN_USE_S - 10 - age))

    rows.trim()

    assert [rows.find(name) is not None for name in names] == [True, True, False, False]


def test_what_a_request_may_still_read_is_not_trimmed(home: HomeFolder) -> None:
    rows = RowsFolder(home, 1)
    name = store(home, b"object")
    make(rows, name, bytes(10))

    rows.trim()

    assert rows.find(name) is not None
