"""A dataset in ODF's repository layout in a local or mounted folder: ``refs/ blocks/ data/ checkpoints/`` (EX-15)."""

import os
import stat
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

from odf_node.adapters.block_walk import walk_back
from odf_node.adapters.plain_peer import parse_head_text
from odf_node.exchange.limits import MAX_HEAD_TEXT_BYTES
from odf_node.exchange.packs import PackedBlock
from odf_node.exchange.routes import block_path, object_path
from odf_node.ports.datasets import Head
from odf_node.ports.errors import ObjectMismatchError
from odf_node.ports.objects import ObjectStore
from odf_node.ports.peer_client import OnBytes, PeerDescription, PeerHead, PeerSpeaks, WantedObject
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError, PeerUnavailableError
from odf_node.threads import finish_in_thread
from odf_protocol.block import decode_block
from odf_protocol.errors import MalformedError
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.wire.limits import MAX_BLOCK_SIZE_BYTES

_CHUNK_BYTES: Final = 1024 * 1024


class FolderPeer:
    """``PeerDataset`` on a folder, which is trusted as little as a server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def description(self) -> PeerDescription:
        """See ``PeerDataset``."""
        return PeerDescription(url=self._folder.absolute().as_uri(), speaks=PeerSpeaks.FOLDER)

    async def get_head(self) -> PeerHead:
        """See ``PeerDataset``."""
        text = await finish_in_thread(lambda: self._read("refs/head", "dataset", MAX_HEAD_TEXT_BYTES))
        head_hash = parse_head_text(text, str(self._folder))
        block = decode_block(await self._get_block(head_hash), expected_hash=head_hash)
        return PeerHead(head=Head(block.sequence_number, head_hash), name=self._folder.absolute().name)

    def iter_blocks(self, *, after: Head | None, upto: Head) -> AsyncIterator[PackedBlock]:
        """See ``PeerDataset``."""
        return walk_back(self.description.url, self._get_block, after=after, upto=upto)

    async def fetch_objects(
        self, wanted: Sequence[WantedObject], objects: ObjectStore, on_bytes: OnBytes | None = None
    ) -> None:
        """See ``PeerDataset``; one after the other, as one disk reads."""
        for item in wanted:
            await finish_in_thread(lambda item=item: self._copy(item, objects))  # type: ignore[misc]
            if on_bytes is not None:
                on_bytes(item.size_bytes)

    async def list_attestations(self, *, limit: int) -> tuple[bytes, ...]:  # noqa: ARG002 - the port's signature
        """See ``PeerDataset``; the layout has no place for them."""
        return ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """See ``PeerDataset``; nothing is held open."""

    async def _get_block(self, block_hash: Multihash) -> bytes:
        return await finish_in_thread(lambda: self._read(block_path(block_hash), "block", MAX_BLOCK_SIZE_BYTES))

    def _read(self, path: str, what: str, limit_bytes: int) -> bytes:
        with self._open(path, what) as file:
            data = file.read(limit_bytes + 1)
        if len(data) > limit_bytes:
            raise MalformedError(what, where=path, expected=f"at most {limit_bytes} bytes", found="more")
        return data

    def _copy(self, item: WantedObject, objects: ObjectStore) -> None:
        where = str(self._folder / object_path(item.kind, item.hash))
        if item.hash.code != SHA3_256:
            raise PeerLiedError(where, "EX-12 object-hash", expected="a SHA3-256", found=item.hash)
        if objects.has(item.hash):
            return
        with self._open(object_path(item.kind, item.hash), "object") as file, objects.stage() as staged:
            size_bytes = os.fstat(file.fileno()).st_size
            if size_bytes != item.size_bytes:
                raise PeerLiedError(where, "EX-12 object-size", expected=item.size_bytes, found=size_bytes)
            left_bytes = size_bytes  # the file may grow while it is read
            while left_bytes and (chunk := file.read(min(_CHUNK_BYTES, left_bytes))):
                staged.write(chunk)
                left_bytes -= len(chunk)
            try:
                objects.put(staged, item.hash)
            except ObjectMismatchError as error:
                raise PeerLiedError(where, "EX-12 object-hash", expected=item.hash, found=error.found) from error

    def _open(self, path: str, what: str) -> BinaryIO:
        """Open a plain file; ``path`` is made of our words and parsed hashes, never of text from the peer."""
        whole = self._folder / path
        try:
            # Non-blocking: a pipe in our way must not wait for a writer.
            descriptor = os.open(whole, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise PeerNotFoundError(str(whole), what) from None
        except OSError as error:
            raise PeerUnavailableError(str(whole), error.strerror or str(error), "check the folder") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise MalformedError(what, where=str(whole), expected="a plain file", found="another kind of file")
        return os.fdopen(descriptor, "rb")
