"""What a peer offers, from what nothing was checked of to what is left of it when it was accepted."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from odf_node.acceptance.checked_chain import CheckedChain, NeededObject
from odf_node.acceptance.unchecked import list_unchecked
from odf_node.keys.logs import ProposedKeys
from odf_node.ports.block_stage import ProposedBlock
from odf_node.ports.peer_client import PeerHead
from odf_node.records.access import READS_EVERYTHING, ReadGrants
from odf_node.records.commits import Acceptance, Grounds, NewDataset
from odf_node.records.datasets import DatasetRecord, Origin
from odf_protocol.did import DatasetId
from odf_protocol.head import Head
from odf_protocol.policy import AcceptRule, Decision
from odf_protocol.timestamp import Timestamp


class Subset(StrEnum):
    """How much of a dataset is taken; each subset has what the next one has. Options of ``pull`` are called so too.

    Datasets of this node itself are always taken whole (PART-15).
    """

    EVERYTHING = "everything"
    ROWS_LATER = "rows-later"
    """Files by their hashes, of which nobody reads a row yet (PART-12)."""
    METADATA_ONLY = "metadata-only"
    """Blocks and what is said about them; no files (PART-1)."""

    @property
    def has_files(self) -> bool:
        """Whether files are brought."""
        return self is not Subset.METADATA_ONLY

    @property
    def has_rows(self) -> bool:
        """Whether rows are read, and so whether anything is said about data."""
        return self is Subset.EVERYTHING


@dataclass(frozen=True, slots=True)
class AcceptOptions:
    """What whoever asks wants beside the data: a new dataset shown to others, another history replaced.

    ``completes``: a subset also of what is held on its metadata alone, if it is. ``reads``: what of this node whoever
    asks may know; steps are re-executed from these inputs alone (EX-83). ``kept_as``: the name of a new dataset here,
    where it is not the one that it is offered under (EX-85).
    """

    published: bool
    force: bool
    subset: Subset = Subset.EVERYTHING
    completes: bool = True
    reads: ReadGrants = READS_EVERYTHING
    kept_as: str | None = None


EVERYTHING: Final = AcceptOptions(published=True, force=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a peer offers for one dataset.

    ``blocks`` follow ``base`` (None: they start with the Seed), oldest first. ``signed_head`` is None where the peer
    has none. ``source_url`` is where it came from, for records and messages; ``expected_id`` is whose dataset the user
    said it must be. ``statements`` are attestations that the peer passes on, ``key_events`` is the dataset's key log as
    the peer shows it, untrusted like everything here.
    ``published`` says whether a dataset that is new here is shown to others, ``replaces_history`` whether another
    history than the one held here may take its place (ACCEPT-10), ``portion`` how much of it is wanted, ``reads``
    what of this node the peer may know, ``kept_as`` what the dataset is called here, where that is something else.
    Of another history than the one held here ``parts_after`` is the last common block, and ``parting`` the one behind
    it, where that is known and not among ``blocks``.
    """

    name: str
    source_url: str
    base: Head | None
    blocks: Sequence[ProposedBlock]
    signed_head: bytes | None
    expected_id: DatasetId | None = None
    statements: Sequence[bytes] = ()
    key_events: Sequence[bytes] = ()
    published: bool = True
    replaces_history: bool = False
    subset: Subset = Subset.EVERYTHING
    reads: ReadGrants = READS_EVERYTHING
    parts_after: int | None = None
    parting: ProposedBlock | None = None
    kept_as: str | None = None

    @property
    def local_name(self) -> str:
        """What the dataset is called here."""
        return self.kept_as or self.name

    @classmethod
    def of_head(cls, proposed: PeerHead, name: str, url: str, key_events: Sequence[bytes] = ()) -> "Proposal":
        """Say what was offered where it is rejected before its blocks are asked for."""
        return cls(
            name=name,
            source_url=url,
            base=proposed.head,
            blocks=(),
            signed_head=proposed.signed_head,
            key_events=key_events,
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """An offer whose metadata have been checked: steps (0) to (3) are behind it."""

    proposal: Proposal
    dataset_id: DatasetId
    is_new: bool
    signed: bool
    chain: CheckedChain
    keys: ProposedKeys
    replaced: Head | None = None
    """The head of the history that this one replaces; None where it replaces none."""
    replaces_after: int | None = None
    """The last block that both have."""
    is_held: bool = False
    """The blocks are here already, on their metadata alone (PART-3)."""

    def needed_objects(self) -> list[NeededObject]:
        """List what has to be fetched, or be here, before ``Acceptor.accept``."""
        return self.chain.needed_objects()


def acceptance_of(
    candidate: Candidate, decision: Decision, rule: AcceptRule, replayed: int, now: Timestamp
) -> Acceptance:
    """Write down on what grounds the blocks of ``candidate`` were accepted."""
    assert decision.trust is not None
    first, last, subset = candidate.chain.first, candidate.chain.last, candidate.proposal.subset
    left = () if subset.has_rows else list_unchecked(candidate.chain.view.kind, has_files=subset.has_files)
    grounds = Grounds(
        first=first.sequence_number,
        last=last.sequence_number,
        policy=rule.policy.value if rule.policy else "default",
        rule=rule.name,
        reason=decision.reason,
        auditors=tuple((auditor.name, str(auditor.key)) for auditor in decision.rests_on),
        replayed_steps=replayed,
        partial=decision.partial,
        warnings=candidate.chain.warnings,
        replaced=candidate.replaced.hash if candidate.replaced else None,
        not_checked=left,
    )
    return Acceptance(
        head=last,
        trust=decision.trust,
        source_url=candidate.proposal.source_url,
        accepted_at=now,
        grounds=grounds,
    )


def new_dataset_of(candidate: Candidate, now: Timestamp) -> NewDataset:
    """Make the record of a dataset that is new here."""
    return NewDataset(
        name=candidate.proposal.local_name,
        asked_name=candidate.proposal.name if candidate.proposal.kept_as else None,
        kind=candidate.chain.view.kind,
        origin=Origin.PULLED,
        created_at=now,
        origin_url=candidate.proposal.source_url,
        pinned_key=candidate.keys.history.current_key if candidate.signed else None,
        published=candidate.proposal.published,
    )


@dataclass(frozen=True, slots=True)
class FileCount:
    """The files that blocks name, each once, and how many of them came for this; the others were here, or are not."""

    files: int = 0
    size_bytes: int = 0
    fetched_files: int = 0
    fetched_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceReport:
    """What was accepted, and on what grounds.

    The completed blocks were held on their metadata alone; now their files came, or their rows were checked.
    ``unchecked``: what no acceptance of the dataset has looked at yet (PART-14).
    """

    record: DatasetRecord
    decision: Decision
    new_blocks: int = 0
    new_rows: int = 0
    replayed_steps: int = 0
    warnings: tuple[str, ...] = ()
    first_contact: bool = False
    subset: Subset = Subset.EVERYTHING
    new_files: FileCount = FileCount()
    completed_blocks: int = 0
    completed_rows: int = 0
    completed_files: FileCount = FileCount()
    unchecked: tuple[str, ...] = ()
