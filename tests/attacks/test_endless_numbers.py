"""A peer that names block numbers which no chain reaches is rejected like any other, wherever they are looked up."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.errors import FrozenDatasetError, ProposalRejectedError
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.keys.disputes import Disputes
from odf_node.ports.peer_client import PeerHead
from odf_protocol.block import decode_block, encode_block
from odf_protocol.equivocation import EquivocationKind, block_statement, prove_equivocation
from odf_protocol.events import SetInfo
from odf_protocol.exchange.packs import PackedBlock
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import sign_block
from support.offering_peer import OfferingPeer
from support.offers import NOW, Judge, PeerChain, root_chain
from support.signing import did_key_of


@pytest.fixture
def chain(tmp_path: Path) -> PeerChain:
    return root_chain(tmp_path)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(HomeFolder(Judge.create(tmp_path / "home").home.path), FixedClock(NOW))
    yield node
    node.close()


class FarPeer(OfferingPeer):
    """Has no head document of its newest block: none can name such a number."""

    document: bytes | None = None

    async def get_head(self) -> Any:
        head = PeerHead(head=self.chain.head, name=self.chain.name, dataset_id=self.chain.id)
        return replace(head, signed_head=self.document)

    async def iter_blocks(self, *, after: Head | None, upto: Head) -> AsyncIterator[PackedBlock]:
        first = 0 if after is None else after.sequence_number + 1
        for block, signature in zip(self.chain.blocks[first:], self.chain.signatures[first:], strict=True):
            yield PackedBlock(block.raw, signature, None)


def take(node: Node, peer: OfferingPeer) -> object:
    return asyncio.run(node.taking.take(peer, PullRequest(url="http://peer.example/cities", name="cities")))


@pytest.mark.parametrize("number", [2**53, 2**63 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("has_head", [True, False], ids=["head-of-before", "no-head"])
def test_last_block_of_an_offer_with_an_endless_number_is_rejected_and_changes_nothing(
    node: Node, chain: PeerChain, number: int, has_head: bool
) -> None:
    """CHAIN-6: the number of a signed block was looked up before its place in the chain had been judged."""
    take(node, OfferingPeer(chain))
    held = node.store.get_head(chain.id)
    raw = encode_block(
        SetInfo(description="far away"), system_time=NOW, prev_block_hash=chain.head.hash, sequence_number=number
    )
    block = decode_block(raw, expected_hash=None)
    far = chain.copy()
    far.blocks.append(block)
    far.signatures.append(sign_block(chain.key, chain.id, number, block.hash))
    far.step_records.append(None)

    peer = FarPeer(far)
    peer.document = chain.signed_head() if has_head else None

    with pytest.raises(ProposalRejectedError):
        take(node, peer)

    assert node.store.get_head(chain.id) == held
    assert Disputes(node.store).list_disputes(chain.id) == []


@pytest.mark.parametrize("number", [2**53, 2**63, 2**64 - 1])
def test_two_histories_at_an_endless_number_freeze_with_words_equiv_9(
    node: Node, chain: PeerChain, number: int
) -> None:
    """EQUIV-9: whoever has the key can say so; everything that looks at the dispute says what is wrong."""
    take(node, OfferingPeer(chain))
    statements = [
        block_statement(
            chain.id, number, block_hash, did_key_of(chain.key), sign_block(chain.key, chain.id, number, block_hash)
        )
        for block_hash in (Multihash.of_sha3_256(b"one"), Multihash.of_sha3_256(b"other"))
    ]
    proof = prove_equivocation(EquivocationKind.BLOCKS, *statements)
    disputes = Disputes(node.store)
    assert disputes.learn([proof.raw], chain.id, now=NOW) == 1
    with pytest.raises(FrozenDatasetError, match="it is frozen"):
        disputes.require_undisputed(chain.id, "cities")
    (dispute,) = disputes.list_disputes(chain.id)
    assert node.store.find_block_by_number(chain.id, dispute.proof.position) is None
