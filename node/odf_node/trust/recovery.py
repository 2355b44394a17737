"""Bringing a restored backup of a publisher up to what it published before it was lost (HEAD-9, KEY-20)."""

from collections.abc import Sequence
from dataclasses import dataclass

from odf_node.acceptance.checked_rows import check_rows
from odf_node.acceptance.verification import check_chain
from odf_node.commit_point import commit_with_objects
from odf_node.datasets.chains import load_view
from odf_node.errors import ForeignKeyError, UsageError
from odf_node.home import Home
from odf_node.keys.logs import KeyLogs
from odf_node.ports.block_stage import ProposedBlock
from odf_node.ports.peer_client import PeerDataset
from odf_node.ports.progress import NO_PROGRESS
from odf_node.records.commits import Commit
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.threads import finish_in_thread
from odf_protocol.block_traits import CHECKPOINT, ROWS
from odf_protocol.chain.stored_state import decode_state, encode_state
from odf_protocol.errors import RejectedError
from odf_protocol.exchange.block_outlines import iter_wanted
from odf_protocol.heads import verify_head
from odf_protocol.key_events import KeyEvent, decode_key_event
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """Takes blocks that this node's own key signed back from a peer that kept them."""

    home: Home

    async def recover(
        self, record: DatasetRecord, peer: PeerDataset, *, now: Timestamp, lost_keys: bool = False
    ) -> DatasetRecord:
        """Take the key events that the peer holds, then the blocks above our head; each is signed by our own keys.

        Args:
            record: An own dataset.
            peer: Whoever kept what is missing.
            now: The time.
            lost_keys: Take changes to keys that are not in this home, too: the operator says that they were his own.

        Raises:
            UsageError: The dataset is not our own, or the peer holds nothing newer.
            ForeignKeyError: The peer's log hands the dataset to a key that is not here; nothing was changed.
            RejectedError: What the peer holds does not continue our chain, or was not signed by our key.
        """
        if record.origin is not Origin.OWN:
            raise UsageError(f"'{record.name}' is not this node's own; pull it")
        had = KeyLogs(self.home.store).read(record.id).kept
        key_events = await peer.list_key_events()
        if not lost_keys:
            self._require_own(record, key_events)
        await finish_in_thread(lambda: KeyLogs(self.home.store).learn(record.id, key_events, now=now))
        known = KeyLogs(self.home.store).read(record.id)
        proposed = await peer.get_head()
        if proposed.signed_head is None:
            raise RejectedError("HEAD-9 missing-blocks-are-signed", expected="a signed head", found="none")
        head = verify_head(proposed.signed_head, record.id, keys=known.history)
        if head.sequence_number <= record.head.sequence_number:
            if known.kept > had:
                return record
            raise UsageError(f"the peer holds nothing that is newer than block {record.head.sequence_number}")
        packed = [block async for block in peer.iter_blocks(after=record.head, upto=proposed.head)]
        blocks = [ProposedBlock(block.raw, block.signature, block.step_record) for block in packed]
        _, state = self.home.store.get_chain_state(record.id)
        chain = check_chain(
            blocks,
            keys=known.history,
            state=decode_state(state),
            before=load_view(self.home.store, record.id, upto=record.head.sequence_number),
            signed=True,
        )
        if chain.last.hash != head.block_hash:
            raise RejectedError("HEAD-4 head-is-the-last-block", expected=head.block_hash, found=chain.last.hash)
        with self.home.objects.writing():
            named = (item for block in chain.iter_blocks(ROWS | CHECKPOINT) for item in iter_wanted(block.event))
            wanted = list({item.hash: item for item in named}.values())
            await peer.fetch_objects(
                [item for item in wanted if not self.home.objects.has(item.hash)], self.home.objects
            )
            paths = {item.hash: self.home.objects.get_path(item.hash) for item in wanted}
            await finish_in_thread(lambda: check_rows(chain, paths, NO_PROGRESS))
            commit = Commit(
                dataset_id=record.id,
                expected_head=record.head.hash,
                blocks=chain.new_blocks(),
                chain_state=encode_state(chain.state),
                objects=tuple(item.hash for item in wanted),
                signed_head=proposed.signed_head,
                known_key_events=known.kept,
            )
            recovered = await finish_in_thread(
                lambda: commit_with_objects(self.home.store, self.home.objects, commit, {})
            )
        self.home.keys.note_signed(record.id, recovered.head.sequence_number, recovered.head.hash)
        return recovered

    def _require_own(self, record: DatasetRecord, raws: Sequence[bytes]) -> None:
        """Check that the key to which a log hands the dataset last is ours: who has that one made what leads to it.

        Ours is a key that is in this home, and any that this machine remembers to have made an event for (KEY-19).
        """
        known = {event.hash for event in KeyLogs(self.home.store).get_history(record.id).events}
        remembered = self.home.keys.find_last_key_event(record.id)
        foreign: KeyEvent | None = None
        for event in map(decode_key_event, raws):
            if event.hash in known or (event.index, event.hash) == remembered:
                foreign = None
            elif event.new_key is not None:
                foreign = None if self.home.keys.find_signing_key(event.new_key) is not None else event
        if foreign is not None:
            raise ForeignKeyError(record.name, foreign.index, foreign.explain())
