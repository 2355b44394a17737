"""Judge what others push: a push is a pull whose peer happens to be the one who asked."""

import secrets
from dataclasses import dataclass
from typing import Final

from odf_node.acceptance.offers import AcceptOptions
from odf_node.exchange.taking import PullRequest, Taking
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

    async def consider(self, proposed: PeerHead, *, actor: str, reads: ReadGrants) -> None:
        """See ``PushReceiver``."""
        del actor
        named = self.store.find_readable(DatasetName.parse(proposed.name), reads)
        held = self.store.find_dataset(proposed.dataset_id) if proposed.dataset_id else named
        if held is not None and held.origin is Origin.OWN:
            raise RejectedError(f"ACCEPT-8 own-datasets-are-written-here-only ('{held.name}')")
        if held is not None:
            # By the pusher's own name for it: under which it is kept here may not be for them to know (EX-85).
            Disputes(self.store).require_undisputed(held.id, proposed.name)
        if named is not None and proposed.dataset_id is not None and named.id != proposed.dataset_id:
            raise RejectedError(
                f"ACCEPT-8 name-keeps-its-identity ('{proposed.name}')", expected=named.id, found=proposed.dataset_id
            )

    async def receive(
        self, proposed: UploadedDataset, *, actor: str, reads: ReadGrants, published: bool = True, force: bool = False
    ) -> DatasetRecord:
        """See ``PushReceiver``."""
        head = await proposed.get_head()
        pull_request = PullRequest(
            url=f"push:{actor}",
            name=head.name,
            expected_id=head.dataset_id,
            # A pusher brings what is new; what else this node lacks is not for it to give.
            pull_options=AcceptOptions(
                published, force, completes=False, reads=reads, kept_as=self._find_other_name(head, reads)
            ),
            uploaded=proposed.arrivals,
            actor=actor,
            command="push",
        )
        return (await self.taking.take(proposed, pull_request)).record

    def _find_other_name(self, proposed: PeerHead, reads: ReadGrants) -> str | None:
        """Give another name where a dataset that the pusher may not know of has the one that is asked for (EX-85)."""
        name = DatasetName.parse(proposed.name)
        if self.store.find_readable(name, reads) is not None:
            return None
        if self.store.find_readable(name, READS_EVERYTHING) is None or proposed.dataset_id is None:
            return None
        begins = name.text[: MAX_NAME_CHARACTERS - _NAME_DIGITS - 2].rstrip(".-")
        other = f"{begins}.x{proposed.dataset_id.public_key.hex()[:_NAME_DIGITS]}"
        if self.store.find_readable(DatasetName(other), READS_EVERYTHING) is None:
            return other
        # Somebody gave it to another dataset, to see whether it is needed: what nobody can guess is free.
        return f"{begins}.x{secrets.token_hex(_NAME_DIGITS // 2)}"
