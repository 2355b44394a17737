"""Blocks that wait: the same from a file as from memory, in any order of asking, and nothing is left behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_node.adapters.block_stage import FileStage
from odf_node.ports.block_stage import BlockStage, MemoryStage, ProposedBlock, StagedBlock

LONG = 300_000  # four of them are more than stays in memory, and each more than one page


def staged(number: int, size_bytes: int = 300) -> StagedBlock:
    raw = number.to_bytes(4, "little") * (size_bytes // 4)
    proposed = ProposedBlock(
        raw,
        signature=None if number % 3 == 0 else b"" if number % 3 == 1 else b"s" * 64,
        step_record=None if number % 2 == 0 else b"r" * number,
    )
    return StagedBlock(proposed, bytes([number % 256]) * 32, number % 64)


@pytest.fixture(params=["file", "memory"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlockStage]:
    made: BlockStage = FileStage(tmp_path) if request.param == "file" else MemoryStage()
    yield made
    made.close()


@pytest.mark.parametrize("size_bytes", [0, 300, LONG])
def test_blocks_come_back_as_they_were_put_there(stage: BlockStage, size_bytes: int) -> None:
    put = [staged(number, size_bytes) for number in range(8)]
    for block in put:
        stage.append(block)

    assert len(stage) == 8
    assert list(stage.iter_staged()) == put
    assert list(stage.iter_staged(5)) == put[5:]
    assert list(stage) == [block.proposed for block in put]
    assert [stage[3], *stage[-2:]] == [put[3].proposed, put[6].proposed, put[7].proposed]
    assert stage.get_staged(-1) == put[7]


def test_blocks_can_be_put_and_looked_at_while_others_are_read(stage: BlockStage) -> None:
    for number in range(2_000):
        stage.append(staged(number, 1_000))
    seen = []
    for position, block in enumerate(stage.iter_staged()):
        seen.append(block)
        if position % 500 == 0:
            assert stage.get_staged(7) == staged(7, 1_000)
        if len(stage) < 2_010:
            stage.append(staged(len(stage), 1_000))

    assert stage[2_009] == staged(2_009, 1_000).proposed
    assert seen[:2_000] == [staged(number, 1_000) for number in range(2_000)]


@pytest.mark.parametrize("size_bytes", [300, LONG])
@pytest.mark.parametrize("wanted", [0, 1, 6, 32, 64])
def test_blocks_with_a_trait_are_found_among_the_others(stage: BlockStage, size_bytes: int, wanted: int) -> None:
    put = [staged(number, size_bytes) for number in (1, 2, 3, 8, 9, 8, 4, 17, 16, 3)]
    for block in put:
        stage.append(block)

    assert stage.traits == 1 | 2 | 4 | 8 | 16
    assert list(stage.iter_with(wanted)) == [block for block in put if block.traits & wanted]


def test_stage_that_was_cleared_begins_anew(stage: BlockStage) -> None:
    for number in range(8):
        stage.append(staged(number, LONG))
    stage.clear()
    assert list(stage) == []
    assert stage.traits == 0
    assert list(stage.iter_with(63)) == []
    stage.append(staged(1))
    assert list(stage.iter_staged()) == [staged(1)]


@pytest.mark.parametrize("position", [1, -2])
def test_position_that_is_not_there_is_an_error(stage: BlockStage, position: int) -> None:
    stage.append(staged(0))
    with pytest.raises(IndexError):
        stage.get_staged(position)


def test_file_of_a_stage_has_no_name(tmp_path: Path) -> None:
    stage = FileStage(tmp_path)
    for number in range(8):
        stage.append(staged(number, LONG))
    assert list(tmp_path.iterdir()) == []
    stage.close()
