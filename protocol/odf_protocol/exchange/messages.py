"""JSON messages of the exchange, read strictly and written in one form (EX-10).

Requests with unknown fields are rejected: a field that changes what is asked must not be passed over. Answers may carry
more than we know: newer nodes say more. Bytes are base64, identities and hashes their text.
"""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.limits import (
    MAX_ATTESTATION_BYTES,
    MAX_JSON_BYTES,
    MAX_PROBLEM_TEXT_CHARACTERS,
    MAX_REPORTED_CHARACTERS,
    MAX_REPORTED_WORDS,
    MAX_SIGNED_KEY_EVENT_BYTES,
)
from odf_protocol.exchange.routes import ObjectKind
from odf_protocol.head import Head
from odf_protocol.key_history import MAX_KEY_EVENTS
from odf_protocol.multihash import Multihash

JSON_MEDIA_TYPE: Final = "application/json"
PROBLEM_MEDIA_TYPE: Final = "application/problem+json"
"""Source: RFC 9457."""

# What 64-bit readers of others, and SQLite, can hold.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Kind = Literal["Root", "Derivative"]
"""As ODF's manifests spell it: ``DatasetKind.text``."""
KeyEvents = Annotated[
    tuple[Annotated[bytes, msgspec.Meta(max_length=MAX_SIGNED_KEY_EVENT_BYTES)], ...],
    msgspec.Meta(max_length=MAX_KEY_EVENTS),
]
Text = Annotated[str, msgspec.Meta(max_length=MAX_PROBLEM_TEXT_CHARACTERS)]


class HeadMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A block named by its place and its hash."""

    sequence_number: Count
    block_hash: Text

    @classmethod
    def of(cls, head: Head) -> "HeadMessage":
        """Write a head."""
        return cls(sequence_number=head.sequence_number, block_hash=str(head.hash))

    def to_head(self) -> Head:
        """Read it."""
        return Head(self.sequence_number, Multihash.parse(self.block_hash))

    def __post_init__(self) -> None:
        Multihash.parse(self.block_hash)


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers and what it speaks. ``node_id`` is None while the node has no key of its own."""

    node_id: Text | None
    software: Text
    protocol_versions: tuple[Count, ...]
    takes_pushes: bool

    def __post_init__(self) -> None:
        self.to_node_id()

    def to_node_id(self) -> DidKey | None:
        """Read the node's identity."""
        return None if self.node_id is None else DidKey.parse(self.node_id)


Told = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=MAX_REPORTED_CHARACTERS)], ...],
    msgspec.Meta(max_length=MAX_REPORTED_WORDS),
]


class DatasetTexts(msgspec.Struct, frozen=True, kw_only=True):
    """What a dataset says of itself, as far as a search looks at it (EX-89): of long texts the beginning."""

    description: Text = ""
    keywords: Told = ()
    columns: Told = ()

    def list_named(self, name: str) -> list[tuple[str, str]]:
        """Say what each text is, and it, the dataset's name first."""
        keywords = ((f"keyword {each}", each) for each in self.keywords)
        columns = ((f"column {each}", each) for each in self.columns)
        return [("name", name), ("description", self.description), *keywords, *columns]


class _OfDataset(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of one dataset, which is at ``head``."""

    dataset_id: Text
    name: Name
    head: HeadMessage

    def __post_init__(self) -> None:
        self.to_dataset_id()

    def to_dataset_id(self) -> DatasetId:
        """Read the identity."""
        return DatasetId.parse(self.dataset_id)


class DatasetSummary(_OfDataset, frozen=True, kw_only=True):
    """One published dataset. ``trust`` is the serving node's word about it, nothing to rely on."""

    kind: Kind
    trust: Text
    texts: DatasetTexts | msgspec.UnsetType = msgspec.UNSET
    """Given where words were asked for, by nodes that search (EX-89)."""


class DatasetPage(msgspec.Struct, frozen=True, kw_only=True):
    """Published datasets by name; ``next_after`` is given while there are more."""

    datasets: tuple[DatasetSummary, ...]
    next_after: Name | None = None


class HeadAnswer(_OfDataset, frozen=True, kw_only=True):
    """The newest block of a dataset, and the document in which its key vouches for it, as it was made."""

    kind: Kind
    signed_head: bytes | None = None
    key_events: Count | msgspec.UnsetType = msgspec.UNSET
    """How many events the log of the dataset's keys has; absent where there is none to ask for."""


class HashAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The hash of the block with a number; None where the chain has no such block (EX-60)."""

    block_hash: Text | None

    def __post_init__(self) -> None:
        self.to_hash()

    def to_hash(self) -> Multihash | None:
        """Read the hash."""
        return None if self.block_hash is None else Multihash.parse(self.block_hash)


class AttestationPage(msgspec.Struct, frozen=True, kw_only=True):
    """Signed statements about a dataset, in order of arrival at the node; each as it was made."""

    attestations: tuple[bytes, ...]
    next_skip: Count | None = None

    def __post_init__(self) -> None:
        if any(len(attestation) > MAX_ATTESTATION_BYTES for attestation in self.attestations):
            raise ValueError(f"an attestation has more than {MAX_ATTESTATION_BYTES} bytes")


class DisputeList(msgspec.Struct, frozen=True, kw_only=True):
    """Proofs of equivocation and settlements about a dataset, as they came."""

    documents: tuple[bytes, ...]


class KeyLogMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The key log of a dataset in force, as its events were made; in layouts the contents of ``key-log``."""

    events: KeyEvents


class TreeHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What the root of a slice's v1 hash binds together (LH1-18)."""

    root: Text
    row_count: Count
    schema: bytes
    columns_top: bytes

    def __post_init__(self) -> None:
        Multihash.parse(self.root)


class TreeNodes(msgspec.Struct, frozen=True, kw_only=True):
    """Children of the nodes that were asked about, in that order (LH1-19)."""

    children: tuple[tuple[bytes, ...], ...]


OBJECT_ABSENT: Final = "object-absent"
"""The word of a problem: the chain names the object, and this node has the metadata alone (PART-7)."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something was not done. ``report`` holds what the checks found, for those who want to know all.

    Source: RFC 9457; ``rule``, ``sequence_number`` and ``report`` are extension members.
    """

    type: Text = "about:blank"
    title: Text = ""
    status: Annotated[int, msgspec.Meta(ge=0, le=999)] = 0
    detail: Text = ""
    instance: Text = ""
    rule: Text = ""
    sequence_number: Count | None = None
    position: Count | None = None
    report: dict[str, Any] | None = None


class PushRequest(_OfDataset, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The wish to bring the receiver's copy of a dataset up to ``head``."""

    signed_head: bytes | None = None
    key_events: KeyEvents | msgspec.UnsetType = msgspec.UNSET
    """The log of the dataset's keys; absent where it never changed its key, so that older receivers understand."""


class PushStatus(StrEnum):
    """How far a push is: see the table at EX-18."""

    RECEIVING = "receiving"
    VERIFYING = "verifying"
    ACCEPTED = "accepted"
    REJECTED = "refused"
    FAILED = "failed"


class MissingObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object that the receiver lacks."""

    kind: ObjectKind
    object_hash: Text
    size_bytes: Count

    def __post_init__(self) -> None:
        self.to_hash()

    def to_hash(self) -> Multihash:
        """Read the hash."""
        return Multihash.parse(self.object_hash)


class UploadProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How many of an object's bytes the receiver holds: where an upload goes on."""

    position: Count


class PushState(msgspec.Struct, frozen=True, kw_only=True):
    """A push as the receiver sees it.

    ``known_head`` is the receiver's own head when the push began, None when the dataset was new to it.
    ``received_upto`` is the last block it has, known or pushed; -1 before the first. ``missing`` is the front of the
    list.
    """

    push_id: str
    status: PushStatus
    known_head: HeadMessage | None
    received_upto: Annotated[int, msgspec.Meta(ge=-1, le=2**63 - 1)]
    missing: tuple[MissingObject, ...] = ()
    missing_count: Count = 0
    problem: Problem | None = None


_Message = TypeVar("_Message", bound=msgspec.Struct)


def encode_message(message: msgspec.Struct) -> bytes:
    """Write a message: keys sorted, no spaces."""
    return msgspec.json.encode(message, order="sorted")


def decode_message(body: bytes, message_type: type[_Message]) -> _Message:
    """Read a message from somebody who is not trusted.

    Raises:
        MalformedError: Too large, no JSON, or not a message of this type.
    """
    what = message_type.__name__
    if len(body) > MAX_JSON_BYTES:
        raise MalformedError(what, expected=f"at most {MAX_JSON_BYTES} bytes", found=len(body))
    try:
        return msgspec.json.decode(body, type=message_type)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(what, expected="a message of the exchange", found=str(error)) from error
