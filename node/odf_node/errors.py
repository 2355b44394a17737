"""Errors of the node's use cases: what the user asked cannot be done, or what a peer offered is rejected."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from odf_protocol.errors import NotFoundError, OdfError, RejectedError, UnavailableError


class UsageError(OdfError):
    """The request makes no sense here; the message says what would."""


class UnknownDatasetError(NotFoundError):
    """No dataset of this node is meant; the nearest name is offered."""


class ObjectsAbsentError(NotFoundError):
    """Files of a dataset are not here, by choice and not by damage (PART-4); the message says how to get them.

    Attributes:
        dataset: The dataset's name.
        count: How many of its files are not here.
    """

    def __init__(self, dataset: str, count: int, fix: str) -> None:
        files = "1 file" if count == 1 else f"{count:,} files"
        super().__init__(f"'{dataset}' lacks {files} in this node; {fix}")
        self.dataset = dataset
        self.count = count


class NodeBusyError(UnavailableError):
    """Others are at work on this node, and what was asked has to be done alone."""


class ProposalRejectedError(RejectedError):
    """What a peer offered was checked and rejected; nothing of this node's records changed.

    Attributes:
        reason: One sentence for people.
        report: Everything that was found, as plain JSON values.
        folder: Where the evidence was put, None when there was nothing to keep.
    """

    def __init__(
        self,
        rule: str,
        reason: str,
        *,
        sequence_number: int | None = None,
        report: Mapping[str, Any] | None = None,
        folder: Path | None = None,
    ) -> None:
        super().__init__(rule, sequence_number=sequence_number)
        self.args = (reason,)
        self.reason = reason
        self.report = dict(report or {})
        self.folder = folder


class UnsoundResultError(OdfError):
    """What this node was about to write takes back rows that its dataset does not have (ROWS-14); nothing was written.

    Attributes:
        dataset: The dataset's name.
    """

    def __init__(self, dataset: str, found: object, fix: str) -> None:
        super().__init__(f"'{dataset}': nothing was written, as a row is taken back that is not there: {found}; {fix}")
        self.dataset = dataset


class FrozenDatasetError(RejectedError):
    """A dataset's key signed two histories (or settled on the one that is not held): nothing is taken or given on."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(rule)
        self.args = (reason,)


class RestoredBackupError(RejectedError):
    """This node is about to sign on top of an old state of its own dataset; newer blocks were published before."""

    def __init__(self, reason: str) -> None:
        super().__init__("HEAD-9 no-fork-of-oneself")
        self.args = (reason,)


class ForeignKeyError(RejectedError):
    """Somebody shows that an own dataset was handed to a key which is not in this home; nothing was changed."""

    def __init__(self, dataset: str, index: int, explanation: str) -> None:
        super().__init__("KEY-20 own-keys-are-here")
        reason = (
            f"'{dataset}': its key log there goes on with event {index}, which {explanation}; that key is not in this "
            "home. If you changed the key: put the newer keys back ('odf-node restore --keys'), or, if they are lost, "
            "repeat this with --lost-keys, then 'odf-node key recover'. If you did not, the key is stolen: "
            "'odf-node key recover' now"
        )
        self.args = (reason,)
