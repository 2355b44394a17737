"""The judge of pushes, made when the first push comes: what it is made of takes longer to load than all the rest."""

import asyncio

from odf_node.composition import Node
from odf_node.ports.access import ReadGrants
from odf_node.ports.datasets import DatasetRecord
from odf_node.ports.peer_client import PeerHead
from odf_node.ports.pushes import UploadedDataset


class LatePushJudge:
    """``PushReceiver`` of a node; the daemon is ready before it is loaded."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def consider(self, offered: PeerHead, *, actor: str, reads: ReadGrants) -> None:
        """See ``PushReceiver``."""
        judge = await asyncio.to_thread(lambda: self._node.push_judge)
        await judge.consider(offered, actor=actor, reads=reads)

    async def receive(
        self, offered: UploadedDataset, *, actor: str, reads: ReadGrants, published: bool = True, force: bool = False
    ) -> DatasetRecord:
        """See ``PushReceiver``."""
        judge = await asyncio.to_thread(lambda: self._node.push_judge)
        return await judge.receive(offered, actor=actor, reads=reads, published=published, force=force)
