"""Files and proof for blocks that were taken on their metadata alone (PART-3)."""

import json
from typing import Final

from odf_node.ports import DatasetRecord, Head, MetadataStore
from odf_node.ports.block_stage import OfferedBlock
from odf_node.services.key_logs import KeyLogs
from odf_node.services.offers import Candidate, Offer
from odf_node.services.verification import check_chain, stored_piece, view_at
from odf_protocol.chain import ChainState, Strictness
from odf_protocol.policy import Trust

_PIECE_BLOCKS: Final = 256
"""Blocks that are in memory at once while the state of the rules is found.  # guess"""


def find_last_checked(store: MetadataStore, record: DatasetRecord) -> int | None:
    """Return the number of the block after which blocks rest on metadata alone (-1: all); None where none does."""
    if record.trust is not Trust.METADATA:
        return None
    last: int | None = None
    for acceptance in store.iter_acceptances(record.id):
        first = int(json.loads(acceptance.detail)["blocks"][0])
        if acceptance.trust is Trust.METADATA:
            last = first - 1 if last is None else last
        elif last is not None and first <= last + 1:
            last = None
    # A history that replaced another may leave none; then everything is looked at.
    return -1 if last is None else last


def find_held_on_metadata(
    store: MetadataStore, record: DatasetRecord, url: str, statements: tuple[bytes, ...]
) -> Candidate | None:
    """Read the blocks of a dataset that rest on metadata alone as if ``url`` had offered them again; None: none do."""
    after = find_last_checked(store, record)
    return None if after is None else read_held(store, record, after=after, url=url, statements=statements)


def read_held(
    store: MetadataStore, record: DatasetRecord, *, after: int, url: str, statements: tuple[bytes, ...]
) -> Candidate:
    """Read the blocks after number ``after`` as if ``url`` had offered them again.

    Raises:
        RejectedError, MalformedError: What is held is damaged.
    """
    signed = record.pinned_key is not None
    keys = KeyLogs(store).compare(record.id, ())
    state: ChainState | None = None
    for first in range(-1, after, _PIECE_BLOCKS):
        upto = min(first + _PIECE_BLOCKS, after)
        state = check_chain(
            stored_piece(store, record, after=first, upto=upto),
            keys=keys.history,
            state=state,
            before=None if first < 0 else view_at(store, record.id, first),
            signed=signed,
            strictness=Strictness.FOREIGN,
        ).state
    blocks: list[OfferedBlock] = list(stored_piece(store, record, after=after, upto=record.head.sequence_number))
    chain = check_chain(
        blocks,
        keys=keys.history,
        state=state,
        before=None if after < 0 else view_at(store, record.id, after),
        signed=signed,
        strictness=Strictness.FOREIGN,
    )
    signed_head = store.find_signed_head(record.id)
    base = None if after < 0 else store.find_block_by_number(record.id, after)
    offer = Offer(
        name=record.name,
        source_url=url,
        base=None if base is None else Head(base.sequence_number, base.hash),
        blocks=blocks,
        signed_head=None if signed_head is None else signed_head.raw,
        expected_id=record.id,
        statements=statements,
    )
    return Candidate(offer, record.id, False, signed, chain, keys, is_held=True)
