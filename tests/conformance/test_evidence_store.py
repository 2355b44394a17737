"""Evidence in the store of a home."""

from dataclasses import replace

from odf_node.records.commits import Commit
from odf_node.records.evidence import HeldStepRecord, Verified
from odf_node.store import MetadataStore
from support.store_values import (
    NOON,
    attestation,
    creation,
    dataset_id,
)


def recorded(commit: Commit, *numbers: int) -> Commit:
    """Give some blocks step records."""
    return replace(
        commit,
        blocks=tuple(
            replace(block, step_record=b"%d" % block.sequence_number) if block.sequence_number in numbers else block
            for block in commit.blocks
        ),
    )


def test_replay_record_is_found_by_its_block(store: MetadataStore) -> None:
    commit = recorded(creation(count=2), 1)
    store.commit(commit)
    found = store.find_step_record(dataset_id(), commit.blocks[1].hash)
    assert found == HeldStepRecord(dataset_id(), 1, commit.blocks[1].hash, b"1")
    assert store.find_step_record(dataset_id(), commit.blocks[0].hash) is None
    assert store.find_step_record(dataset_id(2), commit.blocks[1].hash) is None


def test_attestation_of_a_dataset_not_held_is_kept_once(store: MetadataStore) -> None:
    assert store.put_attestation(attestation(b"a")) is True
    assert store.put_attestation(attestation(b"a")) is False
    assert list(store.iter_attestations(dataset_id())) == [attestation(b"a")]


def test_replay_records_are_read_in_order_between_two_blocks(store: MetadataStore) -> None:
    store.commit(recorded(creation(count=6), 1, 3, 4))
    assert list(store.iter_step_records(dataset_id(), after=1, upto=4)) == [(3, b"3"), (4, b"4")]
    assert list(store.iter_step_records(dataset_id(2), after=-1, upto=4)) == []


def test_attestations_are_told_from_where_the_last_look_ended(store: MetadataStore) -> None:
    for raw in (b"a", b"b", b"c"):
        store.put_attestation(attestation(raw))
    first = store.list_attestations_after(0, limit=2)
    assert [raw for _, raw in first] == [b"a", b"b"]
    assert [raw for _, raw in store.list_attestations_after(first[-1][0], limit=2)] == [b"c"]


def test_only_the_last_verification_is_remembered(store: MetadataStore) -> None:
    commit = creation()
    store.commit(commit)
    assert store.find_verified(dataset_id()) is None
    for replayed in (True, False):
        verified = Verified(dataset_id(), commit.new_head, replayed, b"state", NOON)
        store.put_verified(verified)
        assert store.find_verified(dataset_id()) == verified
