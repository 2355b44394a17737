"""Programs and commands that call nothing for it are found in the audit log: who, with what code, which versions."""

import getpass
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState

from odf_node import __version__
from support.audited_homes import AuditedHome
from support.command_line import environment_of
from support.daemons import wait_until

JOB = """\
import odf_node
with odf_node.open() as node:
    people = sum(node.table("cities").to_arrow()["people"].to_pylist())
    node.ingest("totals", f"city,people\\nall,{people}\\n".encode())
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> AuditedHome:
    return AuditedHome.create(tmp_path_factory.mktemp("audit") / "home")


@pytest.fixture
def audited(tmp_path: Path) -> AuditedHome:
    return AuditedHome.create(tmp_path / "home")


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.email=a@b.example", "-c", "user.name=n", "-c", "init.defaultBranch=main", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def test_program_that_calls_nothing_is_recorded_with_its_code_and_the_versions_that_it_read_and_wrote(
    audited: AuditedHome, tmp_path: Path
) -> None:
    """AUDIT-1, AUDIT-2, AUDIT-3: who, where, with what code, which versions."""
    folder = tmp_path / "project"
    folder.mkdir()
    script = folder / "job.py"
    script.write_text(JOB)
    git(folder, "init", "-q")
    git(folder, "commit", "-qm", "none", "--allow-empty")
    audited.run_script(script)
    git(folder, "add", "job.py")
    git(folder, "commit", "-qm", "a job")
    audited.run_script(script, "--token", "hunter2")
    script.write_text(f"{JOB}# changed\n")
    audited.run_script(script)

    untracked, clean, changed = audited.audit("who-read", "cities")
    assert (untracked["gitCommit"], untracked["hasChanges"]) == (git(folder, "rev-parse", "HEAD~"), True)
    (head,) = {row["head"] for row in audited.audit("who-wrote", "cities", "3")}
    for read in (clean, changed):
        assert (read["dataset"], read["version"], read["head"], read["door"]) == ("cities", 3, head, "python")
        assert (read["user"], read["host"]) == (getpass.getuser(), socket.gethostname())
        assert read["program"] == "job.py"
        assert read["gitCommit"] == git(folder, "rev-parse", "HEAD")
    assert (clean["hasChanges"], changed["hasChanges"]) == (False, True)
    assert changed["scriptHash"] == hashlib.sha3_256(script.read_bytes()).hexdigest() != clean["scriptHash"]

    _, _, first, second = audited.audit("who-wrote", "totals")
    assert (first["run"], second["run"]) == (clean["run"], changed["run"])
    (given,) = audited.audit("inputs-of", "totals", str(first["version"]))
    assert (given["dataset"], given["version"], given["head"], given["run"]) == ("cities", 3, head, clean["run"])
    shown = audited.audit("run", clean["run"][:8])
    assert shown["program"]["words"][-2:] == ["--token", "***"]  # AUDIT-11
    # A read is written within a second, a write with its commit: which comes first in the log is chance.
    assert sorted(row["does"] for row in shown["records"]) == ["read", "write"]
    assert "hunter2" not in repr(audited.rows())


def test_commands_are_recorded_by_their_names(kept: AuditedHome) -> None:
    """AUDIT-1: SQL and the command line."""
    kept.run("tail", "cities")
    kept.run("sql", "-c", "SELECT count(*) AS n FROM cities")
    reads = kept.audit("who-read", "cities", "3")
    assert [(read["door"], read["work"]) for read in reads] == [("cli", "tail"), ("cli", "sql")]
    assert kept.audit("who-read", "totals") == []
    (write,) = kept.audit("who-wrote", "cities", "2")
    assert (write["work"], write["version"]) == ("ingest", 3)
    assert "tail" in kept.run("audit", "who-read", "cities")
    number, short, *_ = kept.run("log", "cities", "-n", "1").split()
    assert f"{number} {short}" in kept.run("audit", "who-wrote", "cities", number)


@pytest.mark.parametrize(
    ("words", "name"), [(["-m", "odf_node", "tail", "cities"], "odf-node"), (["-c", f"{JOB}# the end"], "-c")]
)
def test_program_without_a_file_has_a_name(audited: AuditedHome, words: list[str], name: str) -> None:
    """AUDIT-15: that is not the last word of its command line."""
    subprocess.run([sys.executable, *words], env=environment_of(audited.folder), check=True, capture_output=True)
    (read,) = audited.audit("who-read", "cities")
    assert read["program"] == name
    of_run = audited.run("audit", "run", read["run"]).splitlines()
    assert of_run[2] == f"code: odf-node {__version__}"


def test_current_rows_of_a_version_are_one_read(audited: AuditedHome, tmp_path: Path) -> None:
    """AUDIT-1: however often the program goes to the files for them."""
    script = tmp_path / "report.py"
    script.write_text(
        'import odf_node\nwith odf_node.open() as node:\n    len(node.table("cities", version=3).state())\n'
    )
    audited.run_script(script)
    (read,) = audited.audit("who-read", "cities")
    assert (read["version"], read["times"]) == (3, 1)


def test_impact_goes_on_through_what_was_made_of_a_version(audited: AuditedHome, tmp_path: Path) -> None:
    """AUDIT-14, AUDIT-15: reads, and writes of who read, step by step; what saw earlier rows alone does not follow."""
    script = tmp_path / "job.py"
    script.write_text(JOB)
    audited.run_script(script)
    script.write_text(JOB.replace('"cities"', '"x"').replace('"totals"', '"cities"').replace('"x"', '"totals"'))
    audited.run_script(script)
    impact = audited.audit("impact-of", "cities", "3")
    assert [(row["after"], row["does"], row["dataset"]) for row in impact] == [
        (0, "read", "cities"),
        (1, "write", "totals"),
        (1, "read", "totals"),
        (2, "write", "cities"),
    ]
    assert audited.audit("impact-of", "cities") == []  # the newest version: nobody read it
    audited.run("sql", "--as-of", "2020-01-01", "-c", "SELECT count(*) AS n FROM cities")
    assert len(audited.audit("impact-of", "cities", "3")) == len(impact)


def test_version_that_is_none_is_an_error(kept: AuditedHome) -> None:
    """AUDIT-12: a number, or enough of a hash."""
    kept.run("audit", "who-read", "cities", "99", code=3)
    kept.run("audit", "who-read", "cities", "f1620", code=2)
    kept.run("audit", "who-read", "cities", "f1620000000000", code=3)
    kept.run("audit", "run", "nosuchrun", code=3)


TWO_WRITERS = """\
import sys, odf_node
from odf_node.records.errors import HeadMovedError
with odf_node.open() as node:
    done = 0
    while done < 5:
        try:
            node.ingest("totals", f"city,people\\n{sys.argv[1]},{done}\\n".encode())
            done += 1
        except HeadMovedError:
            pass
"""


def test_two_writers_at_once_are_told_apart_by_every_version(audited: AuditedHome, tmp_path: Path) -> None:
    """AUDIT-4: the writer's tag is in the commit, so what it says is what was written."""
    script = tmp_path / "writer.py"
    script.write_text(TWO_WRITERS)
    processes = [audited.start(script, name) for name in ("Lima", "Oslo")]
    for process in processes:
        _, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
    rows = json.loads(audited.run("tail", "totals", "-n", "100", "-o", "json"))
    writes = [row for row in audited.audit("who-wrote", "totals") if row["work"] != "add"]
    assert len(rows) == len(writes) == 10
    words = {row["run"]: audited.audit("run", row["run"])["program"]["words"][-1] for row in writes}
    assert [words[row["run"]] for row in writes] == [row["city"] for row in rows]
    assert "whole" in audited.run("audit", "check")


KILLED = """\
import os, signal, odf_node
node = odf_node.open()
node.table("cities").to_arrow()
node.ingest("totals", b"city,people\\nall,30\\n")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_program_that_is_killed_right_after_its_write_has_left_its_tag(audited: AuditedHome, tmp_path: Path) -> None:
    """AUDIT-4, AUDIT-7: a read may be lost, a writer's tag, with what it had read, never."""
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    process = audited.start(script)
    process.communicate(timeout=240)
    assert process.returncode == -signal.SIGKILL
    (write,) = [row for row in audited.audit("who-wrote", "totals") if row["work"] != "add"]
    assert write["program"] == "killed.py"
    assert [given["dataset"] for given in audited.audit("inputs-of", "totals")] == ["cities"]
    assert "whole" in audited.run("audit", "check")


WAITING = """\
import sys, odf_node
node = odf_node.open()
node.table("cities").to_arrow()
print("read", flush=True)
sys.stdin.read()
"""


def test_read_is_written_down_while_its_program_goes_on(audited: AuditedHome, tmp_path: Path) -> None:
    """AUDIT-7: within a second or so."""
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    process = audited.start(script)
    try:
        wait_until(lambda: audited.audit("who-read", "cities") or None, lambda: "no read is recorded")
    finally:
        process.communicate("", timeout=240)
    assert process.returncode == 0
    assert len(audited.audit("who-read", "cities")) == 1


FORKING = """\
import os, odf_node
node = odf_node.open()
node.table("cities").to_arrow()
child = os.fork()
if child == 0:
    node.table("cities").to_arrow()
    node.close()
    os._exit(0)
os.waitpid(child, 0)
node.close()
"""


def test_process_that_forks_is_two_runs(audited: AuditedHome, tmp_path: Path) -> None:
    """AUDIT-2: what the parent heard is not written twice."""
    script = tmp_path / "forking.py"
    script.write_text(FORKING)
    audited.run_script(script)
    reads = audited.audit("who-read", "cities")
    assert [read["times"] for read in reads] == [1, 1]
    assert len({read["run"] for read in reads}) == 2


LATER = """\
import odf_node
with odf_node.open() as node:
    table = node.table("cities")
    node.ingest("cities", b"city,people\\nRome,30\\n")
    print(len(table.to_arrow()), len(node.table("cities", version=3).to_arrow()), len(node.sql("SELECT * FROM cities")))
"""


def test_recorded_version_is_the_one_that_was_read(audited: AuditedHome, tmp_path: Path) -> None:
    """AUDIT-1: not the one that there was when the table was opened, and an earlier one where that was asked for."""
    script = tmp_path / "later.py"
    script.write_text(LATER)
    assert audited.run_script(script).split() == ["3", "2", "3"]
    heads = {row["version"]: row["head"] for row in audited.audit("who-wrote", "cities")}
    reads = audited.audit("who-read", "cities")
    assert {(read["version"], read["head"]) for read in reads} == {(each, heads[each]) for each in (3, 4)}
    times = Counter[int]()
    for read in reads:  # those of another second have a record of their own
        times[read["version"]] += read["times"]
    assert times == {3: 1, 4: 2}


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_home_that_cannot_be_written_is_read_all_the_same(kept: AuditedHome) -> None:
    """AUDIT-8."""
    kept.folder.chmod(0o500)
    try:
        kept.run("tail", "cities")
    finally:
        kept.folder.chmod(0o700)


def test_exported_events_are_those_of_openlineage(kept: AuditedHome, tmp_path: Path) -> None:
    """AUDIT-17."""
    target = tmp_path / "events.ndjson"
    kept.run("audit", "export", target)
    events = [json.loads(line) for line in target.read_text().splitlines()]
    assert [event["eventType"] for event in events[:2]] == ["START", "COMPLETE"]
    written = {each["name"] for event in events for each in event["outputs"]}
    assert written == {"cities", "totals"}
    for event in events:
        facets = event["run"]["facets"]
        RunEvent(
            eventType=RunState(event["eventType"]),
            eventTime=event["eventTime"],
            run=Run(runId=event["run"]["runId"], facets=facets),
            job=Job(**event["job"]),
            inputs=[InputDataset(**each) for each in event["inputs"]],
            outputs=[OutputDataset(**each) for each in event["outputs"]],
            producer=event["producer"],
        )
        assert facets["odf_program"]["user"] == getpass.getuser()
    before = target.read_bytes()
    kept.run("audit", "export", target, code=1)
    assert target.read_bytes() == before
