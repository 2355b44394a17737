"""Chains in many batches: the same outcome as at once, whole evidence, and memory that does not grow with them."""

import asyncio
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from odf_node.acceptance.checked_chain import ChainCheck, CheckedChain
from odf_node.acceptance.offers import AcceptanceReport
from odf_node.acceptance.refusals import Rejections
from odf_node.adapters.block_stage import FileStage
from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.errors import ProposalRejectedError
from odf_node.exchange import fetching
from odf_node.exchange.pulling import Pulling
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.ports.block_stage import ProposedBlock
from odf_protocol.block import encode_block
from odf_protocol.events import AddData, DatasetKind, Event, Seed, SetInfo
from odf_protocol.key_history import KeyHistory
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.chains import DATASET, NOON, later, push_source, schema
from support.offering_peer import OfferingPeer
from support.offers import MORE_CITIES, NOW, Judge, PeerChain, root_chain


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "BATCH_BLOCKS", 2)


@pytest.fixture
def pulling(judge: Judge) -> Iterator[Pulling]:
    node = Node(HomeFolder(judge.home.path), FixedClock(NOW))
    yield node.pulling
    node.close()


def pull(pulling: Pulling, chain: PeerChain) -> AcceptanceReport:
    peer = OfferingPeer(chain)
    return asyncio.run(pulling.taking.take(peer, PullRequest(url="http://peer.example/cities", name="cities")))


def longer(chain: PeerChain) -> PeerChain:
    for number in range(5):
        chain.add(SetInfo(description=str(number)))
    return chain.add_rows(MORE_CITIES)


def test_chain_in_many_batches_is_accepted_as_it_is(pulling: Pulling, tmp_path: Path) -> None:
    chain = longer(root_chain(tmp_path))
    first = pull(pulling, chain.up_to(4))
    second = pull(pulling, chain)

    assert (first.new_blocks, second.new_blocks) == (5, len(chain.blocks) - 5)
    assert [block.raw for block in pulling.home.store.iter_blocks(chain.id)] == [block.raw for block in chain.blocks]
    assert [block.signature for block in pulling.home.store.iter_blocks(chain.id)] == chain.signatures


def test_evidence_has_also_what_came_after_the_block_at_fault(pulling: Pulling, judge: Judge, tmp_path: Path) -> None:
    chain = longer(root_chain(tmp_path))
    pull(pulling, chain.up_to(1))
    bad = chain.copy()
    bad.signatures[5] = bad.signatures[6]
    before = judge.snapshot()

    with pytest.raises(ProposalRejectedError) as caught:
        pull(pulling, bad)
    assert (caught.value.rule, caught.value.sequence_number) == ("SIG-1 signature", 5)
    assert caught.value.folder is not None
    kept = Rejections(caught.value.folder.parent).iter_proposed(caught.value.folder)
    assert [block.raw for block in kept] == [block.raw for block in bad.blocks[2:]]
    assert judge.snapshot() == before


def iter_proposed(length: int) -> Iterator[ProposedBlock]:
    """An unsigned chain, made while it is read."""
    start: list[Event] = [Seed(dataset_id=DATASET, dataset_kind=DatasetKind.ROOT), push_source(), schema()]
    previous = None
    for number in range(length):
        event = start[number] if number < len(start) else AddData(new_watermark=later(number))
        at = Timestamp(NOON.seconds + number)
        raw = encode_block(event, system_time=at, prev_block_hash=previous, sequence_number=number)
        previous = Multihash.of_sha3_256(raw)
        yield ProposedBlock(raw)


def check_and_read(folder: Path, length: int) -> tuple[CheckedChain, int]:
    """Check a chain as it comes, read it as a commit does, and give the most memory that this took."""
    tracemalloc.start()
    try:
        with closing(FileStage(folder)) as stage:
            check = ChainCheck(
                stage,
                keys=KeyHistory.start(DATASET),
                state=None,
                before=None,
                signed=False,
            )
            proposed = iter_proposed(length)
            while batch := list(islice(proposed, 100)):
                for block in batch:
                    check.take(block)
            chain = check.finish()
            assert sum(1 for _ in chain.new_blocks()) == length
            assert chain.needed_objects() == []
            return chain, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_chain(tmp_path: Path) -> None:
    check_and_read(tmp_path, 10)  # what is loaded once
    short, short_bytes = check_and_read(tmp_path, 4_000)
    long, long_bytes = check_and_read(tmp_path, 6_000)

    assert (short.view.watermark, long.view.watermark) == (later(3_999), later(5_999))
    # The blocks have some 250 bytes each; eight of each may stay.
    assert long_bytes - short_bytes < 2_000 * 32
