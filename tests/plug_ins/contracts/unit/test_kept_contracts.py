"""What a home keeps of contracts: whatever else lies in their folder, and whatever happens to the cache of findings."""

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from odf_contracts import keeping
from odf_contracts.keeping import (
    MAX_REASON,
    ContractPass,
    ContractStore,
    FindingNotes,
    KeptContract,
    NotedFinding,
)
from odf_contracts.rules import HoldAction
from odf_node.errors import UsageError
from odf_node.home_folder import HomeFolder
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import CorruptError
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import Purpose, public_key_of, sign_document
from odf_protocol.timestamp import Timestamp

SEED = bytes(range(32))
CONTRACT = KeptContract(
    "one",
    "one.yaml",
    "text",
    "t",
    DatasetId(bytes(range(32))),
    None,
    HoldAction.HOLD,
    Timestamp.parse("2024-01-01T00:00:00Z"),
)
BLOCK = Multihash.of_sha3_256(b"block")


@pytest.fixture
def folder(tmp_path: Path) -> HomeFolder:
    return HomeFolder(tmp_path)


@pytest.mark.parametrize("draft", [".one.draft", ".one.json", "...json", "a b.json"])
def test_draft_that_a_kill_left_is_passed_over(folder: HomeFolder, draft: str) -> None:
    """CONTRACT-7."""
    store = ContractStore(folder)
    store.put(CONTRACT)
    (folder.path / "contracts" / draft).write_bytes(b'{"text": "ha')
    assert [each.name for each in store.list_contracts()] == ["one"]
    store.remove("one")
    assert not store.has_any()


def test_writing_leaves_a_draft_that_no_reader_takes(folder: HomeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """CONTRACT-7: also while it is half-written."""
    store = ContractStore(folder)

    def die(_file: int) -> None:
        assert store.list_contracts() == []
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", die)
    with pytest.raises(KeyboardInterrupt):
        store.put(CONTRACT)
    assert store.list_contracts() == []
    assert not store.has_any()


def test_contract_that_vanishes_while_they_are_listed_is_passed_over(folder: HomeFolder) -> None:
    """CONTRACT-7: a link to nothing is listed and cannot be read, as a file that another process removed."""
    store = ContractStore(folder)
    store.put(CONTRACT)
    (folder.path / "contracts" / "gone.json").symlink_to(folder.path / "nowhere")
    assert [each.name for each in store.list_contracts()] == ["one"]


def test_contract_whose_file_is_broken_is_removed(folder: HomeFolder) -> None:
    """CONTRACT-7: removing one reads neither it nor others."""
    store = ContractStore(folder)
    store.put(CONTRACT)
    for name in ("bad", "worse"):
        (folder.path / "contracts" / f"{name}.json").write_bytes(b"{")
    with pytest.raises(CorruptError, match="remove it and add it again"):
        store.list_contracts()
    store.remove("bad")
    store.remove("worse")
    assert [each.name for each in store.list_contracts()] == ["one"]
    for name in ("bad", "../one", ""):
        with pytest.raises(UsageError, match="there are one"):
            store.remove(name)


def passed(kept: KeptContract, reason: str = "because", **changes: str) -> bytes:
    said = {"contract": kept.name, "digest": kept.digest, "dataset": str(kept.dataset)} | changes
    statement = ContractPass(**said, block=str(BLOCK), version=3, reason=reason, at="2024-01-01T00:00:00Z")
    return sign_document(SEED, Purpose.WAIVER, msgspec.json.encode(statement)).to_bytes()


def test_pass_counts_for_its_contract_text_and_dataset_alone(folder: HomeFolder) -> None:
    """CONTRACT-11."""
    signer = DidKey(public_key_of(SEED))
    others = [
        passed(CONTRACT, contract="two"),
        passed(CONTRACT, digest="0" * 64),
        passed(CONTRACT, dataset=str(DatasetId(bytes(32)))),
    ]
    assert replace(CONTRACT, passes=tuple(others)).list_passes(signer) == []
    assert len(replace(CONTRACT, passes=(*others, passed(CONTRACT))).list_passes(signer)) == 1


@pytest.mark.parametrize("character", ["x", "\x01", "\U0001f41f", '"'])
def test_pass_with_the_longest_reason_is_read_again(character: str) -> None:
    """CONTRACT-11: whatever its characters are as JSON."""
    contract = replace(CONTRACT, name="n" * 100)
    raw = passed(contract, character * MAX_REASON)
    (found,) = replace(contract, passes=(raw,)).list_passes(DidKey(public_key_of(SEED)))
    assert found.reason == character * MAX_REASON


def test_more_passes_than_are_read_again_are_not_written(folder: HomeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """CONTRACT-11."""
    monkeypatch.setattr(keeping, "_MAX_FILE_BYTES", 2_000)
    store = ContractStore(folder)
    store.put(CONTRACT)
    with pytest.raises(UsageError, match="are more than 2,000 bytes; remove it and add it again"):
        store.put(replace(CONTRACT, passes=(passed(CONTRACT),) * 5))
    assert store.get("one").passes == ()


def test_findings_are_noted_by_what_was_compared_with(folder: HomeFolder) -> None:
    """CONTRACT-8."""
    notes = FindingNotes(folder)
    bad, good = NotedFinding(("bad",)), NotedFinding()
    notes.put(CONTRACT, BLOCK, 4, bad)
    notes.put(CONTRACT, BLOCK, None, good)
    assert notes.find(CONTRACT) == {(str(BLOCK), 4): bad, (str(BLOCK), None): good}


def test_processes_that_begin_the_cache_at_once_agree(folder: HomeFolder) -> None:
    """CONTRACT-8."""
    notes = FindingNotes(folder)
    with ThreadPoolExecutor(16) as pool:
        for _each in pool.map(lambda number: notes.put(CONTRACT, BLOCK, number, NotedFinding()), range(64)):
            pass
    assert len(notes.find(CONTRACT)) == 64


@pytest.mark.parametrize("first_page", [True, False])
def test_cache_that_is_damaged_is_begun_anew(folder: HomeFolder, first_page: bool) -> None:
    """CONTRACT-8: findings are made again."""
    notes = FindingNotes(folder)
    path = folder.cache / "contracts.sqlite"
    for number in range(100):
        notes.put(CONTRACT, BLOCK, number, NotedFinding(("x" * 200,)))
    raw = bytearray(path.read_bytes())
    start = 0 if first_page else 4096
    raw[start:] = b"\xee" * (len(raw) - start)
    path.write_bytes(bytes(raw))
    assert notes.find(CONTRACT) == {}
    notes.put(CONTRACT, BLOCK, 1, NotedFinding())
    assert len(notes.find(CONTRACT)) == 1


def test_cache_of_the_version_before_is_begun_anew(folder: HomeFolder) -> None:
    """CONTRACT-8: findings without what was compared with are made again."""
    path = folder.cache / "contracts.sqlite"
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE findings (digest TEXT, block TEXT, finding BLOB, PRIMARY KEY (digest, block))")
        connection.execute("INSERT INTO findings VALUES ('d', 'b', '{}')")
    assert FindingNotes(folder).find(CONTRACT) == {}
