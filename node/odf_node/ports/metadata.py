"""Chains and everything known about them; one transactional store per home."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from odf_node.ports.access import AccessToken
from odf_node.ports.audit import AuditEntry
from odf_node.ports.commits import Acceptance, Commit, NewBlock, QuarantineFile
from odf_node.ports.datasets import (
    BlockRole,
    DatasetRecord,
    Remote,
    RemoteDirection,
    ReplacedHistory,
    Repository,
    SignedHead,
    StoredBlock,
)
from odf_node.ports.evidence import (
    Attestation,
    DocumentKind,
    EvidenceDocument,
    KeyLogChange,
    ReplayRecord,
    SeenHead,
    Verified,
)
from odf_node.ports.peers import Peer
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust
from odf_protocol.timestamp import Timestamp


class MetadataStore(Protocol):
    """The node's database. Every method is one transaction: seen whole or not at all, durable when it returns.

    Reading an empty or absent home finds nothing and makes nothing; the first write makes the home. Nothing read is
    decoded or judged here: bytes come back as they were given. Every method may raise HomeVersionError and
    HomeCorruptError; a writing one HomeBusyError, HomeFullError and HomeReadOnlyError too, having written nothing.

    Methods that name a dataset raise DatasetNotFoundError when it is not here, except ``find_*`` and those about
    attestations, which may speak of datasets that are not held.
    """

    # Datasets

    def find_dataset(self, dataset_id: DatasetId) -> DatasetRecord | None:
        """Return the record, or None when the dataset is not here."""
        ...

    def find_dataset_by_name(self, name: str) -> DatasetRecord | None:
        """Return the record of the dataset with this local name (compared exactly), or None."""
        ...

    def list_datasets(self) -> tuple[DatasetRecord, ...]:
        """Return all records, ordered by name."""
        ...

    def set_published(self, dataset_id: DatasetId, published: bool) -> None:
        """Say whether others are served the dataset."""
        ...

    def set_pinned_key(self, dataset_id: DatasetId, key: DidKey | None) -> None:
        """Replace the pinned publisher key: the operator's decision, never a peer's."""
        ...

    def rename_dataset(self, dataset_id: DatasetId, name: str) -> None:
        """Give the dataset, and a subscription to it, another local name; raises NameTakenError."""
        ...

    def delete_dataset(self, dataset_id: DatasetId) -> None:
        """Forget the dataset: chain, signatures, heads, replay records, acceptances, quarantine, remotes.

        Attestations stay: they are evidence. Objects stay until a sweep finds that nothing names them.
        """
        ...

    # Chains

    def commit(self, commit: Commit) -> DatasetRecord:
        """Append the blocks, move the head and write everything else the commit carries, or do nothing.

        The caller has made the objects durable and holds a writing lease since before it made them.

        Returns:
            The record after the commit.

        Raises:
            HeadMovedError: The chain's head is not ``expected_head`` (or the dataset to be created exists).
            DatasetNotFoundError: ``expected_head`` is given and the dataset is not here.
            NameTakenError: The new dataset's name belongs to another one.
            KeyLogMovedError: The blocks were judged or signed by keys that changed meanwhile.
            ValueError: The first block's sequence number does not follow the head's.
        """
        ...

    def get_head(self, dataset_id: DatasetId) -> Head:
        """Return the newest block's number and hash."""
        ...

    def get_chain_state(self, dataset_id: DatasetId) -> tuple[Head, bytes]:
        """Return the head and the chain rules' state after it, read together."""
        ...

    def iter_blocks(self, dataset_id: DatasetId, *, after: int = -1, upto: int | None = None) -> Iterator[StoredBlock]:
        """Yield blocks in order of sequence number: those above ``after`` and not above ``upto`` (None: the head).

        The end is fixed by the first step; memory does not grow with the chain, and no lock is held between steps.

        Raises:
            DatasetNotFoundError: The dataset is not here, or was deleted while blocks were read.
            BlockNotFoundError: ``upto`` is above the head.
            HomeCorruptError: A block between is missing.
        """
        ...

    def iter_blocks_backwards(self, dataset_id: DatasetId) -> Iterator[StoredBlock]:
        """Yield blocks from the head to the Seed; otherwise as ``iter_blocks``."""
        ...

    def iter_landmarks(self, dataset_id: DatasetId, *, upto: int | None = None) -> Iterator[StoredBlock]:
        """Yield, in order, the blocks that say what is in force after block ``upto`` (None: the head).

        These are all with the role DEFINITION, and the newest of each other role: few, however long the chain is.
        """
        ...

    def iter_blocks_with_rows(self, dataset_id: DatasetId, *, newest_first: bool = False) -> Iterator[StoredBlock]:
        """Yield the blocks that add rows, otherwise as ``iter_blocks``."""
        ...

    def count_blocks(self, dataset_id: DatasetId, role: BlockRole, *, first: int, last: int) -> int:
        """Count the blocks from ``first`` to ``last`` that have a role, without reading them."""
        ...

    def find_block(self, dataset_id: DatasetId, block_hash: Multihash) -> StoredBlock | None:
        """Return the block of the dataset's chain with this hash, or None."""
        ...

    def find_block_by_number(self, dataset_id: DatasetId, sequence_number: int) -> StoredBlock | None:
        """Return the block of the dataset's chain with this sequence number, or None."""
        ...

    def mend_block(self, dataset_id: DatasetId, block: NewBlock) -> None:
        """Put back a block of the chain that was lost or damaged; a signature that is here stays.

        Raises:
            ValueError: The bytes do not have the hash.
        """
        ...

    def find_signed_head(self, dataset_id: DatasetId) -> SignedHead | None:
        """Return the document that vouches for the present head, or None when there is none."""
        ...

    def iter_signed_heads(self, dataset_id: DatasetId) -> Iterator[SignedHead]:
        """Yield every signed head ever committed or added for the dataset, by sequence number."""
        ...

    def put_signed_head(self, signed_head: SignedHead) -> None:
        """Keep a document about a block of the chain; a different document for the same block stays beside it.

        Raises:
            BlockNotFoundError: The chain has no such block.
        """
        ...

    def put_acceptance(
        self,
        dataset_id: DatasetId,
        acceptance: Acceptance,
        *,
        rests_on: Trust | None = None,
        attestations: Sequence[Attestation] = (),
        present: Iterable[Multihash] = (),
    ) -> None:
        """Record a later judgement of the same blocks (as a re-execution after the fact).

        Args:
            dataset_id: Whose blocks.
            acceptance: The judgement.
            rests_on: What the dataset as a whole rests on from now; None: on what the judgement found.
            attestations: What this node states about the blocks.
            present: Objects that were absent and are durable by now.

        Raises:
            HeadMovedError: The acceptance is not about the present head.
        """
        ...

    def iter_acceptances(self, dataset_id: DatasetId) -> Iterator[Acceptance]:
        """Yield acceptances, oldest first."""
        ...

    def list_replaced_histories(self, dataset_id: DatasetId) -> tuple[ReplacedHistory, ...]:
        """Return the histories that were replaced by others, in the order in which that happened."""
        ...

    def iter_replaced_blocks(self, history: ReplacedHistory) -> Iterator[StoredBlock]:
        """Yield the blocks of a replaced history, oldest first."""
        ...

    # Evidence

    def find_replay_record(self, dataset_id: DatasetId, block_hash: Multihash) -> ReplayRecord | None:
        """Return the replay record of an ExecuteTransform block, or None when it came without."""
        ...

    def put_replay_record(self, record: ReplayRecord) -> None:
        """Keep or replace the replay record of a block of the chain.

        Raises:
            BlockNotFoundError: The chain has no such block.
        """
        ...

    def put_attestation(self, attestation: Attestation) -> bool:
        """Keep an attestation; say whether it is new."""
        ...

    def iter_attestations(self, dataset_id: DatasetId, *, sequence_number: int | None = None) -> Iterator[Attestation]:
        """Yield attestations about the dataset (that cover the block, when one is named), in order of arrival."""
        ...

    def put_document(self, document: EvidenceDocument) -> bool:
        """Keep a document that proves itself; say whether it is new. It stays when the dataset is deleted."""
        ...

    def iter_documents(self, dataset_id: DatasetId, kind: DocumentKind) -> Iterator[EvidenceDocument]:
        """Yield documents of a kind about a dataset, in order of arrival."""
        ...

    def add_key_events(self, change: KeyLogChange) -> None:
        """Add key events to those of a dataset, in one step with what goes with them; like documents they stay.

        Raises:
            KeyLogMovedError: Other events were added since ``change.known`` were read; nothing was written.
            HeadMovedError: The chain's head is not ``change.expected_head``; nothing was written.
        """
        ...

    def put_seen_head(self, head: SeenHead) -> bool:
        """Remember a head if it is newer than the one remembered; say whether it was."""
        ...

    def find_seen_head(self, dataset_id: DatasetId) -> SeenHead | None:
        """Return the newest head that was ever met for a dataset, or None."""
        ...

    def put_verified(self, verified: Verified) -> None:
        """Remember how far a dataset was verified, instead of what was remembered before."""
        ...

    def find_verified(self, dataset_id: DatasetId) -> Verified | None:
        """Return how far a dataset was verified, or None."""
        ...

    # What ingests leave

    def put_quarantine(self, quarantine: QuarantineFile) -> None:
        """Keep a quarantine file of an ingest that made no block; its object is durable already."""
        ...

    def iter_quarantine(self, dataset_id: DatasetId) -> Iterator[QuarantineFile]:
        """Yield the dataset's quarantine files, oldest first."""
        ...

    def find_merge_state(self, dataset_id: DatasetId, block_hash: Multihash) -> Multihash | None:
        """Return the object with the projected state after a block, or None: then it is computed again."""
        ...

    def put_merge_state(self, dataset_id: DatasetId, block_hash: Multihash, object_hash: Multihash) -> None:
        """Keep the projected state after a block instead of the one kept before; the object is durable already."""
        ...

    def find_newest_merge_state(self, dataset_id: DatasetId) -> Multihash | None:
        """Return the object with the one projected state that is kept for the dataset, after whichever block."""
        ...

    # Others

    def put_remote(self, remote: Remote) -> None:
        """Remember an address; a known one changes nothing."""
        ...

    def delete_remote(self, remote: Remote) -> None:
        """Forget an address; forgetting an unknown one is no error."""
        ...

    def list_remotes(self, dataset_id: DatasetId, direction: RemoteDirection) -> tuple[Remote, ...]:
        """Return the addresses in the order they were added."""
        ...

    def put_repository(self, repository: Repository) -> None:
        """Keep a repository; one of this name (compared without case) is replaced."""
        ...

    def find_repository(self, name: str) -> Repository | None:
        """Return the repository of this name, compared without case, or None."""
        ...

    def list_repositories(self) -> tuple[Repository, ...]:
        """Return all repositories, by name."""
        ...

    def delete_repository(self, name: str) -> None:
        """Forget a repository; forgetting an unknown one is no error."""
        ...

    def put_peer(self, peer: Peer) -> Peer:
        """Remember a peer: first sight fixes ``node_key`` and ``first_seen``, publisher keys add up.

        A peer without a node key may get one later.

        Returns:
            The peer as it is now kept.

        Raises:
            PeerKeyChangedError: Another node key is pinned for the address; nothing changed.
        """
        ...

    def find_peer(self, url: str) -> Peer | None:
        """Return the peer at an address, or None."""
        ...

    def list_peers(self) -> tuple[Peer, ...]:
        """Return all peers, by address."""
        ...

    def delete_peer(self, url: str) -> None:
        """Forget a peer with all it was pinned to; forgetting an unknown one is no error."""
        ...

    def put_token(self, token: AccessToken) -> None:
        """Keep a new token; an id or secret hash that is known is a ``ValueError``."""
        ...

    def find_token(self, secret_hash: bytes) -> AccessToken | None:
        """Return the token with this secret, also when it is revoked or expired: the caller judges."""
        ...

    def list_tokens(self) -> tuple[AccessToken, ...]:
        """Return all tokens, oldest first."""
        ...

    def revoke_token(self, token_id: str, revoked_at: Timestamp) -> bool:
        """Revoke a token; say whether there was one. The time of a first revocation stays."""
        ...

    # The node itself

    def append_audit(self, entry: AuditEntry) -> None:
        """Add a line to the audit log; lines are never changed or removed."""
        ...

    def iter_audit(self, *, limit: int) -> Iterator[AuditEntry]:
        """Yield the newest ``limit`` lines, newest first."""
        ...

    def is_referenced_object(self, object_hash: Multihash) -> bool:
        """Say whether a committed row names the object."""
        ...

    def list_referenced_objects(self) -> frozenset[Multihash]:
        """Return every object that a committed row names: what a sweep must keep."""
        ...

    def list_expected_objects(self) -> frozenset[Multihash]:
        """Return every object that has to be here: all that rows name, but for those that are absent everywhere."""
        ...

    def list_absent_objects(self, dataset_id: DatasetId) -> frozenset[Multihash]:
        """Return the objects of a dataset whose absence is no damage (PART-4); some may be here all the same."""
        ...

    def has_dataset_object(self, dataset_id: DatasetId, object_hash: Multihash) -> bool:
        """Say whether a block of the dataset names the object and its bytes came for this dataset (EX-81)."""
        ...

    def mark_absent(self, dataset_id: DatasetId, hashes: Iterable[Multihash]) -> None:
        """Note that objects of a dataset may be absent from now on; those that it does not name are passed over."""
        ...

    def mark_brought(self, dataset_id: DatasetId, hashes: Iterable[Multihash]) -> None:
        """Note that objects of a dataset came for it and are durable; they may be absent all the same (PART-12)."""
        ...

    def mark_present(self, dataset_id: DatasetId, hashes: Iterable[Multihash], *, brought: bool = True) -> None:
        """Note that objects of a dataset are durable and what its blocks say, so they have to be here from now on.

        Those not ``brought`` for it, and that it did not have before, are for this node alone (EX-82).
        """
        ...

    def close(self) -> None:
        """Release files; the store is not used afterwards."""
        ...
