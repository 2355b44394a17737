"""What a carrier reads of a block: number, link, and the objects that it names."""

import pytest

from odf_protocol.block import Block
from odf_protocol.errors import MalformedError
from odf_protocol.events import AddData, ExecuteTransform, Seed, SetInfo
from odf_protocol.exchange.block_outlines import BlockOutline, iter_wanted, read_outline
from support.chains import ChainBuilder, checkpoint, later, ordinary_derivative_events, ordinary_root_events


def outline_of(block: Block) -> BlockOutline:
    event, rows = block.event, 0
    if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
        rows = event.new_data.offset_interval.end - event.new_data.offset_interval.start + 1
    return BlockOutline(
        block.hash,
        block.sequence_number,
        block.prev_block_hash,
        tuple(iter_wanted(event)),
        rows,
        event.dataset_id if isinstance(event, Seed) else None,
    )


def watermarks() -> ChainBuilder:
    chain = ChainBuilder.root()
    for number in range(8):
        saved = checkpoint("c") if number == 5 else None
        chain.add(AddData(new_watermark=later(number), new_checkpoint=saved))
        chain.add(SetInfo(description=str(number)))
    return chain


@pytest.mark.parametrize(
    "chain",
    [
        pytest.param(ChainBuilder.root(*ordinary_root_events(6)), id="rows"),
        pytest.param(ChainBuilder.derivative(*ordinary_derivative_events(6)), id="steps"),
        pytest.param(watermarks(), id="watermarks"),
    ],
)
def test_outlines_are_those_of_the_decoded_blocks(chain: ChainBuilder) -> None:
    for block in chain.blocks:
        assert read_outline(block.raw) == outline_of(block)


def test_bytes_that_are_no_block_are_rejected() -> None:
    raws = [block.raw for block in watermarks().blocks]
    for raw in (b"", raws[-2][:-1], b"\xff" * len(raws[-2])):
        with pytest.raises(MalformedError):
            read_outline(raw)
