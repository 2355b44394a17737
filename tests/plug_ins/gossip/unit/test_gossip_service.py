"""Gossip in a node: what it keeps, what it tells, who hears of it, and what `peer` and `subscribe` change."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from odf_gossip.following import Follower
from odf_gossip.gossiping import Gossip
from odf_gossip.hearsay import Hearsay
from odf_gossip.home_reading import HomeReader
from odf_gossip_protocol import GossipSettings, Item, ItemKind, encode_gossip, read_item
from odf_gossip_protocol.messages import (
    Compare,
    Feed,
    Follow,
    Hello,
    ItemMessage,
    Push,
    Ranges,
    Reply,
    Request,
    Taken,
    Welcome,
)
from odf_gossip_protocol.ranges import IdRange
from odf_node.adapters.clocks import FixedClock
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.exchange.peering import Peers
from odf_node.exchange.subscriptions import Subscriptions
from odf_node.http.server import ListeningAddress
from odf_node.keys.disputes import Disputes
from odf_node.ports.peer_client import PeerDataset
from odf_node.ports.peer_errors import PeerUnavailableError
from odf_node.records.datasets import HeldHead, Subscription
from odf_node.records.errors import HomeBusyError
from odf_node.records.evidence import HeldAttestation
from odf_node.store import MetadataStore
from odf_protocol.accept_policies import NO_POLICIES, PolicySet
from odf_protocol.did import DatasetId
from odf_protocol.equivocation import EquivocationKind, prove_equivocation
from odf_protocol.errors import MalformedError
from odf_protocol.heads import sign_head
from odf_protocol.peer_addresses import PeerAddress
from odf_protocol.policy import Auditor
from odf_protocol.timestamp import Timestamp
from support.event_loop import in_loop
from support.gossip_items import attestation, head
from support.homes import make_home
from support.open_stores import open_new_store
from support.signing import DATASET_KEY, NODE_KEY, NOON, OTHER_KEY, dataset_of, did_key_of
from support.store_values import creation

QUICK = GossipSettings(round_ms=20)
PEER = PeerAddress("http://127.0.0.1:9")


class Line:
    """A transport that answers as a test says, and keeps what it was asked."""

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Request, bool]] = []

    async def ask(self, address: PeerAddress, request: Request, *, is_named: bool) -> Reply:
        self.asked.append((address.text, request, is_named))
        return self.answer(request)


def friendly(request: Request) -> Reply:
    match request:
        case Hello():
            return Welcome(linked=True)
        case Compare():
            return Ranges(ranges=(IdRange(ids=()),))
        case Follow():
            return Feed(epoch=bytes(16), next=0)
        case _:
            return Taken()


class Ears:
    def __init__(self) -> None:
        self.heard: list[Item] = []

    def accept(self, item: Item) -> None:
        self.heard.append(item)
        if item.kind is ItemKind.ATTESTATION:
            raise ValueError("not this one")


def make_store() -> MetadataStore:
    return open_new_store()


def make_gossip(store: MetadataStore, line: Line | None = None, **more: object) -> Gossip:
    named = {"settings": QUICK, "log": lambda event, **facts: None} | more
    reported = {"tells": named.pop("tells")} if "tells" in named else {}
    reader = HomeReader(store, **reported)  # type: ignore[arg-type]
    return Gossip(reader, store, NODE_KEY, FixedClock(NOON), line or Line(friendly), **named)  # type: ignore[arg-type]


async def run_until(gossip: Gossip, holds: Callable[[], bool]) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(gossip.run((), stop))
    try:
        async with asyncio.timeout(120):
            while not holds():  # noqa: ASYNC110 - what is waited for is in a database
                await asyncio.sleep(0.01)
    finally:
        stop.set()
        await running


@in_loop
async def test_items_that_arrive_are_kept_then_told_and_there_after_a_restart() -> None:
    store, ears, reported = make_store(), Ears(), []
    gossip = make_gossip(store, sinks=[ears], log=lambda event, **facts: reported.append(event))
    items = [attestation(NODE_KEY, DATASET_KEY), head(DATASET_KEY, 1), head(OTHER_KEY, 1)]
    await run_until(gossip, lambda: _push(gossip, items) and len(ears.heard) == 3)
    assert {item.id for item in ears.heard} == {item.id for item in items}
    assert "gossip-sink" in reported  # what one sink raises does not keep the rest from being heard
    again = make_gossip(store, sinks=[ears])
    await run_until(again, lambda: len(again.machine.store) == 3)
    assert len(ears.heard) == 3


class BusyEars(Ears):
    """Hears nothing at first, as a home does that somebody else keeps busy."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.left = calls

    def accept(self, item: Item) -> None:
        self.left -= 1
        if self.left >= 0:
            raise HomeBusyError(Path("home"), 1.0)
        self.heard.append(item)


@in_loop
async def test_who_could_not_hear_just_now_is_told_again_gossip_55() -> None:
    busy = BusyEars(calls=3)
    gossip = make_gossip(make_store(), sinks=[busy])
    items = [head(DATASET_KEY, 1), head(OTHER_KEY, 1)]
    assert _push(gossip, items)
    await run_until(gossip, lambda: len(busy.heard) == 2)
    assert {item.id for item in busy.heard} == {item.id for item in items}


def _push(gossip: Gossip, items: list[Item]) -> bool:
    return gossip.receive("b", encode_gossip(Push(items=tuple(map(ItemMessage.of, items))))) is not None


@in_loop
async def test_items_that_are_replaced_leave_the_home() -> None:
    store = make_store()
    gossip = make_gossip(store)
    for number in range(3):
        _push(gossip, [head(DATASET_KEY, number)])
    await run_until(gossip, lambda: len(store.list_gossip_items()) == 1)
    assert store.list_gossip_items()[0].raw == head(DATASET_KEY, 2).raw


@in_loop
async def test_published_head_is_told_to_named_peers_and_a_hidden_one_is_not() -> None:
    for published in (True, False):
        store = make_store()
        record = store.commit(creation(count=2))
        raw = sign_head(
            DATASET_KEY,
            dataset_id=dataset_of(DATASET_KEY),
            sequence_number=record.head.sequence_number,
            block_hash=record.head.hash,
            time=NOON,
        )
        store.put_signed_head(HeldHead(record.id, record.head, raw))
        store.set_published(record.id, published)
        store.name_peer(PEER.text, NOON)
        line = Line(friendly)
        gossip = make_gossip(store, line)

        def pushed(line: Line = line) -> list[bytes]:
            return [item.raw for _, asked, _ in line.asked if isinstance(asked, Push) for item in asked.items]

        def greeted(line: Line = line) -> bool:
            return sum(isinstance(asked, Compare) for _, asked, _ in line.asked) > 3

        await run_until(gossip, lambda: bool(pushed()) if published else greeted())  # noqa: B023
        assert raw in pushed() if published else pushed() == []
        assert {(url, named) for url, _, named in line.asked} == {(PEER.text, True)}


@in_loop
async def test_nothing_is_told_where_only_known_callers_may_read() -> None:
    store = make_store()
    store.commit(creation(count=2))
    gossip = make_gossip(store, tells=lambda: False)
    assert gossip._reader.read().news == ()


@in_loop
async def test_peer_that_fails_ends_nothing() -> None:
    def broken(request: Request) -> Reply:
        raise PeerUnavailableError(PEER.text, "it is gone")

    store = make_store()
    store.name_peer(PEER.text, NOON)
    line = Line(broken)
    gossip = make_gossip(store, line)
    await run_until(gossip, lambda: bool(line.asked))
    assert _push(gossip, [head(DATASET_KEY, 1)])


def test_what_is_no_request_is_rejected() -> None:
    gossip = make_gossip(make_store())
    with pytest.raises(MalformedError):
        gossip.receive("b", b"{}")


def test_what_matters_here_is_handed_on_and_the_rest_is_not() -> None:
    store = make_store()
    sink = Hearsay(store, FixedClock(NOON))
    watched, other = dataset_of(DATASET_KEY), dataset_of(OTHER_KEY)
    store.put_subscription(Subscription(dataset_id=watched, name="d", url=None, since=NOON))
    for key in (DATASET_KEY, OTHER_KEY):
        pair = [head(key, 3, text=text).raw for text in "ab"]
        proof = prove_equivocation(EquivocationKind.HEADS, *pair).raw
        for item in (attestation(NODE_KEY, key), head(key, 1), read_item(ItemKind.EQUIVOCATION, proof)):
            sink.accept(item)
    assert [len(list(store.iter_attestations(one))) for one in (watched, other)] == [1, 0]
    assert [store.find_seen_head(one) is not None for one in (watched, other)] == [True, False]
    assert Disputes(store).find_obstacle(watched) is not None
    assert Disputes(store).find_obstacle(other) is None


def test_named_peer_is_listed_and_forgotten() -> None:
    store = make_store()
    peers = Peers(store, FixedClock(NOON))
    assert peers.add("https://node.example/").text == "https://node.example"
    peers.add("https://node.example")
    assert [(peer.url, named) for peer, named in peers.list_peers()] == [("https://node.example", True)]
    assert peers.delete("https://node.example/") == "https://node.example"
    assert peers.list_peers() == []
    with pytest.raises(UnknownDatasetError):
        peers.delete("https://node.example")
    for text in ("node.example", "ftp://x.example", "http://x.example/path", "http://u:p@x.example"):
        with pytest.raises(UsageError):
            peers.add(text)


async def _nobody(url: str) -> PeerDataset:
    raise PeerUnavailableError(url, "no server answers there")


@in_loop
async def test_own_dataset_and_unnamed_one_are_not_subscribed_to(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    own = home.store.commit(creation(count=2))
    subscriptions = Subscriptions(home, _nobody)
    for source in (own.name, str(own.id), str(dataset_of(OTHER_KEY))):
        with pytest.raises(UsageError):
            await subscriptions.add(source, local_name=None)
    with pytest.raises(UnknownDatasetError):
        await subscriptions.add("nothing.of.this.name", local_name=None)
    made = await subscriptions.add(str(dataset_of(OTHER_KEY)), local_name="other.one")
    assert (made.name, made.url, home.store.list_subscriptions()) == ("other.one", None, (made,))
    assert subscriptions.remove("other.one") == made
    with pytest.raises(UsageError):
        subscriptions.remove("other.one")


class News:
    """What gossip says, as a test wants it."""

    def __init__(self, *subscriptions: Subscription) -> None:
        self.subscriptions = subscriptions
        self.heads: dict[DatasetId, Item] = {}

    def find_news(self) -> dict[DatasetId, Item]:
        return self.heads

    def list_sources(self) -> list[PeerAddress]:
        return [PeerAddress("http://8.8.8.8"), PEER]


@dataclass
class Watching:
    """A follower that reaches nobody; whom it asked, and how long it waits."""

    store: MetadataStore
    asked: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    policies: PolicySet = NO_POLICIES

    def follower(self) -> Follower:
        return Follower(
            self.store,
            None,  # type: ignore[arg-type] - nothing is ever opened
            self._open,
            lambda: self.policies,
            lambda event, **facts: self.waits.append(facts["retry_in_s"]),
        )

    async def _open(self, url: str) -> PeerDataset:
        self.asked.append(url)
        raise PeerUnavailableError(url, "no server answers there")


def subscribed(store: MetadataStore, *, url: str | None) -> Subscription:
    subscription = Subscription(dataset_id=dataset_of(DATASET_KEY), name="d", url=url, since=NOON)
    store.put_subscription(subscription)
    return subscription


@in_loop
async def test_subscription_asks_named_addresses_first_and_then_waits() -> None:
    store = make_store()
    subscription = subscribed(store, url="http://first.example/d")
    store.name_peer(PEER.text, NOON)
    watching, news = Watching(store), News(subscription)
    news.heads = {subscription.dataset_id: head(DATASET_KEY, 1)}
    follower, stop = watching.follower(), asyncio.Event()
    for _ in range(3):
        await follower.look(news, stop)
    assert watching.asked == [
        "http://first.example/d",
        f"heard+http://8.8.8.8/{subscription.dataset_id}",
        f"{PEER}/{subscription.dataset_id}",
    ]
    assert watching.waits == [5.0]


@in_loop
async def test_strangers_are_not_asked_for_a_dataset_that_gossip_knows_nothing_of() -> None:
    """It may be hidden, and its identity is not theirs to learn (GOSSIP-56)."""
    store = make_store()
    subscription = subscribed(store, url="http://friend.example/d")
    store.name_peer(PEER.text, NOON)
    watching = Watching(store)
    await watching.follower().look(News(subscription), asyncio.Event())
    assert watching.asked == ["http://friend.example/d", f"{PEER}/{subscription.dataset_id}"]


@in_loop
async def test_subscription_without_an_address_waits_for_news() -> None:
    store = make_store()
    news, watching = News(subscribed(store, url=None)), Watching(store)
    follower, stop = watching.follower(), asyncio.Event()
    await follower.look(news, stop)
    assert watching.asked == []
    news.heads = {dataset_of(DATASET_KEY): head(DATASET_KEY, 1)}
    await follower.look(news, stop)
    assert len(watching.asked) == 2


@in_loop
async def test_what_a_subscription_waits_for_is_what_an_acceptance_depends_on() -> None:
    store, id_ = make_store(), dataset_of(DATASET_KEY)
    watching = Watching(store, policies=replace(NO_POLICIES, auditors=(Auditor("a", did_key_of(NODE_KEY)),)))
    follower, sink = watching.follower(), Hearsay(store, FixedClock(NOON))
    subscribed(store, url=None)
    seen = [follower._look_around(id_, None)]

    def changed() -> bool:
        seen.append(follower._look_around(id_, None))
        return seen[-1] != seen[-2]

    assert not changed()
    sink.accept(attestation(OTHER_KEY, DATASET_KEY))
    assert not changed()  # a stranger's word
    sink.accept(attestation(NODE_KEY, DATASET_KEY))
    assert changed()
    pair = [head(DATASET_KEY, 3, text=text).raw for text in "ab"]
    sink.accept(read_item(ItemKind.EQUIVOCATION, prove_equivocation(EquivocationKind.HEADS, *pair).raw))
    assert changed()
    watching.policies = NO_POLICIES
    assert changed()
    assert follower._look_around(id_, head(DATASET_KEY, 1)) != seen[-1]


@in_loop
async def test_findings_that_came_before_the_subscription_count_after_it() -> None:
    store = make_store()
    gossip = make_gossip(store, sinks=[Hearsay(store, FixedClock(NOON))])
    item = attestation(NODE_KEY, DATASET_KEY)

    def kept() -> int:
        return len(list(store.iter_attestations(item.dataset_id)))

    def subscribe_when_it_was_heard() -> bool:
        if len(store.list_gossip_items()) == 1 and not store.list_subscriptions():
            assert kept() == 0
            subscribed(store, url=None)
        return kept() == 1

    assert _push(gossip, [item])
    await run_until(gossip, subscribe_when_it_was_heard)


@in_loop
async def test_head_that_was_signed_again_is_told_again() -> None:
    store = make_store()
    record = store.commit(creation(count=2))
    gossip = make_gossip(store)
    reported = []
    for second in range(3):
        raw = sign_head(
            DATASET_KEY,
            dataset_id=record.id,
            sequence_number=record.head.sequence_number,
            block_hash=record.head.hash,
            time=Timestamp(NOON.seconds + second),
        )
        store.put_signed_head(HeldHead(record.id, record.head, raw))
        reported += [[item.raw for item in gossip._reader.read().news] for _ in range(2)]
        assert reported[-2:] == [[raw], []]


@in_loop
async def test_findings_are_told_of_a_dataset_that_is_published_later() -> None:
    store = make_store()
    record = store.commit(creation(count=2, dataset_id=dataset_of(DATASET_KEY)))
    store.set_published(record.id, False)
    gossip, item = make_gossip(store), attestation(NODE_KEY, DATASET_KEY)
    store.put_attestation(HeldAttestation.of(item.statement, NOON))  # type: ignore[arg-type] - a finding
    assert gossip._reader.read().news == ()
    store.set_published(record.id, True)
    assert item.id in {one.id for one in gossip._reader.read().news}
    assert gossip._reader.read().news == ()


def test_home_is_read_only_while_there_may_be_news() -> None:
    store, changes = make_store(), [1]
    record = store.commit(creation(count=2, dataset_id=dataset_of(DATASET_KEY)))
    reads: list[str] = []

    class Counted:
        def __getattr__(self, name: str) -> object:
            reads.append(name)
            return getattr(store, name)

    counted = Counted()
    reader = HomeReader(counted, read_change=lambda: changes[-1])  # type: ignore[arg-type]

    def rounds_until_quiet() -> list[bytes]:
        reported = []
        for _ in range(20):
            reads.clear()
            reported += [item.raw for item in reader.read().news]
            if not reads:
                return reported
        raise AssertionError("it never rests")

    rounds_until_quiet()
    raw = sign_head(
        DATASET_KEY,
        dataset_id=record.id,
        sequence_number=record.head.sequence_number,
        block_hash=record.head.hash,
        time=NOON,
    )
    store.put_signed_head(HeldHead(record.id, record.head, raw))
    changes.append(2)
    assert raw in rounds_until_quiet()


def test_only_addresses_of_this_machine_are_local() -> None:
    hosts = ("127.0.0.1", "127.8.8.8", "::1", "localhost", "0.0.0.0", "::", "10.0.0.1", "data.example.org")
    assert [host for host in hosts if ListeningAddress(host, 1).is_local] == list(hosts[:4])


def test_node_says_where_it_is_only_where_that_is_of_use() -> None:
    from odf_gossip.service import find_own_addresses
    from odf_node.configuration.declaration import GossipSection as Section

    loopback, everywhere = ListeningAddress("127.0.0.1", 8080), ListeningAddress("0.0.0.0", 8080)
    public = ListeningAddress("8.8.8.8", 8080)
    assert find_own_addresses(Section(), loopback) == ()
    assert find_own_addresses(Section(allow_private=True), loopback) == (PeerAddress("http://127.0.0.1:8080"),)
    assert find_own_addresses(Section(allow_private=True), everywhere) == ()
    assert find_own_addresses(Section(), public) == (PeerAddress("http://8.8.8.8:8080"),)
    assert find_own_addresses(Section(), loopback, "https://node.example") == (PeerAddress("https://node.example"),)
    with pytest.raises(UsageError):
        find_own_addresses(Section(), loopback, "node.example")
