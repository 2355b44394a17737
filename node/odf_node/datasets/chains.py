"""Reading chains: blocks as objects, what is in force after one of them, and what they rest on (ACCEPT-5, PLAN-10)."""

from collections.abc import Iterator
from dataclasses import replace

from odf_node.records.commits import Acceptance
from odf_node.records.datasets import DatasetRecord, StoredBlock
from odf_node.records.errors import BlockNotFoundError
from odf_node.store import MetadataStore
from odf_protocol.block import Block, decode_block
from odf_protocol.coverage import decode_progress
from odf_protocol.dataset_view import DatasetView, apply, start_view
from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind
from odf_protocol.events import AddData, DataSlice, ExecuteTransform, SetTransform
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


def iter_decoded(
    store: MetadataStore, dataset_id: DatasetId, *, after: int = -1, upto: int | None = None
) -> Iterator[Block]:
    """Yield decoded blocks in order; each is checked against the hash it is stored under."""
    for stored in store.iter_blocks(dataset_id, after=after, upto=upto):
        yield decode_block(stored.raw, expected_hash=stored.hash)


def load_view(store: MetadataStore, dataset_id: DatasetId, *, upto: int | None = None) -> DatasetView:
    """Say what is in force after block ``upto`` (None: the head), from the few blocks that it follows from."""
    stored = store.iter_landmarks(dataset_id, upto=upto)
    blocks = (decode_block(item.raw, expected_hash=item.hash) for item in stored)
    view = start_view(next(blocks))
    for block in blocks:
        if isinstance(block.event, SetTransform) and view.transform is not None and not view.has_data:
            # Blocks of data between two queries need not be among those that are read here.
            view = replace(view, has_data=store.has_data_before(dataset_id, block.sequence_number))
        view = apply(view, block)
    return view


def iter_slices(
    store: MetadataStore,
    dataset_id: DatasetId,
    *,
    as_of: Timestamp | None = None,
    newest_first: bool = False,
    after: int = -1,
    upto: int | None = None,
) -> Iterator[DataSlice]:
    """Yield the slices of a chain in order; with ``as_of`` only those with rows that were known by then (ROWS-3).

    ``after`` and ``upto`` are numbers of blocks: only slices of those behind the one, up to the other.
    """
    for stored in store.iter_blocks_with_rows(dataset_id, newest_first=newest_first):
        if stored.sequence_number <= after or (upto is not None and stored.sequence_number > upto):
            continue
        block = decode_block(stored.raw, expected_hash=stored.hash)
        event = block.event
        if as_of is not None and block.system_time.truncated_to_ms() > as_of:
            continue
        if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
            yield event.new_data


def with_newest_head(store: MetadataStore, record: DatasetRecord) -> DatasetRecord:
    """Give a dataset as it is now: who reads up to this head reads one version, whatever is written meanwhile."""
    return store.find_dataset(record.id) or record


def with_head_of(record: DatasetRecord, view: DatasetView) -> DatasetRecord:
    """Give a dataset with the newest block that a view has: the version that is read with it."""
    return replace(record, head=Head(view.sequence_number, view.head))


def get_block(store: MetadataStore, dataset_id: DatasetId, block_hash: Multihash) -> StoredBlock:
    """Return a block that must be in the chain.

    Raises:
        BlockNotFoundError: It is not.
    """
    found = store.find_block(dataset_id, block_hash)
    if found is None:
        raise BlockNotFoundError(dataset_id, block_hash)
    return found


def blocks_between(
    store: MetadataStore, dataset_id: DatasetId, first: Multihash | None, last: Multihash | None
) -> Iterator[Block]:
    """Yield the blocks after ``first`` up to and including ``last``; nothing when ``last`` is None.

    Raises:
        BlockNotFoundError: One of the two is not in the chain held here.
    """
    if last is None:
        return
    after = -1 if first is None else get_block(store, dataset_id, first).sequence_number
    yield from iter_decoded(store, dataset_id, after=after, upto=get_block(store, dataset_id, last).sequence_number)


def last_offset_at(store: MetadataStore, dataset_id: DatasetId, sequence_number: int) -> int | None:
    """Return the number of the last row after a block, None where there is none; goes back to the newest data block."""
    for number in range(sequence_number, -1, -1):
        stored = store.find_block_by_number(dataset_id, number)
        if stored is None:
            raise BlockNotFoundError(dataset_id, number)
        event = decode_block(stored.raw, expected_hash=stored.hash).event
        if isinstance(event, AddData | ExecuteTransform):
            return event.new_data.offset_interval.end if event.new_data else event.prev_offset
    return None


def find_partial(store: MetadataStore, record: DatasetRecord) -> str:
    """Say what makes a dataset less than its declared query over the whole input; empty where nothing does."""
    if record.kind is DatasetKind.ROOT:
        return ""  # it declares no query
    _head, state = store.get_chain_state(record.id)
    return decode_progress(state).partial


def describe_acceptance(acceptance: Acceptance) -> dict[str, object]:
    """Give an acceptance as plain values; what it says in ``partial`` is said in ``trust`` too."""
    grounds = acceptance.grounds
    trust = acceptance.trust.in_words(grounds.partial)
    return {"at": str(acceptance.accepted_at), "trust": trust, **grounds.to_json()}
