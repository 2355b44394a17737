"""Backups after which a home could write nothing: numbers at the end of all numbers, lines that no reader takes.

Source: HOME-43 in ``spec/home.md``.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.adapters.home_backup import back_up, restore
from odf_node.home_folder import HomeFolder
from odf_protocol.errors import MalformedError
from support.exchange_nodes import Chain, TestNode

DATABASE = "odf-node.sqlite"
LAST = 2**63 - 1
AUDIT = (
    "INSERT INTO audit (id, at, actor, command, subject, outcome, detail, run, record, before, chain, signature)"
    " VALUES ({id}, '2024-01-01T00:00:00Z', 'cli', 'read', 'x', {outcome}, '', 'r', {record}, {before}, {chain},"
    " zeroblob(64))"
)
DEFAULTS = {"id": "1", "outcome": "'done'", "record": "'{}'", "before": "zeroblob(32)", "chain": "zeroblob(32)"}


def nobody_hears(_: object) -> None:
    return


def audit(**changes: str) -> str:
    return AUDIT.format(**{**DEFAULTS, **changes})


FALSE = {
    "line-with-the-last-number": [audit(id=str(LAST))],
    "line-with-a-number-below-nothing": [audit(id="-5")],
    "line-that-ended-in-no-way": [audit(outcome="'x'")],
    "line-that-ended-in-no-way-before-any-seal": [
        audit(outcome="'x'", record="NULL", before="NULL", chain="NULL"),
    ],
    "seal-of-another-length": [audit(before="x'00'")],
    "seal-of-a-megabyte": [audit(chain="zeroblob(1000000)")],
    "next-line-beyond-the-last": [audit(), f"UPDATE sqlite_sequence SET seq = {LAST} WHERE name = 'audit'"],
    "next-line-in-words": [audit(), "UPDATE sqlite_sequence SET seq = 'abc' WHERE name = 'audit'"],
    "next-line-of-nothing": [audit(), "UPDATE sqlite_sequence SET seq = NULL WHERE name = 'audit'"],
    "next-line-below-nothing": [audit(), "UPDATE sqlite_sequence SET seq = -7 WHERE name = 'audit'"],
    "next-line-that-is-there": [audit(id="9"), "UPDATE sqlite_sequence SET seq = 3 WHERE name = 'audit'"],
    "next-line-that-is-not-noted": [audit(), "DELETE FROM sqlite_sequence WHERE name = 'audit'"],
    "next-line-noted-twice": [audit(), "INSERT INTO sqlite_sequence VALUES ('audit', 77)"],
    "next-dataset-beyond-the-last": [f"UPDATE sqlite_sequence SET seq = {LAST} WHERE name = 'datasets'"],
    "next-quarantine-beyond-the-last": [f"INSERT INTO sqlite_sequence VALUES ('quarantine_files', {LAST})"],
    "number-of-a-table-without-numbers": ["INSERT INTO sqlite_sequence VALUES ('blocks', 5)"],
    "number-of-no-table": ["INSERT INTO sqlite_sequence VALUES (NULL, 5)"],
    "rows-beyond-53-bits": [
        f"""INSERT INTO quarantine_files (dataset, object_hash, row_count, source, created_at, resent_from, batch)
        SELECT key, head_hash, {2**53}, 'x', '2024-01-01T00:00:00Z', '', '[]' FROM datasets"""
    ],
}


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    node, chain = TestNode.create(tmp_path / "home"), Chain("demo.data", has_schema=True)
    chain.add(b"slice")
    node.keep(chain)
    back_up(node.home, tmp_path / "backup", nobody_hears)
    return tmp_path / "backup"


def change(backup: Path, *statements: str) -> None:
    with closing(sqlite3.connect(backup / DATABASE)) as connection:
        for each in statements:
            connection.execute(each)
        connection.commit()
    manifest = json.loads((backup / "backup.json").read_bytes())
    manifest.pop("signed", None)
    (backup / "backup.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("lie", FALSE)
def test_number_behind_which_nothing_can_be_written_is_rejected(backup: Path, tmp_path: Path, lie: str) -> None:
    """HOME-43: each of these made every later write of the home fail, as a full disk, or as a fault."""
    change(backup, *FALSE[lie])
    other = HomeFolder(tmp_path / "other")

    with pytest.raises(MalformedError, match="malformed backup"):
        restore(other, backup, nobody_hears)

    assert not other.database.exists()


def test_record_of_a_write_from_a_thousand_versions_comes_back(backup: Path, tmp_path: Path) -> None:
    """HOME-43, AUDIT-4: a program that reads so many writes such a record, and its home was never restored."""
    change(backup, audit(record="'{\"inputs\": [\"' || printf('%.*c', 900000, 'x') || '\"]}'"))

    restore(HomeFolder(tmp_path / "other"), backup, nobody_hears)

    assert TestNode.create(tmp_path / "other").store.list_audit_rows(0, 10)[0].record is not None
