"""A dataset as files in ODF's repository layout as ``PeerDataset``: EX-15, LAYOUT-1 to LAYOUT-6."""

from collections.abc import AsyncIterator, Sequence
from typing import BinaryIO, Final

from odf_node.adapters.layout_reading import LayoutProofs, walk_back
from odf_node.adapters.plain_peer import parse_head_text
from odf_node.byte_rate import ByteRate
from odf_node.ports.layouts import HEAD_PATH, LayoutSource
from odf_node.ports.objects import ArrivingObjects, StagedObject
from odf_node.ports.peer_client import OnBytes, PeerDescription, PeerHead, PeerSpeaks, SilentPeer
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError, PeerUnavailableError
from odf_node.records.errors import ObjectMismatchError
from odf_node.threads import do_all, finish_in_thread
from odf_protocol.block import decode_block
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.limits import MAX_HEAD_TEXT_BYTES
from odf_protocol.exchange.packs import PackedBlock
from odf_protocol.exchange.routes import block_path, object_path
from odf_protocol.head import Head
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.wire.limits import MAX_BLOCK_SIZE_BYTES

_CHUNK_BYTES: Final = 4 * 1024 * 1024
"""What is read at once where there is no rate."""


class LayoutPeer(SilentPeer):
    """``PeerDataset`` on files, which are trusted as little as a server."""

    def __init__(self, source: LayoutSource, *, parallel: int = 1, rate: ByteRate | None = None) -> None:
        """Make it.

        Args:
            source: The files.
            parallel: How many objects are read at once (one disk reads one after the other).
            rate: How fast; None: as fast as they can be read.
        """
        self._source = source
        self._rate = rate or ByteRate()
        self._parallel = parallel
        self._proofs = LayoutProofs(self._find)

    @property
    def description(self) -> PeerDescription:
        return PeerDescription(url=self._source.url, speaks=PeerSpeaks.FOLDER)

    async def get_head(self) -> PeerHead:
        text = await self._read(HEAD_PATH, "dataset", MAX_HEAD_TEXT_BYTES)
        head_hash = parse_head_text(text, self._source.url)
        block = decode_block(await self._get_block(head_hash), expected_hash=head_hash)
        signed_head = await self._proofs.find_signed_head(head_hash)
        return PeerHead(head=Head(block.sequence_number, head_hash), name=self._source.name, signed_head=signed_head)

    async def iter_blocks(self, *, after: Head | None, upto: Head) -> AsyncIterator[PackedBlock]:
        async for block in self._proofs.attach(
            walk_back(self._source.url, self._get_block, after=after, upto=upto), upto
        ):
            yield block

    async def fetch_objects(
        self, wanted: Sequence[WantedObject], objects: ArrivingObjects, on_bytes: OnBytes | None = None
    ) -> None:
        tell = on_bytes or (lambda _size_bytes: None)
        distinct = {item.hash: item for item in wanted}.values()
        await do_all(lambda item: self._copy(item, objects, tell), distinct, at_once=self._parallel)

    async def list_key_events(self) -> tuple[bytes, ...]:
        return await self._proofs.find_key_events(self._source.url)

    async def _get_block(self, block_hash: Multihash) -> bytes:
        return await self._read(block_path(block_hash), "block", MAX_BLOCK_SIZE_BYTES)

    async def _find(self, path: str, what: str, limit_bytes: int) -> bytes | None:
        try:
            return await self._read(path, what, limit_bytes)
        except PeerNotFoundError:
            return None

    async def _read(self, path: str, what: str, limit_bytes: int) -> bytes:
        await self._rate.wait()
        content = await finish_in_thread(lambda: read_layout_file(self._source, path, what, limit_bytes))
        self._rate.take(len(content))
        return content

    async def _copy(self, item: WantedObject, objects: ArrivingObjects, tell: OnBytes) -> None:
        where = f"{self._source.url}/{object_path(item.kind, item.hash)}"
        if item.hash.code != SHA3_256:
            raise PeerLiedError(where, "EX-12 object-hash", expected="a SHA3-256", found=item.hash)
        if await finish_in_thread(lambda: objects.has(item.hash)):
            tell(item.size_bytes)
            return
        with await finish_in_thread(lambda: objects.resume(item.hash)) as staged:
            kept_bytes = staged.size_bytes if staged.size_bytes <= item.size_bytes else 0
            try:
                await self._copy_from(kept_bytes, item, staged, objects, where, tell)
            except ObjectMismatchError as error:
                if not kept_bytes:
                    raise PeerLiedError(where, "EX-12 object-hash", expected=item.hash, found=error.found) from error
                tell(-item.size_bytes)
            else:
                return
        # The bytes that an earlier attempt left may be to blame; they are gone now.
        await self._copy(item, objects, tell)

    async def _copy_from(
        self,
        start: int,
        item: WantedObject,
        staged: StagedObject,
        objects: ArrivingObjects,
        where: str,
        tell: OnBytes,
    ) -> None:
        opened = await finish_in_thread(lambda: self._source.open(object_path(item.kind, item.hash), "object"))
        with opened.file as file:
            if opened.size_bytes != item.size_bytes:
                raise PeerLiedError(where, "EX-12 object-size", expected=item.size_bytes, found=opened.size_bytes)
            await finish_in_thread(lambda: file.seek(start) if start else staged.restart())
            tell(start)
            left_bytes = item.size_bytes - start  # the file may grow while it is read
            while left_bytes:
                await self._rate.wait()
                max_bytes = min(self._rate.chunk_bytes if self._rate.is_limited else _CHUNK_BYTES, left_bytes)
                size_bytes = await finish_in_thread(lambda max_bytes=max_bytes: _move(file, staged, max_bytes))  # type: ignore[misc]
                if not size_bytes:
                    raise PeerUnavailableError(where, "the file ended early", "try again; what arrived is kept")
                self._rate.take(size_bytes)
                left_bytes -= size_bytes
                tell(size_bytes)
        await finish_in_thread(lambda: objects.put(staged, item.hash))


def _move(file: BinaryIO, staged: StagedObject, max_bytes: int) -> int:
    chunk = file.read(max_bytes)
    staged.write(chunk)
    return len(chunk)


def read_layout_file(source: LayoutSource, path: str, what: str, limit_bytes: int) -> bytes:
    """Read a small file whole.

    Raises:
        MalformedError: It is larger than ``limit_bytes``.
        PeerNotFoundError, PeerForbidsError, PeerUnavailableError: As ``LayoutSource``.
    """
    with source.open(path, what).file as file:
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise MalformedError(what, where=f"{source.url}/{path}", expected=f"at most {limit_bytes} bytes", found="more")
    return data
