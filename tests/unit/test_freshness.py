"""Old, expired and hidden heads are noticed; a restored backup does not sign a second history."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from odf_node.adapters.key_files import FOLDER_VARIABLE, read_mark, write_mark
from odf_node.composition import Node
from odf_node.datasets.writer import ChainWriter
from odf_node.errors import FrozenDatasetError, RestoredBackupError, UsageError
from odf_node.exchange.taking import PullRequest
from odf_node.keys.disputes import Disputes
from odf_node.keys.freshness import HeadsFreshness
from odf_node.trust.recovery import RecoveryReport
from odf_protocol.equivocation import EquivocationKind
from odf_protocol.errors import RejectedError
from odf_protocol.events import SetInfo
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.offering_peer import OfferingPeer
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain
from support.signing import OTHER_KEY


class WithHead(OfferingPeer):
    """Shows a head document of the test's choice."""

    head_document: bytes = b""

    async def get_head(self) -> Any:
        from dataclasses import replace

        return replace(await super().get_head(), signed_head=self.head_document)


def pull(node: Node, chain: PeerChain, head_document: bytes | None = None, url: str = "http://peer.example/c") -> Any:
    peer = WithHead(chain)
    peer.head_document = head_document or chain.signed_head()
    return asyncio.run(node.taking.take(peer, PullRequest(url=url, name="cities")))


def test_fresh_head_raises_no_doubt(node: Node, chain: PeerChain) -> None:
    head = chain.signed_head(expires=Timestamp(NOW.seconds + 1))
    assert pull(node, chain, head).warnings == ()
    assert pull(node, chain, head).warnings == ()


def test_frozen_head_that_ran_out_is_noticed(node: Node, chain: PeerChain) -> None:
    (doubt,) = pull(node, chain, chain.signed_head(expires=NOW)).warnings
    assert "ran out" in doubt


def test_head_of_the_future_is_noticed(node: Node, chain: PeerChain) -> None:
    from odf_protocol.heads import sign_head

    later = Timestamp(NOW.seconds + 100_000)
    fields = {"dataset_id": chain.id, "sequence_number": chain.head.sequence_number, "block_hash": chain.head.hash}
    (doubt,) = pull(node, chain, sign_head(chain.key, time=later, **fields)).warnings
    assert "has not come yet" in doubt


def test_rollback_is_noticed_and_changes_nothing(node: Node, chain: PeerChain) -> None:
    pull(node, chain)

    doubts = pull(node, chain.up_to(2)).warnings

    assert any("went back to block 2" in doubt for doubt in doubts)
    assert node.store.get_head(chain.id) == chain.head


def test_withheld_suffix_is_noticed_by_what_another_peer_showed(node: Node, chain: PeerChain) -> None:
    pull(node, chain.up_to(2))
    HeadsFreshness(node.store).learn(chain.signed_head(), chain.id, source="http://witness.example/c", now=NOW)

    doubts = pull(node, chain.up_to(2)).warnings

    assert any("http://witness.example/c showed a signed head of block 3" in doubt for doubt in doubts)


@pytest.mark.parametrize("changes", [{"key": OTHER_KEY}, {"dataset_id": root_chain}], ids=["key", "dataset"])
def test_head_of_a_stranger_is_not_remembered(
    node: Node, chain: PeerChain, tmp_path: Path, changes: dict[str, Any]
) -> None:
    if "dataset_id" in changes:
        changes = {"dataset_id": root_chain(tmp_path, key=OTHER_KEY).id}
    assert not HeadsFreshness(node.store).learn(chain.signed_head(**changes), chain.id, source="x", now=NOW)
    assert node.store.find_seen_head(chain.id) is None


def test_two_heads_of_one_number_freeze_without_a_single_block(node: Node, chain: PeerChain) -> None:
    freshness = HeadsFreshness(node.store)
    freshness.learn(chain.signed_head(), chain.id, source="one", now=NOW)
    freshness.learn(chain.signed_head(block_hash=Multihash.of_sha3_256(b"other")), chain.id, source="two", now=NOW)
    with pytest.raises(FrozenDatasetError):
        Disputes(node.store).require_undisputed(chain.id, "cities")


def test_head_that_contradicts_a_block_below_the_newest_freezes_by_that_blocks_signature(
    node: Node, chain: PeerChain
) -> None:
    pull(node, chain)
    number = chain.head.sequence_number - 1
    other = chain.signed_head(sequence_number=number, block_hash=Multihash.of_sha3_256(b"other"))

    HeadsFreshness(node.store).learn(other, chain.id, source="gossip", now=NOW)

    (dispute,) = Disputes(node.store).list_disputes(chain.id)
    assert (dispute.proof.kind, dispute.proof.position) == (EquivocationKind.HEAD_AND_BLOCK, number)
    assert chain.blocks[number].hash in {dispute.proof.first, dispute.proof.second}


def test_head_that_was_shown_before_the_blocks_freezes_as_one_that_comes_after_them_equiv_9(
    node: Node, chain: PeerChain
) -> None:
    pull(node, chain.up_to(2))
    number = chain.head.sequence_number
    other = chain.signed_head(block_hash=Multihash.of_sha3_256(b"other"))
    HeadsFreshness(node.store).learn(other, chain.id, source="gossip", now=NOW)
    assert Disputes(node.store).list_disputes(chain.id) == []

    pull(node, chain.copy().add_rows([("Atlantis", 1)]))

    (dispute,) = Disputes(node.store).list_disputes(chain.id)
    assert dispute.proof.position == number
    assert {dispute.proof.first, dispute.proof.second} == {chain.head.hash, Multihash.of_sha3_256(b"other")}


def test_older_head_of_the_same_chain_freezes_nothing(node: Node, chain: PeerChain) -> None:
    pull(node, chain)
    HeadsFreshness(node.store).learn(chain.up_to(2).signed_head(), chain.id, source="gossip", now=NOW)
    assert Disputes(node.store).list_disputes(chain.id) == []


def test_renewed_head_takes_the_place_of_the_older_document(node: Node, chain: PeerChain) -> None:
    pull(node, chain)
    from odf_protocol.heads import sign_head

    fields = {"dataset_id": chain.id, "sequence_number": chain.head.sequence_number, "block_hash": chain.head.hash}
    renewed = sign_head(chain.key, time=NOW, expires=Timestamp(NOW.seconds + 9), **fields)
    pull(node, chain, renewed)
    pull(node, chain)  # the older one again

    found = node.store.find_signed_head(chain.id)
    assert found is not None
    assert found.raw == renewed


def test_restored_backup_learns_of_its_newer_blocks_and_does_not_sign(
    judge: Judge, node: Node, chain: PeerChain
) -> None:
    PublisherHome(judge).keep(chain.up_to(2))
    ChainWriter.continue_chain(node.store, node.keys, chain.id)
    with pytest.raises(UsageError, match="this node's own"):
        pull(node, chain)

    with pytest.raises(RestoredBackupError, match="evidence recover"):
        ChainWriter.continue_chain(node.store, node.keys, chain.id)


def test_restored_backup_is_recognised_by_what_the_machine_remembers(
    judge: Judge, node: Node, chain: PeerChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "marks"))
    PublisherHome(judge).keep(chain.up_to(2))
    writer = ChainWriter.continue_chain(node.store, node.keys, chain.id)
    writer.add(SetInfo(description="before the loss"), system_time=NOW)
    writer.commit(signed_at=NOW, objects=node.objects, staged={})
    assert read_mark(chain.id) is not None

    lost = Judge.create(tmp_path / "restored")
    PublisherHome(lost).keep(chain.up_to(2))
    with lost.opened() as store, pytest.raises(RestoredBackupError, match="this machine remembers"):
        ChainWriter.continue_chain(store, lost.keys, chain.id)
    ChainWriter.continue_chain(node.store, node.keys, chain.id)


@pytest.mark.parametrize("content", [b"", b"x", b"1 zz", b"\xff", b"1 2 3"])
def test_memory_that_cannot_be_read_is_none(
    chain: PeerChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    write_mark(chain.id, 1, chain.head.hash)
    (tmp_path / chain.id.public_key.hex()).write_bytes(content)
    assert read_mark(chain.id) is None


def test_publisher_takes_its_own_blocks_back(judge: Judge, node: Node, chain: PeerChain) -> None:
    PublisherHome(judge).keep(chain.up_to(2))
    record = node.store.find_dataset(chain.id)
    assert record is not None

    recovered = asyncio.run(RecoveryReport(node.home).recover(record, OfferingPeer(chain), now=NOW))

    assert recovered.head == chain.head
    ChainWriter.continue_chain(node.store, node.keys, chain.id)


def test_recovery_takes_nothing_that_our_key_did_not_sign(judge: Judge, node: Node, chain: PeerChain) -> None:
    PublisherHome(judge).keep(chain.up_to(2))
    record = node.store.find_dataset(chain.id)
    assert record is not None
    unsigned = chain.copy(signatures=[*chain.signatures[:-1], None])
    forged = chain.replacing(3, lambda event: event, key=OTHER_KEY)

    for proposed in (unsigned, forged):
        with pytest.raises(RejectedError):
            asyncio.run(RecoveryReport(node.home).recover(record, OfferingPeer(proposed), now=NOW))
    assert node.store.get_head(chain.id) == chain.up_to(2).head
