from collections.abc import Callable

import pytest

from odf_protocol.block import Block, decode_block, encode_block
from odf_protocol.equivocation import (
    EquivocationKind,
    EquivocationProof,
    block_statement,
    check_equivocation,
    prove_equivocation,
)
from odf_protocol.errors import MalformedError, OdfError, RejectedError
from odf_protocol.events import DatasetKind, Seed, SetInfo
from odf_protocol.heads import sign_head
from odf_protocol.key_history import KeyHistory
from odf_protocol.key_logs import sign_rotation
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import sign_block
from odf_protocol.timestamp import Timestamp
from support.signing import DATASET_KEY, NEW_KEY, NOON, OTHER_KEY, dataset_of, did_key_of, some_hash

DATASET = dataset_of(DATASET_KEY)
HEADS, BLOCKS, KEY_EVENTS = EquivocationKind.HEADS, EquivocationKind.BLOCKS, EquivocationKind.KEY_EVENTS
HEAD_AND_BLOCK = EquivocationKind.HEAD_AND_BLOCK


def chain(length: int, fork_at: int | None = None) -> list[Block]:
    """A dataset's blocks; from ``fork_at`` on they say something else."""
    blocks: list[Block] = []
    for number in range(length):
        event = Seed(dataset_id=DATASET, dataset_kind=DatasetKind.ROOT)
        text = "other" if fork_at is not None and number >= fork_at else "usual"
        raw = encode_block(
            SetInfo(description=text) if number else event,
            system_time=Timestamp(NOON.seconds + number),
            prev_block_hash=blocks[-1].hash if blocks else None,
            sequence_number=number,
        )
        blocks.append(decode_block(raw, expected_hash=None))
    return blocks


def head(block: Block, *, key: bytes = DATASET_KEY, second: int = 0) -> bytes:
    return sign_head(
        key,
        dataset_id=DATASET,
        sequence_number=block.sequence_number,
        block_hash=block.hash,
        time=Timestamp(NOON.seconds + second),
    )


def statement(number: int, block_hash: Multihash, *, key: bytes = DATASET_KEY) -> bytes:
    return block_statement(DATASET, number, block_hash, did_key_of(key), sign_block(key, DATASET, number, block_hash))


def key_event(new_key: bytes) -> bytes:
    return sign_rotation(
        DATASET_KEY, KeyHistory.start(DATASET), new_key=did_key_of(new_key), first_sequence_number=3, time=NOON
    )


def contradictory_heads() -> EquivocationProof:
    return prove_equivocation(HEADS, head(chain(5)[4]), head(chain(5, 3)[4]))


def heads_of_different_length() -> EquivocationProof:
    other = chain(8, 3)
    return prove_equivocation(HEADS, head(other[7]), head(chain(5)[4]), path=[b.raw for b in reversed(other[5:])])


def contradictory_blocks() -> EquivocationProof:
    return prove_equivocation(BLOCKS, statement(4, some_hash("one")), statement(4, some_hash("other")))


def contradictory_key_events() -> EquivocationProof:
    return prove_equivocation(KEY_EVENTS, key_event(OTHER_KEY), key_event(NEW_KEY))


def head_against_block() -> EquivocationProof:
    return prove_equivocation(HEAD_AND_BLOCK, head(chain(5)[4]), statement(4, chain(5, 3)[4].hash))


def head_above_a_block() -> EquivocationProof:
    other = chain(8, 3)
    path = [b.raw for b in reversed(other[5:])]
    return prove_equivocation(HEAD_AND_BLOCK, head(other[7]), statement(4, chain(5)[4].hash), path=path)


def head_below_a_block() -> EquivocationProof:
    other = chain(8, 3)
    path = [b.raw for b in reversed(other[5:])]
    return prove_equivocation(HEAD_AND_BLOCK, head(chain(5)[4]), statement(7, other[7].hash), path=path)


PROOFS = [
    contradictory_heads,
    heads_of_different_length,
    contradictory_blocks,
    contradictory_key_events,
    head_against_block,
    head_above_a_block,
    head_below_a_block,
]


@pytest.mark.parametrize("prove", PROOFS)
def test_proof_can_be_checked_by_anybody_who_has_its_bytes(prove: Callable[[], EquivocationProof]) -> None:
    proof = prove()
    checked = check_equivocation(proof.raw)
    assert checked == proof
    assert (checked.dataset_id, checked.signer) == (DATASET, did_key_of(DATASET_KEY))
    assert checked.first != checked.second


def test_explanation_names_key_dataset_place_and_both_versions() -> None:
    proof = heads_of_different_length()
    text = proof.explain()
    assert f"block 4 is {chain(5)[4].hash} in one and {chain(8, 3)[4].hash} in the other" in text
    assert str(DATASET) in text
    assert str(proof.signer) in text
    assert "key event 0" in contradictory_key_events().explain()


def test_same_pair_gives_the_same_proof_whoever_builds_it() -> None:
    one, other = head(chain(5)[4]), head(chain(5, 3)[4])
    assert prove_equivocation(HEADS, one, other) == prove_equivocation(HEADS, other, one)


def test_head_that_stands_on_the_lower_one_is_no_contradiction() -> None:
    blocks = chain(8)
    with pytest.raises(RejectedError, match="EQUIV-4"):
        prove_equivocation(HEADS, head(blocks[4]), head(blocks[7]), path=[b.raw for b in reversed(blocks[5:])])


def test_same_head_signed_at_two_times_is_no_contradiction() -> None:
    block = chain(3)[2]
    with pytest.raises(RejectedError, match="EQUIV-4"):
        prove_equivocation(HEADS, head(block), head(block, second=5))
    with pytest.raises(RejectedError, match="EQUIV-4"):
        prove_equivocation(BLOCKS, statement(4, some_hash("one")), statement(4, some_hash("one")))


@pytest.mark.parametrize("number", [4, 7])
def test_head_and_signature_of_one_chain_are_no_contradiction(number: int) -> None:
    blocks = chain(8)
    path = [b.raw for b in reversed(blocks[5 : number + 1])]
    with pytest.raises(RejectedError, match="EQUIV-4"):
        prove_equivocation(HEAD_AND_BLOCK, head(blocks[4]), statement(number, blocks[number].hash), path=path)


@pytest.mark.parametrize("of_heads", [True, False])
def test_two_of_one_sort_are_not_a_head_and_a_block(of_heads: bool) -> None:
    one, other = (
        (head(chain(5)[4]), head(chain(5, 3)[4]))
        if of_heads
        else (statement(4, some_hash("a")), statement(4, some_hash("b")))
    )
    with pytest.raises(RejectedError, match="EQUIV-2 one-head-and-one-block"):
        prove_equivocation(HEAD_AND_BLOCK, one, other)


def test_two_keys_that_disagree_prove_nothing_against_either() -> None:
    with pytest.raises(RejectedError, match="EQUIV-3 same-signer"):
        prove_equivocation(HEADS, head(chain(5)[4]), head(chain(5, 3)[4], key=OTHER_KEY))


def test_statements_about_different_places_prove_nothing() -> None:
    with pytest.raises(RejectedError, match="EQUIV-3 same-position"):
        prove_equivocation(BLOCKS, statement(4, some_hash("one")), statement(5, some_hash("other")))


@pytest.mark.parametrize(
    ("cut", "error"),
    [
        pytest.param(lambda path: path[:-1], "EQUIV-5", id="too-short"),
        pytest.param(lambda path: [*path, path[-1]], "EQUIV-5", id="too-long"),
        pytest.param(lambda path: path[::-1], "malformed block", id="turned-round"),
        pytest.param(lambda path: [chain(8)[7].raw, *path[1:]], "malformed block", id="block-of-another-chain"),
    ],
)
def test_path_that_does_not_lead_down_proves_nothing(cut: Callable[[list[bytes]], list[bytes]], error: str) -> None:
    other = chain(8, 3)
    path = [block.raw for block in reversed(other[5:])]
    with pytest.raises((RejectedError, MalformedError), match=error):
        prove_equivocation(HEADS, head(other[7]), head(chain(5)[4]), path=cut(path))


def test_path_where_none_belongs_is_rejected() -> None:
    raw = chain(2)[1].raw
    with pytest.raises(RejectedError, match="EQUIV-2"):
        prove_equivocation(BLOCKS, statement(4, some_hash("one")), statement(4, some_hash("two")), path=[raw])
    with pytest.raises(RejectedError, match="EQUIV-5"):
        prove_equivocation(HEADS, head(chain(5)[4]), head(chain(5, 3)[4]), path=[raw])


def test_block_signatures_must_be_block_signatures() -> None:
    with pytest.raises(OdfError):
        prove_equivocation(BLOCKS, head(chain(5)[4]), head(chain(5, 3)[4]))


@pytest.mark.parametrize("prove", PROOFS)
def test_any_flipped_byte_is_rejected(prove: Callable[[], EquivocationProof]) -> None:
    raw = prove().raw
    for position in range(0, len(raw), 11):
        broken = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        with pytest.raises(OdfError):
            check_equivocation(broken)


def test_statements_in_the_other_order_are_rejected() -> None:
    raw = contradictory_blocks().raw
    import msgspec

    parsed = msgspec.json.decode(raw)
    parsed["first"], parsed["second"] = parsed["second"], parsed["first"]
    with pytest.raises(RejectedError, match="EQUIV-7"):
        check_equivocation(msgspec.json.encode(parsed, order="sorted"))
