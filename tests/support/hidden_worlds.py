"""Two worlds that differ in hidden datasets alone, and what a stranger may do to both of them at once."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from odf_gossip.gossiping import Gossip
from odf_gossip.hearsay import Hearsay
from odf_gossip.home_reading import HomeReader
from odf_gossip_protocol import GossipSettings, encode_gossip
from odf_gossip_protocol.item import ItemKind, item_id
from odf_gossip_protocol.messages import Compare, Follow, Hello, ItemMessage, Push, Want
from odf_gossip_protocol.ranges import IdRange
from odf_node.configuration import AccessSettings, Configuration
from odf_node.http.served_node import Live
from odf_protocol.errors import UnavailableError
from odf_protocol.events import AddData, Checkpoint, DatasetKind, ExecuteTransform, ExecuteTransformInput, Seed
from odf_protocol.exchange.packs import PackedBlock, encode_pack
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_smart_protocol.batches import encode_batch
from odf_smart_protocol.messages import BlocksBatch, PushBlocks, encode_message
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain, select
from support.secretive_node import PUSHES, THIEF_TOKEN, Answer, SecretiveNode, Stranger
from support.signing import NEW_KEY, OTHER_KEY

DERIVED_KEY, SECRET_DERIVED_KEY, ABSENT_KEY = b"\x77" * 32, b"\x78" * 32, b"\x79" * 32
EVERYONE = Live(Configuration(access=AccessSettings(pages="everyone")))
VERSION = {"x-odf-smtp-version": "1"}


class SharedClock:
    """The time of both worlds, which goes on between requests."""

    def __init__(self) -> None:
        self.s = NOW.seconds

    def now(self) -> Timestamp:
        return Timestamp(self.s)

    def not_before(self, earliest: Timestamp) -> Timestamp:
        return max(self.now(), earliest)


class NobodyThere:
    """``GossipTransport`` without peers."""

    async def ask(self, *_: Any, **__: Any) -> Any:
        raise UnavailableError("there are no peers here")


def derived(source: PeerChain, key: bytes, name: str) -> PeerChain:
    """A derivative of a dataset, with a step and a record of it that names files."""
    chain = PeerChain(source.folder, key=key, name=name)
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE)).add(select("SELECT 1", source.id))
    read = ExecuteTransformInput(dataset_id=source.id, new_block_hash=source.head.hash, new_offset=5)
    return chain.add(ExecuteTransform(query_inputs=(read,), new_watermark=NOW), step_record=b"names files")


@dataclass
class World:
    """One of the two, and the stranger who asks it."""

    made: SecretiveNode
    stranger: Stranger
    masks: list[tuple[bytes, bytes]] = field(default_factory=list)
    push_id: str = "none"

    def mask(self, text: str, word: str) -> None:
        if text:
            self.masks.append((text.encode(), word.encode()))

    def seen(self, answer: Answer) -> tuple[int, dict[str, str], bytes]:
        """What was answered, but for ports, and for words that are chance."""
        body = answer.body
        for text, word in self.masks:
            body = body.replace(text, word)
        body = re.sub(rb'"epoch":"[^"]*"', b'"epoch":""', body)
        body = re.sub(rb'name="form_word" value="[^"]*"', b"", body)
        headers = {name: value for name, value in answer.headers.items() if name != "Set-Cookie"}
        return answer.status, headers, body


Step = Callable[[World], Any]


@dataclass(repr=False)
class Universe:
    """Both worlds."""

    clock: SharedClock
    worlds: tuple[World, ...]
    hidden: PeerChain
    derived: PeerChain
    thief: PeerChain

    async def compare(self, steps: Sequence[Step]) -> list[Any]:
        """Do the same things in both worlds; give what was seen in each, which was the same."""
        seen = []
        try:
            for step in steps:
                self.clock.s += 3_600  # nobody asks too often
                one, other = [await step(world) for world in self.worlds]
                assert one == other
                seen.append(one)
        finally:
            await self._forget()
        return seen

    async def _forget(self) -> None:
        """Begin the next example where this one began."""
        for world in self.worlds:
            world.stranger.token = THIEF_TOKEN
            await world.stranger.ask("DELETE", f"{PUSHES}/{world.push_id}")
            node = world.made.node
            record = node.store.find_dataset(self.thief.id)
            if record is not None:
                node.deletion.delete(record)
            node.objects.sweep(node.store.list_referenced_objects, now=NOW, keep_arrived=False)


@asynccontextmanager
async def open_world(folder: Path, clock: SharedClock, *, holds_it: bool) -> AsyncIterator[World]:
    """Serve one of the worlds: ``holds_it`` says whether the hidden datasets are there."""
    made = SecretiveNode.create(folder, holds_it=holds_it)
    publisher = PublisherHome(Judge(made.node.home.folder, made.node.engines))
    publisher.keep(derived(made.hidden, DERIVED_KEY, "derived.data"))
    if holds_it:
        secret = publisher.keep(derived(made.hidden, SECRET_DERIVED_KEY, "secret.derived"))
        made.node.store.set_published(secret.id, False)
    gossip = Gossip(
        HomeReader(made.node.store),
        made.node.store,
        bytes(range(32)),
        clock,
        NobodyThere(),
        settings=GossipSettings(round_ms=3_600_000),
        sinks=(Hearsay(made.node.store, clock),),
        log=lambda *_, **__: None,
    )
    stop = asyncio.Event()
    running = asyncio.create_task(gossip.run([], stop))
    try:
        while not list(gossip.machine.store.iter_items()):  # noqa: ASYNC110 - it tells when it has looked at home
            await asyncio.sleep(0.01)
        async with made.served(gossip=gossip, live=EVERYONE) as stranger:
            world = World(made, stranger)
            world.mask(stranger.url.rpartition(":")[2], "PORT")
            yield world
    finally:
        stop.set()
        await running
        made.node.close()


@asynccontextmanager
async def open_universe(folder: Path) -> AsyncIterator[Universe]:
    """Serve both worlds."""
    clock = SharedClock()
    async with (
        open_world(folder / "with", clock, holds_it=True) as one,
        open_world(folder / "without", clock, holds_it=False) as other,
    ):
        hidden = one.made.hidden
        yield Universe(clock, (one, other), hidden, derived(hidden, DERIVED_KEY, "derived.data"), one.made.thief)


NAMES = (
    "hidden",
    "hidden-id",
    "secret",
    "secret-id",
    "absent",
    "absent-id",
    "shown",
    "derived",
    "derived-id",
    "thief",
    "no name",
)
HASHES = ("hidden-head", "hidden-slice", "shown-slice", "derived-head", "unknown", "no hash")
BODIES = ("none", "json", "push-request", "pack", "slice", "gossip", "rubbish")
HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"IdRange": "bytes=0-9"},
    {"If-None-Match": "*"},
    {"Accept-Encoding": "gzip"},
    VERSION,
)
VARIANTS = ("slices", "other size", "checkpoint", "derivative", "nothing")
GOSSIP = ("hello", "compare", "compare badly", "want", "follow", "push")


def name_of(universe: Universe, word: str) -> str:
    identity = {"hidden": universe.hidden.id, "derived": universe.derived.id}
    identity |= {"secret": derived(universe.hidden, SECRET_DERIVED_KEY, "x").id}
    identity |= {"absent": PeerChain(universe.hidden.folder, key=ABSENT_KEY).id}
    plain = {"hidden": "Hidden.data", "secret": "secret.derived", "absent": "absent.data", "shown": "shown.data"}
    if word.endswith("-id"):
        return str(identity[word.removesuffix("-id")])
    return {**plain, "derived": "derived.data", "thief": "thief", "no name": "no%20name"}[word]


def hash_of(universe: Universe, word: str) -> str:
    shown = root_chain(universe.hidden.folder, slices=0, name="shown.data", key=NEW_KEY).add_rows([("Bern", 3)])
    found = {
        "hidden-head": universe.hidden.head.hash,
        "hidden-slice": next(iter(universe.hidden.files)),
        "shown-slice": next(iter(shown.files)),
        "derived-head": universe.derived.head.hash,
        "unknown": Multihash.of_sha3_256(b"unknown"),
    }
    return str(found.get(word, "f00"))


def push_request(chain: PeerChain, name: str) -> bytes:
    head = {"sequence_number": chain.head.sequence_number, "block_hash": str(chain.head.hash)}
    asked = {"dataset_id": str(chain.id), "name": name, "head": head, "signed_head": chain.signed_head()}
    return msgspec.json.encode(asked)


def body_of(universe: Universe, word: str) -> bytes | None:
    match word:
        case "none":
            return None
        case "json":
            return b'{"a":1}'
        case "push-request":
            return push_request(universe.thief, "hidden.data")
        case "pack":
            return encode_pack(PackedBlock(block.raw) for block in universe.thief.blocks)[0]
        case "slice":
            return next(iter(universe.hidden.files.values()))
        case "gossip":
            return encode_gossip(Hello(peers=True))
    return b"\xff\x00rubbish"


def ask(
    universe: Universe,
    route: str,
    method: str,
    name: str,
    hash_: str,
    token: str | None,
    body: str,
    headers: dict[str, str],
) -> Step:
    """Send one request, whatever it is."""

    async def step(world: World) -> Any:
        path = route.replace("{dataset}", name_of(universe, name)).replace("{hash}", hash_of(universe, hash_))
        path = path.replace("{number}", "1").replace("{offset}", "0")
        path = path.replace("{push}", world.push_id).replace("{upload}", "unknown").replace("{ref}", "head")
        content = None if method in {"GET", "HEAD"} else body_of(universe, body)
        world.stranger.token = token
        return world.seen(await world.stranger.ask(method, path, content, **headers))

    return step


def chains(universe: Universe, variant: str) -> PeerChain:
    """What a stranger pushes; each names objects that the hidden dataset has, but for the last."""
    thief, (first, *_) = universe.thief, universe.hidden.files
    match variant:
        case "slices":
            return thief
        case "other size":
            return thief.up_to(2).replacing(2, lambda event: replace(event, new_data=replace(event.new_data, size=7)))
        case "checkpoint":
            chain = root_chain(thief.folder, slices=0, key=OTHER_KEY, name="thief")
            checkpoint = Checkpoint(physical_hash=first, size=len(thief.files[first]))
            return chain.add(AddData(prev_offset=None, new_checkpoint=checkpoint))
        case "derivative":
            chain = PeerChain(thief.folder, key=OTHER_KEY, name="thief")
            chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE))
            chain.add(select("SELECT * FROM in0", universe.hidden.id))
            hidden = universe.hidden
            read = ExecuteTransformInput(dataset_id=hidden.id, new_block_hash=hidden.head.hash, new_offset=5)
            return chain.add(ExecuteTransform(query_inputs=(read,), new_watermark=NOW))
    return root_chain(thief.folder, slices=0, key=OTHER_KEY, name="thief")


def push(universe: Universe, variant: str, name: str, sends: str, commits: bool) -> Step:
    """Push by our exchange, as far as it goes, and look for what came of it."""

    async def step(world: World) -> Any:
        chain, stranger, reported = chains(universe, variant), world.stranger, []
        stranger.token = THIEF_TOKEN

        async def on_progress(method: str, path: str, body: bytes | None = None) -> Any:
            answer = await stranger.ask(method, path, body)
            if answer.status == 201 and path == PUSHES:
                world.push_id = answer.json()["push_id"]
                world.mask(world.push_id, "PUSH")
            reported.append(world.seen(answer))

        await on_progress("POST", PUSHES, push_request(chain, name_of(universe, name)))
        place = f"{PUSHES}/{world.push_id}"
        pack = encode_pack(PackedBlock(b.raw, s) for b, s in zip(chain.blocks, chain.signatures, strict=True))[0]
        await on_progress("POST", f"{place}/blocks?after=-1", pack)
        for object_hash, content in universe.hidden.files.items():
            await on_progress("GET", f"{place}/objects/{object_hash}")
            if sends != "nothing":
                await on_progress(
                    "PUT", f"{place}/objects/{object_hash}", content if sends == "all" else content[:-1] + b"x"
                )
        if commits:
            await on_progress("POST", f"{place}/commit")
        await on_progress("GET", f"{place}?wait_s=20")
        listing = "/_odf/v1/datasets"
        heads = (f"/{name_of(universe, name)}/refs/head", f"/{chain.id}/refs/head")
        for path in (*heads, listing, f"{listing}?word=data", f"{listing}?word=e"):
            await on_progress("GET", path)
        return reported

    return step


def smart(universe: Universe, way: str, name: str, token: str | None, variant: str, uploads: bool) -> Step:
    """Hold a whole conversation of ODF's Smart Transfer Protocol, as far as it goes."""

    async def step(world: World) -> Any:
        chain, reported = chains(universe, variant), []
        world.stranger.token = token
        headers = VERSION if token is None else {**VERSION, "Authorization": f"Bearer {token}"}
        files = [
            {"object_type": "DataSlice", "physical_hash": str(name), "size": len(content)}
            for name, content in universe.hidden.files.items()
        ]
        zeros = dict.fromkeys(("num_objects", "num_records", "bytes_in_raw_blocks", "bytes_in_raw_objects"), 0)
        if way == "pull":
            says = [{"force_update_if_diverged": False}, {}, {"object_files": files}]
        else:
            proposal = {"transfer_plan": {"num_blocks": len(chain.blocks), **zeros}, "force_update_if_diverged": False}
            batch = BlocksBatch.of(*encode_batch((block.hash, block.raw) for block in chain.blocks))
            says = [
                {**proposal, "visibility_for_created_dataset": "Public"},
                json.loads(encode_message(PushBlocks(new_blocks=batch))),
                {"object_files": files, "is_truncated": False},
                {"details": "Complete"},
                {},
            ]
        try:
            url = f"{world.stranger.url}/{name_of(universe, name)}/{way}"
            async with world.stranger.session.ws_connect(url, headers=headers) as socket:
                for stated in says:
                    await socket.send_str(json.dumps(stated))
                    if "details" in stated:
                        continue  # nothing is said to that
                    heard = await socket.receive(timeout=20)
                    text = f"{heard.data} {heard.extra or ''}".encode()
                    for upload in re.findall(rb"/uploads/([\w-]+)/", text):
                        world.mask(upload.decode(), "UPLOAD")
                    reported.append((heard.type, world.seen(Answer(0, {}, text))))
                    for place in re.findall(rb"/_odf/v1/uploads/[\w-]+/(f[0-9a-f]+)", text) if uploads else ():
                        path = re.search(rb"/_odf/v1/uploads/[\w-]+/" + place, text)
                        content = universe.hidden.files[Multihash.parse(place.decode())]
                        assert path is not None
                        put = await world.stranger.ask("PUT", path.group().decode(), content)
                        reported.append((heard.type, world.seen(put)))
                    if heard.type is not aiohttp.WSMsgType.TEXT:
                        break
        except aiohttp.WSServerHandshakeError as error:
            reported.append((error.status, error.message))
        return reported

    return step


def gossip(universe: Universe, kind: str) -> Step:
    """Send one message of gossip."""

    async def step(world: World) -> Any:
        hidden = universe.hidden
        shown = root_chain(hidden.folder, slices=0, name="shown.data", key=NEW_KEY).add_rows([("Bern", 3)])
        heads = [chain.signed_head() for chain in (hidden, shown)]
        messages: dict[str, Any] = {
            "hello": Hello(peers=True),
            "compare": Compare(nonce=bytes(16), ranges=(IdRange(fingerprint=bytes(16)),)),
            "compare badly": Compare(nonce=bytes(16), ranges=(IdRange(ids=()),)),
            "want": Want(ids=tuple(item_id(ItemKind.HEAD, head) for head in heads)),
            "follow": Follow(),
            "push": Push(items=(ItemMessage(kind="head", raw=heads[0]),)),
        }
        world.stranger.token = None
        body = encode_gossip(messages[kind])
        return world.seen(await world.stranger.ask("POST", "/_odf/v1/gossip", body))

    return step
