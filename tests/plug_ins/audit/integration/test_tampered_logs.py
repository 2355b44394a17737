"""A log that somebody changed, shortened or added to is found to be another one; archives keep it bounded and whole."""

import gzip
import json
from contextlib import closing
from pathlib import Path

import pytest

from odf_audit import archives
from odf_audit.archives import archive_old_reads, list_files
from odf_node.accesses import AccessPlaces
from odf_node.composition import Node, open_node
from odf_node.datasets.naming import get_dataset
from support.audited_homes import AuditedHome


@pytest.fixture
def audited(tmp_path: Path) -> AuditedHome:
    audited = AuditedHome.create(tmp_path / "home")
    for _ in range(3):
        audited.run("tail", "cities")
    audited.run("token", "create", "newsroom")  # a line of the core, which the next seal binds
    audited.run("tail", "cities")
    return audited


def check(audited: AuditedHome, *words: str, code: int = 6) -> str:
    report = json.loads(audited.run("audit", "check", *words, "-o", "json", code=code))
    return str(report["problem"])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET record = replace(record, '\"tail\"', '\"list\"') WHERE command = 'read'",
        "UPDATE audit SET detail = 'f1620' WHERE command = 'write' AND record IS NOT NULL",
        "UPDATE audit SET actor = 'somebody' WHERE command = 'token create'",
        "UPDATE audit SET at = '2020-01-01T00:00:00Z' WHERE id = 3",
        "DELETE FROM audit WHERE id = 4",
        "DELETE FROM audit WHERE id = 1",
        "UPDATE audit SET signature = NULL WHERE command = 'write' AND record IS NOT NULL",
        "UPDATE audit SET signature = zeroblob(64) WHERE id = (SELECT max(id) FROM audit)",
        "UPDATE audit SET record = NULL, before = NULL, chain = NULL WHERE command = 'write' AND record IS NOT NULL",
        "UPDATE audit SET before = NULL, chain = NULL, signature = NULL WHERE command = 'read'",
        "INSERT INTO audit (at, actor, command, subject, outcome, detail, run, record) VALUES ('2026-01-01T00:00:00Z',"  # noqa: ISC004
        " 'cli', 'read', 'x', 'done', '', 'x', '{}')",
    ],
)
def test_changed_log_is_found(audited: AuditedHome, statement: str) -> None:
    """AUDIT-6: whatever is changed in it, or taken out of it."""
    assert check(audited, code=0) == ""
    audited.tamper(statement)
    assert check(audited) != ""


def test_log_that_was_cut_off_is_found_by_who_kept_its_hash(audited: AuditedHome) -> None:
    """AUDIT-6: the chain alone cannot tell."""
    newest = json.loads(audited.run("audit", "check", "-o", "json"))["newest"]
    assert check(audited, "--since", newest, code=0) == ""
    # What is known of the code may stand behind the last read.
    audited.tamper("DELETE FROM audit WHERE id >= (SELECT max(id) FROM audit WHERE command = 'read')")
    assert check(audited, code=0) == ""
    assert "removed" in check(audited, "--since", newest)


def test_log_of_another_key_is_found(audited: AuditedHome) -> None:
    """AUDIT-5."""
    (audited.folder / "keys" / "node.pem").unlink()
    audited.run("inspect", "node")
    assert "signed" in check(audited)


def read_often(node: Node, count: int) -> None:
    """Read so often that each read is a record of its own."""
    record = get_dataset(node.store, "cities")
    for _ in range(count):
        node.store.access.note_read(record)
        node.store.access.flush()


def places_of(node: Node) -> AccessPlaces:
    return AccessPlaces(node.home.folder, node.keys, node.clock, node.store)


def test_old_reads_move_into_archives_in_which_the_chain_goes_on(
    audited: AuditedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AUDIT-9, AUDIT-10: bounded, nothing but reads leaves the database, and old reads are still found."""
    monkeypatch.setattr(archives, "MAX_ARCHIVES", 2)
    writes = audited.audit("who-wrote", "cities")
    with closing(open_node(audited.folder)) as node:
        for _ in range(4):
            read_often(node, 12)
            assert archive_old_reads(places_of(node), 10) is not None
        assert archive_old_reads(places_of(node), 10) is None
        assert node.store.count_reads() < 10
        assert len(list_files(node.home.folder.audit)) == 2
        assert len(node.store.list_archives()) == 4
    assert audited.audit("who-wrote", "cities") == writes
    assert audited.rows("command = 'token create'")
    assert len(audited.audit("who-read", "cities")) < 10 < len(audited.audit("who-read", "cities", "--archives"))
    report = json.loads(audited.run("audit", "check", "-o", "json"))
    assert (report["problem"], report["archives"]) == ("", 2)
    assert report["first"] > 1
    audited.tamper("UPDATE audit SET detail = 'f1620' WHERE command = 'write' AND record IS NOT NULL")
    assert check(audited) != ""


@pytest.mark.parametrize("change", ["a word", "a line", "the end", "other bytes"])
def test_changed_archive_is_found(audited: AuditedHome, change: str) -> None:
    """AUDIT-10."""
    with closing(open_node(audited.folder)) as node:
        read_often(node, 12)
        archive_old_reads(places_of(node), 10)
        (path,) = list_files(node.home.folder.audit)
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    changed = {
        "a word": [*lines[:-1], lines[-1].replace(b"cities", b"cit1es")],
        "a line": [*lines[:3], *lines[4:]],
        "the end": lines[:-1],
        "other bytes": [b"[]\n"],
    }
    path.write_bytes(gzip.compress(b"".join(changed[change])))
    assert check(audited) != ""
    path.write_bytes(b"no archive")
    assert check(audited) != ""


def test_reads_are_not_removed_before_they_are_archived(audited: AuditedHome) -> None:
    """AUDIT-9: the database refuses it."""
    with closing(open_node(audited.folder)) as node, pytest.raises(Exception, match="only appended to"):
        node.store._write("DELETE FROM audit WHERE command = 'read'")
    with closing(open_node(audited.folder)) as node:
        read_often(node, 12)
        archive_old_reads(places_of(node), 10)
        for kept in ("command = 'write'", "record IS NULL", "id = (SELECT max(id) FROM audit)"):
            with pytest.raises(Exception, match="only appended to"):
                node.store._write(f"DELETE FROM audit WHERE {kept}")
