"""The node's own record of what was done with it; only ever appended to."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from odf_node.ports.clock import Clock
from odf_protocol.timestamp import Timestamp


class Outcome(StrEnum):
    """How it ended."""

    DONE = "done"
    UP_TO_DATE = "up-to-date"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One line: at ``at``, ``command`` was run on ``subject`` (dataset, token, peer) and ended so.

    ``actor`` is who asked: ``cli``, ``subscription``, or a token id or peer for what came over the network. ``detail``
    is one line.
    """

    at: Timestamp
    actor: str
    command: str
    subject: str
    outcome: Outcome
    detail: str = ""


class AuditLog(Protocol):
    """What was done with this node, only ever appended to."""

    def append_audit(self, entry: AuditEntry) -> None:
        """Add a line to the audit log; lines are never changed or removed."""
        ...

    def iter_audit(self, *, limit: int) -> Iterator[AuditEntry]:
        """Yield the newest ``limit`` lines, newest first."""
        ...


@dataclass(frozen=True, slots=True)
class AuditTrail:
    """Adds lines about what changed something; a refusal changes nothing (ACCEPT-6)."""

    log: AuditLog
    clock: Clock

    def note(
        self, command: str, subject: str, detail: str = "", *, actor: str = "cli", at: Timestamp | None = None
    ) -> None:
        """Add a line.

        Args:
            command: What was done.
            subject: To what.
            detail: The outcome, in one line.
            actor: Who asked for it.
            at: When; None: now.
        """
        entry = AuditEntry(
            at=at or self.clock.now(),
            actor=actor,
            command=command,
            subject=subject,
            outcome=Outcome.DONE,
            detail=detail,
        )
        self.log.append_audit(entry)
