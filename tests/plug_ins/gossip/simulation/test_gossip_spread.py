"""Networks of the nodes' own machines: news arrives everywhere, whatever the line does."""

from typing import cast

import pytest

from odf_gossip_protocol import ItemKind
from odf_protocol.equivocation import check_equivocation
from odf_protocol.multihash import Multihash
from odf_protocol.settlements import Settlement, find_kept_history
from support.gossip_items import attestation, head, key_of, proof, settlement
from support.gossip_network import START_MS, Line, Network, SimulatedNode, address_of

BAD_LINE = Line(loss=0.1, duplication=0.05, min_delay_ms=5, max_delay_ms=900)
PUBLISHER, AUDITOR = key_of(70_001), key_of(70_002)
MINUTE_MS = 60_000


def grown_network(count: int, seed: int, *, line: Line = BAD_LINE, skew_ms: int = 0) -> Network:
    """A network that has run for long: every node knows some others; one in ten cannot be reached."""
    network = Network(seed, line=line)
    for number in range(count):
        skew = network.random.randrange(-skew_ms, skew_ms + 1) if skew_ms else 0
        network.add(reachable=number % 10 != 9, skew_ms=skew)
    network.introduce_all(30)
    network.run_rounds(8)
    return network


def rounds_until_all_know(network: Network, id_: bytes, most: int) -> int:
    for rounds in range(1, most + 1):
        network.run_rounds(1)
        if network.knowing(id_) == len(network.nodes):
            return rounds
    missing = [node.number for node in network.nodes if id_ not in node.machine.store]
    raise AssertionError(f"seed {network.seed}: after {most} rounds nodes {missing} do not know")


def state_of(node: SimulatedNode) -> tuple[object, ...]:
    items = tuple(item.id for item in node.machine.store.iter_items())
    return items, tuple(node.machine.links.targets()), len(node.machine.peers), node.sent_bytes


def test_new_head_is_known_to_a_thousand_nodes_in_ten_rounds_for_little() -> None:
    # With this seed a node that follows logs once missed what came before the place where it began to follow.
    network = grown_network(1_000, seed=1, skew_ms=2 * MINUTE_MS)
    before = [(node.sent_bytes, node.sent_for_items_bytes) for node in network.nodes]
    news = head(PUBLISHER, 7, time_ms=START_MS)
    network.publish(network.nodes[0], news)
    assert rounds_until_all_know(network, news.id, 10) <= 10
    all_bytes = [node.sent_bytes - was for node, (was, _) in zip(network.nodes, before, strict=True)]
    for_it_bytes = [node.sent_for_items_bytes - was for node, (_, was) in zip(network.nodes, before, strict=True)]
    assert max(for_it_bytes) <= 50_000
    assert sum(all_bytes) / len(all_bytes) <= 50_000  # with greetings and everything else that goes on


@pytest.mark.parametrize("seed", range(6))
def test_new_head_is_known_to_a_hundred_nodes_in_ten_rounds(seed: int) -> None:
    network = grown_network(100, seed, skew_ms=5 * MINUTE_MS)
    news = head(PUBLISHER, 7, time_ms=START_MS)
    network.publish(network.nodes[seed], news)
    rounds_until_all_know(network, news.id, 10)


@pytest.mark.parametrize("count", [2, 10, 30])
def test_small_networks_work_too(count: int) -> None:
    network = grown_network(count, seed=5)
    news = head(PUBLISHER, 7, time_ms=START_MS)
    network.publish(network.nodes[count - 1], news)
    rounds_until_all_know(network, news.id, 16)


def test_node_that_cannot_be_reached_is_heard_and_hears() -> None:
    network = grown_network(40, seed=3)
    hidden = [node for node in network.nodes if not node.reachable]
    news = head(PUBLISHER, 7, time_ms=START_MS)
    network.publish(hidden[0], news)
    rounds_until_all_know(network, news.id, 12)
    assert all(node.machine.links.list_out() for node in hidden)


def test_one_seed_is_one_run() -> None:
    runs = []
    for _ in range(2):
        network = Network(11, line=BAD_LINE)
        network.trace = []
        for number in range(30):
            network.add(reachable=number % 5 != 4)
        network.introduce_all(10)
        network.run_rounds(4)
        network.publish(network.nodes[0], head(PUBLISHER, 7, time_ms=START_MS))
        network.run_rounds(6)
        runs.append((network.trace, [state_of(node) for node in network.nodes]))
    assert runs[0] == runs[1]
    assert len(runs[0][0]) > 1_000


def test_other_seed_is_another_run() -> None:
    sent = []
    for seed in (11, 12):
        network = grown_network(20, seed)
        sent.append([node.sent_bytes for node in network.nodes])
    assert sent[0] != sent[1]


def test_network_grows_from_one_bootstrap_address() -> None:
    network = Network(7, line=BAD_LINE)
    for number in range(60):
        network.add(reachable=number % 10 != 9, pinned=(address_of(0),))
    network.run_rounds(40)
    assert min(len(node.machine.links.list_out()) for node in network.nodes) >= 3
    news = head(PUBLISHER, 7, time_ms=START_MS)
    network.publish(network.nodes[33], news)
    rounds_until_all_know(network, news.id, 10)


def test_network_survives_the_end_of_its_bootstrap_node() -> None:
    network = Network(8, line=BAD_LINE)
    for _ in range(40):
        network.add(pinned=(address_of(0),))
    network.run_rounds(30)
    bootstrap = network.nodes.pop(0)
    network.stop(bootstrap)
    network.run_rounds(10)
    news = head(PUBLISHER, 7, time_ms=START_MS)
    network.publish(network.nodes[3], news)
    rounds_until_all_know(network, news.id, 10)


def test_partition_heals() -> None:
    network = grown_network(60, seed=4)
    for node in network.nodes:
        node.side = node.number % 2
    network.run_rounds(60)
    here, there = head(PUBLISHER, 7, time_ms=START_MS), attestation(AUDITOR, PUBLISHER, time_ms=START_MS)
    network.publish(network.nodes[0], here)
    network.publish(network.nodes[1], there)
    network.run_rounds(12)
    sides = [(here.id in node.machine.store, there.id in node.machine.store) for node in network.nodes]
    assert sides == [(True, False) if node.side == 0 else (False, True) for node in network.nodes]
    for node in network.nodes:
        node.side = 0
    rounds_until_all_know(network, here.id, 100)
    rounds_until_all_know(network, there.id, 20)


@pytest.mark.parametrize("keep", [True, False], ids=["with its disk", "with an empty disk"])
def test_nodes_that_were_killed_catch_up(keep: bool) -> None:
    network = Network(9, line=BAD_LINE)
    for _ in range(45):
        network.add(pinned=(address_of(0), address_of(1)))
    network.run_rounds(25)
    old = [head(key_of(80_000 + number), 1, time_ms=START_MS) for number in range(40)]
    network.publish(network.nodes[1], *old)
    network.run_rounds(8)
    killed = network.nodes[2::3]
    for node in killed:
        network.stop(node)
    network.run_rounds(5)
    news = head(PUBLISHER, 7, time_ms=START_MS)
    network.publish(network.nodes[0], news)
    network.run_rounds(10)
    for node in killed:
        network.restart(node, keep=keep)
    rounds_until_all_know(network, news.id, 25)
    for _ in range(40):
        if all(network.knowing(item.id) == len(network.nodes) for item in old):
            break
        network.run_rounds(1)
    assert [network.knowing(item.id) for item in old] == [len(network.nodes)] * len(old)


def test_two_heads_of_one_number_become_a_proof_that_everybody_gets() -> None:
    network = grown_network(60, seed=6)
    one, other = head(PUBLISHER, 7, text="a", time_ms=START_MS), head(PUBLISHER, 7, text="b", time_ms=START_MS)
    network.publish(network.nodes[0], one)
    network.publish(network.nodes[30], other)
    network.run_rounds(10)
    for node in network.nodes:
        kinds = [item.kind for item in node.machine.store.iter_items()]
        assert kinds.count(ItemKind.EQUIVOCATION) == 1, node.number


def test_settlement_reaches_everybody_and_a_contrary_one_too() -> None:
    network = grown_network(60, seed=6)
    lied = proof(PUBLISHER, 7, "a", "b")
    settled = settlement(PUBLISHER, lied, "a")
    network.publish(network.nodes[0], lied)
    network.publish(network.nodes[40], settled)
    network.run_rounds(10)

    def kept(node: SimulatedNode) -> Multihash | None:
        stated = [item.statement for item in node.machine.store.iter_items() if item.kind is ItemKind.SETTLEMENT]
        assert lied.id in node.machine.store
        return find_kept_history(check_equivocation(lied.raw), cast("list[Settlement]", stated))

    assert {kept(node) for node in network.nodes} == {cast("Settlement", settled.statement).keeps}
    network.publish(network.nodes[20], settlement(PUBLISHER, lied, "b"))
    network.run_rounds(10)
    assert {kept(node) for node in network.nodes} == {None}


def test_only_the_newest_head_stays() -> None:
    network = grown_network(40, seed=2)
    for number in range(5):
        network.publish(network.nodes[number * 8], head(PUBLISHER, number, time_ms=START_MS))
        network.run_rounds(2)
    network.run_rounds(10)
    kept = {tuple(item.rank[0] for item in node.machine.store.iter_items()) for node in network.nodes}
    assert kept == {(4,)}


def test_expired_head_is_gone_everywhere_and_does_not_come_back() -> None:
    network = grown_network(30, seed=2, skew_ms=10_000)
    news = head(PUBLISHER, 7, time_ms=START_MS, expires_ms=network.now_ms + 20 * network.settings.round_ms)
    network.publish(network.nodes[0], news)
    rounds_until_all_know(network, news.id, 10)
    network.run_rounds(40)
    assert network.knowing(news.id) == 0
