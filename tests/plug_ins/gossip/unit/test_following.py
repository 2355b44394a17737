"""What a subscription takes is audited, as a pull is."""

import asyncio
from collections.abc import Sequence
from typing import Any

from odf_gossip.following import Follower
from odf_node.composition import Node
from odf_node.records.datasets import Subscription
from odf_protocol.did import DatasetId
from support.judge_fixtures import chain, judge, node
from support.offering_peer import OfferingPeer
from support.offers import NOW, PeerChain

__all__ = ["chain", "judge", "node"]  # fixtures


def test_subscription_is_told_to_the_audit_log(node: Node, chain: PeerChain) -> None:
    class News:
        subscriptions = (Subscription(dataset_id=chain.id, name="cities", url="http://peer.example/c", since=NOW),)

        def find_news(self) -> dict[DatasetId, Any]:
            return {}

        def list_sources(self) -> list[Any]:
            return []

    async def open_peer(url: str, *, also: Sequence[str] = ()) -> OfferingPeer:
        return OfferingPeer(chain)

    async def follow() -> None:
        stated = node.read_policies
        follower = Follower(node.store, lambda: node.taking, open_peer, stated, lambda *_, **__: None)  # type: ignore[arg-type]
        await follower.look(News(), asyncio.Event())

    asyncio.run(follow())
    lines = [(each.actor, each.command, each.subject, each.detail) for each in node.store.iter_audit(limit=9)]
    assert lines == [("subscription", "pull", "cities", f"block {chain.head.sequence_number}")]
