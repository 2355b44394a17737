"""Valid values for stores: a test changes only what it is about. Blocks are opaque bytes to a store."""

from dataclasses import replace

from odf_node.records.commits import Acceptance, Commit, Grounds, NewBlock, NewDataset
from odf_node.records.datasets import BlockRole, Origin, StoredBlock
from odf_node.records.evidence import HeldAttestation
from odf_node.records.quarantine import QuarantineFile
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.events import DatasetKind
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust
from odf_protocol.timestamp import Timestamp

NOON = Timestamp.parse("2020-01-01T12:00:00Z")
LATER = Timestamp.parse("2020-01-02T12:00:00.000000001Z")
GROUNDS = Grounds(
    first=0,
    last=2,
    policy="attested",
    rule="r\u00fcle 1",
    reason="two auditors said so",
    auditors=(("one", "did:key:z1"), ("two", "did:key:z2")),
    replayed_steps=1,
    partial="leaves out rows",
    warnings=("doubtful",),
    replaced=Multihash.of_sha3_256(b"replaced"),
    not_checked=("rows",),
)


def dataset_id(number: int = 1) -> DatasetId:
    """Make an identity; equal numbers make equal identities."""
    return DatasetId(Multihash.of_sha3_256(f"dataset {number}".encode()).digest)


def did_key(number: int = 1) -> DidKey:
    """Make a node's or signer's identity."""
    return DidKey(Multihash.of_sha3_256(f"key {number}".encode()).digest)


def object_hash(number: int) -> Multihash:
    """Make the hash of some object."""
    return Multihash.of_sha3_256(f"object {number}".encode())


def blocks(first: int, count: int, *, salt: str = "", size_bytes: int = 40) -> tuple[NewBlock, ...]:
    """Make ``count`` blocks from sequence number ``first``; every third carries a signature."""
    made = []
    for number in range(first, first + count):
        raw = f"block {number} {salt}".encode().ljust(size_bytes, b".")
        signature = b"signed %d" % number if number % 3 == 0 else None
        made.append(NewBlock(raw, Multihash.of_sha3_256(raw), number, signature, role=role_at(number)))
    return tuple(made)


def role_at(number: int) -> BlockRole:
    """The role of the made block with this number: two definitions, then all roles in turn."""
    if number < 2:
        return BlockRole.DEFINITION
    return BlockRole(1 + number % 4 if number % 9 else -(number // 9 % 4))


def creation(number: int = 1, *, name: str | None = None, count: int = 1, **changes: object) -> Commit:
    """Make the commit that creates an own root dataset with ``count`` blocks."""
    commit = Commit(
        dataset_id=dataset_id(number),
        expected_head=None,
        blocks=blocks(0, count, salt=str(number)),
        chain_state=b"state after creation",
        new_dataset=NewDataset(
            name=name or f"dataset.{number}", kind=DatasetKind.ROOT, origin=Origin.OWN, created_at=NOON
        ),
    )
    return replace(commit, **changes)  # type: ignore[arg-type]


def growth(base: Commit, count: int = 1, *, salt: str = "", **changes: object) -> Commit:
    """Make a commit of ``count`` blocks on top of ``base``."""
    head = base.new_head
    commit = Commit(
        dataset_id=base.dataset_id,
        expected_head=head.hash,
        blocks=blocks(head.sequence_number + 1, count, salt=salt),
        chain_state=b"state after growth",
    )
    return replace(commit, **changes)  # type: ignore[arg-type]


def acceptance(head: Head, *, trust: Trust = Trust.REEXECUTED) -> Acceptance:
    """Make the acceptance of a chain up to ``head``."""
    return Acceptance(head=head, trust=trust, source_url="https://peer.example/d", accepted_at=LATER, grounds=GROUNDS)


def pulled_creation(number: int = 1, *, count: int = 3, **changes: object) -> Commit:
    """Make the commit that brings somebody else's derivative dataset."""
    chain = blocks(0, count, salt=f"pulled {number}")
    commit = Commit(
        dataset_id=dataset_id(number),
        expected_head=None,
        blocks=chain,
        chain_state=b"state after pull",
        signed_head=b"signed head document",
        acceptance=acceptance(Head(chain[-1].sequence_number, chain[-1].hash)),
        new_dataset=NewDataset(
            name=f"pulled.{number}",
            kind=DatasetKind.DERIVATIVE,
            origin=Origin.PULLED,
            origin_url="https://peer.example/d",
            pinned_key=did_key(number),
            created_at=LATER,
        ),
    )
    return replace(commit, **changes)  # type: ignore[arg-type]


def stored(block: NewBlock) -> StoredBlock:
    return StoredBlock(block.sequence_number, block.hash, block.raw, block.signature)


def quarantine_file(number: int | None = 1) -> QuarantineFile:
    return QuarantineFile(
        dataset_id=dataset_id(),
        sequence_number=number,
        object_hash=object_hash(7),
        row_count=3,
        source="file:///rows.csv",
        created_at=LATER,
    )


def attestation(raw: bytes, first: int = 2, last: int = 5) -> HeldAttestation:
    return HeldAttestation(
        id=Multihash.of_sha3_256(raw),
        dataset_id=dataset_id(),
        first_sequence_number=first,
        last_sequence_number=last,
        last_block_hash=object_hash(5),
        attester=did_key(),
        raw=raw,
        received_at=NOON,
    )
