"""What plain servers and folders allow: blocks from the head back, one at a time (EX-15), and proofs beside them.

Signatures, step records and signed heads are files of their own (LAYOUT-3).
"""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from odf_node.adapters.block_stage import FileStage
from odf_node.ports.block_stage import ProposedBlock, StagedBlock
from odf_node.ports.layouts import KEY_LOG_PATH, signature_path, signed_head_path, step_record_path
from odf_node.ports.peer_errors import PeerLiedError
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.exchange.block_outlines import read_outline
from odf_protocol.exchange.limits import (
    MAX_JSON_BYTES,
    MAX_SIGNATURE_BYTES,
    MAX_SIGNED_HEAD_BYTES,
    MAX_STEP_RECORD_BYTES,
    MAX_WALK_BLOCKS,
    MAX_WALK_BYTES,
)
from odf_protocol.exchange.messages import KeyLogMessage, decode_message
from odf_protocol.exchange.packs import PackedBlock
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import SIGNATURE_BYTES

FindFile = Callable[[str, str, int], Awaitable[bytes | None]]
"""Path, what it is for messages, and most bytes to contents; None where there is no such file."""


@dataclass(frozen=True, slots=True)
class LayoutProofs:
    """Reads proofs from one place; a place without any is asked once per pull."""

    find: FindFile

    async def find_signed_head(self, block_hash: Multihash) -> bytes | None:
        """Return the document that vouches for a block as the head."""
        return await self.find(signed_head_path(block_hash), "signed head", MAX_SIGNED_HEAD_BYTES)

    async def find_key_events(self, where: str) -> tuple[bytes, ...]:
        """Return the dataset's key log; none where there is no such file.

        Raises:
            MalformedError: What is there is no key log, or no plain file.
        """
        found = await self.find(KEY_LOG_PATH, "key log", MAX_JSON_BYTES)
        if found is None:
            return ()
        try:
            return decode_message(found, KeyLogMessage).events
        except MalformedError as error:
            what = f"key log at {where}/{KEY_LOG_PATH}"
            raise MalformedError(what, where=error.where, expected=error.expected, found=error.found) from error

    async def attach(self, blocks: AsyncIterator[PackedBlock], upto: Head) -> AsyncIterator[PackedBlock]:
        """Yield the blocks with their signatures and step records.

        Whoever signed the last block signed those before; elsewhere looking for each signature would be in vain.
        """
        signed: bool | None = None
        async for block in blocks:
            if signed is None:
                signed = await self._find_signature(upto.hash) is not None
            if not signed:
                yield block
                continue
            block_hash = Multihash.of_sha3_256(block.raw)
            path = step_record_path(block_hash)
            record = await self.find(path, "step record", MAX_STEP_RECORD_BYTES)
            yield PackedBlock(block.raw, await self._find_signature(block_hash), record)

    async def _find_signature(self, block_hash: Multihash) -> bytes | None:
        path = signature_path(block_hash)
        found = await self.find(path, "signature", MAX_SIGNATURE_BYTES)
        if found is not None and len(found) != SIGNATURE_BYTES:
            raise MalformedError("signature", where=path, expected=f"{SIGNATURE_BYTES} bytes", found=len(found))
        return found


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
    with closing(FileStage(Path(tempfile.gettempdir()))) as found:
        for number in range(upto.sequence_number, first - 1, -1):
            if wanted is None:
                raise PeerLiedError(url, "EX-15 chain", expected=f"a block before {number + 1}", found="a first block")
            raw = await get_block(wanted)
            block_hash = Multihash.of_sha3_256(raw)
            if block_hash != wanted:
                raise MalformedError("block", expected=f"hash {wanted}", found=block_hash)
            block = read_outline(raw)
            if block.sequence_number != number:
                found_text = f"block {block.sequence_number}"
                raise PeerLiedError(url, "EX-15 chain", expected=f"block {number}", found=found_text)
            size_bytes += len(raw)
            if size_bytes > MAX_WALK_BYTES:
                raise UnsupportedError(f"chain at {url}", found="more", supported=f"{MAX_WALK_BYTES} bytes of blocks")
            found.append(StagedBlock(ProposedBlock(raw), block_hash.digest, 0))
            wanted = block.prev_block_hash
        for position in range(len(found) - 1, -1, -1):
            yield PackedBlock(found[position].raw)
