"""Heads that are old, run out or hidden: what a node notices before it takes a peer's newest block for the newest one.

Nothing here rejects data: an old head is still true. It says what is suspicious, and keeps the newest head ever met.

Source: clauses HEAD-3 and HEAD-6 to HEAD-10 in ``spec/extensions/heads.md``.
"""

from contextlib import suppress
from dataclasses import dataclass

from odf_node.errors import RestoredBackupError
from odf_node.keys.disputes import Disputes
from odf_node.keys.logs import KeyLogs
from odf_node.ports.keys import SignedMarks
from odf_node.records.datasets import HeldHead
from odf_node.records.errors import KeyLogMovedError
from odf_node.records.evidence import SeenHead
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.equivocation import EquivocationKind, block_statement, prove_equivocation
from odf_protocol.errors import MalformedError, OdfError, RejectedError
from odf_protocol.head import Head
from odf_protocol.heads import SignedHead as HeadDocument
from odf_protocol.heads import decode_signed_head, verify_head
from odf_protocol.key_history import KeyHistory
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class HeadsFreshness:
    """What is known about the newest heads, over one store."""

    store: MetadataStore

    def learn(self, raw: bytes, dataset_id: DatasetId, *, source: str, now: Timestamp) -> bool:
        """Remember a signed head that somebody showed, if it is the newest; one that contradicts freezes the dataset.

        Returns:
            Whether anything new was learned; False too for what is no head of this dataset.
        """
        try:
            head = verify_head(raw, dataset_id, keys=KeyLogs(self.store).get_history(dataset_id))
        except OdfError:
            return False
        seen = self.store.find_seen_head(dataset_id)
        if seen is not None and (seen.sequence_number, seen.block_hash) != (head.sequence_number, head.block_hash):
            self._prove(EquivocationKind.HEADS, head, seen.raw, now)
            # It may have come before the block of its number did.
            self._compare_with_held(decode_signed_head(seen.raw), now)
        self._compare_with_held(head, now)
        self._keep_renewal(head, now)
        return self.store.put_seen_head(
            SeenHead(
                dataset_id=dataset_id,
                sequence_number=head.sequence_number,
                block_hash=head.block_hash,
                raw=raw,
                source=source,
                seen_at=now,
            )
        )

    def list_doubts(
        self, dataset_id: DatasetId, proposed: Head, signed_head: bytes | None, *, now: Timestamp
    ) -> tuple[str, ...]:
        """Say what speaks against a peer's head being the newest one: expiry, rollback, a suffix that it withholds."""
        doubts = []
        if signed_head is not None:
            try:
                head = verify_head(signed_head, dataset_id, keys=KeyLogs(self.store).get_history(dataset_id))
            except OdfError:
                head = None  # the gate says what is wrong with it
            if head is not None and head.is_expired(now):
                doubts.append(
                    f"the signed head of block {head.sequence_number} ran out at {head.expires}: newer blocks may be "
                    "withheld (HEAD-3)"
                )
            elif head is not None and head.time > Timestamp(now.seconds + MAX_SKEW_S):
                doubts.append(f"the signed head says it was signed at {head.time}, which has not come yet (HEAD-5)")
        seen = self.store.find_seen_head(dataset_id)
        if seen is not None and seen.sequence_number > proposed.sequence_number:
            doubts.append(
                f"the peer shows block {proposed.sequence_number} as the newest; {seen.source} showed a signed head "
                f"of block {seen.sequence_number} at {seen.seen_at}: newer blocks are withheld, or the peer is behind "
                "(HEAD-8)"
            )
        record = self.store.find_dataset(dataset_id)
        if record is not None and record.head.sequence_number > proposed.sequence_number:
            doubts.append(
                f"the peer went back to block {proposed.sequence_number}; block {record.head.sequence_number} is held "
                "here already (HEAD-8)"
            )
        return tuple(doubts)

    def _compare_with_held(self, head: HeadDocument, now: Timestamp) -> None:
        """Hold a head against the block of its number that is held: its signature is enough for a proof."""
        if self.store.find_dataset(head.dataset_id) is None:
            return
        held = self.store.find_block_by_number(head.dataset_id, head.sequence_number)
        if held is not None and held.hash != head.block_hash and held.signature is not None:
            stated = block_statement(head.dataset_id, held.sequence_number, held.hash, head.signer, held.signature)
            self._prove(EquivocationKind.HEAD_AND_BLOCK, head, stated, now)

    def _prove(self, kind: EquivocationKind, head: HeadDocument, other: bytes, now: Timestamp) -> None:
        try:
            proof = prove_equivocation(kind, head.raw, other)
        except (MalformedError, RejectedError):
            return  # of different numbers: whether they contradict is known when the blocks are
        Disputes(self.store).learn([proof.raw], head.dataset_id, now=now)

    def _keep_renewal(self, head: HeadDocument, now: Timestamp) -> None:
        """Keep a newer document about the block that is the head here: its expiry counts from now on."""
        held = self.store.find_dataset(head.dataset_id)
        if held is None or held.head != Head(head.sequence_number, head.block_hash):
            return
        kept = self.store.find_signed_head(head.dataset_id)
        if kept is None:
            return
        log, known = KeyLogs(self.store).read(head.dataset_id), decode_signed_head(kept.raw)
        # A key that another one has followed takes no word back from that one, whatever time it says.
        if _rank(known, log.history, now) >= _rank(head, log.history, now):
            return
        with suppress(KeyLogMovedError):
            self.store.put_signed_head(HeldHead(head.dataset_id, held.head, head.raw), known_key_events=log.kept)


def _rank(head: HeadDocument, history: KeyHistory, now: Timestamp) -> tuple[int, bool, Timestamp]:
    places = [place for place, period in enumerate(history.periods) if period.key == head.signer]
    # What a clock that was far ahead has signed would else be the newest word until its time comes.
    return max(places, default=-1), head.time <= Timestamp(now.seconds + MAX_SKEW_S), head.time


MAX_SKEW_S = 300
"""How far another clock may be ahead before its heads are doubted.  # guess: far beyond what NTP leaves"""


def require_newest(store: MetadataStore, keys: SignedMarks, dataset_id: DatasetId, head: Head) -> None:
    """Stop a publisher whose home is a restored backup before it signs a second history (HEAD-9).

    Two memories speak: the newest head that anybody showed, and what was signed last, blocks and key events, which is
    kept outside of the home.

    Raises:
        RestoredBackupError: The chain or key log held here is behind what was published, or another one.
    """
    require_newest_keys(keys, KeyLogs(store).get_history(dataset_id))
    seen = store.find_seen_head(dataset_id)
    memories = [] if seen is None else [(seen.sequence_number, seen.block_hash, f"{seen.source} shows")]
    _require_memories(store, dataset_id, head, memories, keys)


def require_newest_signed_here(store: MetadataStore, keys: SignedMarks, dataset_id: DatasetId, head: Head) -> None:
    """Do the same by this machine's memory alone: what others show may be the words of a stolen key.

    Raises:
        RestoredBackupError: As ``require_newest``.
    """
    require_newest_keys(keys, KeyLogs(store).get_history(dataset_id))
    _require_memories(store, dataset_id, head, [], keys)


def require_newest_keys(keys: SignedMarks, history: KeyHistory) -> None:
    """Stop a publisher whose home lacks a key event that this machine made.

    Raises:
        RestoredBackupError: It does.
    """
    last = keys.find_last_key_event(history.dataset_id)
    if last is None:
        return
    index, event_hash = last
    if index >= len(history.events) or history.events[index].hash != event_hash:
        raise RestoredBackupError(
            f"this machine remembers that it made key event {index} ({event_hash.short}) of this dataset; the key log "
            f"held here has {len(history.events)} events without it. Is this a restored backup? Take what is missing "
            "from where it is: 'odf-node evidence recover NAME --from URL'"
        )


def _require_memories(
    store: MetadataStore,
    dataset_id: DatasetId,
    head: Head,
    memories: list[tuple[int, Multihash, str]],
    keys: SignedMarks,
) -> None:
    last = keys.find_last_signed(dataset_id)
    if last is not None:
        memories.append((*last, "this machine remembers"))
    for number, block_hash, who in memories:
        stored = store.find_block_by_number(dataset_id, number) if number <= head.sequence_number else None
        if stored is None or stored.hash != block_hash:
            raise RestoredBackupError(
                f"{who} that this dataset's key signed block {number} ({block_hash.short}); the chain held here ends "
                f"at block {head.sequence_number} without it. Writing on would sign a second history and prove this "
                "node a liar. Is this a restored backup? Take the missing blocks from where they are: "
                "'odf-node evidence recover NAME --from URL'"
            )
