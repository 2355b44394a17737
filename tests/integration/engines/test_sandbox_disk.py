"""Clauses SANDBOX-8 and SANDBOX-14: measuring and removing what a hostile process wrote."""

# ruff: noqa: PTH102, PTH123 - folders deeper than a path can be long are made step by step

import os
import resource
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from odf_engines.sandbox.disk import DiskUsage, WatchedFolder, disk_usage, remove_tree

MIB = 1024 * 1024


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "out"
    made.mkdir()
    return made


@contextmanager
def running(program, folder):
    """Run a program with the folder as its argument, until the test is done with it."""
    holder = subprocess.Popen([sys.executable, "-c", program, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield holder
    finally:
        holder.kill()
        holder.communicate()


def dig(folder, depth):
    """Nest folders deeper than a path can be long; return to where the test was."""
    before = os.open(".", os.O_RDONLY)
    os.chdir(folder)
    for _ in range(depth):
        os.mkdir("nested")
        os.chdir("nested")
    with open("file", "wb") as file:
        file.write(bytes(4096))
    os.chdir(before)
    os.close(before)


def test_bytes_and_entries_are_counted_and_links_not_followed(folder, tmp_path):
    (tmp_path / "large").write_bytes(bytes(MIB))
    (folder / "link").symlink_to(tmp_path / "large")
    (folder / "folder").mkdir()
    (folder / "folder" / "file").write_bytes(bytes(8192))
    used = disk_usage(folder)
    assert (used.entries, used.is_flooded) == (3, False)
    assert 8192 <= used.size_bytes < MIB


def test_folder_that_became_a_link_counts_as_nothing(folder, tmp_path):
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert disk_usage(folder) == DiskUsage()


def test_more_entries_than_an_honest_session_makes_are_a_flood(folder):
    for number in range(20_001):
        os.close(os.open(folder / str(number), os.O_CREAT))
    assert disk_usage(folder).is_flooded
    remove_tree(folder)
    assert not folder.exists()


def test_folders_nested_too_deep_are_a_flood(folder):
    dig(folder, 40)
    assert disk_usage(folder).is_flooded


@pytest.mark.skipif("__import__('os').getuid() == 0", reason="root may open every folder")
def test_folder_that_cannot_be_opened_is_a_flood(folder):
    (folder / "closed").mkdir(mode=0)
    assert disk_usage(folder).is_flooded


def test_files_without_a_name_are_counted_while_they_are_held(folder):
    with (folder / "file").open("wb", 0) as file:
        file.write(bytes(MIB))
        # Of a process of its own: what else this one holds is its own affair.
        holder = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[file.fileno()])
    watched = WatchedFolder(folder, 7 * MIB)
    # Once while it has a name and is open, too.
    assert MIB <= watched.usage([holder.pid]).size_bytes < 2 * MIB
    (folder / "file").unlink()
    assert MIB <= watched.usage([holder.pid]).size_bytes < 2 * MIB
    holder.communicate()
    assert watched.usage([holder.pid]).size_bytes == 0


_ONLY_MAPS = """
import ctypes, sys, tempfile
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
while True:
    with tempfile.TemporaryFile(dir=sys.argv[1]) as file:
        file.truncate(4096)
        mapped = libc.mmap(None, 4096, 1, 2, file.fileno(), 0)
    print(flush=True)
    sys.stdin.readline()
    assert not libc.munmap(mapped, 4096)
"""


def test_file_that_is_mapped_and_not_open_counts_as_the_largest_when_it_stays_so(folder):
    with running(_ONLY_MAPS, folder) as holder:
        holder.stdout.readline()
        watched = WatchedFolder(folder, 7 * MIB)
        assert [watched.usage([holder.pid]).size_bytes for _ in range(3)] == [0, 7 * MIB, 7 * MIB]


def test_file_that_is_mapped_and_not_open_counts_nothing_while_it_is_opened_or_closed(folder):
    # As the first of a library's two steps is seen and the second is not.
    with running(_ONLY_MAPS, folder) as holder:
        watched = WatchedFolder(folder, MIB)
        for _ in range(3):
            holder.stdout.readline()
            assert watched.usage([holder.pid]).size_bytes == 0
            holder.stdin.write(b"\n")
            holder.stdin.flush()


_SENDS_TO_ITSELF = """
import array, socket, sys, tempfile
one, other = socket.socketpair()
with tempfile.TemporaryFile(dir=sys.argv[1]) as file:
    file.write(bytes(4096))
    file.flush()
    one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))])
print(flush=True)
sys.stdin.read()
"""


_RECEIVES = """
import array, os, socket, sys, tempfile
one, other = socket.socketpair()
while True:
    with tempfile.TemporaryFile(dir=sys.argv[1]) as file:
        one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))])
    print("sent", flush=True)
    sys.stdin.readline()
    (number,) = array.array("i", other.recvmsg(1, socket.CMSG_SPACE(4))[1][0][2])
    print("received", flush=True)
    sys.stdin.readline()
    os.close(number)
"""


def test_file_that_waits_in_a_socket_counts_as_the_largest_when_one_still_waits(folder):
    with running(_SENDS_TO_ITSELF, folder) as holder:
        holder.stdout.readline()
        watched = WatchedFolder(folder, 7 * MIB)
        assert [watched.usage([holder.pid]).size_bytes for _ in range(3)] == [0, 7 * MIB, 7 * MIB]


_SHARES_ITS_SOCKET = _SENDS_TO_ITSELF.replace(
    "print(flush=True)", "import os\nif child := os.fork():\n    print(child, flush=True)"
)


def test_file_that_waits_in_a_socket_counts_once_while_a_fork_has_the_socket_too(folder):
    with running(_SHARES_ITS_SOCKET, folder) as holder:
        child = int(holder.stdout.readline())
        watched = WatchedFolder(folder, 7 * MIB)
        assert [watched.usage([holder.pid, child]).size_bytes for _ in range(2)] == [0, 7 * MIB]


def test_file_that_is_received_between_two_looks_counts_only_what_it_is(folder):
    with running(_RECEIVES, folder) as holder:
        watched = WatchedFolder(folder, 7 * MIB)
        for _ in range(3):
            holder.stdout.readline()
            assert watched.usage([holder.pid]).size_bytes < MIB
            holder.stdin.write(b"\n")
            holder.stdin.flush()


class _Meanwhile(list):
    """Numbers of processes, before the first of which something happens: between two steps of one look."""

    def __init__(self, numbers, happens):
        super().__init__(numbers)
        self._happens = happens

    def __iter__(self):
        self._happens()
        return super().__iter__()


def test_file_that_loses_its_name_during_a_look_counts_once(folder):
    with (folder / "file").open("wb", 0) as file:
        file.write(bytes(MIB))
        holder = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[file.fileno()])
    meanwhile = _Meanwhile([holder.pid], lambda: (folder / "file").unlink(missing_ok=True))
    assert MIB <= WatchedFolder(folder, 7 * MIB).usage(meanwhile).size_bytes < 2 * MIB
    assert not (folder / "file").exists()
    holder.communicate()


def test_file_that_is_seen_under_two_names_counts_once(folder):
    # As one that is renamed while its folder is listed.
    (folder / "one").write_bytes(bytes(MIB))
    (folder / "other").hardlink_to(folder / "one")
    used = disk_usage(folder)
    assert (used.entries, used.size_bytes // MIB) == (2, 1)


def test_folder_that_becomes_a_file_during_a_look_is_no_flood(folder, monkeypatch):
    (folder / "place").mkdir()
    really_open = os.open

    def replace_first(path, *arguments, **named):
        if path == "place":
            (folder / "place").rmdir()
            (folder / "place").write_bytes(b"")
        return really_open(path, *arguments, **named)

    monkeypatch.setattr(os, "open", replace_first)
    assert not disk_usage(folder).is_flooded
    assert (folder / "place").is_file()


@contextmanager
def few_descriptors(left):
    """Let this process open so many more files only."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + left + 1, before[1]))
    filling = []
    try:
        with suppress(OSError):
            while True:
                filling.append(os.open("/dev/null", os.O_RDONLY))
        for _ in range(left):
            os.close(filling.pop())
        yield
    finally:
        for each in filling:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_many_folders_are_looked_into_with_few_descriptors(folder):
    for number in range(300):
        (folder / str(number)).mkdir()
        (folder / str(number) / "file").write_bytes(bytes(4096))
    with few_descriptors(20):
        used = disk_usage(folder)
    assert (used.entries, used.is_flooded) == (600, False)
    assert used.size_bytes >= 300 * 4096


def test_host_without_descriptors_takes_no_folder_for_a_flood(folder):
    (folder / "inner").mkdir()
    with few_descriptors(2):  # for the folder and its listing
        assert not disk_usage(folder).is_flooded


def test_folder_that_is_gone_holds_nothing(folder):
    gone = folder / "gone"
    assert disk_usage(gone) == DiskUsage()
    assert WatchedFolder(gone, MIB).usage([os.getpid()]) == DiskUsage()


@pytest.mark.parametrize("depth", [3, 1_200])
def test_folders_of_any_depth_are_removed(folder, depth):
    dig(folder, depth)
    remove_tree(folder)
    assert not folder.exists()


def test_closed_folders_are_removed(folder):
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_bytes(b"x")
    (folder / "a" / "b").chmod(0)
    (folder / "a").chmod(0)
    remove_tree(folder)
    assert not folder.exists()


def test_nothing_behind_a_link_is_removed(folder, tmp_path):
    other = tmp_path / "other"
    (other / "kept").mkdir(parents=True)
    (other / "kept" / "file").write_bytes(b"x")
    (folder / "folder").mkdir()
    (folder / "folder" / "link").symlink_to(other)
    (folder / "link").symlink_to(other / "kept")
    remove_tree(folder)
    assert not folder.exists()
    assert (other / "kept" / "file").read_bytes() == b"x"


def test_link_in_place_of_the_folder_stays_with_what_it_leads_to(folder, tmp_path):
    (folder / "file").write_bytes(b"x")
    link = tmp_path / "link"
    link.symlink_to(folder)
    remove_tree(link)
    assert (folder / "file").exists()
