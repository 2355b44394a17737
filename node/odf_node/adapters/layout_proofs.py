"""What lies beside the blocks of a dataset in files: signatures, replay records, signed heads (LAYOUT-3)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from odf_node.ports.layouts import KEY_LOG_PATH, replay_record_path, signature_path, signed_head_path
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.limits import (
    MAX_JSON_BYTES,
    MAX_REPLAY_RECORD_BYTES,
    MAX_SIGNATURE_BYTES,
    MAX_SIGNED_HEAD_BYTES,
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
        """Yield the blocks with their signatures and replay records.

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
            path = replay_record_path(block_hash)
            record = await self.find(path, "replay record", MAX_REPLAY_RECORD_BYTES)
            yield PackedBlock(block.raw, await self._find_signature(block_hash), record)

    async def _find_signature(self, block_hash: Multihash) -> bytes | None:
        path = signature_path(block_hash)
        found = await self.find(path, "signature", MAX_SIGNATURE_BYTES)
        if found is not None and len(found) != SIGNATURE_BYTES:
            raise MalformedError("signature", where=path, expected=f"{SIGNATURE_BYTES} bytes", found=len(found))
        return found
