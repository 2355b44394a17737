"""A log that came with a backup of somebody else: whatever its records say, each question is answered.

Source: clause AUDIT-19 in ``spec/plug-ins/audit.md``.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.adapters.home_backup import back_up, restore
from odf_node.adapters.key_files import KeyFiles
from odf_node.home_folder import HomeFolder
from support.command_line import run_command
from support.exchange_nodes import Chain, TestNode

INSERT = (
    "INSERT INTO audit (at, actor, command, subject, outcome, detail, run, record, before, chain, signature)"
    " VALUES ('2024-01-01T00:00:00Z', ?, ?, ?, 'done', ?, ?, ?, zeroblob(32), zeroblob(32), zeroblob(64))"
)
READS = {
    "no-JSON": "{",
    "list": "[]",
    "nothing": "null",
    "deep": "[" * 30_000,
    "number-that-is-text": '{"number": "x"}',
    "number-that-is-true": '{"number": true}',
    "number-without-an-end": '{"number": 1e999}',
    "number-that-is-none": '{"number": NaN}',
    "number-of-5000-digits": f'{{"number": {"9" * 5000}}}',
    "number-beyond-all": '{"number": 9223372036854775808}',
    "time-that-is-none": '{"asOf": "yesterday", "number": 99}',
    "names-that-are-lists": '{"name": [1], "caller": {"a": 1}, "door": 7, "agent": [], "work": {}}',
    "member-twice": '{"number": 1, "number": "x"}',
    "texts-that-steer": '{"name": "\\u001b[2J\\nforged", "caller": "\\u202e", "door": "\\u001b]0;x\\u0007"}',
}
WRITES = {
    "inputs-that-are-a-number": '{"inputs": 5, "number": 1, "first": 0}',
    "inputs-of-everything": '{"inputs": ["a", 1, null, [], {"id": 5, "head": []}], "number": 1, "first": 0}',
    "inputs-as-of-no-time": '{"inputs": [{"id": "SUBJECT", "asOf": "x", "number": 5}], "number": 1, "first": 0}',
    "inputs-with-numbers-in-words": '{"inputs": [{"id": "SUBJECT", "number": "z"}], "number": 1, "first": 0}',
    "first-that-is-text": '{"first": "a", "number": 1}',
    "application-that-is-a-list": '{"application": [1], "number": 1, "first": 0}',
}
RUNS = {
    "words-that-are-a-number": '{"words": 5, "script": 7}',
    "words-of-everything": '{"words": [1, {}], "gitCommit": 9, "script": [], "user": null, "pid": "x"}',
    "no-program": "7",
}
QUESTIONS = (
    "who-read demo.data", "who-read demo.data 1", "who-wrote demo.data", "who-wrote demo.data 1",
    "inputs-of demo.data", "inputs-of demo.data 1", "impact-of demo.data 0", "run no-such", "run words-of",
    "run words-that", "run no-program",
)  # fmt: skip


@pytest.fixture(scope="module")
def restored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("restored")
    node, chain = TestNode.create(folder / "home"), Chain("demo.data", has_schema=True)
    chain.add(b"slice")
    node.keep(chain)
    KeyFiles(node.home).get_or_create_node_key()
    back_up(node.home, folder / "backup", lambda _: None)
    (record,) = node.store.list_datasets()
    with closing(sqlite3.connect(folder / "backup" / "odf-node.sqlite")) as connection:
        for command, records in (("run", RUNS), ("read", READS), ("write", WRITES)):
            for name, text in records.items():
                subject = name if command == "run" else str(record.id)
                other = "elsewhere" if "inputs" in name else subject
                run = name if command == "run" else "words-of-everything"
                told = text.replace("SUBJECT", str(record.id))
                for place in {subject, other}:
                    connection.execute(INSERT, ("\x1b[2J", command, place, str(record.head.hash), run, told))
        connection.commit()
    manifest = json.loads((folder / "backup" / "backup.json").read_bytes())
    del manifest["signed"]
    (folder / "backup" / "backup.json").write_text(json.dumps(manifest))
    restore(HomeFolder(folder / "other"), folder / "backup", lambda _: None)
    return folder / "other"


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_question_is_answered_whatever_the_records_say_audit_19(restored: Path, question: str, output: str) -> None:
    done = run_command(restored, "audit", *question.split(), "-o", output)

    assert "fault" not in done.stderr, done.stderr
    assert done.returncode in {0, 3}, done.stderr
    assert done.returncode == 0 or "no-such" in question
    assert all(each.isprintable() or each in "\n\t" for each in done.stdout + done.stderr)


def test_log_is_exported_whatever_runs_are_called_audit_19(restored: Path, tmp_path: Path) -> None:
    done = run_command(restored, "audit", "export", str(tmp_path / "events"))

    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert [each["eventType"] for each in events] == ["START", "COMPLETE"]


def test_forged_records_are_found_and_what_follows_is_recorded_audit_6(restored: Path) -> None:
    found = run_command(restored, "audit", "check", "-o", "json")
    assert found.returncode == 6
    assert json.loads(found.stdout)["problem"]

    assert run_command(restored, "rename", "demo.data", "demo.other").returncode == 0
    assert run_command(restored, "rename", "demo.other", "demo.data").returncode == 0
