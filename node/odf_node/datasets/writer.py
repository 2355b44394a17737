"""Growing a chain of our own: build blocks, judge them as strictly as a stranger's, sign, commit in one step.

Files that an engine made are copied first, so that it cannot change what was looked at.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from odf_node.commit_point import commit_with_objects
from odf_node.keys.disputes import Disputes
from odf_node.keys.freshness import require_newest
from odf_node.keys.logs import KeyLogs
from odf_node.ports.clock import Clock
from odf_node.ports.keys import KeyStore, PrivateKey
from odf_node.ports.objects import ObjectStore, StagedObject
from odf_node.records.commits import Commit, FetchedPlace, NewBlock, NewDataset
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import HeadMovedError
from odf_node.records.ingests import KeptAnswer
from odf_node.records.quarantine import QuarantineFile, SettledRows
from odf_node.rows.file_hashes import describe_new_slice
from odf_node.store import MetadataStore
from odf_protocol.block import LATEST_VERSION, Block, decode_block, encode_block
from odf_protocol.chain import ChainState, Strictness, append
from odf_protocol.chain.stored_state import decode_state, encode_state
from odf_protocol.did import DatasetId
from odf_protocol.events import DataSlice, Event, OffsetInterval
from odf_protocol.heads import sign_head
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import sign_block
from odf_protocol.timestamp import Timestamp


@dataclass(slots=True)
class StagedOutputs:
    """Copies of engine outputs, private until they are committed; what is not committed goes with ``stack``."""

    objects: ObjectStore
    stack: ExitStack
    staged: dict[Multihash, StagedObject] = field(default_factory=dict)

    def stage(self, path: Path) -> StagedObject:
        """Copy ``path``, so that the engine cannot change what was looked at."""
        part = self.stack.enter_context(self.objects.stage_copy(path))
        part.flush()
        self.staged[part.hash] = part
        return part

    def stage_slice(
        self, path: Path | None, interval: OffsetInterval | None, logical_hash: Multihash | None
    ) -> DataSlice | None:
        """Stage the rows of a step and give their entry of the block; None where there are none."""
        if path is None or interval is None:
            return None
        part = self.stage(path)
        return describe_new_slice(part.path, interval, part.hash, part.size_bytes, logical_hash=logical_hash)


def find_writing_time(store: MetadataStore, clock: Clock, dataset_id: DatasetId) -> Timestamp:
    """Return the time of the next block: the clock's, or the newest block's where the clock was set back behind it."""
    _, state = store.get_chain_state(dataset_id)
    return clock.not_before(decode_state(state).system_time)


@dataclass(slots=True)
class ChainWriter:
    """Blocks to be added to one chain; nothing is stored before ``commit``.

    The rules are applied block by block as they are added, so a mistake of ours is rejected before anything is written.
    """

    store: MetadataStore
    dataset_id: DatasetId
    key: PrivateKey
    expected_head: Multihash | None
    state: ChainState | None
    block_version: int = LATEST_VERSION
    keys: KeyStore | None = None
    known_key_events: int = 0
    _blocks: list[NewBlock] = field(default_factory=list)

    @classmethod
    def continue_chain(
        cls,
        store: MetadataStore,
        keys: KeyStore,
        dataset_id: DatasetId,
        *,
        after: Multihash | None = None,
    ) -> "ChainWriter":
        """Start where the chain ends now, and go on in the version of its last block.

        Args:
            store: What the home keeps.
            keys: Where its key is.
            dataset_id: Whose chain.
            after: The head that what is to be written was computed from; None where it is computed from now on.

        Raises:
            HeadMovedError: The chain does not end with ``after`` any more.
            KeyNotFoundError: The dataset is not ours to write.
            SigningKeyLostError: The key that speaks for it now is not in this home.
            FrozenDatasetError: Two histories of it are signed; settle first.
            RestoredBackupError: The chain held here is behind what was published.
        """
        key, known = KeyLogs(store).get_signing_key(dataset_id, keys)
        head, state = store.get_chain_state(dataset_id)
        if after is not None and after != head.hash:
            raise HeadMovedError(dataset_id, after, head.hash)
        Disputes(store).require_undisputed(dataset_id, str(dataset_id))
        require_newest(store, keys, dataset_id, head)
        last = store.find_block(dataset_id, head.hash)
        assert last is not None, "the store names a head that it does not hold"
        version = decode_block(last.raw, expected_hash=head.hash).version
        return cls(
            store,
            dataset_id,
            key,
            head.hash,
            decode_state(state),
            version,
            keys,
            known.kept,
        )

    @classmethod
    def start_chain(
        cls,
        store: MetadataStore,
        dataset_id: DatasetId,
        key: PrivateKey,
        *,
        block_version: int = LATEST_VERSION,
    ) -> "ChainWriter":
        """Start a chain that does not exist yet; ``block_version`` is that of all its blocks."""
        return cls(store, dataset_id, key, None, None, block_version)

    def add(self, event: Event, *, system_time: Timestamp, step_record: bytes | None = None) -> Block:
        """Append a block with ``event``.

        Raises:
            RejectedError: The event breaks a chain rule.
        """
        raw = encode_block(
            event,
            system_time=system_time,
            prev_block_hash=self._blocks[-1].hash if self._blocks else self.expected_head,
            sequence_number=0 if self.state is None else self.state.sequence_number + 1,
            version=self.block_version,
        )
        block = decode_block(raw, expected_hash=None)
        self.state, _warnings = append(self.state, block, strictness=Strictness.OWN)
        signature = sign_block(self.key.seed, self.dataset_id, block.sequence_number, block.hash)
        self._blocks.append(NewBlock.of(block, signature, step_record))
        return block

    @property
    def has_blocks(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self._blocks)

    def commit(
        self,
        *,
        signed_at: Timestamp,
        objects: ObjectStore,
        staged: Mapping[Multihash, StagedObject],
        named: tuple[Multihash, ...] = (),
        new_dataset: NewDataset | None = None,
        quarantine: QuarantineFile | None = None,
        fetched_place: FetchedPlace | None = None,
        answer: KeptAnswer | None = None,
        merge_state: Multihash | None = None,
        settlement: SettledRows | None = None,
    ) -> DatasetRecord:
        """Sign the new head and write everything at the one commit point.

        Args:
            signed_at: Time that the signed head states.
            objects: Where objects go.
            staged: New objects of any kind, not yet stored.
            named: Objects that the blocks name (slices, checkpoints).
            new_dataset: For a chain that starts.
            quarantine: Rows set aside on the way.
            answer: What is answered under the key of an ingest.
            fetched_place: Where the source state of the blocks came from.
            merge_state: Projected state after the last block.
            settlement: What waited in quarantine and is in the blocks.

        Raises:
            KeyInUseError: Something was answered under the key; nothing was written.
            SettledError: What waited was settled by somebody else; nothing was written.
            HeadMovedError, KeyLogMovedError: Somebody wrote, or changed the key, first; nothing was written.
        """
        if self.state is None or not self._blocks:
            raise ValueError("there is nothing to commit")
        last = self._blocks[-1]
        commit = Commit(
            dataset_id=self.dataset_id,
            expected_head=self.expected_head,
            blocks=tuple(self._blocks),
            chain_state=encode_state(self.state),
            objects=named,
            signed_head=sign_head(
                self.key.seed,
                dataset_id=self.dataset_id,
                sequence_number=last.sequence_number,
                block_hash=last.hash,
                time=signed_at,
            ),
            new_dataset=new_dataset,
            quarantine=quarantine,
            settlement=settlement,
            fetched_place=fetched_place,
            answer=answer,
            merge_state=merge_state,
            known_key_events=self.known_key_events,
        )
        record = commit_with_objects(self.store, objects, commit, staged)
        if self.keys is not None:
            self.keys.note_signed(self.dataset_id, last.sequence_number, last.hash)
        return record
