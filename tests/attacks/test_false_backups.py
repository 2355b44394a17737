"""Backups that somebody made to do more than fill a home: rejected, and no node is left behind.

Source: HOME-43 and HOME-44 in ``spec/home.md``.
"""

import gzip
import io
import resource
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.adapters.home_backup import back_up, restore
from odf_node.adapters.key_backup import restore_keys
from odf_node.home_folder import HomeFolder
from odf_protocol.errors import MalformedError, OdfError
from support.exchange_nodes import Chain, TestNode

DATABASE = "odf-node.sqlite"
HUGE_BYTES = 1 << 40


def nobody_hears(_: object) -> None:
    return


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    node, chain = TestNode.create(tmp_path / "home"), Chain("demo.data", has_schema=True)
    chain.add(b"slice" * 1000, b"checkpoint")
    node.keep(chain)
    back_up(node.home, tmp_path / "backup", nobody_hears)
    restore(HomeFolder(tmp_path / "honest"), tmp_path / "backup", nobody_hears)
    return tmp_path / "backup"


def in_database(*statements: str) -> Callable[[Path], None]:
    def change(backup: Path) -> None:
        with closing(sqlite3.connect(backup / DATABASE)) as connection:
            for each in statements:
                connection.execute(each)
            connection.commit()

    return change


def damage(backup: Path) -> None:
    """Rubbish in every page but the first, which says what tables there are."""
    raw = bytearray((backup / DATABASE).read_bytes())
    for place in range(4096, len(raw), 4096):
        raw[place : place + 64] = bytes(range(64))
    (backup / DATABASE).write_bytes(raw)


def share_pages(backup: Path) -> None:
    """Two tables whose rows lie in one place: what is written into one is in the other."""
    in_database(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'audit') "
        "WHERE name = 'subscriptions'",
    )(backup)


TRUSTS_ALL = "UPDATE datasets SET trust = 're-executed' WHERE trust <> 're-executed'"
FALSE = {
    "trigger-that-trusts-whatever-comes": in_database(
        f"CREATE TRIGGER trusting AFTER INSERT ON blocks BEGIN {TRUSTS_ALL}; END"
    ),
    "view-in-the-place-of-a-table": in_database(
        "ALTER TABLE audit RENAME TO kept", "CREATE VIEW audit AS SELECT * FROM kept WHERE command <> 'pull'"
    ),
    "view-that-never-ends": in_database(
        "DROP TABLE objects",
        "CREATE VIEW objects AS WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) "
        "SELECT n AS dataset, x'00' AS hash, 0 AS absent, 1 AS brought FROM more",
    ),
    "audit-log-that-can-be-changed": in_database("DROP TRIGGER audit_is_never_changed"),
    "table-of-other-columns": in_database("ALTER TABLE subscriptions ADD COLUMN more TEXT"),
    "table-that-is-not-ours": in_database("CREATE TABLE more (n)"),
    "damaged-pages": damage,
    "two-tables-in-one-place": share_pages,
}


@pytest.mark.parametrize("lie", FALSE)
def test_database_that_is_not_as_this_program_makes_it_is_no_backup(backup: Path, tmp_path: Path, lie: str) -> None:
    """HOME-43"""
    FALSE[lie](backup)

    with pytest.raises(MalformedError, match="expected a database as this program makes it"):
        restore(HomeFolder(tmp_path / "other"), backup, nobody_hears)

    assert not HomeFolder(tmp_path / "other").database.exists()


def member(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.size = len(content)
    for key, value in fields.items():
        setattr(made, key, value)
    return made, content


def write_tar(path: Path, backup: Path, *first: tuple[tarfile.TarInfo, bytes]) -> None:
    with tarfile.open(path, "w") as archive:
        for made, content in first:
            archive.addfile(made, io.BytesIO(content))
        for each in sorted(backup.rglob("*")):
            archive.add(each, each.relative_to(backup).as_posix(), recursive=False) if each.is_file() else None


def hole(name: str) -> tuple[tarfile.TarInfo, bytes]:
    """A file of a terabyte of which nothing stands in the archive."""
    says = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(HUGE_BYTES)}
    return member(name, b"0\n".ljust(512, b"\0"), pax_headers=says | {"GNU.sparse.name": name})


ARCHIVES = {
    "file-of-a-terabyte-that-is-a-hole": hole(DATABASE),
    "object-of-a-terabyte-that-is-a-hole": hole("objects/00/f1620" + "0" * 64),
    "database-twice": member(DATABASE, b"SQLite format 3\0"),
    "link": member(DATABASE, type=tarfile.SYMTYPE, linkname="/etc/hostname"),
    "hard-link": member(DATABASE, type=tarfile.LNKTYPE, linkname="/etc/hostname"),
    "pipe": member(DATABASE, type=tarfile.FIFOTYPE),
    "object-outside": member("objects/../../outside/f1620" + "0" * 64, b"x"),
    "object-of-no-name": member("objects/00/hello", b"x"),
}


@pytest.mark.parametrize("lie", ARCHIVES)
def test_archive_with_what_no_backup_has_is_rejected(backup: Path, tmp_path: Path, lie: str) -> None:
    """HOME-43"""
    target = tmp_path / "false.tar"
    write_tar(target, backup, ARCHIVES[lie])
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024**2, most[1]))  # else the test would fill the disk
    try:
        with pytest.raises(MalformedError):
            restore(HomeFolder(tmp_path / "other"), target, nobody_hears)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)

    assert not HomeFolder(tmp_path / "other").database.exists()
    assert not (tmp_path / "outside").exists()


def test_archive_that_would_unpack_is_none(backup: Path, tmp_path: Path) -> None:
    """HOME-43: what is written is what lies there; a few kilobytes are no gigabytes."""
    write_tar(tmp_path / "plain.tar", backup)
    (tmp_path / "packed.tar").write_bytes(gzip.compress((tmp_path / "plain.tar").read_bytes()))

    with pytest.raises(MalformedError):
        restore(HomeFolder(tmp_path / "other"), tmp_path / "packed.tar", nobody_hears)

    restore(HomeFolder(tmp_path / "third"), tmp_path / "plain.tar", nobody_hears)


@pytest.mark.parametrize(
    "name", ["../node.pem", "/node.pem", "datasets/../node.pem", "datasets/a/b.pem", "policies.yaml"]
)
def test_file_of_keys_that_names_another_place_is_rejected(tmp_path: Path, name: str) -> None:
    """HOME-44"""
    made, content = member(name, b"x")
    with tarfile.open(tmp_path / "keys.tar", "w") as archive:
        archive.addfile(made, io.BytesIO(content))

    with pytest.raises(OdfError):
        restore_keys(HomeFolder(tmp_path / "other"), tmp_path / "keys.tar")

    assert [path.name for path in tmp_path.rglob("*.pem")] == []
    assert [path.name for path in tmp_path.rglob("*.yaml")] == []
