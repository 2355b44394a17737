"""CONVERGE-2, CONVERGE-11: what an owner announces is followed, without a storm where it is held back."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from odf_convergence.home_graph import HomeGraph
from odf_convergence.notes import AttemptNotes
from odf_convergence.planner import ActionKind, Goal, make_plan
from odf_convergence.running import ActionRunner
from odf_node.composition import Node
from odf_node.exchange.taking import PullRequest
from odf_node.records.evidence import SeenHead
from support.judge_fixtures import chain, judge, node
from support.offering_peer import OfferingPeer
from support.offers import NOW, PeerChain
from support.signing import some_hash

__all__ = ["chain", "judge", "node"]  # fixtures


def later_head(chain: PeerChain) -> SeenHead:
    """One that the owner signed, four blocks later than what its node shows."""
    number, block_hash = chain.head.sequence_number + 4, some_hash("later")
    raw = chain.signed_head(sequence_number=number, block_hash=block_hash)
    return SeenHead(
        dataset_id=chain.id, sequence_number=number, block_hash=block_hash, raw=raw, source="gossip", seen_at=NOW
    )


def test_block_that_is_announced_later_is_seen_though_the_chain_did_not_grow(node: Node, chain: PeerChain) -> None:
    asyncio.run(node.taking.take(OfferingPeer(chain), PullRequest(url="http://peer.example/cities", name="cities")))
    reader = HomeGraph(node.home)
    head = chain.head.sequence_number
    before = reader.read().datasets[str(chain.id)].announced

    node.store.put_seen_head(later_head(chain))
    graph = reader.read()

    assert before is None or before <= head
    assert graph.datasets[str(chain.id)].announced == head + 4
    (action,) = make_plan(graph, [Goal(key=str(chain.id))], 0).actions
    assert (action.kind, action.is_certain) == (ActionKind.PULL, True)


def test_block_that_is_announced_and_held_back_is_asked_for_as_after_a_failure(node: Node, chain: PeerChain) -> None:
    asyncio.run(node.taking.take(OfferingPeer(chain), PullRequest(url="http://peer.example/cities", name="cities")))
    node.store.put_seen_head(later_head(chain))
    notes, goal = AttemptNotes(), [Goal(key=str(chain.id))]
    graph = HomeGraph(node.home).read()
    plan = make_plan(graph, goal, node.clock.now().unix_ms)

    async def open_peer(_url: str, *, also: Sequence[str] = ()) -> OfferingPeer:
        return OfferingPeer(chain)

    async def run() -> None:
        node.pulling = replace(node.pulling, open_peer=open_peer)  # type: ignore[arg-type]
        outcomes = [each async for each in ActionRunner(node, notes).run(graph, plan)]
        assert [(each.failure, each.report and each.report.new_blocks) for each in outcomes] == [(None, 0)]

    asyncio.run(run())
    again = make_plan(notes.mark(HomeGraph(node.home).read(), node.clock.now().unix_ms), goal, node.clock.now().unix_ms)

    assert again.actions == ()
    (waiting,) = again.put_off
    assert "the block that was announced is not shown there" in waiting.why
