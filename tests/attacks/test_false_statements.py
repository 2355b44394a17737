"""Auditors' statements that their own chain contradicts: they vouch for nothing, and nothing changes (ATTEST-25)."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.errors import ProposalRejectedError
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_protocol.attestations import AttestedStep, sign_attestation
from odf_protocol.errors import RejectedError
from odf_protocol.events import AddData
from odf_protocol.in_toto import BlockRef
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust
from odf_protocol.statements import RangeCount, Statement, decode_statement, list_witnesses
from odf_protocol.step_record import EngineIdentity
from odf_protocol.verification_statements import Checked, VerificationProblem, sign_verification
from support.chains import ChainBuilder, ordinary_derivative_events
from support.offering_peer import OfferingPeer
from support.offers import MORE_CITIES, NOW, Judge, PeerChain, root_chain
from support.signing import did_key_of

ALICE = b"\x21" * 32
POLICIES = f"""\
kind: AcceptPolicies
version: 1
auditors:
  alice: {did_key_of(ALICE)}
default:
  accept: attested
  threshold: 1
"""
FALSE = Multihash.of_sha3_256(b"no block of this chain")


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    judge = Judge.create(tmp_path / "home")
    judge.home.policies.write_text(POLICIES)
    return judge


@pytest.fixture
def node(judge: Judge) -> Iterator[Node]:
    node = Node(HomeFolder(judge.home.path), FixedClock(NOW))
    yield node
    node.close()


@pytest.fixture
def chain(tmp_path: Path) -> PeerChain:
    """A root of four blocks, two of them with three rows each."""
    return root_chain(tmp_path)


def stated_of(chain: PeerChain, *, first: BlockRef | None = None, **counts: int) -> bytes:
    """Alice's statement about the whole chain, or about what follows ``first``."""
    begin = first or BlockRef(0, chain.blocks[0].hash)
    data = [b for b in chain.blocks[begin.sequence_number :] if isinstance(b.event, AddData)]
    honest = Checked(
        blocks=len(chain.blocks) - begin.sequence_number,
        slices=len(data),
        slices_in_range=len(data),
        rows=3 * len(data),
        steps=0,
        steps_in_range=0,
    )
    return sign_verification(
        ALICE,
        dataset_id=chain.id,
        first=begin,
        last=BlockRef(chain.head.sequence_number, chain.head.hash),
        checked=msgspec.structs.replace(honest, **counts),
        problem=None,
        time=NOW,
    )


def pull(node: Node, chain: PeerChain, *statements: bytes) -> Any:
    peer = OfferingPeer(chain, statements=statements)
    return asyncio.run(node.taking.take(peer, PullRequest(url="http://peer.example/cities", name="cities")))


FALSE_STATEMENTS: dict[str, Callable[[PeerChain], bytes]] = {
    "no-slices-of-a-range-that-has-two": lambda it: stated_of(it, slices=0, slices_in_range=0, rows=0),
    "one-slice-of-a-range-that-has-two": lambda it: stated_of(it, slices=1, slices_in_range=1),
    "more-slices-than-there-are": lambda it: stated_of(it, slices=3, slices_in_range=3),
    "steps-of-a-root": lambda it: stated_of(it, steps=1, steps_in_range=1),
    "fewer-blocks-than-the-range-has": lambda it: stated_of(it, blocks=3),
    "range-that-begins-with-another-block": lambda it: stated_of(it, first=BlockRef(0, FALSE)),
}


@pytest.mark.parametrize("name", FALSE_STATEMENTS)
def test_statement_that_the_chain_contradicts_vouches_for_nothing(
    node: Node, judge: Judge, chain: PeerChain, name: str
) -> None:
    before = judge.snapshot()

    with pytest.raises(ProposalRejectedError) as caught:
        pull(node, chain, FALSE_STATEMENTS[name](chain))

    assert caught.value.rule == "POLICY-6 enough-auditors-attest"
    assert judge.snapshot() == before
    assert pull(node, chain, stated_of(chain)).record.trust is Trust.ATTESTED


def test_statement_about_new_blocks_and_held_ones_is_compared_with_both(
    node: Node, judge: Judge, chain: PeerChain
) -> None:
    """One slice in all would be right of the new blocks alone."""
    pull(node, chain, stated_of(chain))
    grown = chain.copy().add_rows(MORE_CITIES)
    before = judge.snapshot()

    with pytest.raises(ProposalRejectedError, match="attested by none of them"):
        pull(node, grown, stated_of(grown, slices=1, slices_in_range=1))

    assert judge.snapshot() == before
    assert pull(node, grown, stated_of(grown)).new_blocks == 1


def test_statement_with_more_slices_than_rows_is_none(chain: PeerChain) -> None:
    with pytest.raises((ValueError, RejectedError)):
        stated_of(chain, rows=1)


# Replay attestations


class _Known:
    """A chain of a derivative: two definitions, then steps."""

    def __init__(self, builder: ChainBuilder) -> None:
        self.blocks = builder.blocks

    def find_hash(self, sequence_number: int) -> Multihash | None:
        return self.blocks[sequence_number].hash if sequence_number < len(self.blocks) else None

    def count(self, first: int, last: int) -> RangeCount:
        steps = sum(first <= block.sequence_number <= last for block in self.blocks[3:])
        return RangeCount(steps, steps)


DERIVED = _Known(ChainBuilder.derivative(*ordinary_derivative_events(3)))


def replayed(*numbers: int, first: BlockRef, last: BlockRef, agrees: bool = True) -> Statement:
    """Alice's word about steps in some blocks."""
    steps = tuple(
        AttestedStep(
            block=BlockRef(number, DERIVED.blocks[number].hash),
            agrees=agrees,
            logical_hash=DERIVED.blocks[number].event.new_data.logical_hash,  # type: ignore[union-attr]
            difference=None if agrees else "cells",
        )
        for number in numbers
    )
    dataset_id = DERIVED.blocks[0].event.dataset_id  # type: ignore[union-attr]
    engine = EngineIdentity("spark", "4", Multihash.of_sha3_256(b"engine"))
    raw = sign_attestation(ALICE, dataset_id=dataset_id, first=first, last=last, engine=engine, steps=steps, time=NOW)
    return decode_statement(raw)


def ref(number: int) -> BlockRef:
    return BlockRef(number, DERIVED.blocks[number].hash)


@pytest.mark.parametrize(
    ("statement", "vouched"),
    [
        pytest.param(replayed(3, 4, 5, first=ref(3), last=ref(5)), [3, 4, 5], id="all-steps"),
        pytest.param(replayed(4, first=ref(4), last=ref(4)), [4], id="one-step-and-no-more"),
        pytest.param(replayed(3, 5, first=ref(3), last=ref(5)), [], id="fewer-steps-than-the-range-has"),
        pytest.param(replayed(4, first=BlockRef(3, FALSE), last=ref(4)), [], id="begins-elsewhere"),
        pytest.param(replayed(4, first=ref(4), last=BlockRef(9, FALSE)), [], id="ends-elsewhere"),
    ],
)
def test_attestation_counts_where_its_range_and_steps_are_those_of_the_chain(
    statement: Statement, vouched: list[int]
) -> None:
    witnesses = list_witnesses(statement.dataset_id, DERIVED.blocks, DERIVED, [statement])

    assert [witness.sequence_number for witness in witnesses if witness.vouchers] == vouched
    assert not any(witness.deniers for witness in witnesses)


def test_contradiction_of_a_step_is_heard_whatever_else_the_statement_is_about() -> None:
    statement = replayed(4, first=BlockRef(3, FALSE), last=ref(5), agrees=False)

    witnesses = list_witnesses(statement.dataset_id, DERIVED.blocks, DERIVED, [statement])

    assert [witness.sequence_number for witness in witnesses if witness.deniers] == [4]


def test_problem_is_heard_however_little_was_read(node: Node, judge: Judge, chain: PeerChain) -> None:
    found = sign_verification(
        ALICE,
        dataset_id=chain.id,
        first=BlockRef(0, chain.blocks[0].hash),
        last=BlockRef(chain.head.sequence_number, chain.head.hash),
        checked=Checked(blocks=4, slices=0, slices_in_range=0, rows=0, steps=0, steps_in_range=0),
        problem=VerificationProblem("ROWS-5 logical-hash", "it differs", 3),
        time=NOW,
    )
    before = judge.snapshot()

    with pytest.raises(ProposalRejectedError, match="contradicted by alice"):
        pull(node, chain, stated_of(chain), found)
    assert judge.snapshot() == before
