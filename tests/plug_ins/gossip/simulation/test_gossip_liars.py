"""The same networks with liars in them: what they cost is bounded, and what they want does not happen."""

import random
from dataclasses import dataclass, field

from odf_gossip_protocol import GossipSettings, Interests, Item, ItemKind, SetInterests, encode_gossip
from odf_gossip_protocol.messages import (
    Compare,
    Feed,
    Follow,
    Hello,
    ItemMessage,
    Items,
    Push,
    Ranges,
    Taken,
    Want,
    Welcome,
    decode_request,
)
from odf_gossip_protocol.ranges import IdRange
from odf_protocol.peer_addresses import PeerAddress
from support.gossip_items import head, key_of
from support.gossip_network import START_MS, Line, Network, SimulatedNode, address_of, make_record
from support.signing import dataset_of

BAD_LINE = Line(loss=0.1, duplication=0.05, max_delay_ms=900)
PUBLISHER = key_of(70_001)
SMALL = GossipSettings(max_items=400, max_forgotten=800, max_log=256)


def network_of(count: int, seed: int, *, settings: GossipSettings | None = None) -> Network:
    network = Network(seed, line=BAD_LINE, settings=settings)
    for _ in range(count):
        network.add(pinned=(address_of(0), address_of(1)))
    network.run_rounds(25)
    return network


def junk(number: int) -> Item:
    """A valid head of a dataset that nobody heard of: keys cost a liar nothing."""
    return head(key_of(100_000 + number), 1, time_ms=START_MS)


def push_of(*items: Item) -> bytes:
    return encode_gossip(Push(items=tuple(map(ItemMessage.of, items))))


def flood(network: Network, victims: list[SimulatedNode], rounds: int, each: int) -> int:
    """Push new valid items from one network of the size of a /16 to some nodes; return how many."""
    made, first = 0, (network.now_ms - START_MS) // 10
    for _ in range(rounds):
        for victim in victims:
            network.shout("66.6", victim, push_of(*(junk(first + made + number) for number in range(each))))
            made += each
        network.run_rounds(1)
    return made


def test_flood_is_bounded_in_memory_and_leaves_what_matters() -> None:
    # With this seed a flood once filled the pushes of honest neighbours, so that their own news was not read.
    network = network_of(15, seed=21, settings=SMALL)
    good = [head(key_of(80_000 + number), 1, time_ms=START_MS) for number in range(50)]
    network.publish(network.nodes[5], *good[:25])
    network.publish(network.nodes[6], *good[25:])
    network.run_rounds(15)
    assert [network.knowing(item.id) for item in good] == [15] * len(good)
    made = flood(network, network.nodes[10:12], rounds=30, each=20)
    network.run_rounds(10)
    assert made == 1_200
    for node in network.nodes:
        machine = node.machine
        own = len(good)
        assert len(machine.store) <= SMALL.max_items + own
        assert machine.store.passing_bytes <= SMALL.max_item_bytes
        assert len(machine._pushes) <= SMALL.rate_buckets
    news = head(PUBLISHER, 7, time_ms=START_MS)
    network.publish(network.nodes[14], news)
    flood(network, network.nodes[10:12], rounds=10, each=20)
    assert network.knowing(news.id) == 15


def test_flood_costs_few_verifications() -> None:
    """Beyond its allowance a sender is not read at all: what it costs is decided here, not by the sender."""
    network = network_of(10, seed=22)
    victim = network.nodes[3]
    verified = 0
    read = victim.machine._read

    def counting(kind: ItemKind, raw: bytes) -> Item:
        nonlocal verified
        verified += 1
        return read(kind, raw)

    victim.machine._read = counting
    for start in range(0, 2_000, 100):
        network.shout("66.6", victim, push_of(*(junk(start + number) for number in range(100))))
    allowance = network.settings.rate_burst_items
    assert verified <= allowance + 1
    network.run_rounds(10)
    refused = sum(network.shout("66.6", victim, push_of(junk(5))) is None for _ in range(1_000))
    assert refused >= 1_000 - network.settings.rate_burst_requests - 1


def test_flood_does_not_push_out_what_is_of_interest() -> None:
    network = network_of(6, seed=23, settings=SMALL)
    victim = network.nodes[4]
    network.tell(victim, SetInterests(Interests(frozenset({dataset_of(PUBLISHER)}))))
    watched = head(PUBLISHER, 3, time_ms=START_MS)
    network.publish(network.nodes[2], watched)
    network.run_rounds(10)
    assert watched.id in victim.machine.store
    for bucket in range(40):  # a liar with many networks
        network.shout(f"66.{bucket}", victim, push_of(*(junk(bucket * 100 + number) for number in range(100))))
    assert len(victim.machine.store) <= SMALL.max_items + 1
    assert watched.id in victim.machine.store


def test_who_floods_pushes_out_the_flood() -> None:
    network = network_of(6, seed=24, settings=SMALL)
    victim = network.nodes[4]
    # Flooded neighbours bring the flood too: less than a seventh of the room is safe whatever the others do.
    quiet = [junk(50_000 + number) for number in range(SMALL.max_items // 7 - 10)]
    network.shout("77.7", victim, push_of(*quiet))
    for start in range(0, 2_000, 50):
        network.shout("66.6", victim, push_of(*(junk(start + number) for number in range(50))))
        network.run_until(network.now_ms + 4_000)
    assert all(item.id in victim.machine.store for item in quiet)


def test_invalid_items_shut_their_sender_out_and_no_one_else() -> None:
    network = network_of(5, seed=25)
    victim = network.nodes[2]
    good = junk(1)
    forged = ItemMessage(kind="head", raw=good.raw[:40] + bytes(1) + good.raw[41:])
    answers = [network.shout("66.6", victim, encode_gossip(Push(items=(forged,)))) for _ in range(20)]
    assert answers == [None] * 20
    assert network.shout("66.6", victim, push_of(good)) is None
    assert good.id not in victim.machine.store
    assert network.shout("77.7", victim, push_of(good)) is not None
    assert good.id in victim.machine.store


def test_reexecuted_and_stale_heads_go_nowhere() -> None:
    network = network_of(20, seed=26)
    heads = [head(PUBLISHER, number, time_ms=START_MS) for number in range(6)]
    network.publish(network.nodes[0], heads[5])
    network.run_rounds(10)
    for old in heads[:5]:
        for victim in network.nodes:
            network.shout("66.6", victim, push_of(old, heads[5]))
    network.run_rounds(6)
    for node in network.nodes:
        assert [item.id for item in node.machine.store.iter_items()] == [heads[5].id]


def test_owner_in_a_hurry_is_heard_at_intervals_and_in_the_end() -> None:
    network = network_of(12, seed=27)
    victim = network.nodes[3]
    for number in range(100):
        network.shout("66.6", victim, push_of(head(PUBLISHER, number, time_ms=START_MS)))
    (kept,) = victim.machine.store.iter_items()
    assert kept.rank[0] < network.settings.origin_burst_heads
    newest = head(PUBLISHER, 99, time_ms=START_MS)
    network.publish(network.nodes[7], newest)
    network.run_rounds(30)
    assert network.knowing(newest.id) == 12


@dataclass
class Sybil:
    """One liar with many addresses: knows only its own, says nothing of others' news, and keeps its links alive."""

    records: list[bytes]
    names: random.Random = field(default_factory=lambda: random.Random(1))
    asked: int = 0

    def answer(self, network: Network, sender_bucket: str, body: bytes) -> bytes | None:
        self.asked += 1
        match decode_request(body):
            case Hello():
                return encode_gossip(
                    Welcome(
                        record=self.names.choice(self.records),
                        linked=True,
                        peers=tuple(self.names.sample(self.records, 6)),
                    )
                )
            case Push():
                return encode_gossip(Taken())
            case Compare():
                return encode_gossip(Ranges())
            case Want():
                return encode_gossip(Items())
            case Follow():
                return encode_gossip(Feed(epoch=bytes(16), next=0))


def sybils(network: Network, buckets: int, each: int) -> list[PeerAddress]:
    """Put one liar behind many addresses of a few networks; each address has a record of its own, as a real node."""
    addresses = [
        PeerAddress(f"http://{90 + bucket}.1.{number // 250}.{1 + number % 250}:8080")
        for bucket in range(buckets)
        for number in range(each)
    ]
    by_address = {
        address: make_record(key_of(200_000 + number), (address,), START_MS).raw
        for number, address in enumerate(addresses)
    }
    for address in addresses:
        others = [raw for other, raw in by_address.items() if other != address]
        network.strangers[address.text] = Sybil(others)
        network.strangers[address.text].records.insert(0, by_address[address])  # type: ignore[attr-defined]
    return addresses


def test_eclipse_attempt_does_not_cut_a_node_off() -> None:
    """A thousand names in twelve networks knock, introduce each other, and answer everything but news."""
    network = network_of(40, seed=28)
    addresses = sybils(network, buckets=12, each=80)
    victim = network.nodes[9]
    for _ in range(60):
        for address in network.random.sample(addresses, 20):
            record = make_record(key_of(200_000 + addresses.index(address)), (address,), START_MS).raw
            network.shout(address.bucket, victim, encode_gossip(Hello(record=record, link=True, peers=True)))
        network.run_rounds(5)
    liars = {address.text for address in addresses}
    assert liars & {peer.address.text for peer in victim.machine.peers.iter_peers()}
    assert set(victim.machine.links.list_out()) - liars
    by_bucket: dict[str, int] = {}
    for peer in victim.machine.peers.iter_peers():
        by_bucket[peer.address.bucket] = by_bucket.get(peer.address.bucket, 0) + (peer.address.text in liars)
    assert max(by_bucket.values()) <= 2 * network.settings.bucket_peers
    for number in range(4):
        news = head(PUBLISHER, number, time_ms=START_MS)
        network.publish(network.nodes[20 + number], news)
        network.run_rounds(20)
        assert news.id in victim.machine.store


def test_reconciliation_with_a_liar_ends() -> None:
    """Ids that do not exist are asked for once, within bounds."""

    class Inventor:
        requests = 0

        def answer(self, network: Network, sender_bucket: str, body: bytes) -> bytes | None:
            self.requests += 1
            source = random.Random(self.requests)
            match decode_request(body):
                case Compare(ranges=asked):
                    ids = tuple(sorted(source.randbytes(32) for _ in range(16)))
                    return encode_gossip(Ranges(ranges=(IdRange(ids=ids),) if len(asked) == 1 else ()))
                case Want():
                    return encode_gossip(Items())
                case Hello():
                    return encode_gossip(Welcome(linked=True))
                case _:
                    return encode_gossip(Taken())

    network = Network(29)
    liar = Inventor()
    network.strangers["http://66.6.6.6:8080"] = liar
    node = network.add(pinned=(PeerAddress("http://66.6.6.6:8080"),))
    network.run_rounds(100)
    assert liar.requests < 100
    assert len(node.machine.store) == 0
    assert len(node.machine.store._forgotten) == 0
