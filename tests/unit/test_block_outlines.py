"""What a carrier reads from blocks by position is what decoding them says."""

import pytest

from odf_protocol.block import Block
from odf_protocol.errors import MalformedError
from odf_protocol.events import AddData, ExecuteTransform, Seed, SetInfo
from odf_protocol.exchange.block_outlines import BlockOutline, BlockOutlines, iter_wanted
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
    outlines = BlockOutlines()
    for block in chain.blocks:
        assert outlines.read(block.raw) == outline_of(block)
        assert outlines.read(block.raw, block.hash) == outline_of(block)


def test_bytes_that_are_no_block_are_rejected_however_they_begin() -> None:
    outlines = BlockOutlines()
    raws = [block.raw for block in watermarks().blocks]
    for raw in raws:
        outlines.read(raw)
    for raw in (b"", raws[-2][:-1], b"\xff" * len(raws[-2])):
        with pytest.raises(MalformedError):
            outlines.read(raw)
