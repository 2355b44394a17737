"""Datasets as this node keeps them: record, head, stored blocks, and the addresses they come from and go to."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from odf_protocol.did import DatasetId, DidKey
from odf_protocol.enums import DatasetKind
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust
from odf_protocol.timestamp import Timestamp


class Origin(StrEnum):
    """Who writes the chain."""

    OWN = "own"
    """This node: it holds the dataset's private key."""
    PULLED = "pulled"
    """Somebody else; ``DatasetRecord.origin_url`` says from where it was brought."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRecord:
    """What this node knows about a dataset beside its chain.

    ``origin_url`` is None exactly when ``origin`` is OWN. ``pinned_key`` is the publisher's key that was seen first
    and must stay the same (None: nobody signed). ``published`` says whether others are served it.
    """

    id: DatasetId
    name: str
    kind: DatasetKind
    head: Head
    origin: Origin
    origin_url: str | None
    trust: Trust
    pinned_key: DidKey | None
    published: bool
    created_at: Timestamp


class BlockRole(IntEnum):
    """What a block may contribute to what is in force, so that a view needs few blocks of a long chain.

    Of all but ``DEFINITION`` the newest block counts alone. Those below it are not about data either.
    """

    ATTACHMENTS = -3
    LICENSE = -2
    INFO = -1
    DEFINITION = 0
    """Any other event that is not about data; a chain has few of them (CHAIN-53)."""
    DATA = 1
    """AddData or ExecuteTransform with neither rows nor a watermark."""
    WATERMARK = 2
    ROWS = 3
    ROWS_AND_WATERMARK = 4


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block as it arrived: ``raw`` is what was hashed and signed. Not checked again on reading; decoders do."""

    sequence_number: int
    hash: Multihash
    raw: bytes
    signature: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedHistory:
    """Blocks above number ``after``, up to ``head``, that were replaced by another history; they are kept.

    ``source_url`` is who offered the other history, ``replaced_by`` the head that took the place of ``head``.
    """

    id: int
    replaced_at: Timestamp
    source_url: str | None
    after: int
    head: Head
    replaced_by: Head


@dataclass(frozen=True, slots=True)
class HeldHead:
    """A head and the document in which a key vouches for it; ``raw`` is the document as it arrived."""

    dataset_id: DatasetId
    head: Head
    raw: bytes


class RemoteDirection(StrEnum):
    """What a remote is for."""

    PULL = "pull"
    PUSH = "push"


ADDRESS_SCHEMES: Final = ("http", "https", "odf+http", "odf+https", "file", "s3", "s3+http", "s3+https")
"""Of places with datasets that this node can ask."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A place with many datasets that the user has given a name."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Remote:
    """Where a dataset is pulled from or pushed to when the command names nothing: a URL, or a repository's alias."""

    dataset_id: DatasetId
    direction: RemoteDirection
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A dataset that is brought up to date by itself when a new head arrives.

    Attributes:
        dataset_id: Which one; it need not be here yet.
        name: What it is to be called here.
        url: Where to ask first; None: peers that gossip only.
        since: When it was subscribed to.
    """

    dataset_id: DatasetId
    name: str
    url: str | None
    since: Timestamp
