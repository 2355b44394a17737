"""Judge what others push: a push is a pull whose peer happens to be the one who asked."""

from dataclasses import dataclass

from odf_node.acceptance.offers import Wishes
from odf_node.exchange.pulling import Pulling
from odf_node.keys.disputes import Disputes
from odf_node.ports import Clock, DatasetRecord, MetadataStore, Origin
from odf_node.ports.peer_client import PeerDataset, PeerHead
from odf_node.ports.progress import Silence
from odf_protocol.errors import RejectedError


@dataclass(frozen=True, slots=True)
class PushJudge:
    """``PushReceiver`` on the one acceptance service."""

    store: MetadataStore
    clock: Clock
    pulling: Pulling

    async def consider(self, offered: PeerHead, *, actor: str) -> None:
        """See ``PushReceiver``."""
        del actor
        named = next((r for r in self.store.list_datasets() if r.name.lower() == offered.name.lower()), None)
        held = self.store.find_dataset(offered.dataset_id) if offered.dataset_id else named
        if held is not None and held.origin is Origin.OWN:
            raise RejectedError(f"ACCEPT-8 own-datasets-are-written-here-only ('{held.name}')")
        if held is not None:
            Disputes(self.store).require_undisputed(held.id, held.name)
        if named is not None and offered.dataset_id is not None and named.id != offered.dataset_id:
            raise RejectedError(
                f"ACCEPT-8 name-keeps-its-identity ('{offered.name}')", expected=named.id, found=offered.dataset_id
            )

    async def receive(
        self, offered: PeerDataset, *, actor: str, published: bool = True, force: bool = False
    ) -> DatasetRecord:
        """See ``PushReceiver``."""
        head = await offered.get_head()
        report = await self.pulling.take(
            offered,
            url=f"push:{actor}",
            name=head.name,
            policy=None,
            expected_id=head.dataset_id,
            progress=Silence(),
            # A pusher brings what is new; what else this node lacks is not for it to give.
            wishes=Wishes(published, force, completes=False),
        )
        return report.record
