"""Records of reads and writes: heard, gathered, and written into the audit log of the home.

A read is noted in memory and written by a thread soon after; a write is recorded in the transaction of its commit.

Source: clauses AUDIT-1 to AUDIT-8 in ``spec/plug-ins/audit.md``.
"""

import atexit
import json
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final
from uuid import uuid4

from odf_audit.archives import archive_old_reads
from odf_audit.programs import SparkApplication, describe_program, find_changes, find_script
from odf_audit.sealing import seal_rows
from odf_audit.texts import bounded
from odf_node.accesses import AccessPlaces, AccessPlugIn
from odf_node.ports.access import AccessLog, Requester, Seal, WriteNote, get_requester
from odf_node.ports.keys import PrivateKey
from odf_node.records.audit import AuditEntry, AuditRow, Outcome
from odf_node.records.commits import Commit
from odf_node.records.datasets import DatasetRecord
from odf_node.token_buckets import TokenBuckets
from odf_protocol.block import decode_block
from odf_protocol.did import DidKey
from odf_protocol.errors import OdfError
from odf_protocol.events import ExecuteTransform
from odf_protocol.head import Head
from odf_protocol.timestamp import Timestamp

FLUSH_EACH_S: Final = 1.0
"""How long a read may be known in memory alone.  # guess: what a killed process may lose"""
MAX_WAITING: Final = 4_096  # guess: different reads in a second; a few megabytes
MAX_INPUTS: Final = 1_000  # guess: versions that one program reads

DETAILS_PER_S: Final = 4.0
"""Different reads of one caller over a network that are told apart.  # guess: a month of them fills the archives"""
_DETAILS_WINDOW_S: Final = 60.0  # guess: a program that reads all it needs when it starts
MORE_EACH_S: Final = 60.0
"""How long what a caller reads beyond that is counted, before it is written.  # guess"""
_MORE: Final = "more"

_ARCHIVE_EACH: Final = 64
"""Rows after which it is looked whether there are too many: counting them takes milliseconds."""
_CODE_WAIT_S: Final = 0.5  # guess: git answers in a tenth of it; the end of a program waits no longer

_LOCAL_DOORS: Final = frozenset({"python", "cli", "spark"})
"""Callers of these are this process: its writes follow from what it read before."""


@dataclass(frozen=True, slots=True)
class _Occasion:
    """What equal reads have in common.

    Attributes:
        caller: Who reads.
        thread: The name of the thread.
        subject: The dataset's identity.
        head: The hash of its head.
        as_of: Only what was known by then is read.
        what: As of ``AccessLog.note_read``.
        newest: The number of the newest block then, where an earlier version is read; else None.
    """

    caller: Requester
    thread: str
    subject: str
    head: str
    as_of: str | None
    what: str
    newest: int | None


@dataclass(slots=True)
class _Read:
    """Equal reads since the last flush, counted."""

    at: Timestamp
    occasion: _Occasion
    record: DatasetRecord
    count: int = 1


@dataclass(slots=True)
class _Process:
    """This process, as all records of it name it; another one after a fork."""

    run: str = field(default_factory=lambda: uuid4().hex)
    pid: int = field(default_factory=os.getpid)
    program: dict[str, Any] = field(default_factory=describe_program)
    has_changes: bool | None = None
    is_looked_at: bool = False
    looking: threading.Event = field(default_factory=threading.Event)


_process_lock: Final = threading.Lock()
_known: Final[list[_Process]] = []
_spark: Final = SparkApplication()


def get_process() -> _Process:
    """Return who this process is, described when it is first asked for."""
    with _process_lock:
        if not _known or _known[0].pid != os.getpid():
            _known[:] = [_Process()]
        return _known[0]


class Recorder(AccessLog):
    """See ``AccessLog``; of one home."""

    def __init__(self, places: AccessPlaces) -> None:
        self._places = places
        self._key: PrivateKey | None = None
        self._begin()
        atexit.register(self.close)

    def _begin(self) -> None:
        self._process = get_process()
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._reads: dict[_Occasion, _Read] = {}
        self._more: dict[_Occasion, _Read] = {}
        self._more_since_s = 0.0
        self._details = TokenBuckets(DETAILS_PER_S, _DETAILS_WINDOW_S)
        self._inputs: dict[tuple[str, str, str | None], dict[str, Any]] = {}
        self._lost = 0
        self._thread: threading.Thread | None = None
        self._is_archiving_due = False
        self._is_closed = False
        self._is_run_written = self._is_code_written = self._has_written = False

    def note_read(
        self,
        record: DatasetRecord,
        *,
        as_of: Timestamp | None = None,
        version: int | None = None,
        what: str = "rows",
    ) -> None:
        """See ``AccessLog``."""
        if self._process.pid != os.getpid():
            self._begin()  # a fork: what the parent heard is the parent's to write
        caller, thread = get_requester(), threading.current_thread().name
        if not caller.name:
            caller = self._with_application(caller)
        newest, newest_number = record, None
        if version is not None and version < record.head.sequence_number:
            newest_number = record.head.sequence_number
            stored = self._places.store.find_block_by_number(record.id, version)
            record = record if stored is None else replace(record, head=Head(version, stored.hash))
        subject, head, moment = str(record.id), str(record.head.hash), None if as_of is None else str(as_of)
        key = _Occasion(caller, thread, subject, head, moment, what, newest_number)
        with self._changed:
            if (known := self._reads.get(key)) is not None:
                known.count += 1
                return
            now = self._places.clock.now()
            if caller.name and self._has_too_many(caller.name):
                self._note_more(newest, caller, now)
                return
            if len(self._reads) >= MAX_WAITING:
                self._lost += 1
                return
            number = record.head.sequence_number
            self._reads[key] = _Read(now, key, record)
            if caller.door in _LOCAL_DOORS and len(self._inputs) <= MAX_INPUTS:
                about = {"id": subject, "name": record.name, "head": head, "number": number, "asOf": moment}
                self._inputs.setdefault((subject, head, moment), about | {"thread": bounded(thread)})
            self._start()

    def _has_too_many(self, name: str) -> bool:
        """Say whether a caller has read more different things lately than are told apart; called with the lock held."""
        now_s = time.monotonic()
        if self._details.find_wait_s(name, now_s=now_s) > 0:
            return True
        self._details.take(name, 1, now_s=now_s)
        return False

    def _note_more(self, record: DatasetRecord, caller: Requester, now: Timestamp) -> None:
        """Count a read by its dataset alone: what is told of it else costs the caller nothing to change."""
        told = Requester(door=caller.door, name=caller.name)
        key = _Occasion(told, "", str(record.id), str(record.head.hash), None, _MORE, None)
        if (known := self._more.get(key)) is not None:
            known.count += 1
        elif len(self._more) >= MAX_WAITING:
            self._lost += 1
        else:
            self._more_since_s = self._more_since_s if self._more else time.monotonic()
            self._more[key] = _Read(now, key, record)
        self._start()

    def note_write(self, commit: Commit) -> WriteNote | None:
        """See ``AccessLog``."""
        if self._process.pid != os.getpid():
            self._begin()
        caller, thread, now = get_requester(), bounded(threading.current_thread().name), self._places.clock.now()
        seed, run = self._get_key().seed, self._process.run
        described = self._describe_caller(caller, thread) | {
            "before": None if commit.expected_head is None else str(commit.expected_head),
            "first": commit.blocks[0].sequence_number,
            "number": commit.new_head.sequence_number,
            "inputs": self._list_inputs(commit, caller),
        }
        if commit.acceptance is not None:
            described["from"] = bounded(commit.acceptance.source_url or "")
        begins = not self._is_run_written

        def note(record: DatasetRecord) -> Seal:
            described["name"] = record.name

            def seal(chain: bytes, earlier: Sequence[AuditRow], number: int) -> Sequence[AuditRow]:
                rows = [self._make_run(number, now)] if begins else []
                entry = _entry(now, _actor_of(caller), "write", str(commit.dataset_id), str(commit.new_head.hash))
                rows.append(AuditRow(id=number + len(rows), entry=entry, run=run, record=_to_json(described)))
                return seal_rows(seed, chain, earlier, rows)

            return seal

        with self._changed:
            self._has_written = True
            self._start()
        return note

    def flush(self) -> None:
        """See ``AccessLog``; what cannot be written is counted as lost."""
        with self._writing:
            with self._changed:
                reads, lost = [*self._reads.values()], self._lost
                self._reads, self._lost = {}, 0
                if self._is_closed or time.monotonic() - self._more_since_s >= MORE_EACH_S:
                    reads += self._more.values()
                    self._more = {}
            is_new = not self._is_run_written
            has_code = self._process.is_looked_at and not self._is_code_written
            is_needed = self._has_written and (has_code or (is_new and not self._is_closed))
            if not reads and not lost and not is_needed:
                return
            try:
                seed = self._get_key().seed

                def seal(chain: bytes, earlier: Sequence[AuditRow], number: int) -> Sequence[AuditRow]:
                    rows = (
                        [self._make_run(number, reads[0].at if reads else self._places.clock.now())] if is_new else []
                    )
                    rows += [self._make_read(number + len(rows) + place, read) for place, read in enumerate(reads)]
                    if lost:
                        rows.append(self._make_note(number + len(rows), "lost", {"reads": lost}))
                    self._is_archiving_due = number // _ARCHIVE_EACH != (number + len(rows)) // _ARCHIVE_EACH
                    if has_code:
                        has_changes = {"hasChanges": self._process.has_changes}
                        rows.append(self._make_note(number + len(rows), "code", has_changes))
                    return seal_rows(seed, chain, earlier, rows)

                self._places.store.append_sealed(seal)
                self._is_run_written = True
                self._is_code_written = self._is_code_written or has_code
                if self._is_archiving_due:
                    archive_old_reads(self._places)
            except OdfError:
                # A home that is not writable, full, or written by others all the time: no read may fail for that.
                with self._changed:
                    self._lost += lost + sum(read.count for read in reads)

    def close(self) -> None:
        """See ``AccessLog``."""
        if self._process.pid != os.getpid():
            return
        atexit.unregister(self.close)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        give_up_s = time.monotonic() + _CODE_WAIT_S
        while self._process.looking.is_set() and not self._process.is_looked_at and time.monotonic() < give_up_s:
            time.sleep(_CODE_WAIT_S / 50)
        with suppress(OSError):
            self.flush()

    def _start(self) -> None:
        """Begin to write what was heard, now and then; called with the lock held."""
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._run, name="writes the audit log", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        self._look_at_code()
        while True:
            with self._changed:
                self._changed.wait(FLUSH_EACH_S)
                if self._is_closed:
                    return
            with suppress(OSError):
                self.flush()

    def _look_at_code(self) -> None:
        """Ask git once in a process, which may take longer than anybody waits."""
        process = self._process
        with _process_lock:
            if process.looking.is_set() or process.is_looked_at or "gitCommit" not in process.program:
                return
            process.looking.set()
        process.has_changes = find_changes(find_script())
        process.is_looked_at = True

    def _get_key(self) -> PrivateKey:
        if self._key is None:
            self._key = self._places.keys.get_or_create_node_key()
        return self._key

    def _with_application(self, caller: Requester) -> Requester:
        if caller.application or not (found := _spark.find()):
            return caller
        return Requester(door=caller.door, work=caller.work, agent=caller.agent, application=found)

    def _list_inputs(self, commit: Commit, caller: Requester) -> list[dict[str, Any]]:
        """List what a write follows from: of a step what its block names, of a program what it read before."""
        if commit.acceptance is not None:
            return []
        if (step := _find_step(commit)) is not None:
            named = ((str(each.dataset_id), each.new_block_hash or each.prev_block_hash) for each in step.query_inputs)
            return [{"id": subject, "head": str(head)} for subject, head in named if head is not None]
        if caller.door not in _LOCAL_DOORS:
            return []
        with self._changed:
            return [*self._inputs.values()][: MAX_INPUTS + 1]

    def _describe_caller(self, caller: Requester, thread: str) -> dict[str, Any]:
        caller = caller if caller.name else self._with_application(caller)
        told = {name: bounded(text) for name, text in asdict(caller).items() if text and name != "name"}
        return told | {"caller": bounded(caller.name), "thread": bounded(thread)}

    def _make_run(self, number: int, at: Timestamp) -> AuditRow:
        run, node = self._process.run, str(DidKey(self._get_key().public_key()))
        program = self._process.program | {"node": node}
        return AuditRow(id=number, entry=_entry(at, "process", "run", run), run=run, record=_to_json(program))

    def _make_note(self, number: int, command: str, values: dict[str, Any]) -> AuditRow:
        run, at = self._process.run, self._places.clock.now()
        return AuditRow(id=number, entry=_entry(at, "process", command, run), run=run, record=_to_json(values))

    def _make_read(self, number: int, read: _Read) -> AuditRow:
        told = read.occasion
        described = self._describe_caller(told.caller, told.thread) | {
            "name": read.record.name,
            "number": read.record.head.sequence_number,
            "what": told.what,
            "count": read.count,
        }
        if told.as_of is not None:
            described["asOf"] = told.as_of
        if told.newest is not None:
            described["newest"] = told.newest
        entry = _entry(read.at, _actor_of(told.caller), "read", told.subject, told.head)
        return AuditRow(id=number, entry=entry, run=self._process.run, record=_to_json(described))


def _entry(at: Timestamp, actor: str, command: str, subject: str, detail: str = "") -> AuditEntry:
    return AuditEntry(at=at, actor=actor, command=command, subject=subject, outcome=Outcome.DONE, detail=detail)


def _find_step(commit: Commit) -> ExecuteTransform | None:
    with suppress(OdfError):  # the store judges no block, and neither does this
        event = decode_block(commit.blocks[-1].raw, expected_hash=None).event
        return event if isinstance(event, ExecuteTransform) else None
    return None


def _actor_of(caller: Requester) -> str:
    return bounded(f"{caller.door} {caller.name}".rstrip())


def _to_json(values: dict[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":"))


PLUG_IN: Final = AccessPlugIn(Recorder)
