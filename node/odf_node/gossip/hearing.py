"""What a peer says beside a dataset's blocks: who speaks for it, proofs against it, how new its head is."""

from collections.abc import Awaitable
from dataclasses import dataclass

from odf_node.errors import RefusedError
from odf_node.keys.disputes import Disputes
from odf_node.keys.freshness import Freshness
from odf_node.keys.logs import KeyLogs
from odf_node.ports import DatasetRecord, Origin
from odf_node.ports.chains import ChainStore
from odf_node.ports.documents import DocumentStore
from odf_node.ports.peer_client import PeerDataset, PeerHead
from odf_node.threads import finish_in_thread
from odf_protocol.did import DatasetId
from odf_protocol.equivocation import check_equivocation
from odf_protocol.errors import MalformedError, NotFoundError, RejectedError, UnavailableError
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class HeardKeys:
    """A key log as a peer shows it, what is doubtful about it, and what is wrong with it."""

    events: tuple[bytes, ...] = ()
    doubts: tuple[str, ...] = ()
    error: RejectedError | MalformedError | None = None


@dataclass(frozen=True, slots=True)
class Hearing:
    """Listens during one pull; every document is checked by itself, so the peer need not be believed."""

    chains: ChainStore
    documents: DocumentStore
    now: Timestamp

    async def hear(self, peer: PeerDataset, dataset_id: DatasetId, offered: PeerHead) -> tuple[str, ...]:
        """Keep what the peer proves against the dataset; say what is doubtful about the head that it shows."""
        documents = await unless_mute(peer.list_disputes())

        def learn() -> tuple[str, ...]:
            Disputes(self.chains, self.documents).learn(documents, dataset_id, now=self.now)
            return Freshness(self.chains, self.documents).list_doubts(
                dataset_id, offered.head, offered.signed_head, now=self.now
            )

        return await finish_in_thread(learn)

    async def hear_keys(self, peer: PeerDataset, record: DatasetRecord | None, *, replaces: bool) -> HeardKeys:
        """Learn the key log that the peer shows of a dataset that is held; say what is doubtful about it (KEY-15).

        What is shown of a dataset that is new here, or of this node's own, is handed on and not kept. ``replaces`` says
        whether a history that its owner gave up may be replaced (KEY-14).
        """
        events: tuple[bytes, ...] = ()
        unread: RejectedError | MalformedError | None = None
        try:
            events = await peer.list_key_events()
        except (MalformedError, RejectedError) as error:
            # Not as from one who has nothing to say: it may say that another key speaks now.
            unread = error
        if record is None or record.origin is Origin.OWN:
            return HeardKeys(events, error=unread)
        logs = KeyLogs(self.chains, self.documents)
        try:
            found = await finish_in_thread(lambda: logs.learn(record.id, events, now=self.now))
            if not replaces:
                await finish_in_thread(lambda: logs.require_kept(record))
        except (MalformedError, RejectedError) as error:
            return HeardKeys(events, error=error)
        if not found.hidden:
            return HeardKeys(events, error=unread)
        # The log that is kept here judges, whatever the peer shows of it.
        doubt = (
            f"the peer does not show the last {found.hidden} of {len(found.history.events)} key events of this "
            "dataset: it is behind, or hides who speaks for it now (KEY-15)"
        )
        return HeardKeys(events, (doubt,))

    def remember(self, dataset_id: DatasetId, offered: PeerHead, source: str) -> None:
        """Keep the head in mind, by which later ones are judged."""
        if offered.signed_head is not None:
            Freshness(self.chains, self.documents).learn(offered.signed_head, dataset_id, source=source, now=self.now)

    def freeze(self, refusal: RefusedError) -> None:
        """Keep the proof that came out of a refusal: from now on the dataset is frozen (EQUIV-9)."""
        proof = None if refusal.folder is None else refusal.folder / "equivocation.json"
        if proof is not None and proof.is_file():
            raw = proof.read_bytes()
            Disputes(self.chains, self.documents).learn([raw], check_equivocation(raw).dataset_id, now=self.now)


async def unless_mute(asked: Awaitable[tuple[bytes, ...]]) -> tuple[bytes, ...]:
    """Wait for what a peer has to say beside its blocks; one that cannot say it well says nothing."""
    try:
        return await asked
    except (RejectedError, MalformedError, NotFoundError, UnavailableError):
        return ()
