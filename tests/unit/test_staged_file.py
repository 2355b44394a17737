"""A file on its way to become an object: large pieces are hashed beside their writing."""

import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_node.adapters.staged_file import StagedFile
from odf_node.adapters.staged_stream import StagedStream
from odf_node.records.errors import HomeFullError
from odf_protocol.multihash import Multihash
from support.event_loop import in_loop

MIB = 1024 * 1024


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[StagedFile]:
    with StagedFile.create(tmp_path / "staged") as file:
        yield file


def test_pieces_of_any_size_are_written_and_hashed_in_order(staged: StagedFile) -> None:
    content = os.urandom(20 * MIB)
    position = 0
    for sizes in ((3,), (MIB, 1, 2 * MIB), (), (7 * MIB, MIB), (0,), (100, 200), (9 * MIB - 304,)):
        pieces = []
        for size in sizes:
            pieces.append(content[position : position + size])
            position += size
        staged.write(*pieces)
        assert staged.size_bytes == position
        assert staged.hash == Multihash.of_sha3_256(content[:position])
    assert position == len(content)
    assert staged.path.read_bytes() == content


@pytest.mark.parametrize("size_bytes", [1000, 3 * MIB])
def test_write_that_fails_half_way_leaves_what_was_there(staged: StagedFile, size_bytes: int) -> None:
    before, pieces = os.urandom(2 * MIB), [os.urandom(size_bytes), os.urandom(size_bytes)]
    staged.write(before)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + size_bytes + size_bytes // 2, limits[1]))
    try:
        with pytest.raises(HomeFullError, match="File too large"):
            staged.write(*pieces)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert staged.size_bytes == len(before)
    assert staged.hash == Multihash.of_sha3_256(before)
    assert staged.path.read_bytes() == before
    staged.write(*pieces)
    assert staged.hash == Multihash.of_sha3_256(before + b"".join(pieces))
    assert staged.path.read_bytes() == before + b"".join(pieces)


def count_hashing_threads() -> int:
    return sum(thread.name.startswith("hash-beside-write") for thread in threading.enumerate())


def test_closed_file_leaves_no_thread(tmp_path: Path) -> None:
    assert count_hashing_threads() == 0
    with StagedFile.create(tmp_path / "staged") as file:
        file.write(os.urandom(2 * MIB))
        assert count_hashing_threads() == 1
    assert count_hashing_threads() == 0


def test_restarted_file_is_hashed_from_its_start(staged: StagedFile) -> None:
    staged.write(os.urandom(10 * MIB))
    staged.restart()
    content = os.urandom(9 * MIB)
    staged.write(content)
    assert staged.hash == Multihash.of_sha3_256(content)
    assert staged.path.read_bytes() == content


@in_loop
async def test_bytes_that_come_one_by_one_do_not_pile_up(tmp_path: Path) -> None:
    content = os.urandom(1000)
    counts: list[int] = []

    class Counted(StagedFile):
        def write(self, *chunks: bytes | bytearray | memoryview) -> None:
            counts.append(len(chunks))
            super().write(*chunks)

    with Counted.create(tmp_path / "staged") as file:
        async with StagedStream(file) as stream:
            for number in range(len(content)):
                await stream.write(content[number : number + 1])
            await stream.finish()
        assert file.hash == Multihash.of_sha3_256(content)
    assert max(counts) <= 64
