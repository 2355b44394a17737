"""Chains in the store of a home."""

import pytest

from odf_node.records.datasets import BlockRole, Origin
from odf_node.records.errors import BlockNotFoundError, DatasetNotFoundError
from odf_node.store import MetadataStore
from odf_protocol.events import DatasetKind
from odf_protocol.policy import Trust
from support.store_values import (
    NOON,
    creation,
    dataset_id,
    growth,
    object_hash,
    stored,
)
from support.stores import find_named


def test_created_own_dataset_is_found_by_id_and_name(store: MetadataStore) -> None:
    commit = creation(count=2)
    record = store.commit(commit)
    assert record == store.find_dataset(dataset_id()) == find_named(store, "dataset.1")
    assert (record.origin, record.trust, record.origin_url) == (Origin.OWN, Trust.OWN, None)
    assert (record.kind, record.published, record.created_at) == (DatasetKind.ROOT, True, NOON)
    assert record.head == commit.new_head == store.get_head(dataset_id())
    assert store.get_chain_state(dataset_id()) == (commit.new_head, b"state after creation")
    assert store.get_chain_states([dataset_id(), dataset_id(2)]) == {dataset_id(): b"state after creation"}


def test_datasets_are_listed_by_name(store: MetadataStore) -> None:
    store.commit(creation(1, name="b"))
    store.commit(creation(2, name="a"))
    assert [record.name for record in store.list_datasets()] == ["a", "b"]


def test_blocks_come_back_as_the_bytes_they_were(store: MetadataStore) -> None:
    commit = creation(count=7)
    store.commit(commit)
    assert list(store.iter_blocks(dataset_id())) == [stored(block) for block in commit.blocks]
    assert list(store.iter_blocks_backwards(dataset_id())) == [stored(b) for b in reversed(commit.blocks)]


def test_part_of_a_chain_is_read_by_its_ends(store: MetadataStore) -> None:
    store.commit(creation(count=10))
    assert [b.sequence_number for b in store.iter_blocks(dataset_id(), after=3, upto=6)] == [4, 5, 6]
    assert list(store.iter_blocks(dataset_id(), after=9)) == []


def test_reading_above_the_head_is_rejected(store: MetadataStore) -> None:
    store.commit(creation(count=2))
    with pytest.raises(BlockNotFoundError):
        list(store.iter_blocks(dataset_id(), upto=2))


def test_long_chain_is_read_whole_and_in_order(store: MetadataStore) -> None:
    commit = creation(count=3000)
    store.commit(commit)
    assert [b.hash for b in store.iter_blocks(dataset_id())] == [b.hash for b in commit.blocks]
    assert [b.sequence_number for b in store.iter_blocks_backwards(dataset_id())] == list(range(2999, -1, -1))


def test_blocks_committed_while_a_chain_is_read_do_not_appear(store: MetadataStore) -> None:
    first = creation(count=1500)
    store.commit(first)
    reader = store.iter_blocks(dataset_id())
    next(reader)
    store.commit(growth(first, 5))
    assert sum(1 for _ in reader) == 1499


def test_dataset_deleted_while_its_chain_is_read_stops_the_reader(store: MetadataStore) -> None:
    store.commit(creation(count=1500))
    reader = store.iter_blocks(dataset_id())
    next(reader)
    store.delete_dataset(dataset_id())
    with pytest.raises(DatasetNotFoundError):
        list(reader)


def test_dataset_that_came_back_while_its_chain_was_read_stops_the_reader(store: MetadataStore) -> None:
    store.commit(creation(count=1500))
    reader = store.iter_blocks(dataset_id())
    next(reader)
    store.delete_dataset(dataset_id())
    store.commit(creation(count=1501))
    with pytest.raises(DatasetNotFoundError):
        list(reader)


def test_landmarks_are_all_definitions_and_the_newest_of_each_other_role(store: MetadataStore) -> None:
    commit = creation(count=1_100)
    store.commit(commit)
    for upto in (0, 1, 2, 3, 10, 40, 1_098, 1_099):
        before = commit.blocks[: upto + 1]
        newest = {block.role: block for block in before}
        wanted = [block for block in before if block.role is BlockRole.DEFINITION or block is newest[block.role]]
        assert list(store.iter_landmarks(dataset_id(), upto=upto)) == [stored(block) for block in wanted]
    assert list(store.iter_landmarks(dataset_id())) == list(store.iter_landmarks(dataset_id(), upto=1_099))
    with pytest.raises(BlockNotFoundError):
        list(store.iter_landmarks(dataset_id(), upto=1_100))


def test_blocks_with_rows_are_read_from_both_ends(store: MetadataStore) -> None:
    first = creation(count=3_000)
    store.commit(first)
    wanted = [stored(b) for b in first.blocks if b.role in (BlockRole.ROWS, BlockRole.ROWS_AND_WATERMARK)]
    assert len(wanted) > 1_024
    reader = store.iter_blocks_with_rows(dataset_id())
    begun = [next(reader)]
    store.commit(growth(first, 9))
    assert begun + list(reader) == wanted
    backwards = list(store.iter_blocks_with_rows(dataset_id(), newest_first=True))
    assert [b for b in reversed(backwards) if b.sequence_number < 3_000] == wanted
    assert len(backwards) > len(wanted)
    for after in (-1, 0, wanted[700].sequence_number, 2_999, 3_008, 9_999):
        later = [b for b in reversed(backwards) if b.sequence_number > after]
        assert list(store.iter_blocks_with_rows(dataset_id(), after=after)) == later
        assert list(store.iter_blocks_with_rows(dataset_id(), after=after, newest_first=True)) == later[::-1]


def test_dataset_without_rows_has_no_blocks_with_rows(store: MetadataStore) -> None:
    store.commit(creation(count=2))
    assert list(store.iter_blocks_with_rows(dataset_id())) == []
    with pytest.raises(DatasetNotFoundError):
        list(store.iter_blocks_with_rows(dataset_id(9)))


def test_blocks_of_a_role_are_counted_in_a_range(store: MetadataStore) -> None:
    commit = creation(count=6)
    store.commit(commit)
    for first, last in ((0, 5), (1, 3), (5, 9), (3, 2)):
        for role in BlockRole:
            wanted = [b for b in commit.blocks if b.role is role and first <= b.sequence_number <= last]
            assert store.count_blocks(dataset_id(), role, first=first, last=last) == len(wanted)
    with pytest.raises(DatasetNotFoundError):
        store.count_blocks(dataset_id(9), BlockRole.ROWS, first=0, last=9)


def test_one_block_is_found_by_hash_and_by_number(store: MetadataStore) -> None:
    commit = creation(count=4)
    store.commit(commit)
    block = commit.blocks[2]
    assert store.find_block(dataset_id(), block.hash) == stored(block)
    assert store.find_block_by_number(dataset_id(), 2) == stored(block)
    assert store.find_block(dataset_id(2), block.hash) is None
    assert store.find_block_by_number(dataset_id(), 4) is None


def test_empty_store_finds_nothing(store: MetadataStore) -> None:
    assert store.list_datasets() == ()
    assert store.find_dataset(dataset_id()) is None
    assert store.find_block(dataset_id(), object_hash(1)) is None
    assert store.find_block_by_number(dataset_id(), 0) is None
    for read in (store.iter_blocks, store.iter_blocks_backwards, store.iter_landmarks):
        with pytest.raises(DatasetNotFoundError):
            list(read(dataset_id()))
