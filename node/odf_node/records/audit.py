"""The node's own record of what was done with it; only ever appended to."""

from dataclasses import dataclass
from enum import StrEnum

from odf_protocol.timestamp import Timestamp


class Outcome(StrEnum):
    """How it ended."""

    DONE = "done"
    UP_TO_DATE = "up-to-date"
    REJECTED = "refused"
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
