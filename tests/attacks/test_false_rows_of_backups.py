"""Backups with the right tables and false rows: nothing that only the node's word stands behind is believed.

Source: HOME-43 and HOME-56 in ``spec/home.md``.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.adapters.home_backup import back_up, restore
from odf_node.adapters.key_backup import back_up_keys, find_node_key
from odf_node.adapters.key_files import KeyFiles
from odf_node.cli.main import main
from odf_node.home_folder import HomeFolder
from odf_node.store import schema
from odf_node.store.restored_rows import COLUMNS
from odf_protocol.did import DidKey
from odf_protocol.errors import MalformedError, OdfError, RejectedError
from odf_protocol.policy import Trust
from support.exchange_nodes import Chain, TestNode

DATABASE = "odf-node.sqlite"
A_TOKEN = (
    "INSERT INTO access_tokens (id, secret_hash, label, scopes, created_at)"
    """ VALUES ('abc', x'00', 'mine', '["admin"]', '2024-01-01T00:00:00Z')"""
)
TRUSTED = "UPDATE datasets SET trust = 're-executed', origin = 'pulled', origin_url = 'http://peer.example/demo.data'"
VERIFIED = (
    "INSERT INTO verified (dataset, sequence_number, hash, replayed, chain_state, verified_at)"
    " SELECT key, head_sequence_number, head_hash, 1, chain_state, '2024-01-01T00:00:00Z' FROM datasets"
)
REPOSITORY = "INSERT INTO repositories (name, url) VALUES ('main', 'http://forger.example/')"


def nobody_hears(_: object) -> None:
    return


@pytest.fixture
def node(tmp_path: Path) -> TestNode:
    node, chain = TestNode.create(tmp_path / "home"), Chain("demo.data", has_schema=True)
    for number in range(300):
        chain.add(f"slice {number}".encode())
    node.keep(chain)
    KeyFiles(node.home).get_or_create_node_key()
    return node


@pytest.fixture
def backup(node: TestNode, tmp_path: Path) -> Path:
    back_up(node.home, tmp_path / "backup", nobody_hears)
    return tmp_path / "backup"


def maker_of(node: TestNode) -> DidKey:
    key = KeyFiles(node.home).find_node_key()
    assert key is not None
    return DidKey(key.public_key())


def change(backup: Path, *statements: str) -> None:
    with closing(sqlite3.connect(backup / DATABASE)) as connection:
        for each in statements:
            connection.execute(each)
        connection.commit()


def take_signature_away(backup: Path) -> None:
    found = json.loads((backup / "backup.json").read_bytes())
    del found["signed"]
    (backup / "backup.json").write_text(json.dumps(found))


FALSE = {
    "name-that-leaves-the-folder": ["UPDATE datasets SET name = '../../evil'"],
    "name-of-a-folder": ["UPDATE datasets SET name = '..'"],
    "name-with-a-line-end": ["UPDATE datasets SET name = 'a' || char(10) || 'b'"],
    "name-asked-for-that-leaves-the-folder": ["UPDATE datasets SET asked_name = '/etc/passwd'"],
    "kind-that-is-none": ["UPDATE datasets SET kind = 'ADMIN'"],
    "origin-that-is-none": ["UPDATE datasets SET origin = 'root'"],
    "trust-that-is-none": ["UPDATE datasets SET trust = 'absolute'"],
    "address-that-a-terminal-acts-on": ["UPDATE datasets SET origin_url = 'http://a' || char(27) || '[2J'"],
    "identity-of-another": ["UPDATE datasets SET id = CAST(x'ed01' || randomblob(32) AS BLOB)"],
    "identity-that-is-none": ["UPDATE datasets SET id = x'00'"],
    "derivative-that-is-a-root": ["UPDATE datasets SET kind = 'DERIVATIVE'"],
    "head-that-is-not-the-last": ["UPDATE datasets SET head_sequence_number = 7"],
    "block-that-was-changed": ["UPDATE blocks SET raw = randomblob(length(raw)) WHERE sequence_number = 5"],
    "block-left-out": ["DELETE FROM blocks WHERE sequence_number = 150"],
    "last-block-left-out": ["DELETE FROM blocks WHERE sequence_number = 301"],
    "block-listed-as-one-without-rows": ["UPDATE blocks SET role = 0 WHERE sequence_number = 250"],
    "slice-that-is-not-listed": ["DELETE FROM objects"],
    "subscription-that-leaves-the-folder": [
        "INSERT INTO subscriptions SELECT id, '../../evil', NULL, '2024-01-01T00:00:00Z' FROM datasets"
    ],
    "time-that-is-none": ["UPDATE datasets SET created_at = 'yesterday'"],
    "quarantine-that-is-no-JSON": [
        """INSERT INTO quarantine_files (dataset, object_hash, row_count, source, created_at, resent_from, batch)
        SELECT key, head_hash, 1, 'x', '2024-01-01T00:00:00Z', '', '{' FROM datasets"""
    ],
    "two-of-one-name": [
        """INSERT INTO datasets SELECT key + 1, CAST(x'ed01' || randomblob(32) AS BLOB), upper(name), kind, origin,
        origin_url, trust, pinned_key, published, created_at, head_sequence_number, head_hash, chain_state, asked_name
        FROM datasets"""
    ],
}


@pytest.mark.parametrize("lie", FALSE)
def test_row_that_this_program_does_not_write_is_rejected_whoever_signed(
    node: TestNode, backup: Path, tmp_path: Path, lie: str
) -> None:
    """HOME-43: also where the maker's own database was changed before it was signed."""
    change(backup, *FALSE[lie])
    take_signature_away(backup)
    other = HomeFolder(tmp_path / "other")

    with pytest.raises(MalformedError, match="malformed backup"):
        restore(other, backup, nobody_hears, makers=frozenset({maker_of(node)}))

    assert not other.database.exists()
    assert not (tmp_path / "evil").exists()


def test_every_column_is_read_as_what_it_says() -> None:
    """HOME-43: a column that comes new is checked as well."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.create_tables(connection)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        made = {
            table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for table in tables
            if not table.startswith("sqlite_")
        }
    assert {table: [*columns] for table, columns in COLUMNS.items()} == made


def test_what_only_the_maker_vouches_for_is_left_out_of_a_backup_that_nobody_signed(
    node: TestNode, backup: Path, tmp_path: Path
) -> None:
    """HOME-56"""
    change(backup, A_TOKEN, TRUSTED, VERIFIED, REPOSITORY)
    take_signature_away(backup)

    report = restore(HomeFolder(tmp_path / "other"), backup, nobody_hears, makers=frozenset({maker_of(node)}))

    assert report.signer is None
    other = TestNode.create(tmp_path / "other")
    (record,) = other.store.list_datasets()
    assert (record.trust, record.published) == (Trust.METADATA, False)
    assert other.store.list_tokens() == ()
    assert other.store.find_verified(record.id) is None
    assert other.store.list_repositories() == ()
    assert len([*other.store.iter_blocks(record.id)]) == 302


def test_what_the_maker_signed_is_believed_by_who_knows_the_maker(node: TestNode, tmp_path: Path) -> None:
    """HOME-56"""
    change(node.home.path, A_TOKEN, TRUSTED, REPOSITORY)
    back_up(node.home, tmp_path / "backup", nobody_hears)

    stranger = restore(HomeFolder(tmp_path / "stranger"), tmp_path / "backup", nobody_hears)
    known = restore(
        HomeFolder(tmp_path / "known"), tmp_path / "backup", nobody_hears, makers=frozenset({maker_of(node)})
    )

    assert (stranger.signer, known.signer) == (None, maker_of(node))
    assert TestNode.create(tmp_path / "stranger").store.list_tokens() == ()
    kept = TestNode.create(tmp_path / "known").store
    assert (len(kept.list_tokens()), len(kept.list_repositories())) == (1, 1)
    assert kept.list_datasets()[0].trust is Trust.REEXECUTED


def test_database_that_was_changed_behind_its_signature_is_rejected(
    node: TestNode, backup: Path, tmp_path: Path
) -> None:
    """HOME-56: also where the change is one that this program could have made."""
    change(backup, A_TOKEN)

    with pytest.raises(RejectedError, match="backup-is-what-was-signed"):
        restore(HomeFolder(tmp_path / "other"), backup, nobody_hears, makers=frozenset({maker_of(node)}))

    assert not HomeFolder(tmp_path / "other").database.exists()


@pytest.mark.parametrize("signed", ["", "AAAA", "no base64", 7, None, [], "A" * 200])
def test_signature_that_is_none_is_rejected(backup: Path, tmp_path: Path, signed: object) -> None:
    """HOME-56"""
    found = json.loads((backup / "backup.json").read_bytes())
    (backup / "backup.json").write_text(json.dumps(found | {"signed": signed}))

    with pytest.raises(OdfError):
        restore(HomeFolder(tmp_path / "other"), backup, nobody_hears)

    assert not HomeFolder(tmp_path / "other").database.exists()


def test_signature_of_another_backup_is_none_of_this_one(node: TestNode, backup: Path, tmp_path: Path) -> None:
    """HOME-56: an older state cannot be given out with the newer one's word, nor the other way round."""
    shutil.copytree(backup, tmp_path / "older")
    change(node.home.path, A_TOKEN)
    back_up(node.home, backup, nobody_hears)
    shutil.copy(tmp_path / "older" / "backup.json", backup / "backup.json")

    with pytest.raises(RejectedError, match="backup-is-what-was-signed"):
        restore(HomeFolder(tmp_path / "other"), backup, nobody_hears, makers=frozenset({maker_of(node)}))


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(home: Path, *words: object) -> tuple[int, str]:
        code = main(["--home", str(home), *map(str, words)])
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return call


def test_operator_learns_what_was_left_out_and_how_to_keep_it(
    node: TestNode, backup: Path, tmp_path: Path, run: Run
) -> None:
    """HOME-56"""
    back_up_keys(node.home, tmp_path / "keys.tar")
    assert find_node_key(tmp_path / "keys.tar") == maker_of(node)

    code, reported = run(tmp_path / "a", "restore", backup)
    assert (code, "Left out are" in reported, "--signed-by" in reported) == (0, True, True)

    code, reported = run(tmp_path / "b", "restore", backup, "--signed-by", maker_of(node))
    assert (code, "Left out are" in reported) == (0, False)

    code, reported = run(tmp_path / "c", "restore", backup, "--keys", tmp_path / "keys.tar")
    assert (code, "Left out are" in reported) == (0, False)

    code, reported = run(tmp_path / "d", "restore", backup, "--signed-by", "somebody")
    assert (code, "--signed-by: " in reported) == (2, True)
    assert not HomeFolder(tmp_path / "d").database.exists()
