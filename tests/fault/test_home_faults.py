"""Homes without room, without write access, from the future, damaged, or wanted by two at once."""

import json
import multiprocessing
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.home_folder import HomeFolder
from odf_node.records.errors import HeadMovedError, HomeBusyError, HomeCorruptError, HomeVersionError
from odf_node.store import MetadataStore, schema
from support.home_writer import BASE, run_step
from support.store_values import NOON, creation, dataset_id, growth

WRITER = Path(__file__).parents[1] / "support" / "home_writer.py"


@pytest.fixture
def home(tmp_path: Path) -> HomeFolder:
    return HomeFolder(tmp_path / "home")


def _write(home: HomeFolder, *steps: str, around: Sequence[str | Path] = ()) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(WRITER.parents[1])}
    command = [*around, sys.executable, WRITER, home.path, *steps]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def _bubblewrap(*options: str | Path) -> list[str | Path]:
    return [find_bubblewrap().path, "--dev-bind", "/", "/", *options]


def _refused(report: dict[str, Any], *, step: str, error: str, because: str) -> None:
    assert [[e[0], e[1]] for e in report["errors"]] == [[step, error]]
    message = report["errors"][0][2]
    assert because in message
    assert "\n" not in message


# Without room


@pytest.mark.parametrize("step", ["big-object", "big-chain"])
def test_full_disk_gives_one_error_and_the_state_before(home: HomeFolder, step: str) -> None:
    home.path.mkdir()
    full = _bubblewrap("--size", "900000", "--tmpfs", home.path)
    report = _write(home, "base", step, "read", around=full)
    _refused(report, step=step, error="HomeFullError", because="full" if step == "big-chain" else "No space left")
    assert report["heads"] == [0]
    assert report["objects_are_the_referenced_ones"] is True
    assert report["staged"] == []


@pytest.mark.parametrize("step", ["big-object", "big-chain"])
def test_file_size_limit_gives_one_error_and_the_state_before(home: HomeFolder, step: str) -> None:
    report = _write(home, "base", "limit=400000", step, "read")
    _refused(report, step=step, error="HomeFullError", because=str(home.path))
    assert report["heads"] == [0]
    assert report["objects_are_the_referenced_ones"] is True


@pytest.mark.parametrize("limit", [0, 1000, 20_000, 60_000])
def test_home_that_cannot_be_made_for_want_of_room_is_not_there(home: HomeFolder, limit: int) -> None:
    report = _write(home, f"limit={limit}", "base")
    _refused(report, step="base", error="HomeFullError", because=str(home.path))
    assert report["heads"] == []
    assert not home.database.exists()
    assert report["staged"] == []
    run_step(home, "base")


def test_key_that_finds_no_room_is_not_half_written(home: HomeFolder) -> None:
    report = _write(home, "limit=50", "key")
    _refused(report, step="key", error="HomeFullError", because="File too large")
    assert not (home.keys / "node.pem").exists()
    assert report["staged"] == []


# Without write access


def test_home_on_a_read_only_disk_is_read_and_rejects_writes(home: HomeFolder) -> None:
    run_step(home, "base")
    read_only = _bubblewrap("--ro-bind", home.path, home.path)
    report = _write(home, "read", "big-object", around=read_only)
    _refused(report, step="big-object", error="HomeReadOnlyError", because="Read-only file system")
    assert report["heads"] == [0]
    assert report["swept"] is False


def test_metadata_of_a_read_only_home_rejects_writes(home: HomeFolder) -> None:
    run_step(home, "base")
    script = (
        "import sys; from pathlib import Path; from odf_node.home_folder import HomeFolder;"
        "from odf_node.store import MetadataStore; from support.store_values import dataset_id\n"
        "MetadataStore(HomeFolder(Path(sys.argv[1]))).set_published(dataset_id(), False)"
    )
    done = subprocess.run(
        [*_bubblewrap("--ro-bind", home.path, home.path), sys.executable, "-c", script, home.path],
        env={**os.environ, "PYTHONPATH": str(WRITER.parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "HomeReadOnlyError" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("command", ["gc", "gc --dry-run", "cache clear"])
def test_command_that_frees_room_says_that_a_read_only_home_cannot_be_written(home: HomeFolder, command: str) -> None:
    """It said that another command was writing, for which one waits in vain."""
    run_step(home, "base")
    done = _odf_node_on_read_only(home, *command.split())
    assert done.returncode == 5
    assert re.search(rf"{re.escape(str(home.path))}\S*: cannot be written: Read-only file system", done.stderr)


def test_doctor_says_that_a_read_only_home_cannot_be_written(home: HomeFolder) -> None:
    run_step(home, "base")
    assert "which cannot be written" in _odf_node_on_read_only(home, "doctor").stdout


def _odf_node_on_read_only(home: HomeFolder, *words: str) -> subprocess.CompletedProcess[str]:
    run = [*_bubblewrap("--ro-bind", home.path, home.path), sys.executable, "-m", "odf_node", "--home", home.path]
    return subprocess.run([*run, *words], capture_output=True, text=True, check=False)


def test_home_below_a_read_only_folder_is_not_made(tmp_path: Path) -> None:
    home = HomeFolder(tmp_path / "closed" / "home")
    home.path.parent.mkdir()
    read_only = _bubblewrap("--ro-bind", home.path.parent, home.path.parent)
    report = _write(home, "base", around=read_only)
    _refused(report, step="base", error="HomeReadOnlyError", because="Read-only file system")
    assert report["exists"] is False


# Two at once


def _commit_once(path: Path, salt: str, start: Any, results: Any) -> None:
    with closing(MetadataStore(HomeFolder(path))) as store:
        start.wait()
        try:
            store.commit(growth(BASE, 50, salt=salt))
            results.put("won")
        except HeadMovedError:
            results.put("moved")


def test_of_processes_that_commit_at_once_one_wins_and_the_others_learn_it(home: HomeFolder) -> None:
    run_step(home, "base")
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(4), context.Queue()
    processes = [context.Process(target=_commit_once, args=(home.path, str(n), start, results)) for n in range(4)]
    for process in processes:
        process.start()
    outcomes = sorted(results.get(timeout=240) for _ in processes)
    for process in processes:
        process.join()
    assert outcomes == ["moved", "moved", "moved", "won"]
    with closing(MetadataStore(home)) as store:
        assert store.get_head(BASE.dataset_id).sequence_number == 50
        assert len(list(store.iter_blocks(BASE.dataset_id))) == 51


def _create_one(path: Path, number: int, start: Any, results: Any) -> None:
    start.wait()
    with closing(MetadataStore(HomeFolder(path))) as store:
        store.commit(creation(number))
        results.put(number)


def test_processes_that_make_a_home_at_once_share_it(home: HomeFolder) -> None:
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(6), context.Queue()
    processes = [context.Process(target=_create_one, args=(home.path, n, start, results)) for n in range(6)]
    for process in processes:
        process.start()
    assert sorted(results.get(timeout=240) for _ in processes) == list(range(6))
    for process in processes:
        process.join()
    with closing(MetadataStore(home)) as store:
        assert {record.id for record in store.list_datasets()} == {dataset_id(n) for n in range(6)}


def test_home_that_is_kept_busy_is_named_after_a_bounded_wait(home: HomeFolder) -> None:
    run_step(home, "base")
    with closing(sqlite3.connect(home.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with (
            closing(MetadataStore(home, busy_timeout_s=0.05)) as store,
            pytest.raises(HomeBusyError, match=r"another process has kept it busy for more than 0\.05 s"),
        ):
            store.set_published(BASE.dataset_id, False)


# From the future, from elsewhere, damaged


@pytest.mark.parametrize(
    ("stamp", "remedy"),
    [
        pytest.param(99 << 20, "found version 99-00000: use a newer odf-node", id="newer"),
        pytest.param(1, "found version 0-00001: use the odf-node that made it", id="before-versions"),
        pytest.param(schema.STAMP ^ 1, "use the odf-node that made it: its 'export'", id="same-version-other-tables"),
    ],
)
def test_home_of_another_build_is_rejected_and_left_alone(home: HomeFolder, stamp: int, remedy: str) -> None:
    run_step(home, "base")
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute(f"PRAGMA user_version = {stamp}")
    with closing(MetadataStore(home)) as store:
        for attempt in (store.list_datasets, lambda: store.commit(creation(2))):
            with pytest.raises(HomeVersionError) as caught:
                attempt()
    assert caught.value.supported == schema.describe_stamp(schema.STAMP)
    assert remedy in str(caught.value)
    assert str(home.database) in str(caught.value)
    with closing(sqlite3.connect(home.database)) as connection:
        assert schema.read_version(connection) == (schema.APPLICATION_ID, stamp)


def test_stamp_tells_other_tables_from_ours() -> None:
    assert schema.version_of(schema.STAMP) == schema.SCHEMA_VERSION
    assert 0 < schema.STAMP < 2**31
    assert schema.describe_stamp(schema.STAMP) != schema.describe_stamp(schema.SCHEMA_VERSION << 20)


def test_older_home_is_migrated_step_by_step_or_not_at_all(home: HomeFolder) -> None:
    run_step(home, "base")

    def add_table(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE added_by_3 (x INTEGER)")

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE added_by_4 (x INTEGER)")
        raise RuntimeError("power cut")

    third, fourth = 3 << 20, 4 << 20
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        with pytest.raises(RuntimeError):
            schema.migrate(connection, {2: add_table, 3: fail}, fourth)
        assert schema.read_version(connection)[1] == schema.STAMP
        assert connection.execute("SELECT 1 FROM sqlite_schema WHERE name LIKE 'added%'").fetchall() == []
        schema.migrate(connection, {2: add_table}, third)
        assert schema.read_version(connection)[1] == third
        schema.migrate(connection, {2: fail}, third)


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100], ids=["empty", "text"])
def test_file_that_is_no_database_is_named(home: HomeFolder, content: bytes) -> None:
    home.create()
    home.database.write_bytes(content)
    with closing(MetadataStore(home)) as store, pytest.raises(HomeCorruptError) as caught:
        store.list_datasets()
    assert caught.value.path == home.database
    assert home.database.read_bytes() == content


def test_database_of_another_program_is_rejected(home: HomeFolder) -> None:
    home.create()
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("CREATE TABLE notes (x)")
    with closing(MetadataStore(home)) as store, pytest.raises(HomeCorruptError, match="found another one"):
        store.commit(creation())


def test_row_that_was_changed_behind_our_back_is_named(home: HomeFolder) -> None:
    run_step(home, "base")
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("UPDATE datasets SET created_at = 'yesterday'")
        connection.commit()
    with closing(MetadataStore(home)) as store, pytest.raises(HomeCorruptError, match="a row cannot be read"):
        store.list_datasets()


def test_missing_block_is_named(home: HomeFolder) -> None:
    with closing(MetadataStore(home)) as store:
        store.commit(creation(count=5))
        with closing(sqlite3.connect(home.database)) as connection:
            connection.execute("DELETE FROM blocks WHERE sequence_number = 3")
            connection.commit()
        for read in (store.iter_blocks, store.iter_blocks_backwards):
            with pytest.raises(HomeCorruptError, match="block 3 of dataset"):
                list(read(dataset_id()))


def test_audit_lines_cannot_be_changed_or_removed(home: HomeFolder) -> None:
    run_step(home, "base")
    with closing(sqlite3.connect(home.database)) as connection:
        columns = "at, actor, command, subject, outcome, detail"
        connection.execute(f"INSERT INTO audit ({columns}) VALUES ('', '', '', '', '', '')")
        for statement in ("UPDATE audit SET detail = 'x'", "DELETE FROM audit"):
            with pytest.raises(sqlite3.IntegrityError, match="only appended to"):
                connection.execute(statement)


def test_folder_that_is_used_for_something_else_stays_as_it_is(home: HomeFolder) -> None:
    home.path.mkdir()
    (home.path / "thesis.odt").write_text("mine")
    with closing(MetadataStore(home)) as store, pytest.raises(HomeCorruptError, match=r"thesis\.odt"):
        store.commit(creation())
    assert [entry.name for entry in home.path.iterdir()] == ["thesis.odt"]


def test_file_in_the_place_of_the_home_is_named(home: HomeFolder) -> None:
    home.path.write_text("x")
    with pytest.raises(HomeCorruptError, match="found a file"):
        home.create()


def test_reading_an_absent_home_makes_nothing(home: HomeFolder) -> None:
    with closing(MetadataStore(home)) as store:
        assert store.list_datasets() == ()
    ObjectFolder(home).sweep(frozenset, now=NOON)
    assert not home.path.exists()
