"""What a peer says beside a dataset's blocks: who speaks for it, proofs against it, how new its head is."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final

from odf_node.errors import ProposalRejectedError
from odf_node.keys.disputes import Disputes
from odf_node.keys.freshness import HeadsFreshness
from odf_node.keys.logs import KeyLogs
from odf_node.ports.peer_client import PeerDataset, PeerHead
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.equivocation import check_equivocation
from odf_protocol.errors import MalformedError, NotFoundError, RejectedError, UnavailableError
from odf_protocol.timestamp import Timestamp

MAX_STATEMENTS: Final = 1_000
"""Attestations that are read in one pull.  # guess: years of a few auditors"""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a peer says beside a dataset's blocks, nothing of it checked; ``unread`` is why its key events are none."""

    key_events: tuple[bytes, ...]
    disputes: tuple[bytes, ...]
    statements: tuple[bytes, ...]
    unread: RejectedError | MalformedError | None


async def hear(peer: PeerDataset) -> Heard:
    """Ask a peer for all that it says beside the blocks."""
    events: tuple[bytes, ...] = ()
    unread: RejectedError | MalformedError | None = None
    try:
        events = await peer.list_key_events()
    except (MalformedError, RejectedError) as error:
        # Not as from one who has nothing to say: it may say that another key speaks now.
        unread = error
    disputes = await _unless_mute(peer.list_disputes())
    statements = await _unless_mute(peer.list_attestations(limit=MAX_STATEMENTS))
    return Heard(events, disputes, statements, unread)


@dataclass(frozen=True, slots=True)
class Hearing:
    """Learns during one pull; every document is checked by itself, so the peer need not be believed."""

    store: MetadataStore
    now: Timestamp

    def learn_keys(self, record: DatasetRecord | None, heard: Heard, *, replaces: bool) -> tuple[str, ...]:
        """Learn the key log that the peer shows of a dataset that is held; say what is doubtful about it (KEY-15).

        What is shown of a dataset that is new here, or of this node's own, is handed on and not kept. ``replaces`` says
        whether a history that its owner gave up may be replaced (KEY-14).

        Raises:
            MalformedError, RejectedError: The log, or what the held one says now.
        """
        hidden, known = 0, 0
        if record is not None and record.origin is not Origin.OWN:
            logs = KeyLogs(self.store)
            found = logs.learn(record.id, heard.key_events, now=self.now)
            hidden, known = found.hidden, len(found.history.events)
            if not replaces:
                logs.require_kept(record)
        if hidden:
            # The log that is kept here judges, whatever the peer shows of it.
            doubt = (
                f"the peer does not show the last {hidden} of {known} key events of this dataset: it is behind, or "
                "hides who speaks for it now (KEY-15)"
            )
            return (doubt,)
        if heard.unread is not None:
            raise heard.unread
        return ()

    def learn(self, dataset_id: DatasetId, heard: Heard, proposed: PeerHead) -> tuple[str, ...]:
        """Keep what the peer proves against the dataset; say what is doubtful about the head that it shows."""
        Disputes(self.store).learn(heard.disputes, dataset_id, now=self.now)
        freshness = HeadsFreshness(self.store)
        return freshness.list_doubts(dataset_id, proposed.head, proposed.signed_head, now=self.now)

    def remember(self, dataset_id: DatasetId, proposed: PeerHead, source: str) -> None:
        """Keep the head in mind, by which later ones are judged."""
        if proposed.signed_head is not None:
            HeadsFreshness(self.store).learn(proposed.signed_head, dataset_id, source=source, now=self.now)

    def freeze(self, rejection: ProposalRejectedError) -> None:
        """Keep the proof that came out of a rejection: from now on the dataset is frozen (EQUIV-9)."""
        proof = None if rejection.folder is None else rejection.folder / "equivocation.json"
        if proof is not None and proof.is_file():
            raw = proof.read_bytes()
            Disputes(self.store).learn([raw], check_equivocation(raw).dataset_id, now=self.now)


async def _unless_mute(asked: Awaitable[tuple[bytes, ...]]) -> tuple[bytes, ...]:
    """Wait for what a peer has to say beside its blocks; one that cannot say it well says nothing."""
    try:
        return await asked
    except (RejectedError, MalformedError, NotFoundError, UnavailableError):
        return ()
