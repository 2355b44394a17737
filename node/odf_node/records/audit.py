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


@dataclass(frozen=True, slots=True)
class AuditSeal:
    """What binds a row of the audit log to all rows before it.

    Attributes:
        before: The hash of the chain before the row.
        chain: The hash of the chain with it.
        signature: The word of the node's key for ``chain``; None: it stands on a later row.
    """

    before: bytes
    chain: bytes
    signature: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """A row of the audit log as it is kept: a line, or what a plug-in recorded of a read or write.

    Attributes:
        id: Its number; numbers have no gaps.
        entry: The line. Of a record, ``command`` is ``run``, ``code``, ``read``, ``write`` or ``lost``, ``subject`` the
            identity of the dataset or run, ``detail`` the hash of the head that was read or written.
        run: Of a record, the run that it belongs to.
        record: Of a record, everything else, as JSON; None: it is a line.
        seal: None: the row has none, but may stand before one that has.
    """

    id: int
    entry: AuditEntry
    run: str | None = None
    record: str | None = None
    seal: AuditSeal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditArchive:
    """Rows of the audit log that were copied into a file, from which reads were then removed.

    Attributes:
        first: Number of its first row.
        last: Of its last one, which was sealed.
        chain: The hash of the chain with that row.
        signature: Of that row.
    """

    first: int
    last: int
    chain: bytes
    signature: bytes
