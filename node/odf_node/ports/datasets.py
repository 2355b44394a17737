"""Datasets as this node keeps them: record, head, stored blocks, and the addresses they come from and go to."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final, Protocol

from odf_node.ports.access import ReadGrants
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.enums import DatasetKind
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.names import DatasetName
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
class SignedHead:
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


class DatasetStore(Protocol):
    """Records of datasets as their owner changes them, and as callers may see them."""

    def set_published(self, dataset_id: DatasetId, published: bool) -> None:
        """Say whether others are served the dataset."""
        ...

    def rename_dataset(self, dataset_id: DatasetId, before: str, name: str) -> None:
        """Give the dataset, and a subscription to it, another local name.

        Raises:
            NameTakenError: Another dataset has it.
            NameMovedError: The dataset is not called ``before`` any more.
            DatasetNotFoundError: It is not here.
        """
        ...

    def delete_dataset(self, dataset_id: DatasetId) -> None:
        """Forget the dataset: chain, signatures, heads, replay records, acceptances, quarantine, remotes.

        Attestations stay: they are evidence. Objects stay until a sweep finds that nothing names them.
        """
        ...

    def find_readable(self, which: DatasetId | DatasetName, reads: ReadGrants) -> DatasetRecord | None:
        """Return the record, or None: it is not here, or may not be read; both take the same way.

        Names are compared without regard to case (NAME-3). The record has the name under which the caller knows the
        dataset: one that was brought under a name that is taken here keeps it for all who may not read everything
        (EX-85).
        """
        ...

    def list_readable(self, reads: ReadGrants) -> tuple[DatasetRecord, ...]:
        """Return the records that may be read, by the name under which the caller knows each."""
        ...


class RemoteStore(Protocol):
    """Remotes of datasets, and repositories that the user has named."""

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


class SubscriptionStore(Protocol):
    """Subscriptions of this node."""

    def put_subscription(self, subscription: Subscription) -> None:
        """Subscribe, or change a subscription of the same dataset."""
        ...

    def delete_subscription(self, dataset_id: DatasetId) -> bool:
        """End a subscription; say whether there was one."""
        ...

    def list_subscriptions(self) -> tuple[Subscription, ...]:
        """Return all subscriptions, by name."""
        ...
