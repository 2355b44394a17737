"""Kill a writer before each single step of its commit; afterwards everything has happened, or nothing.

Source: clauses HOME-8 to HOME-13 in ``spec/home.md``.
"""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from odf_node.adapters.key_files import KeyFiles
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.commit_point import commit_with_objects, sweep_leftovers
from odf_node.home_folder import HomeFolder
from odf_node.ports.keys import PrivateKey
from odf_node.records.commits import Commit
from odf_node.records.ingests import IngestKey, KeptAnswer
from odf_node.records.quarantine import Fate, QuarantineFile, RowId, SettledRows, WaitingBatch
from odf_node.store import MetadataStore
from odf_protocol.multihash import Multihash
from support.store_values import LATER, NOON, acceptance, blocks, creation, dataset_id, growth, pulled_creation
from support.syscall_steps import SUPPORTED, Step, run_step_by_step, run_until_step

pytestmark = [
    pytest.mark.skipif(not SUPPORTED, reason="traces system calls of Linux on x86-64 and ARM64"),
    pytest.mark.timeout(1800),
]

# A retry or a kill at every step would take several times as long and show the same.
RETRIED_STEP = 7
KILLED_STEP = 17

KEY = PrivateKey(b"k" * 32)
BASE = creation(1, count=3, objects=(Multihash.of_sha3_256(b"base slice"),))
PULLED = pulled_creation(2, count=4)
ANSWER = KeptAnswer(key=IngestKey(caller="", text="monday", asked=b"asked"), sequence_number=3, text="{}")


@dataclass(frozen=True)
class Scenario:
    """A write: ``commit`` with the bytes of its objects; ``downloads`` says whether they arrive as downloads do."""

    commit: Commit
    payloads: tuple[bytes, ...] = ()
    downloads: bool = False
    key: PrivateKey | None = None

    def write(self, home: HomeFolder) -> None:
        """Do what a service does."""
        objects, metadata = ObjectFolder(home), MetadataStore(home)
        with closing(metadata), ExitStack() as stack:
            stack.enter_context(objects.writing())
            if self.key is not None:
                KeyFiles(home).put_dataset_key(self.key)
            staged = {}
            for payload in self.payloads:
                object_hash = Multihash.of_sha3_256(payload)
                file = stack.enter_context(objects.resume(object_hash) if self.downloads else objects.stage())
                file.restart()
                file.write(payload[:5])
                file.write(payload[5:])
                staged[object_hash] = file
            commit_with_objects(metadata, objects, self.commit, staged)


def _hashes(payloads: tuple[bytes, ...]) -> tuple[Multihash, ...]:
    return tuple(Multihash.of_sha3_256(payload) for payload in payloads)


def _create_dataset() -> Scenario:
    from odf_protocol.did import DatasetId

    commit = replace(creation(3, count=4), dataset_id=DatasetId(KEY.public_key()))
    return Scenario(commit, key=KEY)


def _ingest() -> Scenario:
    payloads = (b"slice of an ingest", b"checkpoint of an ingest", b"quarantined rows", b"merge state")
    hashes = _hashes(payloads)
    quarantine = QuarantineFile(
        dataset_id=BASE.dataset_id,
        sequence_number=3,
        object_hash=hashes[2],
        row_count=2,
        source="rows.csv",
        created_at=LATER,
    )
    grown = growth(BASE, signed_head=b"signed head", objects=hashes[:2], quarantine=quarantine, merge_state=hashes[3])
    return Scenario(replace(grown, answer=ANSWER), payloads)


def _resend() -> Scenario:
    """Rows that waited enter with the block, one of them fails again: all of it at once, or nothing."""
    payloads = (b"slice of rows that waited", b"what failed again")
    hashes = _hashes(payloads)
    again = QuarantineFile(
        dataset_id=BASE.dataset_id,
        sequence_number=3,
        object_hash=hashes[1],
        row_count=1,
        source="quarantine",
        created_at=LATER,
        resent_from=(RowId(1, 2),),
    )
    settlement = SettledRows(fate=Fate.RESENT, rows=(RowId(1, 1), RowId(1, 2)), batches=(2,))
    commit = growth(BASE, signed_head=b"signed head", objects=hashes[:1], quarantine=again, settlement=settlement)
    return Scenario(commit, payloads)


def _pull() -> Scenario:
    payloads = tuple(f"slice {number}".encode() * 50 for number in range(6))
    commit = growth(PULLED, blocks=blocks(4, 150, salt="pull", size_bytes=500), signed_head=b"newer head")
    return Scenario(
        replace(commit, objects=_hashes(payloads), acceptance=acceptance(commit.new_head)), payloads, downloads=True
    )


def _write_base(home: HomeFolder) -> None:
    Scenario(BASE, (b"base slice",)).write(home)
    Scenario(PULLED).write(home)


def _write_what_waits(home: HomeFolder) -> None:
    _write_base(home)
    objects, metadata = ObjectFolder(home), MetadataStore(home)
    payloads = (b"rows that wait", b"no rows")
    hashes = _hashes(payloads)
    with closing(metadata), ExitStack() as stack:
        stack.enter_context(objects.writing())
        for payload, object_hash in zip(payloads, hashes, strict=True):
            file = stack.enter_context(objects.stage())
            file.write(payload)
            objects.put(file, object_hash)
        entry = QuarantineFile(
            dataset_id=BASE.dataset_id,
            sequence_number=None,
            object_hash=hashes[0],
            row_count=2,
            source="rows.csv",
            created_at=LATER,
        )
        metadata.put_quarantine(entry)
        batch = WaitingBatch(file=hashes[0], why="a limit", event_time=LATER)
        metadata.put_quarantine(replace(entry, object_hash=hashes[1], row_count=0, batch=batch))
        metadata.fix_rows(BASE.dataset_id, {RowId(1, 2): {"a": "1"}})


def _write_nothing(home: HomeFolder) -> None:
    assert not home.path.exists()


SCENARIOS: dict[str, tuple[Callable[[], Scenario], Callable[[HomeFolder], None]]] = {
    "first-dataset-of-a-new-home": (_create_dataset, _write_nothing),
    "create-dataset": (_create_dataset, _write_base),
    "ingest": (_ingest, _write_base),
    "pull": (_pull, _write_base),
    "resend": (_resend, _write_what_waits),
}


def _read_everything(home: HomeFolder) -> object:
    with closing(MetadataStore(home)) as store:
        return [
            (
                record,
                store.get_chain_state(record.id),
                list(store.iter_blocks(record.id)),
                list(store.iter_acceptances(record.id)),
                list(store.iter_signed_heads(record.id)),
                list(store.iter_quarantine(record.id)),
                [store.list_row_notes(entry.id) for entry in store.iter_quarantine(record.id)],
                store.find_merge_state(record.id, record.head.hash),
                store.find_answer(record.id, "", "monday"),
                store.list_referenced_objects(),
            )
            for record in store.list_datasets()
        ]


def _assert_sound(home: HomeFolder) -> None:
    if home.database.exists():
        with closing(sqlite3.connect(home.database)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    objects = ObjectFolder(home)
    with closing(MetadataStore(home)) as store:
        referenced = store.list_referenced_objects()
        for object_hash in referenced:
            objects.check(object_hash)
        for record in store.list_datasets():
            if record.id == dataset_id(3):
                assert KeyFiles(home).find_dataset_key(record.id) == KEY
        sweep_leftovers(store, objects, now=NOON)
    assert set(objects.iter_hashes()) == referenced
    assert not objects.has_leftovers(now=NOON)
    if home.staging.exists():
        assert [entry for entry in home.staging.iterdir() if entry != home.downloads] == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_writer_killed_before_any_step_leaves_the_old_state_or_the_new_one(name: str, tmp_path: Path) -> None:
    make_scenario, write_before = SCENARIOS[name]
    scenario = make_scenario()
    template = HomeFolder(tmp_path / "template")
    write_before(template)
    old = _read_everything(template)
    complete = _copy(template, tmp_path / "complete")
    steps = run_until_step(lambda: scenario.write(complete), None).steps
    new = _read_everything(complete)
    assert old != new

    seen = []
    home = HomeFolder(tmp_path / "home")

    def judge(number: int) -> bool:
        found = _read_everything(home)
        assert found in (old, new), f"killed before step {number}, {steps[number - 1]}"
        _assert_sound(home)
        if found == old and number % RETRIED_STEP == 0:
            assert _read_everything(home) == found
            scenario.write(home)
            assert _read_everything(home) == new
            _assert_sound(home)
        shutil.rmtree(home.path, ignore_errors=True)
        return found == new

    # What its files hold while it rests before a step is what a kill there leaves...
    going = _copy(template, tmp_path / "going")

    def look(number: int) -> None:
        _copy(going, home.path)
        seen.append(judge(number))

    assert run_step_by_step(lambda: scenario.write(going), look).completed
    assert _read_everything(going) == new

    # ...and some are killed indeed.
    for number in range(1, len(steps) + 1, KILLED_STEP):
        _copy(template, home.path)
        assert not run_until_step(lambda: scenario.write(home), number).completed
        assert judge(number) == seen[number - 1]

    assert seen == sorted(seen), "there is more than one commit point"
    assert False in seen
    assert True in seen


@pytest.mark.parametrize("name", ["ingest", "pull"])
def test_objects_are_durable_before_the_database_is_touched(name: str, tmp_path: Path) -> None:
    make_scenario, write_before = SCENARIOS[name]
    scenario = make_scenario()
    home = HomeFolder(tmp_path / "home")
    write_before(home)
    steps = run_until_step(lambda: scenario.write(home), None).steps
    log = home.database.with_name(f"{home.database.name}-wal")
    log_writes = [index for index, step in enumerate(steps) if step == Step("pwrite64", log)]
    assert log_writes
    for object_hash in _hashes(scenario.payloads):
        place = ObjectFolder(home).get_path(object_hash)
        renamed = next(i for i, step in enumerate(steps) if step.call.startswith("rename") and step.path == place)
        made_durable = [i for i, step in enumerate(steps) if step == Step("fsync", place.parent)]
        assert steps[renamed - 1].call == "fsync"
        assert any(renamed < index < log_writes[0] for index in made_durable)
    synced = [i for i, step in enumerate(steps) if step.call in {"fsync", "fdatasync"} and step.path == log]
    # The first write of a fresh log is its header, which is synced on its own; the last sync covers the commit frame.
    assert synced
    assert synced[-1] > log_writes[-1]


def _copy(template: HomeFolder, path: Path) -> HomeFolder:
    if template.path.exists():
        shutil.copytree(template.path, path)
    return HomeFolder(path)
