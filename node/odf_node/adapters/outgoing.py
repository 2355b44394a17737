"""How this node calls on others: at which rate, with whose token and whose signature, and by which addresses at all."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.http_push import push_dataset
from odf_node.adapters.layout_places import iter_siblings
from odf_node.adapters.node_listing import list_proposed, search_proposed
from odf_node.adapters.packing import DatasetObjects
from odf_node.adapters.peer_addresses import open_heard_peer, open_peer, open_peers, parse_heard
from odf_node.adapters.request_signing import NodeSigner
from odf_node.byte_rate import ByteRate
from odf_node.configuration import find_configuration_file, load_configuration
from odf_node.home import Home
from odf_node.ports.peer_client import OnBytes, PeerDataset
from odf_node.ports.pushes import PushedHead, PushOutcome
from odf_protocol.public_addresses import is_heard

if TYPE_CHECKING:
    from odf_node.adapters.http_client import SignRequest
    from odf_node.adapters.node_listing import Found
    from odf_protocol.exchange.messages import DatasetSummary


@dataclass(slots=True)
class Outgoing:
    """Opens connections for the use cases; nothing heavy is imported before one is opened.

    ``heard_private`` says whether private addresses
    that peers named may be used (None: as the settings in the home say); ``parallel``, how many objects move at once
    (None: the usual).
    """

    home: Home
    rate: ByteRate
    find_token: Callable[[str], str | None]
    heard_private: bool | None = None
    parallel: int | None = None

    async def open_peer(self, url: str, *, also: Sequence[str] = ()) -> PeerDataset:
        """Find out what is at ``url`` and make a client for the dataset there."""
        if is_heard(url):
            heard = ClientSettings(rate=self.rate, parallel=self.parallel)
            return await open_heard_peer(url, heard, allow_private=self._allows_private())
        sign = await asyncio.to_thread(self._find_signer)

        def settings(address: str) -> ClientSettings:
            return ClientSettings(rate=self.rate, parallel=self.parallel, token=self.find_token(address), sign=sign)

        if not also:
            return await open_peer(url, settings(url))
        return await open_peers([url, *also], settings, self.home.folder.staging)

    def iter_siblings(self, url: str) -> Iterator[str]:
        """Yield the addresses beside an address, where a place can list them."""
        return iter_siblings(url)

    async def make_settings(self, url: str) -> ClientSettings:
        """Give the settings of a client that a plug-in makes for one address: rate, token and signature."""
        sign = await asyncio.to_thread(self._find_signer)
        return ClientSettings(rate=self.rate, token=self.find_token(url), sign=sign)

    async def list_proposed(self, url: str) -> "list[DatasetSummary]":
        """List what the node at ``url`` offers to this one."""
        return await list_proposed(url, await self.make_settings(url))

    async def search_proposed(self, url: str, words: Sequence[str], most: int, *, limit_s: float) -> "list[Found]":
        """Find what the node at ``url`` offers in which all words occur, and in which of its texts."""
        if is_heard(url):
            address, resolver = parse_heard(url, allow_private=self._allows_private())
            settings = ClientSettings(rate=self.rate, attempts=1)
            return await search_proposed(address, words, most, settings, limit_s=limit_s, resolver=resolver)
        return await search_proposed(url, words, most, await self.make_settings(url), limit_s=limit_s)

    async def send_push(
        self, url: str, proposed: PushedHead, token: str | None, on_bytes: OnBytes | None
    ) -> PushOutcome:
        """Offer a dataset of this node to the node at ``url``."""
        settings = ClientSettings(
            rate=self.rate,
            parallel=self.parallel,
            token=token or self.find_token(url),
            sign=await asyncio.to_thread(self._find_signer),
        )
        return await push_dataset(
            url,
            proposed,
            store=self.home.store,
            objects=DatasetObjects(self.home.objects, self.home.store, proposed.dataset_id),
            settings=settings,
            on_bytes=on_bytes,
        )

    def _allows_private(self) -> bool:
        if self.heard_private is not None:
            return self.heard_private

        file = find_configuration_file(None, os.environ, self.home.folder.path)
        return load_configuration(file, os.environ).gossip.allow_private

    def _find_signer(self) -> "SignRequest | None":
        """Return what signs requests with the node's key; None while it has none, as making one would be a write."""
        key = self.home.keys.find_node_key()
        return None if key is None else NodeSigner(key, self.home.clock)
