"""Errors of the node's services: what the user asked cannot be done, or what a peer offered is refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from odf_protocol.errors import NotFoundError, OdfError, RejectedError, UnavailableError


class UsageError(OdfError):
    """The request makes no sense here; the message says what would."""


class UnknownDatasetError(NotFoundError):
    """No dataset of this node is meant; the nearest name is offered."""


class NodeBusyError(UnavailableError):
    """Others are at work on this node, and what was asked has to be done alone."""


class RefusedError(RejectedError):
    """What a peer offered was checked and refused; nothing of this node's records changed.

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
