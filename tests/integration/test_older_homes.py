"""A home, and a backup, made by the program as it was with tables of version 1 open with this one (HOME-6).

``tests/data/homes/version-1.tar.gz`` was made by that program: a root with a row in quarantine, a derivative, keys, a
token, both datasets published.
"""

import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.store import schema
from support.nodes import RealNode

ARCHIVE = Path(__file__).parents[1] / "data" / "homes" / "version-1.tar.gz"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    for path in [tmp_path / "home-1" / "keys", *(tmp_path / "home-1" / "keys").rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)  # git keeps no modes
    return tmp_path / "home-1"


def stamp_of(home: Path) -> str:
    with closing(sqlite3.connect(home / "odf-node.sqlite")) as connection:
        return schema.describe_stamp(schema.read_version(connection)[1])


def tables_of(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def test_home_of_the_first_version_keeps_everything_and_goes_on(home: Path, tmp_path: Path) -> None:
    node = RealNode(home)
    assert stamp_of(home) == "1-94f4f"

    assert "all signed by the dataset's key, 1 step re-executed" in node.must("verify", "%", "--all").out
    assert stamp_of(home) == schema.describe_stamp(schema.STAMP)
    assert "1 of 1 row waiting" in node.must("quarantine", "list", "cities").out
    assert "reader" in node.must("token", "list").out
    (tmp_path / "more.csv").write_text("city,people\nRome,2800\n")
    node.must("ingest", "cities", str(tmp_path / "more.csv"))
    assert "1 row derived" in node.must("pull", "large").out
    assert "the audit log is whole" in node.must("audit", "check").out
    with closing(sqlite3.connect(home / "odf-node.sqlite")) as found, closing(sqlite3.connect(":memory:")) as made:
        made.isolation_level = None
        schema.create_tables(made)
        assert tables_of(found) == tables_of(made)


@pytest.mark.usefixtures("home")
def test_backup_of_the_first_version_is_restored(tmp_path: Path) -> None:
    assert stamp_of(tmp_path / "backup-1") == "1-94f4f"
    restored = RealNode(tmp_path / "restored")

    assert "2 datasets" in restored.must("restore", str(tmp_path / "backup-1")).out

    assert "re-executed" in restored.must("verify", "%", "--all").out


def test_tables_of_another_build_are_not_migrated() -> None:
    assert not schema.can_migrate((1 << 20) | 0x12345)
    assert not schema.can_migrate(schema.STAMP)
    assert schema.can_migrate((1 << 20) | 0x94F4F)
