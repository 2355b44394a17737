"""Backups whose rows are each of the right form, and belong to nothing, to another, or to what is not there yet.

Source: HOME-43 and HOME-56 in ``spec/home.md``.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.adapters.backup_manifest import make_manifest
from odf_node.adapters.home_backup import back_up, restore
from odf_node.adapters.key_files import KeyFiles
from odf_node.home_folder import HomeFolder
from odf_protocol.did import DidKey
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.multihash import Multihash
from support.exchange_nodes import Chain, TestNode

DATABASE = "odf-node.sqlite"


def nobody_hears(_: object) -> None:
    return


@pytest.fixture
def node(tmp_path: Path) -> TestNode:
    node = TestNode.create(tmp_path / "home")
    for name in ("demo.open", "demo.private"):
        chain = Chain(name, has_schema=True)
        chain.add(f"slice of {name}".encode())
        node.keep(chain)
    KeyFiles(node.home).get_or_create_node_key()
    return node


NEXT = "(SELECT max(key) + 1 FROM datasets)"
FIRST, LAST = "(SELECT min(key) FROM datasets)", "(SELECT max(key) FROM datasets)"
FOREIGN = {
    "blocks-of-a-dataset-that-comes-next": [
        f"""INSERT INTO blocks SELECT {NEXT}, sequence_number, hash, raw, signature, role FROM blocks
        WHERE dataset = {LAST}"""
    ],
    "slice-of-a-dataset-that-comes-next": [
        f"INSERT INTO objects SELECT {NEXT}, hash, 0, 1 FROM objects WHERE dataset = {LAST}"
    ],
    "acceptance-of-a-dataset-that-comes-next": [
        f"""INSERT INTO acceptances (dataset, sequence_number, hash, trust, source_url, accepted_at, detail)
        SELECT {NEXT}, 0, head_hash, 're-executed', 'x', '2024-01-01T00:00:00Z', x'7b7d' FROM datasets LIMIT 1"""
    ],
    "head-of-a-dataset-that-comes-next": [
        f"""INSERT INTO signed_heads (dataset, sequence_number, hash, raw)
        SELECT {NEXT}, head_sequence_number, head_hash, x'00' FROM datasets LIMIT 1"""
    ],
    "replay-record-of-a-dataset-that-comes-next": [
        f"INSERT INTO replay_records (dataset, sequence_number, raw) VALUES ({NEXT}, 3, x'00')"
    ],
    "mark-of-verification-of-a-dataset-that-comes-next": [
        f"""INSERT INTO verified (dataset, sequence_number, hash, replayed, chain_state, verified_at)
        SELECT {NEXT}, head_sequence_number, head_hash, 1, chain_state, '2024-01-01T00:00:00Z' FROM datasets LIMIT 1"""
    ],
    "blocks-behind-the-head": [
        f"""UPDATE datasets SET head_sequence_number = 1, head_hash = (SELECT hash FROM blocks WHERE dataset = {LAST}
        AND sequence_number = 1) WHERE key = {LAST}"""
    ],
    "blocks-of-another-dataset": [
        f"UPDATE blocks SET dataset = 777 WHERE dataset = {FIRST}",
        f"UPDATE blocks SET dataset = {FIRST} WHERE dataset = {LAST}",
        f"UPDATE blocks SET dataset = {LAST} WHERE dataset = 777",
    ],
    "dataset-without-blocks": [f"DELETE FROM blocks WHERE dataset = {FIRST}"],
    "numbers-of-blocks-that-are-shifted": ["UPDATE blocks SET sequence_number = sequence_number + 100"],
    "hash-of-a-block-in-another-algorithm": ["UPDATE blocks SET hash = CAST(x'1220' || randomblob(32) AS BLOB)"],
    "slice-that-is-only-called-absent-and-is-another": [
        "UPDATE objects SET hash = CAST(x'1620' || randomblob(32) AS BLOB)"
    ],
}


@pytest.mark.parametrize("signs", [False, True], ids=["unsigned", "signed"])
@pytest.mark.parametrize("lie", FOREIGN)
def test_row_that_belongs_to_nothing_or_to_another_is_rejected_whoever_signed(
    node: TestNode, tmp_path: Path, lie: str, signs: bool
) -> None:
    """HOME-43: what waits under the number of the next dataset would be that one's, unchecked."""
    backup, other = tmp_path / "backup", HomeFolder(tmp_path / "other")
    back_up(node.home, backup, nobody_hears)
    with closing(sqlite3.connect(backup / DATABASE)) as connection:
        for each in FOREIGN[lie]:
            connection.execute(each)
        connection.commit()
    key = KeyFiles(node.home).find_node_key()
    assert key is not None
    _sign_again(node, backup, signs=signs)

    with pytest.raises(MalformedError, match="malformed backup"):
        restore(other, backup, nobody_hears, makers=frozenset({DidKey(key.public_key())}))

    assert not other.database.exists()


def _sign_again(node: TestNode, backup: Path, *, signs: bool) -> None:
    path = backup / "backup.json"
    if signs:
        key = KeyFiles(node.home).find_node_key()
        path.write_bytes(make_manifest(backup / DATABASE, key, datasets=2, objects=2))
    else:
        path.write_text(json.dumps({k: v for k, v in json.loads(path.read_bytes()).items() if k != "signed"}))


def test_slice_of_a_private_dataset_that_is_listed_as_an_open_ones_is_not_given_out_as_that(
    node: TestNode, tmp_path: Path
) -> None:
    """HOME-43, EX-80: what a dataset has follows from its blocks; also where the maker signed the list."""
    backup = tmp_path / "backup"
    back_up(node.home, backup, nobody_hears)
    opened, private = sorted(node.store.list_datasets(), key=lambda each: str(each.name))
    with closing(sqlite3.connect(backup / DATABASE)) as connection:
        (stolen,) = connection.execute(
            "SELECT hash FROM objects JOIN datasets d ON d.key = dataset WHERE d.name = ?", (str(private.name),)
        ).fetchone()
        connection.execute(
            "INSERT INTO objects SELECT key, ?, 0, 1 FROM datasets WHERE name = ?", (stolen, str(opened.name))
        )
        connection.commit()
    _sign_again(node, backup, signs=True)
    key = KeyFiles(node.home).find_node_key()
    assert key is not None

    restore(HomeFolder(tmp_path / "other"), backup, nobody_hears, makers=frozenset({DidKey(key.public_key())}))

    names = TestNode.create(tmp_path / "other").store
    assert not names.names_object(opened.id, Multihash.decode(stolen))
    assert names.has_dataset_object(private.id, Multihash.decode(stolen))


MANIFESTS = {
    "no-JSON": b"{",
    "deep-JSON": b"[" * 100_000,
    "list": b"[]",
    "number": b"2",
    "no-format": b"{}",
    "format-of-tomorrow": b'{"format": 3}',
    "format-as-text": b'{"format": "2"}',
    "format-that-cannot-be-hashed": b'{"format": []}',
    "huge-number": b'{"format": ' + b"9" * 5000 + b"}",
    "longer-than-any": b'{"format": 2, "x": "' + b"x" * 100_000 + b'"}',
    "not-UTF-8": b'{"format": 2, "x": "\xff"}',
    "empty": b"",
}


@pytest.mark.parametrize("lie", MANIFESTS)
def test_manifest_that_is_none_is_an_error_of_the_backup(node: TestNode, tmp_path: Path, lie: str) -> None:
    """HOME-43"""
    backup, other = tmp_path / "backup", HomeFolder(tmp_path / "other")
    back_up(node.home, backup, nobody_hears)
    (backup / "backup.json").write_bytes(MANIFESTS[lie])

    with pytest.raises(OdfError):
        restore(other, backup, nobody_hears)

    assert not other.database.exists()
