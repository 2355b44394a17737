"""Nodes on loopback with a real store, a real object folder and real chains, to pull from and to push to."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from odf_node.adapters.object_folder import ObjectFolder
from odf_node.datasets.searching import Searching
from odf_node.home_folder import HomeFolder
from odf_node.http.callers import secret_hash_of
from odf_node.http.listening import CONNECTIONS, Connections, listen
from odf_node.http.served_node import Live, ServedNode
from odf_node.http.server import make_runner
from odf_node.keys.disputes import Disputes
from odf_node.keys.logs import KeyLogs
from odf_node.ports.clock import Clock
from odf_node.ports.peer_client import PeerHead
from odf_node.ports.pushes import UploadedDataset
from odf_node.records.access import AccessToken, ReadGrants
from odf_node.records.commits import Commit, NewBlock, NewDataset
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.rows.trees import KeptTrees
from odf_node.store import MetadataStore
from odf_protocol.block import Block, decode_block, encode_block
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.events import AddData, Checkpoint, DatasetKind, DataSlice, OffsetInterval, Seed
from odf_protocol.exchange.block_outlines import iter_wanted
from odf_protocol.head import Head
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash
from odf_protocol.timestamp import Timestamp
from support.chains import schema
from support.open_stores import open_store
from support.whole_app import create_whole_app

NOON = Timestamp.parse("2020-01-01T12:00:00Z")
NODE_ID = DidKey(bytes(range(32)))
TOKEN = "odf_test_token_0123456789"
KAMU_DATA = Path(__file__).parent.parent / "data" / "kamu" / "datasets"


def dataset_id(name: str) -> DatasetId:
    """An identity made of a name."""
    return DatasetId(Multihash.of_sha3_256(name.encode()).digest)


@dataclass
class Chain:
    """Linked blocks and the objects that they name; no rows, as nothing here reads rows."""

    name: str = "demo.data"
    blocks: list[Block] = field(default_factory=list)
    objects: dict[Multihash, bytes] = field(default_factory=dict)
    signatures: dict[int, bytes] = field(default_factory=dict)
    step_records: dict[int, bytes] = field(default_factory=dict)
    has_schema: bool = False
    """Keeps the rules of chains; where nothing judges them, numbers are simpler without."""

    def __post_init__(self) -> None:
        if not self.blocks:
            self._append(Seed(dataset_id=dataset_id(self.name), dataset_kind=DatasetKind.ROOT))
            if self.has_schema:
                self._append(schema())

    @property
    def id(self) -> DatasetId:
        event = self.blocks[0].event
        assert isinstance(event, Seed)
        return event.dataset_id

    @property
    def head(self) -> Head:
        return Head(self.blocks[-1].sequence_number, self.blocks[-1].hash)

    def add(self, data: bytes, checkpoint: bytes | None = None, *, stated_size: int | None = None) -> "Chain":
        """Add a block with a slice of these bytes, and a checkpoint."""
        number = len(self.blocks) - self.has_schema
        self.objects[Multihash.of_sha3_256(data)] = data
        if checkpoint is not None:
            self.objects[Multihash.of_sha3_256(checkpoint)] = checkpoint
        self._append(
            AddData(
                prev_offset=number - 2 if number > 1 else None,
                prev_checkpoint=self._last_checkpoint() if self.has_schema else None,
                new_data=DataSlice(
                    logical_hash=Multihash(ARROW0_SHA3_256, bytes([number % 256]) * 32),
                    physical_hash=Multihash.of_sha3_256(data),
                    offset_interval=OffsetInterval(start=number - 1, end=number - 1),
                    size=len(data) if stated_size is None else stated_size,
                ),
                new_checkpoint=None
                if checkpoint is None
                else Checkpoint(physical_hash=Multihash.of_sha3_256(checkpoint), size=len(checkpoint)),
            )
        )
        return self

    def _last_checkpoint(self) -> Multihash | None:
        checkpoint = getattr(self.blocks[-1].event, "new_checkpoint", None)
        return None if checkpoint is None else checkpoint.physical_hash

    def _append(self, event: Any) -> None:
        raw = encode_block(
            event,
            system_time=Timestamp(NOON.seconds + len(self.blocks)),
            prev_block_hash=self.blocks[-1].hash if self.blocks else None,
            sequence_number=len(self.blocks),
        )
        self.blocks.append(decode_block(raw, expected_hash=None))


def read_kamu_chain(name: str) -> Chain:
    """A chain that another implementation wrote, from its folder."""
    folder = KAMU_DATA / name
    blocks = []
    wanted: Multihash | None = Multihash.parse((folder / "refs/head").read_text())
    while wanted is not None:
        blocks.append(decode_block((folder / "blocks" / str(wanted)).read_bytes(), expected_hash=wanted))
        wanted = blocks[-1].prev_block_hash
    blocks.reverse()
    objects = {
        item.hash: (folder / item.kind.value / str(item.hash)).read_bytes()
        for block in blocks
        for item in iter_wanted(block.event)
    }
    return Chain(name, blocks, objects)


@dataclass
class TestNode:
    """A home and what is served from it."""

    __test__ = False

    home: HomeFolder
    store: MetadataStore
    objects: ObjectFolder
    receiver: "RecordingReceiver"
    clock: Clock = field(default_factory=lambda: StandingClock())

    @classmethod
    def create(cls, folder: Path) -> "TestNode":
        home = HomeFolder(folder)
        store, objects = open_store(home), ObjectFolder(home)
        return cls(home, store, objects, RecordingReceiver(store, objects))

    @property
    def served(self) -> ServedNode:
        return ServedNode(
            software="odf-node/test",
            node_id=NODE_ID,
            store=self.store,
            search=Searching(self.store),
            objects=self.objects,
            clock=self.clock,
            disputes=Disputes(self.store),
            key_logs=KeyLogs(self.store),
            trees=KeptTrees(self.objects),
            pushes=self.receiver,
        )

    def put_objects(self, contents: Iterable[bytes]) -> None:
        for content in contents:
            with self.objects.stage() as staged:
                staged.write(content)
                self.objects.put(staged, Multihash.of_sha3_256(content))

    def keep(
        self,
        chain: Chain,
        *,
        published: bool = True,
        signed_head: bytes | None = b"signed",
        has_objects: bool = True,
    ) -> DatasetRecord:
        """Commit the chain, or what is new in it; without its objects as one that was taken on its metadata alone."""
        absent = frozenset[Multihash]() if has_objects else frozenset(chain.objects)
        with self.objects.writing():
            if has_objects:
                self.put_objects(chain.objects.values())
            known = self.store.find_dataset(chain.id)
            first = 0 if known is None else known.head.sequence_number + 1
            new = NewDataset(name=chain.name, kind=DatasetKind.ROOT, origin=Origin.OWN, created_at=NOON)
            return self.store.commit(
                Commit(
                    dataset_id=chain.id,
                    expected_head=None if known is None else known.head.hash,
                    blocks=tuple(
                        NewBlock.of(
                            block,
                            chain.signatures.get(block.sequence_number),
                            chain.step_records.get(block.sequence_number),
                        )
                        for block in chain.blocks[first:]
                    ),
                    chain_state=b"state",
                    objects=tuple(chain.objects),
                    absent=absent,
                    not_brought=absent,
                    signed_head=signed_head,
                    new_dataset=_published(new, published) if known is None else None,
                )
            )

    def put_token(self, secret: str = TOKEN, *, scopes: Sequence[str] = ("push",), **changes: Any) -> None:
        self.store.put_token(
            AccessToken(
                **{
                    "id": f"token-{secret[-4:]}",
                    "secret_hash": secret_hash_of(secret),
                    "label": "test",
                    "scopes": tuple(scopes),
                    "created_at": NOON,
                }
                | changes
            )
        )

    @asynccontextmanager
    async def serving(self, **options: Any) -> AsyncIterator[str]:
        """Serve on a free port and give the address."""
        async with serving(create_whole_app(self.served, **options)) as address:
            yield address


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[str]:
    """Run an application on a free port of loopback and give its address."""
    runner = make_runner(app, grace_s=1)
    await runner.setup()
    try:
        # Strange servers of tests count nothing.
        connections = app.get(CONNECTIONS) or Connections(Live())
        listener = await listen(runner, "127.0.0.1", 0, connections=connections)
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        listener.close()
    finally:
        await runner.cleanup()


class StandingClock:
    """Always noon."""

    def now(self) -> Timestamp:
        return NOON

    def not_before(self, earliest: Timestamp) -> Timestamp:
        return max(NOON, earliest)


@dataclass
class RecordingReceiver:
    """Takes what is pushed: blocks and objects as they are, without rules. ``reject_with`` makes it reject."""

    store: MetadataStore
    objects: ObjectFolder
    reject_with: Exception | None = None
    reject_early_with: Exception | None = None
    received: list[PeerHead] = field(default_factory=list)
    actors: list[str] = field(default_factory=list)
    forced: list[bool] = field(default_factory=list)

    async def consider(self, proposed: PeerHead, *, actor: str, reads: ReadGrants) -> None:
        if self.reject_early_with is not None:
            raise self.reject_early_with

    async def receive(
        self, proposed: UploadedDataset, *, actor: str, reads: ReadGrants, published: bool = True, force: bool = False
    ) -> DatasetRecord:
        head = await proposed.get_head()
        self.received.append(head)
        self.actors.append(actor)
        self.forced.append(force)
        if self.reject_with is not None:
            raise self.reject_with
        assert head.dataset_id is not None
        known = self.store.find_dataset(head.dataset_id)
        packed = [
            block async for block in proposed.iter_blocks(after=None if known is None else known.head, upto=head.head)
        ]
        blocks = [decode_block(block.raw, expected_hash=None) for block in packed]
        wanted = [item for block in blocks for item in iter_wanted(block.event)]
        await proposed.fetch_objects(wanted, proposed.arrivals)
        proposed.arrivals.keep(item.hash for item in wanted)
        new = NewDataset(name=head.name, kind=DatasetKind.ROOT, origin=Origin.OWN, created_at=NOON, published=published)
        return self.store.commit(
            Commit(
                dataset_id=head.dataset_id,
                expected_head=None if known is None else known.head.hash,
                blocks=tuple(NewBlock.of(b, p.signature, p.step_record) for b, p in zip(blocks, packed, strict=True)),
                chain_state=b"state",
                objects=tuple(item.hash for item in wanted),
                signed_head=head.signed_head,
                new_dataset=new if known is None else None,
            )
        )


def _published(new: NewDataset, published: bool) -> NewDataset:
    return NewDataset(name=new.name, kind=new.kind, origin=new.origin, created_at=new.created_at, published=published)
