"""A peer over real sockets that tells the truth about a chain but for what it is told to lie about."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from odf_node.composition import Node
from odf_protocol.did import DatasetId
from odf_protocol.exchange.messages import (
    AttestationPage,
    DisputeList,
    HeadAnswer,
    HeadMessage,
    KeyLogMessage,
    NodeInfo,
    encode_message,
)
from odf_protocol.exchange.packs import PackedBlock, encode_pack
from odf_protocol.policy import Policy
from support.hostile_peer import Request, Script, answer, not_found
from support.offers import PeerChain

JSON = {"Content-Type": "application/json"}


@dataclass
class Lie:
    """What a peer says: a chain, and what it says otherwise.

    ``ends`` is how the pull ends: ``refused``, ``doubted`` (nothing new is taken, a warning says why), or ``ignored``
    (what is forged is passed over, and the honest rest is nothing new).
    """

    chain: PeerChain
    ends: str = "refused"
    says: str = ""
    head: HeadAnswer | None = None
    signed_head: bytes | None = b""
    pack: Callable[[list[PackedBlock]], list[PackedBlock]] = field(default=lambda blocks: blocks)
    statements: tuple[bytes, ...] = ()
    disputes: tuple[bytes, ...] = ()
    key_events: tuple[bytes, ...] = ()
    scripts: Mapping[str, Script] = field(default_factory=dict)
    identity: DatasetId | None = None
    policies: str = ""
    policy: Policy | None = Policy.INTEGRITY
    prepare: Callable[[Node], None] = field(default=lambda _node: None)
    mistakes: list[Exception] = field(default_factory=list)

    def head_answer(self) -> HeadAnswer:
        signed = self.chain.signed_head() if self.signed_head == b"" else self.signed_head
        return self.head or HeadAnswer(
            dataset_id=str(self.chain.id),
            name="cities",
            kind="Root",
            head=HeadMessage.of(self.chain.head),
            signed_head=signed,
            key_events=1,  # be asked for them in any case
        )

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        script = next((script for part, script in self.scripts.items() if part in request.path), None)
        try:
            script = script or self._answer(urlsplit(request.path))
        except Exception as mistake:
            self.mistakes.append(mistake)
            raise
        await script(request, writer)

    def _answer(self, url: Any) -> Script:
        info = NodeInfo(node_id=None, software="liar", protocol_versions=(1,), takes_pushes=False)
        if url.path.endswith("/node"):
            return answer(encode_message(info), headers=JSON)
        if url.path.endswith("/head"):
            return answer(encode_message(self.head_answer()), headers=JSON)
        if url.path.endswith("/attestations"):
            return answer(encode_message(AttestationPage(attestations=self.statements)), headers=JSON)
        if url.path.endswith("/disputes"):
            return answer(encode_message(DisputeList(documents=self.disputes)), headers=JSON)
        if url.path.endswith("/keys"):
            return answer(encode_message(KeyLogMessage(events=self.key_events)), headers=JSON)
        if url.path.endswith("/blocks"):
            query = parse_qs(url.query)
            first, upto = int(query["after"][0]) + 1, int(query["upto"][0])
            chain = self.chain
            entries = [
                PackedBlock(b.raw, s, r)
                for b, s, r in zip(chain.blocks, chain.signatures, chain.step_records, strict=True)
            ][first : upto + 1]
            return answer(encode_pack(self.pack(entries))[0])
        name = url.path.rpartition("/")[2]
        content = {str(known): data for known, data in self.chain.files.items()}.get(name)
        return not_found if content is None else answer(content)
