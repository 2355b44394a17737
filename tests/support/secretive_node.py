"""A real node with a dataset that is hidden, served over real sockets, and a stranger who may push one of their own."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

from odf_gossip.ports import GossipReceiver
from odf_gossip.route import ANSWERING
from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.datasets.searching import Searching
from odf_node.home_folder import HomeFolder
from odf_node.http.callers import secret_hash_of
from odf_node.http.route_tables import add_plug_in_routes
from odf_node.http.served_node import Live, ServedNode
from odf_node.http.server import create_app
from odf_node.keys.disputes import Disputes
from odf_node.keys.logs import KeyLogs
from odf_node.records.access import AccessToken
from odf_node.rows.trees import KeptTrees
from odf_protocol.did import DidKey
from odf_protocol.exchange.packs import PackedBlock, encode_pack
from odf_protocol.multihash import Multihash
from support.exchange_nodes import serving
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain
from support.signing import NEW_KEY, OTHER_KEY

THIEF_TOKEN, FRIEND_TOKEN = "odf_thief_0123456789abcdef", "odf_friend_0123456789abcdef"
PUSHES = "/_odf/v1/pushes"
SHOWN_KEY = NEW_KEY


@dataclass
class Answer:
    """What a stranger sees of an answer; ids that differ with each request are taken out."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        import msgspec

        return msgspec.json.decode(self.body)


@dataclass
class Stranger:
    """Asks a served node."""

    url: str
    session: aiohttp.ClientSession
    token: str | None = THIEF_TOKEN
    headers: Mapping[str, str] = field(default_factory=dict)

    async def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        sent = {**self.headers, **headers}
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        if body is not None and method == "POST" and "Content-Type" not in sent:
            sent["Content-Type"] = "application/json" if body[:1] == b"{" else "application/octet-stream"
        url = URL(self.url + path, encoded=True)
        async with self.session.request(method, url, data=body, headers=sent, allow_redirects=False) as answer:
            reported = {n: v for n, v in answer.headers.items() if n.lower() not in {"date", "x-request-id"}}
            stated = (await answer.read()).replace(answer.headers.get("X-Request-Id", "\0").encode(), b"ID")
            return Answer(answer.status, reported, stated)

    async def begin(self, chain: PeerChain, *, name: str | None = None) -> Answer:
        import msgspec

        head = {"sequence_number": chain.head.sequence_number, "block_hash": str(chain.head.hash)}
        asked = {"dataset_id": str(chain.id), "name": name or chain.name, "head": head}
        return await self.ask("POST", PUSHES, msgspec.json.encode({**asked, "signed_head": chain.signed_head()}))

    async def begin_with_blocks(self, chain: PeerChain, *, name: str | None = None) -> Answer:
        begun = await self.begin(chain, name=name)
        assert begun.status == 201, begun
        body, _ = encode_pack(
            PackedBlock(block.raw, signature) for block, signature in zip(chain.blocks, chain.signatures, strict=True)
        )
        return await self.ask("POST", f"{PUSHES}/{begun.json()['push_id']}/blocks?after=-1", body)

    async def finish(self, push_id: str) -> Answer:
        committed = await self.ask("POST", f"{PUSHES}/{push_id}/commit")
        return committed if committed.status != 202 else await self.ask("GET", f"{PUSHES}/{push_id}?wait_s=20")


@dataclass
class SecretiveNode:
    """What is held, and the stranger's own chain: root data with the very bytes of the hidden dataset."""

    node: Node
    hidden: PeerChain
    thief: PeerChain

    @classmethod
    def create(cls, folder: Path, *, holds_it: bool = True) -> "SecretiveNode":
        folder.mkdir(exist_ok=True)
        judge = Judge.create(folder / "home")
        hidden = root_chain(folder, name="hidden.data")
        publisher = PublisherHome(judge)
        publisher.keep(root_chain(folder, slices=0, name="shown.data", key=SHOWN_KEY).add_rows([("Bern", 3)]))
        if holds_it:
            publisher.keep(hidden)
        node = Node(HomeFolder(folder / "home"), FixedClock(NOW))
        if holds_it:
            node.store.set_published(hidden.id, False)
        thief = root_chain(folder, key=OTHER_KEY, name="thief")
        assert thief.files == hidden.files
        for secret, scope in ((THIEF_TOKEN, f"push:{thief.id}"), (FRIEND_TOKEN, f"read:{hidden.id}")):
            node.store.put_token(
                AccessToken(
                    id=secret[4:9], secret_hash=secret_hash_of(secret), label="", scopes=(scope,), created_at=NOW
                )
            )
        return cls(node, hidden, thief)

    @property
    def files(self) -> list[Multihash]:
        return list(self.hidden.files)

    def holdings(self) -> Any:
        store = self.node.store
        return (
            [(r.name, r.id, r.head, r.trust, r.published) for r in store.list_datasets()],
            sorted(map(str, self.node.objects.iter_hashes())),
            [sorted(map(str, store.list_absent_objects(r.id))) for r in store.list_datasets()],
        )

    @asynccontextmanager
    async def served(
        self, *, live: Live | None = None, gossip: GossipReceiver | None = None, **options: Any
    ) -> AsyncIterator[Stranger]:
        node = self.node
        served = ServedNode(
            software="odf-node/test",
            node_id=DidKey(bytes(range(32))),
            store=node.store,
            search=Searching(node.store),
            objects=node.objects,
            clock=node.clock,
            disputes=Disputes(node.store),
            key_logs=KeyLogs(node.store),
            trees=KeptTrees(node.objects),
            pushes=node.push_judge,
            **options,
        )
        app = create_app(served, live=live)
        add_plug_in_routes(app, node)
        app[ANSWERING].receiver = gossip
        async with serving(app) as url, aiohttp.ClientSession() as session:
            yield Stranger(url, session)


def without_files(chain: PeerChain) -> PeerChain:
    """Give a chain whose holder has none of the files that it names."""
    return replace(chain, files={})
