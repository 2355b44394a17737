"""A dataset at a node that speaks our exchange: signed head, packs, attestations; objects by ODF's own paths."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Self, TypeVar

from yarl import URL

from odf_node.adapters.http_client import HttpClient
from odf_node.adapters.object_downloads import ObjectDownloads
from odf_node.adapters.several_sources import Source
from odf_node.ports.objects import ArrivingObjects
from odf_node.ports.peer_client import OnBytes, PeerDescription, PeerHead, PeerSpeaks
from odf_node.ports.peer_errors import PeerLiedError, PeerNotFoundError, PlaceNotFoundError
from odf_node.threads import finish_in_thread
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.limits import (
    MAX_ATTESTATIONS_BYTES,
    MAX_JSON_BYTES,
    MAX_PACK_BYTES,
    MAX_PULL_BLOCKS,
    MAX_PULL_BYTES,
)
from odf_protocol.exchange.messages import (
    AttestationPage,
    DisputeList,
    HashAnswer,
    HeadAnswer,
    KeyLogMessage,
    NodeInfo,
    decode_message,
)
from odf_protocol.exchange.packs import PackedBlock, decode_pack
from odf_protocol.exchange.routes import PREFIX, dataset_path, head_path, leaves_path, object_path
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash

_Answer = TypeVar("_Answer")


class ExchangePeer:
    """``PeerDataset`` over our exchange."""

    def __init__(self, client: HttpClient, url: URL, info: NodeInfo) -> None:
        """Make it from an open client, which it closes.

        Args:
            client: Speaks to the peer.
            url: Of the dataset, with a trailing slash.
            info: What the node said of itself.
        """
        self._client = client
        self._url = url
        self._base, self._dataset = split_dataset_url(url)
        self._info = info
        self._has_keys = True
        self._downloads = ObjectDownloads(client, lambda item: self._url / object_path(item.kind, item.hash))

    @property
    def description(self) -> PeerDescription:
        return PeerDescription(
            url=str(self._url).rstrip("/"),
            speaks=PeerSpeaks.EXCHANGE,
            node_id=self._info.to_node_id(),
            software=self._info.software,
        )

    async def get_head(self) -> PeerHead:
        url = self._base / head_path(self._dataset)
        try:
            body = await self._client.get_bytes(url, "dataset", limit_bytes=MAX_JSON_BYTES)
        except PeerNotFoundError as error:
            node = str(self._base).rstrip("/")
            reason = f"no such dataset is there, or it is not published; 'odf-node list {node}' shows what is"
            raise PlaceNotFoundError(f"{node}/{self._dataset}", "dataset", reason) from error
        answer = _read(url, lambda: decode_message(body, HeadAnswer))
        self._has_keys = bool(answer.key_events)
        return PeerHead(
            head=answer.head.to_head(),
            name=answer.name,
            dataset_id=answer.to_dataset_id(),
            kind=DatasetKind[answer.kind.upper()],
            signed_head=answer.signed_head,
        )

    async def iter_blocks(self, *, after: Head | None, upto: Head) -> AsyncIterator[PackedBlock]:
        """See ``PeerDataset``; one request per pack."""
        last = -1 if after is None else after.sequence_number
        if upto.sequence_number - last > MAX_PULL_BLOCKS:
            found, most = upto.sequence_number - last, f"{MAX_PULL_BLOCKS} blocks at once"
            raise UnsupportedError(f"length of the chain at {self._url}", found=found, supported=most)
        left_bytes = MAX_PULL_BYTES
        while last < upto.sequence_number:
            url = (self._base / dataset_path(self._dataset) / "blocks").with_query(
                after=last, upto=upto.sequence_number
            )
            body = await self._client.get_bytes(url, "dataset", limit_bytes=MAX_PACK_BYTES)
            blocks = await finish_in_thread(lambda url=url, body=body: _read(url, lambda: decode_pack(body)))  # type: ignore[misc]
            if not 0 < len(blocks) <= upto.sequence_number - last:
                raise PeerLiedError(
                    str(url), "EX-7 pack", expected=f"1 to {upto.sequence_number - last} blocks", found=len(blocks)
                )
            left_bytes -= sum(len(block.raw) + len(block.step_record or b"") for block in blocks)
            if left_bytes < 0:
                most = f"{MAX_PULL_BYTES} bytes of blocks at once"
                raise UnsupportedError(f"chain at {self._url}", found="more", supported=most)
            for block in blocks:
                yield block
            last += len(blocks)

    async def find_hash(self, sequence_number: int) -> Multihash | None:
        url = (self._base / dataset_path(self._dataset) / "hash").with_query(number=sequence_number)
        body = await self._client.get_bytes(url, "dataset", limit_bytes=MAX_JSON_BYTES)
        return _read(url, lambda: decode_message(body, HashAnswer)).to_hash()

    async def fetch_objects(
        self, wanted: Sequence[WantedObject], objects: ArrivingObjects, on_bytes: OnBytes | None = None
    ) -> None:
        await self._downloads.fetch(wanted, objects, on_bytes)

    def as_source(self, item: WantedObject) -> Source:
        """Give where this peer has an object, for those who read it from several."""
        return Source(
            self._client,
            self._url / object_path(item.kind, item.hash),
            self._base / leaves_path(self._dataset, item.hash),
        )

    async def list_attestations(self, *, limit: int) -> tuple[bytes, ...]:
        found: list[bytes] = []
        skip = 0
        while len(found) < limit:
            url = (self._base / dataset_path(self._dataset) / "attestations").with_query(skip=skip)
            body = await self._client.get_bytes(url, "dataset", limit_bytes=MAX_JSON_BYTES)
            page = _read(url, lambda body=body: decode_message(body, AttestationPage))  # type: ignore[misc]
            found.extend(page.attestations)
            if page.next_skip is None or sum(map(len, found)) > MAX_ATTESTATIONS_BYTES:
                break
            if not page.attestations or page.next_skip <= skip:
                raise PeerLiedError(str(url), "EX-14 attestations", expected="pages that go on", found=page.next_skip)
            skip = page.next_skip
        return tuple(found[:limit])

    async def list_key_events(self) -> tuple[bytes, ...]:
        """See ``PeerDataset``; who said with the head that there is none is not asked."""
        if not self._has_keys:
            return ()
        url = self._base / dataset_path(self._dataset) / "keys"
        body = await self._client.get_bytes(url, "dataset", limit_bytes=MAX_JSON_BYTES)
        return _read(url, lambda: decode_message(body, KeyLogMessage)).events

    async def list_disputes(self) -> tuple[bytes, ...]:
        """See ``PeerDataset``; a node that does not know the question has none."""
        url = self._base / dataset_path(self._dataset) / "disputes"
        body = await self._client.get_bytes(url, "dataset", limit_bytes=MAX_JSON_BYTES)
        return _read(url, lambda: decode_message(body, DisputeList)).documents

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._client.close()


def _read(url: URL, decode: Callable[[], _Answer]) -> _Answer:
    """Read an answer; what cannot be read is said with the address that sent it."""
    try:
        return decode()
    except MalformedError as error:
        what = f"{error.what} from {url.with_query(None)}"
        raise MalformedError(what, where=error.where, expected=error.expected, found=error.found) from error


def split_dataset_url(url: URL) -> tuple[URL, str]:
    """Split ``http://host/some/place/NAME/`` into the node's address ``http://host/some/place/`` and ``NAME``."""
    bare = url.with_path(url.path.rstrip("/"))
    return bare.parent, bare.name


def node_info_url(url: URL) -> URL:
    """Give the address at which the node that serves a dataset says who it is."""
    return split_dataset_url(url)[0] / PREFIX / "node"
