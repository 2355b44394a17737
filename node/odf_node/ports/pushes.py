"""The service that judges what others push."""

from typing import Protocol

from odf_node.ports.access import ReadGrants
from odf_node.ports.datasets import DatasetRecord
from odf_node.ports.objects import Arrivals
from odf_node.ports.peer_client import PeerDataset, PeerHead


class UploadedDataset(PeerDataset, Protocol):
    """What was pushed, as a peer's dataset."""

    @property
    def arrivals(self) -> Arrivals:
        """The objects that came with it."""
        ...


class PushReceiver(Protocol):
    """Judges uploads by the same rules as pulls: an upload is a peer's dataset that happens to be here already.

    Both raise errors of the tree in ``odf_protocol.errors``; RejectedError, MalformedError and UnsupportedError refuse
    the push, others mean that it could not be judged. A ``report`` attribute of an error goes to the pusher.
    """

    async def consider(self, offered: PeerHead, *, actor: str, reads: ReadGrants) -> None:
        """Refuse early what can never be accepted (an own dataset, a name that is taken), before anything is sent."""
        ...

    async def receive(
        self, offered: UploadedDataset, *, actor: str, reads: ReadGrants, published: bool = True, force: bool = False
    ) -> DatasetRecord:
        """Verify the offered dataset and accept it, or raise.

        ``actor`` is who asked, for the audit log; ``reads`` is what they may know of this node: what they may not read
        is treated as if it were not here (EX-83). A dataset that is new here is shown to others if ``published``; with
        ``force`` another history may take the place of the one held here (ACCEPT-10).
        """
        ...
