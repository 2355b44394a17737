"""A dataset at any server of ODF's Simple Transfer Protocol, a static file server included (EX-15)."""

from collections.abc import AsyncIterator, Sequence
from http import HTTPStatus

from yarl import URL

from odf_node.adapters.http_client import HttpClient
from odf_node.adapters.layout_reading import LayoutProofs, walk_back
from odf_node.adapters.object_downloads import ObjectDownloads
from odf_node.ports.layouts import KEY_LOG_PATH
from odf_node.ports.objects import ArrivingObjects
from odf_node.ports.peer_client import OnBytes, PeerDescription, PeerHead, PeerSpeaks, SilentPeer
from odf_node.ports.peer_errors import PeerForbidsError, PeerNotFoundError
from odf_protocol.block import decode_block
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.limits import MAX_HEAD_TEXT_BYTES
from odf_protocol.exchange.packs import PackedBlock
from odf_protocol.exchange.routes import block_path, object_path
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.wire.limits import MAX_BLOCK_SIZE_BYTES


class PlainPeer(SilentPeer):
    """``PeerDataset`` over the Simple Transfer Protocol."""

    def __init__(self, client: HttpClient, url: URL) -> None:
        """Make it from an open client, which it closes, and the dataset's address with a trailing slash."""
        self._client = client
        self._url = url
        self._downloads = ObjectDownloads(client, lambda item: self._url / object_path(item.kind, item.hash))
        self._proofs = LayoutProofs(self._find)

    @property
    def description(self) -> PeerDescription:
        return PeerDescription(url=str(self._url).rstrip("/"), speaks=PeerSpeaks.SIMPLE)

    async def get_head(self) -> PeerHead:
        """See ``PeerDataset``; the number is in the head's block, which is fetched."""
        text = await self._client.get_bytes(self._url / "refs/head", "dataset", limit_bytes=MAX_HEAD_TEXT_BYTES)
        head_hash = parse_head_text(text, str(self._url))
        block = decode_block(await self._get_block(head_hash), expected_hash=head_hash)
        return PeerHead(
            head=Head(block.sequence_number, head_hash),
            name=self._url.with_path(self._url.path.rstrip("/")).name,
            signed_head=await self._proofs.find_signed_head(head_hash),
        )

    def iter_blocks(self, *, after: Head | None, upto: Head) -> AsyncIterator[PackedBlock]:
        """See ``PeerDataset``; one request per block, from the head back."""
        blocks = walk_back(str(self._url), self._get_block, after=after, upto=upto)
        return self._proofs.attach(blocks, upto)

    async def fetch_objects(
        self, wanted: Sequence[WantedObject], objects: ArrivingObjects, on_bytes: OnBytes | None = None
    ) -> None:
        await self._downloads.fetch(wanted, objects, on_bytes)

    async def list_key_events(self) -> tuple[bytes, ...]:
        """See ``PeerDataset``; there are some where somebody put an export of ours."""
        return await self._proofs.find_key_events(str(self._url))

    async def __aexit__(self, *exception: object) -> None:
        await self._client.close()

    async def _find(self, path: str, what: str, limit_bytes: int) -> bytes | None:
        try:
            found = await self._client.get_bytes(self._url / path, what, limit_bytes=limit_bytes)
        except PeerNotFoundError:
            return None
        except PeerForbidsError as error:
            if path == KEY_LOG_PATH and error.status == HTTPStatus.UNAUTHORIZED:
                raise  # with a token it may be there
            # Buckets forbid what they lack. Whoever wants to hide a log can say that there is none as well.
            return None
        except MalformedError:
            # Where there are no proofs, servers say so in many ways; what was signed once must stay so (ACCEPT-3).
            # A key log that is there and cannot be read is another matter: it may say that another key speaks now.
            if path == KEY_LOG_PATH:
                raise
            return None
        # Some servers answer every path with a page of theirs.
        return None if found.lstrip().startswith(b"<") else found

    async def _get_block(self, block_hash: Multihash) -> bytes:
        return await self._client.get_bytes(
            self._url / block_path(block_hash), "block", limit_bytes=MAX_BLOCK_SIZE_BYTES
        )


def parse_head_text(text: bytes, where: str) -> Multihash:
    """Read ``refs/head``. A newline at the end, which editors and scripts add, is passed over.

    Raises:
        MalformedError: Not the text of a hash.
    """
    try:
        return Multihash.parse(text.decode("ascii").removesuffix("\n").removesuffix("\r"))
    except (UnicodeDecodeError, MalformedError) as error:
        raise MalformedError(
            "refs/head", where=where, expected="the text of a hash, as ODF datasets have it", found=repr(text)
        ) from error
