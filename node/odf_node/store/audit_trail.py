"""Lines of the audit log, with the time of the run that writes them."""

from dataclasses import dataclass

from odf_node.ports.clock import Clock
from odf_node.records.audit import AuditEntry, Outcome
from odf_node.store.access import AuditTables
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class AuditTrail:
    """Adds lines about what changed something; a rejection changes nothing (ACCEPT-6)."""

    store: AuditTables
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
        self.store.append_audit(entry)
