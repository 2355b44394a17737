"""What a peer offers, before anything of it has been checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from odf_node.acceptance.checked_chain import CheckedChain, NeededObject
from odf_node.keys.logs import OfferedKeys
from odf_node.ports import Head
from odf_node.ports.access import READS_EVERYTHING, ReadGrants
from odf_node.ports.block_stage import OfferedBlock
from odf_node.ports.peer_client import PeerHead
from odf_protocol.did import DatasetId


class Portion(StrEnum):
    """How much of a dataset is taken; each portion has what the next one has. Options of ``pull`` are called so too.

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
        return self is not Portion.METADATA_ONLY

    @property
    def has_rows(self) -> bool:
        """Whether rows are read, and so whether anything is said about data."""
        return self is Portion.EVERYTHING


@dataclass(frozen=True, slots=True)
class Wishes:
    """What whoever asks wants beside the data: a new dataset shown to others, another history replaced.

    ``completes``: a portion also of what is held on its metadata alone, if it is. ``reads``: what of this node whoever
    asks may know; steps are re-executed from these inputs alone (EX-83). ``kept_as``: the name of a new dataset here,
    where it is not the one that it is offered under (EX-85).
    """

    published: bool
    force: bool
    portion: Portion = Portion.EVERYTHING
    completes: bool = True
    reads: ReadGrants = READS_EVERYTHING
    kept_as: str | None = None


EVERYTHING: Final = Wishes(published=True, force=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a peer offers for one dataset.

    ``blocks`` follow ``base`` (None: they start with the Seed), oldest first. ``signed_head`` is None where the peer
    has none. ``source_url`` is where it came from, for records and messages; ``expected_id`` is whose dataset the user
    said it must be. ``statements`` are attestations that the peer passes on, ``key_events`` is the dataset's key log as
    the peer shows it, untrusted like everything here.
    ``published`` says whether a dataset that is new here is shown to others, ``replaces_history`` whether another
    history than the one held here may take its place (ACCEPT-10), ``portion`` how much of it is wanted, ``reads``
    what of this node the peer may know, ``kept_as`` what the dataset is called here, where that is something else.
    """

    name: str
    source_url: str
    base: Head | None
    blocks: Sequence[OfferedBlock]
    signed_head: bytes | None
    expected_id: DatasetId | None = None
    statements: Sequence[bytes] = ()
    key_events: Sequence[bytes] = ()
    published: bool = True
    replaces_history: bool = False
    portion: Portion = Portion.EVERYTHING
    reads: ReadGrants = READS_EVERYTHING
    parts_after: int | None = None
    kept_as: str | None = None

    @property
    def local_name(self) -> str:
        """What the dataset is called here."""
        return self.kept_as or self.name

    @classmethod
    def of_head(cls, offered: PeerHead, name: str, url: str, key_events: Sequence[bytes] = ()) -> "Offer":
        """Say what was offered where it is refused before its blocks are asked for."""
        return cls(
            name=name,
            source_url=url,
            base=offered.head,
            blocks=(),
            signed_head=offered.signed_head,
            key_events=key_events,
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """An offer whose metadata have been checked: steps (0) to (3) are behind it."""

    offer: Offer
    dataset_id: DatasetId
    is_new: bool
    signed: bool
    chain: CheckedChain
    keys: OfferedKeys
    replaced: Head | None = None
    """The head of the history that this one replaces; None where it replaces none."""
    replaces_after: int | None = None
    """The last block that both have."""
    is_held: bool = False
    """The blocks are here already, on their metadata alone (PART-3)."""

    def needed_objects(self) -> list[NeededObject]:
        """List what has to be fetched, or be here, before ``Acceptor.accept``."""
        return self.chain.needed_objects()
