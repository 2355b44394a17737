"""The protocol as the node finds it by the entry point ``smart`` of the group ``odf_node.peers`` (SMART-1)."""

from typing import Final

from yarl import URL

from odf_node.adapters.http_client import HttpClient
from odf_node.adapters.peer_protocols import PeerProtocol
from odf_node.ports.peer_client import OnBytes
from odf_node.ports.pushes import PushedHead, PushOutcome, SentObjects
from odf_node.store import MetadataStore
from odf_smart.peer import SmartPeer
from odf_smart.pushing import SmartPush


async def _push(
    client: HttpClient,
    url: URL,
    proposed: PushedHead,
    store: MetadataStore,
    objects: SentObjects,
    on_bytes: OnBytes | None,
) -> PushOutcome:
    return await SmartPush(client, url, proposed, store, objects, on_bytes).run()


PROTOCOL: Final = PeerProtocol({"odf+http": "http", "odf+https": "https"}, SmartPeer, _push)
