"""Judge what others push: a push is a pull whose peer happens to be the one who asked."""

import secrets
from dataclasses import dataclass
from typing import Final

from odf_node.acceptance.offers import Wishes
from odf_node.exchange.taking import Errand, Taking
from odf_node.keys.disputes import Disputes
from odf_node.ports.peer_client import PeerHead
from odf_node.ports.pushes import UploadedDataset
from odf_node.records.access import READS_EVERYTHING, ReadGrants
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.store import MetadataStore
from odf_protocol.errors import RejectedError
from odf_protocol.names import MAX_NAME_CHARACTERS, DatasetName

_NAME_DIGITS: Final = 16
"""Of the identity, in base16, in a name that nobody asked for."""


@dataclass(frozen=True, slots=True)
class PushJudge:
    """``PushReceiver`` on the one acceptance service."""

    store: MetadataStore
    taking: Taking

    async def consider(self, offered: PeerHead, *, actor: str, reads: ReadGrants) -> None:
        """See ``PushReceiver``."""
        del actor
        named = self.store.find_readable(DatasetName.parse(offered.name), reads)
        held = self.store.find_dataset(offered.dataset_id) if offered.dataset_id else named
        if held is not None and held.origin is Origin.OWN:
            raise RejectedError(f"ACCEPT-8 own-datasets-are-written-here-only ('{held.name}')")
        if held is not None:
            # By the pusher's own name for it: under which it is kept here may not be for them to know (EX-85).
            Disputes(self.store).require_undisputed(held.id, offered.name)
        if named is not None and offered.dataset_id is not None and named.id != offered.dataset_id:
            raise RejectedError(
                f"ACCEPT-8 name-keeps-its-identity ('{offered.name}')", expected=named.id, found=offered.dataset_id
            )

    async def receive(
        self, offered: UploadedDataset, *, actor: str, reads: ReadGrants, published: bool = True, force: bool = False
    ) -> DatasetRecord:
        """See ``PushReceiver``."""
        head = await offered.get_head()
        errand = Errand(
            url=f"push:{actor}",
            name=head.name,
            expected_id=head.dataset_id,
            # A pusher brings what is new; what else this node lacks is not for it to give.
            wishes=Wishes(published, force, completes=False, reads=reads, kept_as=self._find_other_name(head, reads)),
            uploaded=offered.arrivals,
            actor=actor,
            command="push",
        )
        return (await self.taking.take(offered, errand)).record

    def _find_other_name(self, offered: PeerHead, reads: ReadGrants) -> str | None:
        """Give another name where a dataset that the pusher may not know of has the one that is asked for (EX-85)."""
        name = DatasetName.parse(offered.name)
        if self.store.find_readable(name, reads) is not None:
            return None
        if self.store.find_readable(name, READS_EVERYTHING) is None or offered.dataset_id is None:
            return None
        begins = name.text[: MAX_NAME_CHARACTERS - _NAME_DIGITS - 2].rstrip(".-")
        other = f"{begins}.x{offered.dataset_id.public_key.hex()[:_NAME_DIGITS]}"
        if self.store.find_readable(DatasetName(other), READS_EVERYTHING) is None:
            return other
        # Somebody gave it to another dataset, to see whether it is needed: what nobody can guess is free.
        return f"{begins}.x{secrets.token_hex(_NAME_DIGITS // 2)}"
