"""Sends one signed POST at a time, as notices are sent, for whoever has no event loop.

Source: clause SINK-2 in ``spec/quarantine.md``; NOTICE-3 in ``spec/notices.md``.
"""

import asyncio

from odf_node.adapters.notice_sender import NoticeSender
from odf_node.adapters.request_signing import NodeSigner
from odf_node.ports.clock import Clock
from odf_node.ports.keys import KeyStore
from odf_node.ports.notices import Told
from odf_protocol.did import DidKey


class SignedPosts:
    """Signs with the node's key, which is made where there is none."""

    def __init__(self, keys: KeyStore, clock: Clock) -> None:
        self._keys, self._clock = keys, clock

    @property
    def node_id(self) -> str:
        return str(DidKey(self._keys.get_or_create_node_key().public_key()))

    def send(self, url: str, body: bytes) -> tuple[Told, str]:
        return asyncio.run(self._send(url, body))

    async def _send(self, url: str, body: bytes) -> tuple[Told, str]:
        async with NoticeSender(NodeSigner(self._keys.get_or_create_node_key(), self._clock)) as sender:
            return await sender.send(url, body)
