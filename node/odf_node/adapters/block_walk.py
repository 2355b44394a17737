"""From a head back to a known block, one block at a time: all that a plain ODF server or folder allows (EX-15)."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

from odf_node.adapters.block_stage import FileStage
from odf_node.ports.block_stage import OfferedBlock, StagedBlock
from odf_node.ports.peer_errors import PeerLiedError
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.exchange.block_outlines import BlockOutlines
from odf_protocol.exchange.limits import MAX_WALK_BLOCKS, MAX_WALK_BYTES
from odf_protocol.exchange.packs import PackedBlock
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash


async def walk_back(
    url: str, get_block: Callable[[Multihash], Awaitable[bytes]], *, after: Head | None, upto: Head
) -> AsyncIterator[PackedBlock]:
    """Yield the blocks after ``after`` up to ``upto``, oldest first, when all of them are here.

    Every block's hash and number is checked on the way, as the way goes over its contents. What was passed waits in a
    file without a name.

    Raises:
        PeerLiedError: A block is not what its successor, or the head, says.
        MalformedError: A block is none, or has another hash.
        UnsupportedError: The way is longer than this node goes.
    """
    first = 0 if after is None else after.sequence_number + 1
    if upto.sequence_number - first >= MAX_WALK_BLOCKS:
        raise UnsupportedError(
            f"length of the chain at {url}", found=upto.sequence_number, supported=f"{MAX_WALK_BLOCKS} blocks"
        )
    size_bytes = 0
    wanted: Multihash | None = upto.hash
    outlines = BlockOutlines()
    with closing(FileStage(Path(tempfile.gettempdir()))) as found:
        for number in range(upto.sequence_number, first - 1, -1):
            if wanted is None:
                raise PeerLiedError(url, "EX-15 chain", expected=f"a block before {number + 1}", found="a first block")
            raw = await get_block(wanted)
            block_hash = Multihash.of_sha3_256(raw)
            if block_hash != wanted:
                raise MalformedError("block", expected=f"hash {wanted}", found=block_hash)
            block = outlines.read(raw, block_hash)
            if block.sequence_number != number:
                found_text = f"block {block.sequence_number}"
                raise PeerLiedError(url, "EX-15 chain", expected=f"block {number}", found=found_text)
            size_bytes += len(raw)
            if size_bytes > MAX_WALK_BYTES:
                raise UnsupportedError(f"chain at {url}", found="more", supported=f"{MAX_WALK_BYTES} bytes of blocks")
            found.append(StagedBlock(OfferedBlock(raw), block_hash.digest, 0))
            wanted = block.prev_block_hash
        for position in range(len(found) - 1, -1, -1):
            yield PackedBlock(found[position].raw)
