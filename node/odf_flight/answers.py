"""What is kept for whoever asked: answers, by a ticket that nobody else can know, and prepared statements.

Source: clauses FLIGHT-7, FLIGHT-8 and FLIGHT-11 in ``spec/plug-ins/flight-sql.md``.
"""

import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from odf_engines.host.tables import read_rows
from odf_node.engine_workspace import EngineWorkspace
from odf_node.records.errors import mapped_os_errors

KEPT_S: Final = 60.0  # guess: clients fetch at once
MAX_OF_ONE: Final = 8  # guess
MAX_BYTES: Final = 8 << 30  # guess: on the disk, of all
_TICKET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class KeptResult:
    """An answer on the disk.

    Attributes:
        owner: Whose it is, as limits name callers.
        path: Parquet that an engine wrote, and that was checked.
        schema: Its columns, without notes of whoever wrote it.
        rows: How many.
        size_bytes: Of the file.
        until_s: When it goes, by the clock of ``Answers``.
    """

    owner: str
    path: Path
    schema: pa.Schema
    rows: int
    size_bytes: int
    until_s: float


class Answers:
    """Keeps answers for a minute; used by many threads."""

    def __init__(self, workspace: EngineWorkspace, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._workspace = workspace
        self._clock_s = clock_s
        self._kept: dict[bytes, KeptResult] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def put(self, owner: str, found: Path) -> tuple[bytes, KeptResult]:
        """Take a file and keep it; the oldest of whoever has most goes where there is no room.

        Args:
            owner: For whom.
            found: Moved away from there.

        Returns:
            The ticket, and what it is for.
        """
        ticket = secrets.token_bytes(_TICKET_BYTES)
        with pa.OSFile(str(found)) as file:
            schema, batches = read_rows(file)
            rows = sum(batch.num_rows for batch in batches)
        with mapped_os_errors(found):
            path = found.replace(self._workspace.path / f"answer-{secrets.token_hex(8)}.arrows")
            size_bytes = path.stat().st_size
        kept = KeptResult(owner, path, schema, rows, size_bytes, self._clock_s() + KEPT_S)
        with self._lock:
            self._kept[ticket] = kept
            self._make_room(owner)
            if self._is_closed:
                self._forget(ticket)
        return ticket, kept

    def find(self, ticket: bytes, owner: str) -> KeptResult | None:
        """Return the answer for a ticket; None: it is another's, or gone, or never was."""
        self.sweep()
        with self._lock:
            kept = self._kept.get(ticket)
        return kept if kept is not None and kept.owner == owner else None

    def sweep(self) -> None:
        """Forget what was kept for long enough; whoever reads a file still has it."""
        with self._lock:
            now_s = self._clock_s()
            for ticket in [ticket for ticket, kept in self._kept.items() if kept.until_s <= now_s]:
                self._forget(ticket)

    def close(self) -> None:
        """Forget all."""
        with self._lock:
            self._is_closed = True
            for ticket in tuple(self._kept):
                self._forget(ticket)
        self._workspace.close()

    def _make_room(self, owner: str) -> None:
        own = [ticket for ticket, kept in self._kept.items() if kept.owner == owner]
        for ticket in own[:-MAX_OF_ONE]:
            self._forget(ticket)
        while sum(kept.size_bytes for kept in self._kept.values()) > MAX_BYTES and len(self._kept) > 1:
            sizes: Counter[str] = Counter()
            for kept in self._kept.values():
                sizes[kept.owner] += kept.size_bytes
            largest = sizes.most_common(1)[0][0]
            self._forget(next(ticket for ticket, kept in self._kept.items() if kept.owner == largest))

    def _forget(self, ticket: bytes) -> None:
        self._kept.pop(ticket).path.unlink(missing_ok=True)


MAX_STATEMENTS_OF_ONE: Final = 64  # guess
MAX_STATEMENTS: Final = 1_000  # guess
MAX_BYTES_OF_ONE: Final = 4 << 20  # guess: one text has 800 kB at most (GATE-15), and mostly one
MAX_STATEMENT_BYTES: Final = 64 << 20  # guess: in memory, of all
_HANDLE_BYTES: Final = 32


class PreparedStatements:
    """Keeps texts by handles that nobody else can know; who was not asked for longest goes first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[str, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, owner: str, sql: str) -> bytes:
        """Keep a text for somebody; returns its handle."""
        handle = secrets.token_bytes(_HANDLE_BYTES)
        with self._lock:
            self._kept[handle] = (owner, sql.encode("utf-8", "surrogatepass"))
            own = [each for each, (other, _) in self._kept.items() if other == owner]
            while len(own) > MAX_STATEMENTS_OF_ONE or self._count_bytes(own) > MAX_BYTES_OF_ONE:
                del self._kept[own.pop(0)]
            while len(self._kept) > MAX_STATEMENTS or self._count_bytes(self._kept) > MAX_STATEMENT_BYTES:
                self._kept.popitem(last=False)
        return handle

    def _count_bytes(self, handles: Iterable[bytes]) -> int:
        return sum(len(self._kept[each][1]) for each in handles)

    def find(self, handle: bytes, owner: str) -> str | None:
        """Return a text; None: it is another's, or gone, or never was."""
        with self._lock:
            kept = self._kept.get(handle)
            if kept is None or kept[0] != owner:
                return None
            self._kept.move_to_end(handle)
            return kept[1].decode("utf-8", "surrogatepass")

    def drop(self, handle: bytes, owner: str) -> None:
        """Forget a text, if it is theirs."""
        with self._lock:
            if self._kept.get(handle, ("", b""))[0] == owner:
                del self._kept[handle]
