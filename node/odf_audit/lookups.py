"""Questions to the audit log: who read and wrote which version, what a version follows from, what follows from it.

Source: clauses AUDIT-12 to AUDIT-15 in ``spec/plug-ins/audit.md``.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from odf_audit.archives import iter_archive, list_files
from odf_audit.record_values import read_record
from odf_node.datasets.naming import get_dataset
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.home import Home
from odf_node.records.audit import AuditRow
from odf_node.records.datasets import DatasetRecord
from odf_protocol.block import decode_block
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

MAX_RECORDS: Final = 100_000
"""Records that one question looks at, the newest ones.  # guess: a hundred megabytes of memory"""
_MIN_HASH_CHARACTERS: Final = 12  # the first five are alike


@dataclass(frozen=True, slots=True)
class FoundVersion:
    """A version of a dataset: it with the rows up to a block.

    Attributes:
        record: The dataset.
        number: Of the block.
        head: The block's hash, text.
        at: When the block was written.
    """

    record: DatasetRecord
    number: int
    head: str
    at: Timestamp


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """A read or a write.

    Attributes:
        row: As it is kept.
        told: What else it says.
    """

    row: AuditRow
    told: dict[str, Any] = field(hash=False)

    @property
    def number(self) -> int:
        """Of the block that was the head."""
        return int(self.told.get("number", -1))

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """Of a write, the versions that it follows from."""
        return list(self.told.get("inputs", ()))

    def as_input(self) -> dict[str, Any]:
        """Give the version of a read as the tag of a write has it."""
        told, entry = self.told, self.row.entry
        about = {"id": entry.subject, "name": told.get("name"), "head": entry.detail, "number": self.number}
        return about | {"asOf": told.get("asOf"), "thread": told.get("thread")}


@dataclass(frozen=True)
class Program:
    """The process behind a record.

    Attributes:
        run: Its identity.
        told: What it said of itself; empty: nothing is known of it.
        has_changes: Whether its repository had changes that no commit has; None: not known.
    """

    run: str
    told: dict[str, Any]
    has_changes: bool | None

    @cached_property
    def person(self) -> str:
        """User and machine."""
        return f"{self.told.get('user', '?')}@{self.told.get('host', '?')}"

    @cached_property
    def code(self) -> str:
        """Which code it is, shortly."""
        if commit := self.told.get("gitCommit"):
            return f"{commit[:10]}{'+changes' if self.has_changes else '' if self.has_changes is False else '?'}"
        if script := self.told.get("scriptHash"):
            return f"sha3:{script[:10]}"
        return f"odf-node {self.told.get('version', '?')}"

    @cached_property
    def name(self) -> str:
        """The program, shortly: its file, this program, or how Python was started."""
        if script := self.told.get("script"):
            return _file_name(script)
        words = [*self.told.get("words", ())]
        if any(_file_name(word) in {"odf-node", "odf_node"} for word in words):
            return "odf-node"
        return "-c" if "-c" in words else _file_name(words[0]) if words else ""


class AuditLookups:
    """Answers questions over one home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._programs: dict[str, Program] = {}

    def find_version(self, name: str, version: str | None) -> FoundVersion:
        """Find a version of a dataset.

        Args:
            name: The dataset's name or identity.
            version: The number or the beginning of the hash of a block; None: the newest version.

        Raises:
            UnknownDatasetError: There is no such dataset or block.
            UsageError: That is neither a number nor a hash.
        """
        store, record = self._home.store, get_dataset(self._home.store, name)
        if version is None:
            number = record.head.sequence_number
        elif version.isdecimal() and len(version) < _MIN_HASH_CHARACTERS:
            number = int(version)
        else:
            number = self._find_number(record, version)
        stored = store.find_block_by_number(record.id, number)
        if stored is None:
            raise UnknownDatasetError(f"'{record.name}' has blocks 0 to {record.head.sequence_number}, not {number}")
        block = decode_block(stored.raw, expected_hash=stored.hash)
        return FoundVersion(record, number, str(stored.hash), block.system_time)

    def _find_number(self, record: DatasetRecord, text: str) -> int:
        if len(text) < _MIN_HASH_CHARACTERS:
            raise UsageError(
                f"'{text}' is no version: expected a block's number, or the first {_MIN_HASH_CHARACTERS} or more "
                "characters of its hash"
            )
        blocks = self._home.store.iter_blocks(record.id)
        found = [stored.sequence_number for stored in blocks if str(stored.hash).startswith(text)]
        if len(found) != 1:
            lack = "no version" if not found else "several versions"
            raise UnknownDatasetError(f"'{record.name}' has {lack} '{text}'; 'odf-node log {record.name}' lists them")
        return found[0]

    def list_reads(
        self, record: DatasetRecord, version: FoundVersion | None, *, with_archives: bool = False
    ) -> list[AuditRecord]:
        """List who read a dataset, or exactly one version of it; oldest first."""
        rows = self._home.store.list_records_of_subject(str(record.id), "read", MAX_RECORDS)
        archived = self._iter_archived(lambda row: row.entry.subject == str(record.id)) if with_archives else ()
        found = [*archived, *rows]
        return [_read(row) for row in found if version is None or row.entry.detail == version.head]

    def list_writes(self, record: DatasetRecord, version: FoundVersion | None) -> list[AuditRecord]:
        """List who wrote a dataset, or the blocks of one version; oldest first."""
        rows = self._home.store.list_records_of_subject(str(record.id), "write", MAX_RECORDS)
        found = map(_read, rows)
        if version is None:
            return self._with_inputs(found)
        return self._with_inputs(each for each in found if each.told.get("first", -1) <= version.number <= each.number)

    def _with_inputs(self, found: Iterable[AuditRecord]) -> list[AuditRecord]:
        """Add to writes of an application of Spark what any of its processes read before."""
        return [self._complete(each) if each.row.entry.command == "write" else each for each in found]

    def _complete(self, write: AuditRecord) -> AuditRecord:
        if not (application := write.told.get("application")):
            return write
        reads = self._reads_of_applications.get(str(application), ())
        earlier = [each.as_input() for each in reads if each.row.entry.at <= write.row.entry.at]
        versions = {(each.get("id"), each.get("head"), each.get("asOf")): each for each in (*earlier, *write.inputs)}
        return replace(write, told=write.told | {"inputs": [*versions.values()]}) if earlier else write

    @cached_property
    def _reads_of_applications(self) -> dict[str, list[AuditRecord]]:
        found: dict[str, list[AuditRecord]] = {}
        for each in map(_read, self._home.store.list_records("read", MAX_RECORDS)):
            if application := each.told.get("application"):
                found.setdefault(str(application), []).append(each)
        return found

    def list_impact(self, version: FoundVersion) -> list[tuple[AuditRecord, int]]:
        """List what follows from a version, or from a later one that still has its rows: reads, and writes.

        Returns:
            Records by their numbers, each with how many writes lie between: 0 for who read the version itself.
        """
        writes = self._with_inputs(map(_read, self._home.store.list_records("write", MAX_RECORDS)))
        found: dict[int, tuple[AuditRecord, int]] = {}
        pending, seen = [(version, 0)], {str(version.record.id): version.number}
        while pending:
            current, depth = pending.pop(0)
            subject = str(current.record.id)
            for access in self.list_reads(current.record, None):
                if access.number >= current.number and not _is_before(access.told.get("asOf"), current.at):
                    found.setdefault(access.row.id, (access, depth))
            for access in writes:
                if access.row.entry.subject == subject or not any(
                    self._follows(each, subject, current) for each in access.inputs
                ):
                    continue
                found.setdefault(access.row.id, (access, depth + 1))
                # The earliest version that follows is the one that all later ones contain.
                if seen.get(access.row.entry.subject, access.number + 1) > access.number:
                    seen[access.row.entry.subject] = access.number
                    written = self._find_written(access)
                    pending += [] if written is None else [(written, depth + 1)]
        return sorted(found.values(), key=lambda each: (each[0].row.entry.at, each[0].row.id))

    def _follows(self, given: dict[str, Any], subject: str, version: FoundVersion) -> bool:
        if given.get("id") != subject or _is_before(given.get("asOf"), version.at):
            return False
        number = given.get("number")
        if number is None:
            number = self._number_of(version.record, str(given.get("head", "")))
        return number is not None and number >= version.number

    def _number_of(self, record: DatasetRecord, head: str) -> int | None:
        try:
            stored = self._home.store.find_block(record.id, Multihash.parse(head))
        except (MalformedError, UnsupportedError):
            return None
        return None if stored is None else stored.sequence_number

    def _find_written(self, access: AuditRecord) -> FoundVersion | None:
        with suppress(MalformedError, UnsupportedError):
            record = self._home.store.find_dataset(DatasetId.parse(access.row.entry.subject))
            if record is not None:
                return FoundVersion(record, access.number, access.row.entry.detail, access.row.entry.at)
        return None

    def get_program(self, run: str | None) -> Program:
        """Give what is known of the process behind a record."""
        run = run or ""
        if run not in self._programs:
            told: dict[str, Any] = {}
            has_changes: bool | None = None
            for row in self._home.store.list_records_of_run(run, MAX_RECORDS):
                if row.entry.command == "run":
                    told = told or read_record(row.record)
                elif row.entry.command == "code":
                    has_changes = read_record(row.record).get("hasChanges")
            self._programs[run] = Program(run, told, has_changes)
        return self._programs[run]

    def find_run(self, beginning: str) -> str:
        """Find a run by the beginning of its identity.

        Raises:
            UnknownDatasetError: None, or more than one, begins so.
        """
        runs = sorted({row.entry.subject for row in self._home.store.list_records("run", MAX_RECORDS)})
        found = [each for each in runs if each.startswith(beginning)]
        if not found:
            raise UnknownDatasetError(
                f"no recorded run begins with '{beginning}'; 'odf-node audit who-wrote DATASET' shows those that wrote"
            )
        if len(found) > 1:
            raise UnknownDatasetError(
                f"{len(found)} recorded runs begin with '{beginning}'; give more of its characters"
            )
        return found[0]

    def list_of_run(self, run: str, *, with_archives: bool = False) -> list[AuditRecord]:
        """List what a run read and wrote, oldest first."""
        rows = self._home.store.list_records_of_run(run, MAX_RECORDS)
        archived = self._iter_archived(lambda row: row.run == run) if with_archives else ()
        found = [*archived, *(row for row in rows if row.entry.command in {"read", "write"})]
        return self._with_inputs(map(_read, found))

    def list_of_command(self, command: str) -> Iterator[AuditRecord]:
        """Yield all reads (``read``) or all writes (``write``), oldest first."""
        return map(_read, self._home.store.list_records(command, MAX_RECORDS))

    def _iter_archived(self, is_wanted: Callable[[AuditRow], bool]) -> Iterator[AuditRow]:
        """Yield reads that were moved into files."""
        for path in list_files(self._home.folder.audit):
            yield from (row for row in iter_archive(path) if row.entry.command == "read" and is_wanted(row))


def _file_name(path: object) -> str:
    return str(path).rpartition("/")[2]


def _is_before(as_of: object, moment: Timestamp) -> bool:
    return isinstance(as_of, str) and Timestamp.parse(as_of) < moment.truncated_to_ms()


def _read(row: AuditRow) -> AuditRecord:
    return AuditRecord(row, read_record(row.record))
