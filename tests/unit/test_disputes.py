"""What a proof of two histories does to a node, how it travels, and how an owner ends it."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from odf_node.acceptance.histories import lay_side_by_side
from odf_node.adapters.peer_addresses import open_peer
from odf_node.composition import Node
from odf_node.datasets.writer import ChainWriter
from odf_node.errors import FrozenDatasetError, ProposalRejectedError, UsageError
from odf_node.exchange.taking import PullRequest
from odf_node.keys.disputes import MAX_PROOFS, Disputes
from odf_node.keys.logs import KeyLogs
from odf_node.ports.progress import Silence
from odf_node.records.evidence import DocumentKind
from odf_node.trust.bundles import Bundles
from odf_protocol.equivocation import EquivocationKind, EquivocationProof, check_equivocation, prove_equivocation
from odf_protocol.events import SetInfo
from odf_protocol.judging import Weight, decode_bundle, encode_bundle
from odf_protocol.judging import judge as judge_bundle
from odf_protocol.multihash import Multihash
from odf_protocol.settlements import decode_settlement, find_kept_history, sign_settlement
from odf_protocol.timestamp import Timestamp
from support.exchange_nodes import TestNode
from support.key_logs import KeyLog
from support.offering_peer import OfferingPeer
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain
from support.signing import DATASET_KEY, NEW_KEY, OTHER_KEY, did_key_of

Served = TestNode


@pytest.fixture
def fork(chain: PeerChain) -> PeerChain:
    """As long as the chain, with another last block."""
    return chain.up_to(2).add_rows([("Atlantis", 1)])


@pytest.fixture
def proof(chain: PeerChain, fork: PeerChain) -> EquivocationProof:
    return prove_equivocation(EquivocationKind.HEADS, chain.signed_head(), fork.signed_head())


def pull(node: Node, peer: OfferingPeer | PeerChain) -> Any:
    peer = OfferingPeer(peer) if isinstance(peer, PeerChain) else peer
    return asyncio.run(node.taking.take(peer, PullRequest(url="http://peer.example/cities", name="cities")))


def settled(proof: EquivocationProof, chain: PeerChain, key: bytes = DATASET_KEY) -> bytes:
    return sign_settlement(key, proof, keeps=chain.blocks[proof.position].hash, reason="a lost disk", time=NOW)


@pytest.mark.parametrize("is_longer", [False, True])
def test_signed_blocks_of_another_history_freeze_without_a_signed_head(
    node: Node, chain: PeerChain, fork: PeerChain, is_longer: bool
) -> None:
    pull(node, chain)

    with pytest.raises(ProposalRejectedError):
        pull(node, OfferingPeer(fork.add_rows([("Atlantis", 2)]) if is_longer else fork, has_signatures=False))

    (dispute,) = Disputes(node.store).list_disputes(chain.id)
    kind = EquivocationKind.HEAD_AND_BLOCK if is_longer else EquivocationKind.BLOCKS
    assert (dispute.proof.kind, dispute.proof.position) == (kind, chain.head.sequence_number)


@dataclass
class AskedPeer(OfferingPeer):
    """One that says single hashes too."""

    async def find_hash(self, sequence_number: int) -> Multihash | None:
        return self.chain.blocks[sequence_number].hash


@pytest.mark.parametrize("lengths", [(3, 5), (5, 4), (4, 7)], ids=["longer", "shorter", "much longer"])
def test_lie_behind_a_new_key_is_proved_by_the_blocks_where_the_histories_part_equiv_9(
    node: Node, chain: PeerChain, fork: PeerChain, lengths: tuple[int, int]
) -> None:
    """The heads are by two keys; the first block that differs is signed by the old key in both histories."""
    ours, theirs = lengths
    for number in range(3, ours):
        chain.add(SetInfo(description=f"true {number}"))
    log = KeyLog(fork.key).rotate(NEW_KEY, 4)
    lie = fork.copy(key=NEW_KEY, identity=fork.id)
    for number in range(3, theirs):
        lie.add(SetInfo(description=f"false {number}"))
    pull(node, chain)

    with pytest.raises(ProposalRejectedError) as caught:
        pull(node, AskedPeer(lie, key_events=log.raws))

    assert "equivocation" in caught.value.report
    (dispute,) = Disputes(node.store).list_disputes(chain.id)
    assert (dispute.proof.kind, dispute.proof.position) == (EquivocationKind.BLOCKS, 3)
    assert "frozen" in (Disputes(node.store).find_obstacle(chain.id) or "")


def test_proof_that_a_peer_passes_on_freezes_before_anything_else(
    node: Node, chain: PeerChain, proof: EquivocationProof
) -> None:
    pull(node, chain.up_to(2))

    with pytest.raises(ProposalRejectedError, match="frozen"):
        pull(node, OfferingPeer(chain, disputes=(proof.raw,)))

    assert node.store.get_head(chain.id) == chain.up_to(2).head
    record = node.store.find_dataset(chain.id)
    assert record is not None
    assert not node.trust.stand(record).decision.accepted
    with pytest.raises(FrozenDatasetError):
        asyncio.run(node.pushing.push(record, "http://nobody.example/x", token=None, progress=Silence()))


def test_dataset_that_is_not_held_yet_is_not_taken_against_a_proof(
    node: Node, chain: PeerChain, proof: EquivocationProof
) -> None:
    with pytest.raises(ProposalRejectedError, match="frozen"):
        pull(node, OfferingPeer(chain, disputes=(proof.raw,)))
    assert node.store.list_datasets() == ()


def test_proofs_that_prove_nothing_here_freeze_nothing(
    node: Node, chain: PeerChain, tmp_path: Path, proof: EquivocationProof
) -> None:
    other = root_chain(tmp_path, key=OTHER_KEY)
    about_other = prove_equivocation(
        EquivocationKind.HEADS, other.signed_head(), other.up_to(2).add_rows([("x", 1)]).signed_head()
    )
    by_stranger = prove_equivocation(
        EquivocationKind.HEADS,
        chain.signed_head(key=OTHER_KEY),
        chain.signed_head(key=OTHER_KEY, block_hash=Multihash.of_sha3_256(b"x")),
    )
    documents = (about_other.raw, by_stranger.raw, proof.raw[:-1], proof.raw.replace(b"heads", b"lies"), b"", b"{}")

    assert pull(node, OfferingPeer(chain, disputes=documents)).new_blocks == 4
    assert list(node.store.iter_documents(chain.id, DocumentKind.EQUIVOCATION)) == []


def test_flood_of_proofs_is_bounded(node: Node, chain: PeerChain) -> None:
    heads = [chain.signed_head(block_hash=Multihash.of_sha3_256(bytes([n]))) for n in range(MAX_PROOFS + 10)]
    proofs = [prove_equivocation(EquivocationKind.HEADS, chain.signed_head(), head).raw for head in heads]

    assert Disputes(node.store).learn(proofs, chain.id, now=NOW) == MAX_PROOFS


def _settled_lies(chain: PeerChain) -> tuple[bytes, ...]:
    """As many contradictions as are kept, each at a place of its own or with another hash, and all settled."""
    number, truth = chain.head.sequence_number, chain.signed_head()
    heads = [chain.signed_head(block_hash=Multihash.of_sha3_256(bytes([n]))) for n in range(MAX_PROOFS)]
    proofs = [prove_equivocation(EquivocationKind.HEADS, truth, head) for head in heads]
    settlement = sign_settlement(chain.key, proofs[0], keeps=chain.blocks[number].hash, reason="a lost disk", time=NOW)
    return (*(each.raw for each in proofs), settlement)


@pytest.mark.parametrize("by_rejection", [True, False])
def test_key_that_settled_as_many_lies_as_are_kept_is_not_free_to_lie_again_equiv_10(
    node: Node, chain: PeerChain, by_rejection: bool
) -> None:
    truth, lie = (chain.copy().add_rows([(city, 1)]) for city in ("Oslo", "Atlantis"))
    pull(node, OfferingPeer(truth, disputes=_settled_lies(chain)))
    disputes = Disputes(node.store)
    assert (len(disputes.list_disputes(chain.id)), disputes.find_obstacle(chain.id)) == (MAX_PROOFS, None)

    if by_rejection:
        with pytest.raises(ProposalRejectedError):
            pull(node, lie)
    else:
        new = prove_equivocation(EquivocationKind.HEADS, truth.signed_head(), lie.signed_head())
        assert disputes.learn([new.raw], chain.id, now=NOW) == 1

    assert "frozen" in (disputes.find_obstacle(chain.id) or "")
    heads = [lie.signed_head(block_hash=Multihash.of_sha3_256(b"again" + bytes([n]))) for n in range(9)]
    more = [prove_equivocation(EquivocationKind.HEADS, truth.signed_head(), head).raw for head in heads]
    assert disputes.learn(more, chain.id, now=NOW) == 0  # it is frozen, and one proof is enough


def test_reader_who_hears_all_at_once_keeps_the_proof_that_nobody_settled_equiv_10(
    node: Node, chain: PeerChain
) -> None:
    truth, lie = (chain.copy().add_rows([(city, 1)]) for city in ("Oslo", "Atlantis"))
    new = prove_equivocation(EquivocationKind.HEADS, truth.signed_head(), lie.signed_head())
    *proofs, settlement = _settled_lies(chain)

    with pytest.raises(ProposalRejectedError, match="frozen"):
        pull(node, OfferingPeer(truth, disputes=(*proofs, new.raw, settlement)))


def test_thief_who_filled_the_room_for_proofs_does_not_shield_the_next_key_equiv_10(
    node: Node, chain: PeerChain
) -> None:
    """What a stolen key said is void after the recovery; what the owner's new key says twice is not."""
    pull(node, chain)
    *proofs, _ = _settled_lies(chain)
    disputes, logs = Disputes(node.store), KeyLogs(node.store)
    assert disputes.learn(proofs, chain.id, now=NOW) == MAX_PROOFS
    log = KeyLog(chain.key).prepare()
    logs.learn(chain.id, log.recover(NEW_KEY, 4, stolen_from=3, keeps=chain.head.hash).raws, now=NOW)
    assert disputes.find_obstacle(chain.id) is None

    twice = [
        chain.signed_head(key=NEW_KEY, sequence_number=4, block_hash=Multihash.of_sha3_256(text))
        for text in (b"a", b"b")
    ]
    disputes.learn([prove_equivocation(EquivocationKind.HEADS, *twice).raw], chain.id, now=NOW)

    assert "frozen" in (disputes.find_obstacle(chain.id) or "")


def test_settlement_of_the_owner_lets_the_kept_history_go_on(
    node: Node, chain: PeerChain, proof: EquivocationProof
) -> None:
    pull(node, chain.up_to(2))
    documents = (proof.raw, settled(proof, chain))

    assert pull(node, OfferingPeer(chain, disputes=documents)).new_blocks == 1
    assert [d.kept for d in Disputes(node.store).list_disputes(chain.id)] == [chain.head.hash]


def test_abandoned_history_is_not_followed_after_a_settlement(
    node: Node, chain: PeerChain, fork: PeerChain, proof: EquivocationProof
) -> None:
    documents = (proof.raw, settled(proof, chain))
    with pytest.raises(ProposalRejectedError, match="its owner gave up"):
        pull(node, OfferingPeer(fork, disputes=documents))

    pull(node, fork.copy(folder=fork.folder).up_to(2))
    longer = chain.copy().add(SetInfo(description="goes on"))
    assert pull(node, OfferingPeer(longer, disputes=documents)).new_blocks == 2


def test_two_settlements_that_differ_settle_nothing(
    node: Node, chain: PeerChain, fork: PeerChain, proof: EquivocationProof
) -> None:
    documents = (proof.raw, settled(proof, chain), settled(proof, fork))

    with pytest.raises(ProposalRejectedError, match="frozen"):
        pull(node, OfferingPeer(chain, disputes=documents))


def test_settlement_by_another_key_settles_nothing(chain: PeerChain, proof: EquivocationProof) -> None:
    with pytest.raises(ValueError, match="by the key"):
        settled(proof, chain, OTHER_KEY)
    forged = replace(decode_settlement(settled(proof, chain)), signer=did_key_of(OTHER_KEY))
    assert find_kept_history(proof, [forged]) is None


def test_settlement_counts_for_every_proof_of_the_same_two_histories(
    node: Node, chain: PeerChain, fork: PeerChain, proof: EquivocationProof
) -> None:
    renewed = chain.signed_head(expires=Timestamp(NOW.seconds + 9))
    another = prove_equivocation(EquivocationKind.HEADS, renewed, fork.signed_head())
    assert another.raw != proof.raw

    pull(node, OfferingPeer(chain, disputes=(another.raw, proof.raw, settled(proof, chain))))

    assert node.store.get_head(chain.id) == chain.head
    (dispute,) = Disputes(node.store).list_disputes(chain.id)
    assert (dispute.proof.raw, dispute.kept) == (another.raw, chain.head.hash)


def test_owner_settles_for_the_history_it_holds_and_then_writes_again(
    judge: Judge, node: Node, chain: PeerChain, proof: EquivocationProof
) -> None:
    PublisherHome(judge).keep(chain)
    record = node.store.find_dataset(chain.id)
    assert record is not None
    with pytest.raises(UsageError, match="not frozen"):
        Disputes(node.store).settle(record, node.keys, reason="why", now=NOW)
    Disputes(node.store).learn([proof.raw], chain.id, now=NOW)
    with pytest.raises(FrozenDatasetError):
        ChainWriter.continue_chain(node.store, node.keys, chain.id)

    Disputes(node.store).settle(record, node.keys, reason="a lost disk", now=NOW)

    ChainWriter.continue_chain(node.store, node.keys, chain.id)
    assert len(list(node.store.iter_documents(chain.id, DocumentKind.EQUIVOCATION))) == 1


def test_both_histories_are_laid_side_by_side(node: Node, chain: PeerChain, fork: PeerChain) -> None:
    pull(node, chain)
    with pytest.raises(ProposalRejectedError):
        pull(node, fork)
    record = node.store.find_dataset(chain.id)
    assert record is not None
    (dispute,) = Disputes(node.store).list_disputes(chain.id)

    found = lay_side_by_side(node.store, node.refusals, record, dispute)

    assert found["shared"]["block"] == 2
    assert found["shared"]["is"].startswith(f"{chain.blocks[2].hash.short} AddData ")
    (row,) = found["rows"]
    assert row["block"] == 3
    shown = {row["first"].split()[0], row["second"].split()[0]}
    assert shown == {chain.head.hash.short, fork.head.hash.short}


def test_history_whose_blocks_are_not_here_shares_nothing_that_is_known(
    node: Node, chain: PeerChain, proof: EquivocationProof
) -> None:
    pull(node, chain)
    # A proof that came by gossip: nobody brought the other history's blocks.
    Disputes(node.store).learn([proof.raw], chain.id, now=NOW)
    record = node.store.find_dataset(chain.id)
    assert record is not None
    (dispute,) = Disputes(node.store).list_disputes(chain.id)

    found = lay_side_by_side(node.store, node.refusals, record, dispute)

    assert found["shared"] is None
    (row,) = found["rows"]
    assert row["block"] == proof.position
    assert sorted(row[side].endswith("(not known here)") for side in ("first", "second")) == [False, True]


def test_frozen_dataset_is_served_without_a_newest_block_and_with_the_proof(
    tmp_path: Path, chain: PeerChain, proof: EquivocationProof
) -> None:
    served = TestNode.create(tmp_path / "served")
    home = Judge(served.home, Judge.create(tmp_path / "other").engines)
    PublisherHome(home).keep(chain)
    Disputes(served.store).learn([proof.raw], chain.id, now=NOW)

    async def ask() -> tuple[Any, ...]:
        import aiohttp

        async with served.serving() as address, aiohttp.ClientSession() as session:
            codes = []
            block = chain.blocks[1].hash
            heads = (
                "_odf/v1/datasets/cities/head",
                "cities/refs/head",
                "_odf/v1/datasets/cities/blocks",
                "cities/pull",
            )
            for path in heads:
                async with session.get(f"{address}/{path}") as answer:
                    codes.append((answer.status, (await answer.json())["type"]))
            async with session.get(f"{address}/cities/blocks/{block}") as answer:
                codes.append((answer.status, ""))
            async with await open_peer(f"{address}/cities") as peer:
                return (*codes, await peer.list_disputes())

    *codes, disputes = asyncio.run(ask())
    assert codes == [(409, "urn:odf-node:problem:frozen")] * 4 + [(200, "")]
    assert disputes == (proof.raw,)


def test_bundle_of_a_dataset_proves_guilt_to_whoever_gets_it(node: Node, chain: PeerChain, fork: PeerChain) -> None:
    pull(node, chain)
    with pytest.raises(ProposalRejectedError) as caught:
        pull(node, fork)
    record = node.store.find_dataset(chain.id)
    assert record is not None
    assert caught.value.folder is not None
    for documents in (
        Bundles(node.store).about_dataset(record),
        Bundles(node.store).about_rejection(caught.value.folder),
    ):
        judgement = judge_bundle(decode_bundle(encode_bundle(documents)))
        assert [(key.public_key, dataset) for key, dataset in judgement.guilty] == [(chain.id.public_key, chain.id)]
        assert judgement.findings[0].weight is Weight.PROVED
        assert all(found.weight is not Weight.WORTHLESS for found in judgement.findings)


def test_proof_is_kept_when_the_dataset_is_deleted(node: Node, chain: PeerChain, proof: EquivocationProof) -> None:
    pull(node, chain)
    Disputes(node.store).learn([proof.raw], chain.id, now=NOW)
    node.store.delete_dataset(chain.id)

    with pytest.raises(ProposalRejectedError, match="frozen"):
        pull(node, chain)
    assert check_equivocation(next(node.store.iter_documents(chain.id, DocumentKind.EQUIVOCATION)).raw) == proof
