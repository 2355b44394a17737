"""What a recorded run needs to be started again: its command, and each dataset as it was; or why it cannot be.

Source: clauses AUDIT-21 and AUDIT-22 in ``spec/plug-ins/audit.md``.
"""

import getpass
import platform
import socket
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from odf_audit.lookups import MAX_RECORDS, AuditLookups, AuditRecord, Program
from odf_audit.programs import find_repository, hash_script, read_commit
from odf_audit.sealing import hash_row, is_signed
from odf_node import __version__
from odf_node.datasets.chains import iter_slices
from odf_node.datasets.presence import Presence
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord
from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError
from odf_protocol.multihash import Multihash

_FOR_OTHERS: Final = frozenset({"http", "flight", "daemon"})
_NOT_CREATED: Final = -1


@dataclass(frozen=True, slots=True)
class CopiedDataset:
    """A dataset as a run found it.

    Attributes:
        record: As it is now.
        name: As the run knew it.
        number: Of the newest block that the run found.
        is_recorded: The run read or wrote it, so its rows are needed.
    """

    record: DatasetRecord
    name: str
    number: int
    is_recorded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunPlan:
    """A run that can be started again.

    Attributes:
        run: Its identity.
        words: The command line.
        folder: Where it is started.
        datasets: What the copy of the home has.
        writes: What the run wrote, oldest first.
        notices: What is not as it was, for who reads the result.
    """

    run: str
    words: tuple[str, ...]
    folder: Path
    datasets: tuple[CopiedDataset, ...]
    writes: tuple[AuditRecord, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RerunPlanner:
    """Plans over one home; changes nothing."""

    home: Home
    lookups: AuditLookups

    def plan(self, beginning: str, given: Sequence[str] = (), *, allows_changed_code: bool = False) -> RerunPlan:
        """Say how a run is started again.

        Args:
            beginning: Of the identity of the run.
            given: The command line; empty: the recorded one.
            allows_changed_code: Start the program as it is now, whatever it was.

        Raises:
            UnknownDatasetError: No such run, or a version that it had is not here any more.
            UsageError: It cannot be started again as it was; the message says what can be done.
            ObjectsAbsentError: Files of a version are not here by choice.
        """
        run = self.lookups.find_run(beginning)
        program = self.lookups.get_program(run)
        self._require_own_record(run)
        records = self.lookups.list_of_run(run, with_archives=True)
        self._require_one_program(program, records)
        words, folder = _find_command(program.told, given, run)
        notices = [*_list_notices(program), *_check_code(program.told, allows_changed_code=allows_changed_code)]
        if any(each.told.get("what") == "quarantine" for each in records):
            notices.append("it read rows in quarantine, which are no part of a version: the copy has none")
        return RerunPlan(
            run=run,
            words=words,
            folder=folder,
            datasets=self._add_others(run, [*self._find_datasets(records)], records),
            writes=tuple(each for each in records if each.row.entry.command == "write"),
            notices=tuple(notices),
        )

    def _require_own_record(self, run: str) -> None:
        """Start no command for which this node's key does not stand: of a restored log anybody may have written it."""
        key = self.home.keys.find_node_key()
        rows = self.home.store.list_records_of_run(run, MAX_RECORDS)
        row = next((each for each in rows if each.entry.command == "run"), None)
        is_ours = row is not None and row.seal is not None and row.seal.chain == hash_row(row.seal.before, row)
        if row is None or not is_ours or key is None or not is_signed(key.public_key(), row):
            raise UsageError(
                f"what run {run} was started with is not signed by this node's key, so it is not started from here;"
                " 'odf-node audit run' shows it"
            )

    def _require_one_program(self, program: Program, records: Sequence[AuditRecord]) -> None:
        told, run = program.told, program.run
        if any(each.told.get("door") in _FOR_OTHERS or each.told.get("caller") for each in records):
            raise UsageError(
                f"run {run} served others: what it read and wrote is what they asked for, which is not recorded; only"
                " programs and commands are started again"
            )
        if received := next((each for each in records if "from" in each.told), None):
            raise UsageError(
                f"run {run} brought '{received.told.get('name')}' from another node"
                f" ({received.told.get('from') or 'address not known'}): that is accepted, not made, and 'odf-node"
                " verify' proves it"
            )
        if _is_running(told):
            raise UsageError(f"run {run} is still going, as process {told.get('pid')}; wait until it has ended")
        applications = {str(each.told["application"]) for each in records if each.told.get("application")}
        others = {each.row.run for each in self._of_applications(applications) if each.row.run != run}
        if others:
            raise UsageError(
                f"run {run} is one of {len(others) + 1} processes of an application of Spark, whose reads and writes"
                " have no one order; 'odf-node audit run' shows the versions with which it can be started by hand"
            )

    def _of_applications(self, applications: set[str]) -> Iterable[AuditRecord]:
        if not applications:
            return
        for command in ("read", "write"):
            for each in self.lookups.list_of_command(command):
                if each.told.get("application") in applications:
                    yield each

    def _find_datasets(self, records: Sequence[AuditRecord]) -> Iterable[CopiedDataset]:
        by_subject: dict[str, list[AuditRecord]] = defaultdict(list)
        for each in records:
            by_subject[each.row.entry.subject].append(each)
        for subject, found in by_subject.items():
            record, name = self._get_record(subject, found[0].told.get("name")), str(found[0].told.get("name"))
            for each in found:
                self._require_version(record, each.number, each.row.entry.detail)
            number = _find_start(name, found)
            self._require_rows(record, max(each.number for each in found))
            if number == _NOT_CREATED:
                continue
            if number > record.head.sequence_number:
                raise _gone(name, number)
            yield self._checked(CopiedDataset(record, name, number, is_recorded=True))
        steps: dict[str, dict[str, Any]] = {str(given.get("id")): given for each in records for given in each.inputs}
        for subject, given in steps.items():
            if subject not in by_subject:
                record = self._get_record(subject, given.get("name"))
                number = self._require_version(record, given.get("number"), str(given.get("head")))
                name = str(given.get("name") or record.name)
                yield self._checked(CopiedDataset(record, name, number, is_recorded=True))

    def _add_others(
        self, run: str, found: Sequence[CopiedDataset], records: Sequence[AuditRecord]
    ) -> tuple[CopiedDataset, ...]:
        """Add what the run may have used without a record, as a write that changed nothing does: as it was then."""
        known = {each.record.id for each in found} | {each.row.entry.subject for each in records}
        names = {each.name for each in found}
        begin = min(row.id for row in self.home.store.list_records_of_run(run, MAX_RECORDS))
        later: dict[str, int] = {}
        for each in self.lookups.list_of_command("write"):
            if each.row.id > begin:
                first = each.told.get("first", 0)
                later[each.row.entry.subject] = min(first, later.get(each.row.entry.subject, first))
        others = [
            CopiedDataset(record, record.name, later.get(str(record.id), record.head.sequence_number + 1) - 1, False)
            for record in self.home.store.list_datasets()
            if record.id not in known and str(record.id) not in known and record.name not in names
        ]
        return (*found, *(each for each in others if _NOT_CREATED < each.number <= each.record.head.sequence_number))

    def _get_record(self, subject: str, name: object) -> DatasetRecord:
        found = None
        with suppress(OdfError):
            found = self.home.store.find_dataset(DatasetId.parse(subject))
        if found is None:
            raise UnknownDatasetError(f"the dataset '{name or subject}' that the run had is not here any more")
        return found

    def _require_version(self, record: DatasetRecord, number: int | None, head: str) -> int:
        stored = None
        with suppress(OdfError):
            stored = self.home.store.find_block(record.id, Multihash.parse(head))
        if stored is None or number not in {None, stored.sequence_number}:
            raise _gone(record.name, number)
        return stored.sequence_number

    def _checked(self, dataset: CopiedDataset) -> CopiedDataset:
        self._require_rows(dataset.record, dataset.number)
        return dataset

    def _require_rows(self, record: DatasetRecord, upto: int) -> None:
        """Require the rows that the run had, and those that it wrote, which are compared."""
        needed = [each.physical_hash for each in iter_slices(self.home.store, record.id, upto=upto)]
        Presence(self.home.store, self.home.objects).require_checked(record, needed)


def _find_start(name: str, records: Sequence[AuditRecord]) -> int:
    """Give the newest block that a run found of a dataset; -1: it made the dataset itself."""
    writes = [each for each in records if each.row.entry.command == "write"]
    own = {number for each in writes for number in range(each.told.get("first", 0), each.number + 1)}
    reads = [each for each in records if each.row.entry.command == "read"]
    found = {each.told.get("first", 0) - 1 for each in writes} | {
        each.told.get("newest", each.number) for each in reads
    }
    if len(starts := sorted(found - own)) > 1:
        raise UsageError(
            f"others wrote '{name}' while the run went on: it had versions {', '.join(map(str, starts))}, and a copy"
            " of the home has one; start the program by hand, with version= for each table"
        )
    return int(starts[0])


def _find_command(told: dict[str, Any], given: Sequence[str], run: str) -> tuple[tuple[str, ...], Path]:
    words = tuple(given) or tuple(told.get("words", ()))
    if not words:
        raise UsageError(f"with what run {run} was started is not recorded; give its command line after --")
    if told.get("wordsShortened") and not given:
        raise UsageError(
            f"the command line of run {run} is not recorded whole, as it has secrets or is long; give all of it after"
            f" --: {' '.join(words)}"
        )
    folder = Path(str(told.get("folder") or ""))
    if not folder.is_absolute() or not folder.is_dir():
        raise UsageError(
            f"the folder in which run {run} was started is not here: {told.get('folder') or 'not recorded'}"
        )
    return words, folder


def _check_code(told: dict[str, Any], *, allows_changed_code: bool) -> list[str]:
    """Compare the code with what ran; returns what differs where that is allowed."""
    if "script" in told:
        script, known = Path(str(told["script"])), told.get("scriptHash")
        if not script.is_file():
            raise UsageError(f"the program is not here any more: {script}")
        if known is None or hash_script(script) != known:
            commit = f"; it was at the git commit {told['gitCommit']}" if told.get("gitCommit") else ""
            problem = f"{script} is not the file that ran (SHA3-256 {known or 'not known'}){commit}"
            return _changed(problem, allows_changed_code=allows_changed_code)
        repository = find_repository(script)
        now = None if repository is None else read_commit(repository)
        if told.get("gitCommit") not in {None, now}:
            return [
                f"the file of the program is the same, its repository is at another commit than {told['gitCommit']}"
            ]
        return []
    if told.get("version") != __version__:
        problem = f"it ran with odf-node {told.get('version')}, and this is {__version__}"
        return _changed(problem, allows_changed_code=allows_changed_code)
    return []


def _changed(problem: str, *, allows_changed_code: bool) -> list[str]:
    if not allows_changed_code:
        raise UsageError(f"{problem}; bring that code back, or take what is here with --changed-code")
    return [f"the code is another one: {problem}"]


def _list_notices(program: Program) -> list[str]:
    told, notices = program.told, []
    here = f"{getpass.getuser()}@{socket.gethostname()}"
    if program.person != here:
        notices.append(f"it was started by {program.person}, and is by {here} now")
    if told.get("python") != platform.python_version():
        notices.append(f"it ran with Python {told.get('python')}, and this is {platform.python_version()}")
    if program.has_changes:
        notices.append("its repository had changes that no commit has: modules of the program may be others now")
    return notices


def _is_running(told: dict[str, Any]) -> bool:
    if told.get("host") != socket.gethostname():
        return False
    with suppress(OSError):
        words = Path("/proc", str(told.get("pid")), "cmdline").read_bytes().split(b"\0")[:-1]
        shown = [word.decode(errors="replace") for word in words]
        # Of words that were shortened the first ones tell.
        count = 2 if told.get("wordsShortened") else max(len(shown), 1)
        return bool(shown) and shown[:count] == list(told.get("words", ()))[:count]
    return False


def _gone(name: str, number: int | None) -> UnknownDatasetError:
    version = "a version" if number is None else f"version {number}"
    return UnknownDatasetError(f"{version} of '{name}' that the run had is not here any more: its history was replaced")
