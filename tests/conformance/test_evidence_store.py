"""What every ``EvidenceStore`` must do; ``store`` is each adapter in turn."""

import pytest

from odf_node.ports import (
    BlockNotFoundError,
    ReplayRecord,
    Verified,
)
from support.store_values import (
    NOON,
    attestation,
    creation,
    dataset_id,
    object_hash,
)
from support.stores import Store


def test_replay_record_is_added_and_replaced(store: Store) -> None:
    commit = creation(count=2)
    store.commit(commit)
    block = commit.blocks[1]
    for raw in (b"first", b"second"):
        store.put_replay_record(ReplayRecord(dataset_id(), 1, block.hash, raw))
    found = store.find_replay_record(dataset_id(), block.hash)
    assert found is not None
    assert found.raw == b"second"
    assert store.find_replay_record(dataset_id(), commit.blocks[0].hash) is None


def test_replay_record_of_a_foreign_block_is_refused(store: Store) -> None:
    store.commit(creation())
    with pytest.raises(BlockNotFoundError):
        store.put_replay_record(ReplayRecord(dataset_id(), 0, object_hash(1), b"x"))


def test_attestation_of_a_dataset_not_held_is_kept_once(store: Store) -> None:
    assert store.put_attestation(attestation(b"a")) is True
    assert store.put_attestation(attestation(b"a")) is False
    assert list(store.iter_attestations(dataset_id())) == [attestation(b"a")]


@pytest.mark.parametrize(("number", "found"), [(1, 0), (2, 1), (5, 1), (6, 0)])
def test_attestations_are_found_by_the_block_they_cover(store: Store, number: int, found: int) -> None:
    store.put_attestation(attestation(b"a", first=2, last=5))
    assert len(list(store.iter_attestations(dataset_id(), sequence_number=number))) == found


def test_replay_records_are_read_in_order_between_two_blocks(store: Store) -> None:
    commit = creation(count=6)
    store.commit(commit)
    for number in (4, 1, 3):
        store.put_replay_record(ReplayRecord(dataset_id(), number, commit.blocks[number].hash, b"%d" % number))
    assert list(store.iter_replay_records(dataset_id(), after=1, upto=4)) == [(3, b"3"), (4, b"4")]
    assert list(store.iter_replay_records(dataset_id(2), after=-1, upto=4)) == []


def test_attestations_are_told_from_where_the_last_look_ended(store: Store) -> None:
    for raw in (b"a", b"b", b"c"):
        store.put_attestation(attestation(raw))
    first = store.list_attestations_after(0, limit=2)
    assert [raw for _, raw in first] == [b"a", b"b"]
    assert [raw for _, raw in store.list_attestations_after(first[-1][0], limit=2)] == [b"c"]


def test_only_the_last_verification_is_remembered(store: Store) -> None:
    commit = creation()
    store.commit(commit)
    assert store.find_verified(dataset_id()) is None
    for replayed in (True, False):
        verified = Verified(dataset_id(), commit.new_head, replayed, b"state", NOON)
        store.put_verified(verified)
        assert store.find_verified(dataset_id()) == verified
