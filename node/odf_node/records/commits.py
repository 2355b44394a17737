"""One growth step of a chain with everything that must become true with it or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odf_node.records.datasets import BlockRole, Origin
from odf_node.records.evidence import HeldAttestation
from odf_node.records.ingests import KeptAnswer
from odf_node.records.quarantine import QuarantineFile, SettledRows
from odf_protocol import block_traits
from odf_protocol.block_traits import traits_of
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.enums import DatasetKind
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from odf_protocol.block import Block


@dataclass(frozen=True, slots=True)
class NewBlock:
    """A block to store. ``step_record`` goes with ExecuteTransform blocks: what fixes the step's result."""

    raw: bytes
    hash: Multihash
    sequence_number: int
    signature: bytes | None = None
    step_record: bytes | None = None
    role: BlockRole = field(kw_only=True)

    @classmethod
    def of(cls, block: "Block", signature: bytes | None = None, step_record: bytes | None = None) -> "NewBlock":
        """Make one of a decoded block."""
        role = role_of_traits(traits_of(block.event))
        return cls(block.raw, block.hash, block.sequence_number, signature, step_record, role=role)


def role_of_traits(traits: int) -> BlockRole:
    """Say what a block with these traits (``odf_protocol.block_traits``) may contribute to what is in force."""
    known = block_traits
    if not traits & known.DATA:
        roles = {
            known.INFO: BlockRole.INFO,
            known.LICENSE: BlockRole.LICENSE,
            known.ATTACHMENTS: BlockRole.ATTACHMENTS,
        }
        return roles.get(traits & known.ABOUT, BlockRole.DEFINITION)
    if not traits & known.WATERMARK:
        return BlockRole.ROWS if traits & known.ROWS else BlockRole.DATA
    return BlockRole.ROWS_AND_WATERMARK if traits & known.ROWS else BlockRole.WATERMARK


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDataset:
    """The record of a dataset that the commit creates; see ``DatasetRecord`` for the fields.

    ``asked_name`` is the name under which others know it, where that is taken by a dataset that whoever brought it may
    not know of (EX-85); None: ``name``.
    """

    name: str
    kind: DatasetKind
    origin: Origin
    created_at: Timestamp
    origin_url: str | None = None
    pinned_key: DidKey | None = None
    published: bool = True
    asked_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What was found when blocks were judged.

    Attributes:
        first: The first block that was judged.
        last: The last one.
        policy: What asked for proof; ``default`` where nobody named one.
        rule: The rule that it came from.
        reason: In words, why the proof was enough.
        auditors: Name and key of those whose word was counted.
        replayed_steps: How many steps were re-executed.
        partial: What makes the rows less than the declared query over the whole input; empty where nothing does.
        warnings: What was doubtful and no reason to reject.
        replaced: The head of the history that these blocks took the place of.
        not_checked: What nobody looked at, in the words of ``acceptance.unchecked``.
    """

    first: int
    last: int
    policy: str
    rule: str
    reason: str
    auditors: tuple[tuple[str, str], ...] = ()
    replayed_steps: int = 0
    partial: str = ""
    warnings: tuple[str, ...] = ()
    replaced: Multihash | None = None
    not_checked: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Give it as plain values, as commands show it."""
        return {
            "policy": self.policy,
            "rule": self.rule,
            "reason": self.reason,
            "auditors": [{"name": name, "key": key} for name, key in self.auditors],
            "replayedSteps": self.replayed_steps,
            "partial": self.partial or None,
            "blocks": [self.first, self.last],
            "warnings": list(self.warnings),
            "replaced": str(self.replaced) if self.replaced else None,
            "notChecked": list(self.not_checked),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Why blocks up to ``head`` were accepted, kept for ever; a dataset rests on the weakest ``trust`` of them all."""

    head: Head
    trust: Trust
    source_url: str | None
    accepted_at: Timestamp
    grounds: Grounds


@dataclass(frozen=True, slots=True)
class FetchedPlace:
    """From where a dated source state came: the state's value, and the digest of the URL (ING-26)."""

    state: str
    place: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Append ``blocks`` to a chain whose head is ``expected_head`` (None: the chain does not exist yet).

    Attributes:
        dataset_id: Whose chain.
        expected_head: The head on which the blocks were built.
        blocks: In order, sequence numbers without gaps, at least one. May be read when they are used, and again.
        chain_state: State of the chain rules after the last block; replaces the one before.
        objects: Slices and checkpoints that the blocks name; durable in the object store before the commit.
        absent: Those of ``objects`` that need not be here, as nobody asked for them or looked at them (PART-1).
        not_brought: Those of ``absent`` whose bytes did not come: others are not given them (EX-81).
        signed_head: Document that vouches for the last block, None when nobody signed.
        new_dataset: Given exactly when ``expected_head`` is None.
        attestations: What this node states about the blocks.
        acceptance: Why blocks of others were accepted; None leaves the trust as it is (own writes: ``Trust.OWN``).
        quarantine: Rows set aside by the ingest that made the blocks; the object is durable already.
        settlement: Rows and batches of quarantine that the blocks took; settled with them or not at all.
        fetched_place: Where the source state of the blocks came from; replaces the note before.
        answer: What is answered under the key of the ingest that made the blocks (FEED-1).
        merge_state: Object with the projected state after the last block; replaces the one before. A cache.
        replaces_after: The blocks of the chain above this number are replaced by these, and kept aside (ACCEPT-10);
            None: the blocks follow the head.
        known_key_events: How many key events of the dataset were kept when the blocks were signed or judged.
        key_events: Those that came with a dataset that is new here.
    """

    dataset_id: DatasetId
    expected_head: Multihash | None
    blocks: Sequence[NewBlock]
    chain_state: bytes
    objects: tuple[Multihash, ...] = ()
    signed_head: bytes | None = None
    new_dataset: NewDataset | None = None
    acceptance: Acceptance | None = None
    attestations: tuple[HeldAttestation, ...] = ()
    quarantine: QuarantineFile | None = None
    settlement: SettledRows | None = None
    fetched_place: FetchedPlace | None = None
    answer: KeptAnswer | None = None
    merge_state: Multihash | None = None
    replaces_after: int | None = None
    absent: frozenset[Multihash] = frozenset()
    not_brought: frozenset[Multihash] = frozenset()
    known_key_events: int = 0
    key_events: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        if not self.blocks:
            raise ValueError("a commit needs blocks")
        first, last = self.blocks[0].sequence_number, self.new_head.sequence_number
        if last - first + 1 != len(self.blocks):
            raise ValueError(f"a commit needs blocks with consecutive sequence numbers, found {first} to {last}")
        if (self.expected_head is None) != (self.new_dataset is not None):
            raise ValueError("a commit names either the expected head or the new dataset")
        if not self.absent <= set(self.objects):
            raise ValueError("what is absent is among the objects that the blocks name")
        if not self.not_brought <= self.absent:
            raise ValueError("what was not brought is absent")
        if self.expected_head is None and first != 0:
            raise ValueError(f"a new chain starts at sequence number 0, found {first}")
        if self.acceptance is not None and self.acceptance.head != self.new_head:
            raise ValueError("an acceptance speaks about the last block of its commit")
        if self.new_dataset is not None and (self.new_dataset.origin is Origin.PULLED) != (self.acceptance is not None):
            raise ValueError("a pulled dataset starts with an acceptance, an own one without")

    @property
    def new_head(self) -> Head:
        """The head after the commit."""
        return Head(self.blocks[-1].sequence_number, self.blocks[-1].hash)
