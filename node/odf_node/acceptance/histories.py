"""Two histories of one dataset: where they part, and proving that its key vouched for both (ACCEPT-9)."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from odf_node.acceptance.refusals import Rejections
from odf_node.keys.disputes import Dispute
from odf_node.keys.logs import KeyLogs
from odf_node.ports.block_stage import ProposedBlock
from odf_node.ports.peer_client import SearchableHistory
from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_node.threads import finish_in_thread
from odf_protocol.block import Block, decode_block
from odf_protocol.did import DatasetId
from odf_protocol.equivocation import (
    MAX_PATH_BLOCKS,
    EquivocationKind,
    EquivocationProof,
    block_statement,
    prove_equivocation,
)
from odf_protocol.errors import (
    MalformedError,
    NotFoundError,
    OdfError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)
from odf_protocol.events import Seed
from odf_protocol.head import Head
from odf_protocol.heads import decode_signed_head
from odf_protocol.history_search import HistorySearch
from odf_protocol.key_events import decode_key_event
from odf_protocol.multihash import Multihash

LIGHT_BYTES: Final = 256 * 1024
"""Source: GOSSIP-1: what a proof may weigh to travel by gossip."""


def find_equivocation(
    store: MetadataStore,
    signed_head: bytes | None,
    blocks: Sequence[ProposedBlock],
    *,
    name: str,
    parting: ProposedBlock | None = None,
) -> EquivocationProof | None:
    """Prove that what is offered contradicts what is held here, where it does and one key signed both.

    Args:
        store: What the home keeps.
        signed_head: As offered, untrusted.
        blocks: As offered, up to that head, oldest first.
        name: What the dataset is called here, for blocks without a head that continue it.
        parting: The first offered block that differs, where it is not among those.
    """
    proof = _compare_heads(store, signed_head, blocks) or _compare_signatures(store, blocks, name)
    if proof is not None and len(proof.raw) <= LIGHT_BYTES:
        return proof
    # A new key behind the fork, or heavy blocks, hide nothing: where two histories part, one key signed in both.
    return _compare_parting(store, blocks, name, parting) or proof


def _compare_heads(
    store: MetadataStore, signed_head: bytes | None, blocks: Sequence[ProposedBlock]
) -> EquivocationProof | None:
    if signed_head is None:
        return None
    try:
        proposed = decode_signed_head(signed_head)
        held = store.find_signed_head(proposed.dataset_id)
        if held is None or not KeyLogs(store).get_history(proposed.dataset_id).speaks(
            proposed.signer, proposed.sequence_number
        ):
            return None
        path = _path_between(store, proposed.dataset_id, proposed.sequence_number, held.head.sequence_number, blocks)
        return prove_equivocation(EquivocationKind.HEADS, proposed.raw, held.raw, path=path)
    except (MalformedError, RejectedError):
        return None  # the two heads can both be true, or one of them is none


def _compare_signatures(store: MetadataStore, blocks: Sequence[ProposedBlock], name: str) -> EquivocationProof | None:
    """Hold the signature of the newest offered block against what is signed here: it is there without a head too."""
    try:
        proposed = decode_block(blocks[-1].raw, expected_hash=None) if blocks else None
        record = _find_proposed(store, blocks, name)
        if proposed is None or record is None or blocks[-1].signature is None:
            return None
        signer = KeyLogs(store).get_history(record.id).key_at(proposed.sequence_number)
        stated = block_statement(record.id, proposed.sequence_number, proposed.hash, signer, blocks[-1].signature)
        held = store.find_block_by_number(record.id, proposed.sequence_number)
        if held is not None and held.signature is not None:
            other = block_statement(record.id, held.sequence_number, held.hash, signer, held.signature)
            return prove_equivocation(EquivocationKind.BLOCKS, stated, other)
        head = store.find_signed_head(record.id)
        if head is None:
            return None
        path = _path_between(store, record.id, proposed.sequence_number, head.head.sequence_number, blocks)
        return prove_equivocation(EquivocationKind.HEAD_AND_BLOCK, stated, head.raw, path=path)
    except (MalformedError, RejectedError, UnsupportedError):
        return None


def _compare_parting(
    store: MetadataStore,
    blocks: Sequence[ProposedBlock],
    name: str,
    parting: ProposedBlock | None,
) -> EquivocationProof | None:
    """Hold the signatures of the first block that differs against each other."""
    try:
        record = _find_proposed(store, blocks, name)
        if record is None:
            return None
        proposed = parting or _find_parting(store, record, blocks)
        if proposed is None or proposed.signature is None:
            return None
        block = decode_block(proposed.raw, expected_hash=None)
        held = store.find_block_by_number(record.id, block.sequence_number)
        if held is None or held.signature is None:
            return None
        keys = KeyLogs(store).get_history(record.id)
        signer = keys.find_signer(held.signature, held.sequence_number, held.hash)
        if signer is None:
            return None
        statements = [
            block_statement(record.id, block.sequence_number, each, signer, signature)
            for each, signature in ((block.hash, proposed.signature), (held.hash, held.signature))
        ]
        return prove_equivocation(EquivocationKind.BLOCKS, *statements)
    except (MalformedError, RejectedError, UnsupportedError):
        return None  # signed by two keys, or not at all


def _find_parting(store: MetadataStore, record: DatasetRecord, blocks: Sequence[ProposedBlock]) -> ProposedBlock | None:
    """Find the first block that differs, where a history is offered from its Seed on."""
    if not blocks or not isinstance(decode_block(blocks[0].raw, expected_hash=None).event, Seed):
        return None

    def differs(number: int) -> bool:
        held = store.find_block_by_number(record.id, number)
        return held is None or held.hash != Multihash.of_sha3_256(blocks[number].raw)

    number = bisect_left(range(len(blocks)), True, key=differs)
    return blocks[number] if number < len(blocks) else None


def _find_proposed(store: MetadataStore, blocks: Sequence[ProposedBlock], name: str) -> DatasetRecord | None:
    event = decode_block(blocks[0].raw, expected_hash=None).event if blocks else None
    if isinstance(event, Seed):
        return store.find_dataset(event.dataset_id)
    return next((record for record in store.list_datasets() if record.name.lower() == name.lower()), None)


def find_fork(
    store: MetadataStore,
    record: DatasetRecord,
    hashes: Mapping[int, Multihash],
    signed_head: bytes | None,
) -> int:
    """Find the last block that an offered history, from its Seed, has in common with the one held here.

    Args:
        store: What the home keeps.
        record: Whose.
        hashes: Of the offered blocks, by number.
        signed_head: As offered.

    Raises:
        RejectedError: ACCEPT-9, ACCEPT-10: it may not take the place of the one held here.
    """
    is_disowned = KeyLogs(store).find_disowned(record) is not None
    if not is_disowned and (signed_head is not None or record.pinned_key is not None):
        # What a key has signed it has signed for ever: another history is evidence against it, not a newer state.
        raise RejectedError("ACCEPT-10 signed-histories-are-not-replaced", expected=record.head, found="another one")
    common = find_last_common(store, record, hashes)
    if common < 0:
        raise RejectedError("ACCEPT-10 first-block-stays", sequence_number=0)
    return common


def find_last_common(store: MetadataStore, record: DatasetRecord, hashes: Mapping[int, Multihash]) -> int:
    """Find the number of the last block that another history has in common with the one held here; -1: none.

    Args:
        store: What the home keeps.
        record: Whose.
        hashes: Of the other one, by number, from its Seed on; each block links to the one before.
    """
    search = HistorySearch(our_head=record.head.sequence_number, their_head=len(hashes) - 1)
    while (number := search.query_text) is not None:
        held = store.find_block_by_number(record.id, number)
        search.answer(is_same=held is not None and held.hash == hashes[number])
    return search.last_common


async def ask_last_common(
    store: MetadataStore, record: DatasetRecord, peer: SearchableHistory, proposed: Head
) -> int | None:
    """Ask a peer for the last block that its history has in common with the one held here (EX-60).

    Returns:
        What the peer's answers say, -1: none; None where it does not answer.
    """
    search = HistorySearch(our_head=record.head.sequence_number, their_head=proposed.sequence_number)
    try:
        while (number := search.query_text) is not None:
            theirs = await peer.find_hash(number)
            held = await finish_in_thread(partial(store.find_block_by_number, record.id, number))
            search.answer(is_same=held is not None and held.hash == theirs)
    except (RejectedError, MalformedError, NotFoundError, UnavailableError):
        return None
    return search.last_common


def _path_between(
    store: MetadataStore,
    dataset_id: DatasetId,
    proposed_number: int,
    held_number: int,
    blocks: Sequence[ProposedBlock],
) -> list[bytes]:
    """List the raw blocks from the higher statement down to the one above the lower one (EQUIV-5)."""
    distance = proposed_number - held_number
    if abs(distance) > MAX_PATH_BLOCKS:
        return []
    if distance > 0:
        return [block.raw for block in reversed(blocks[-distance:])]
    between = store.iter_blocks(dataset_id, after=proposed_number, upto=held_number)
    return [block.raw for block in between][::-1]


def lay_side_by_side(
    store: MetadataStore, refusals: Rejections, record: DatasetRecord, dispute: Dispute
) -> dict[str, Any]:
    """Lay the two histories of a dispute beside each other from where they part, as far as their blocks are known here.

    Blocks of the one are held; those of the other were offered and rejected. ``shared`` is the last block that both
    are known to have; None where that is not known.
    """
    proof = dispute.proof
    if proof.kind is EquivocationKind.KEY_EVENTS:
        return _lay_key_events(dispute)
    known = {block.hash: block for block in _iter_rejected(refusals)}
    stored = store.iter_blocks(record.id)
    known.update({each.hash: decode_block(each.raw, expected_hash=each.hash) for each in stored})
    sides = [_walk_back(known, proof.first), _walk_back(known, proof.second)]
    numbers = sorted({number for side in sides for number in side} | {proof.position})
    both = [number for number in numbers if all(number in side for side in sides)]
    shared = max((number for number in both if sides[0][number].hash == sides[1][number].hash), default=None)
    # Below what is known of both, nobody here can say what is shared.
    first = shared + 1 if shared is not None else min([*both, proof.position])
    rows = [
        {"block": number, "first": _describe(sides[0].get(number)), "second": _describe(sides[1].get(number))}
        for number in numbers
        if number >= first
    ]
    for row in rows:
        if row["block"] == proof.position:
            row["first"] = row["first"] or f"{proof.first.short} (not known here)"
            row["second"] = row["second"] or f"{proof.second.short} (not known here)"
    return {
        "explanation": proof.explain(),
        "since": str(dispute.received_at),
        "position": proof.position,
        "kept": str(dispute.kept) if dispute.kept else None,
        "isVoid": dispute.is_void,
        "first": str(proof.first),
        "second": str(proof.second),
        "shared": None if shared is None else {"block": shared, "is": _describe(sides[0][shared])},
        "rows": rows,
    }


def _lay_key_events(dispute: Dispute) -> dict[str, Any]:
    """Lay two changes of key beside each other."""
    proof = dispute.proof
    first, second = (decode_key_event(raw) for raw in proof.documents)
    return {
        "explanation": proof.explain(),
        "since": str(dispute.received_at),
        "position": proof.position,
        "kept": None,
        "isVoid": dispute.is_void,
        "first": str(proof.first),
        "second": str(proof.second),
        "shared": None,
        "rows": [{"block": f"key event {proof.position}", "first": first.explain(), "second": second.explain()}],
    }


def _walk_back(known: "dict[Multihash, Block]", newest: Multihash) -> dict[int, Block]:
    found: dict[int, Block] = {}
    here: Multihash | None = newest
    while here is not None and here in known:
        block = known[here]
        found[block.sequence_number] = block
        here = block.prev_block_hash
    return found


def _describe(block: Block | None) -> str:
    return "" if block is None else f"{block.hash.short} {type(block.event).__name__} {block.system_time}"


def _iter_rejected(refusals: Rejections) -> Iterator[Block]:
    for report in refusals.iter_reports():
        for proposed in refusals.iter_proposed(Path(report["folder"])):
            try:
                yield decode_block(proposed.raw, expected_hash=None)
            except OdfError:
                continue
