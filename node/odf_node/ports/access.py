"""Who hears which versions of datasets are read and written, and who asked.

Use cases that read rows say so with ``note_read``. Whatever grows a chain is heard of inside the transaction of its
commit, so that what is kept about a write is kept with it or not at all. Without a plug-in nobody hears anything.

Source: clauses PLUG-20 and PLUG-21 in ``spec/plug-ins.md``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from odf_node.records.audit import AuditRow
from odf_node.records.commits import Commit
from odf_node.records.datasets import DatasetRecord
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """Who reads or writes through this process.

    Attributes:
        door: Where they came in: ``python``, ``cli``, ``spark``, ``http``, ``flight`` or ``daemon``.
        name: ``token:ID`` or ``address:SHARE`` of somebody who asks over a network; empty: the user of this process.
        work: The command or route that they asked for.
        agent: What their program calls itself. Chosen by them: untrusted, of any length.
        application: Spark's id of the application, where the door knows it.
    """

    door: str
    name: str = ""
    work: str = ""
    agent: str = ""
    application: str = ""


_process: Requester = Requester(door="python")
_caller: Final[ContextVar[Requester | None]] = ContextVar("odf_node_caller", default=None)


def get_requester() -> Requester:
    """Return who asks for the work that runs in this context, by default the user of this process."""
    return _caller.get() or _process


def set_process_requester(caller: Requester) -> None:
    """Say who asks for all work of this process for which nobody else is named."""
    global _process
    _process = caller


@contextmanager
def calling(caller: Requester) -> Iterator[None]:
    """Name who asks for the work of a block; threads that are given the context know it, too."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


Seal = Callable[[bytes, Sequence[AuditRow], int], Sequence[AuditRow]]
"""Makes rows of the audit log inside a transaction.

Given are the hash of the chain so far (32 zero bytes: none), the rows behind it that nobody sealed, and the number of
the next row. The last of the rows that it gives has the hash of the chain with all of them, and a signature.
"""

WriteNote = Callable[[DatasetRecord], Seal]
"""Makes the seal of a write, given the dataset after it."""


class AccessLog:
    """Hears of reads and writes in one home; any method may be called from any thread. This one hears nothing."""

    def note_read(
        self,
        record: DatasetRecord,
        *,
        as_of: Timestamp | None = None,
        version: int | None = None,
        what: str = "rows",
    ) -> None:
        """Hear that a version of a dataset is read: its head as ``record`` has it. Never raises, never waits.

        Args:
            record: The dataset.
            as_of: Only rows that were known by then are read.
            version: Only rows of blocks up to this one are read; None: up to the head.
            what: ``rows``, ``quarantine``, ``blocks``, ``file`` or ``table`` (given to a program of others
                as a table, of which it does not say when it reads it).
        """

    def note_write(self, commit: Commit) -> WriteNote | None:  # noqa: ARG002 - the contract
        """Hear of a write that is about to begin; what is given is used in its transaction, and kept with it or not."""
        return None

    def flush(self) -> None:
        """Write down what was heard so far."""

    def close(self) -> None:
        """Write down what was heard, and hear nothing more."""


UNRECORDED: Final = AccessLog()
