"""Commits in the store of a home."""

import threading
from contextlib import suppress
from dataclasses import replace

import pytest

from odf_node.records.datasets import HeldHead, Origin
from odf_node.records.errors import DatasetNotFoundError, HeadMovedError, NameTakenError
from odf_node.records.evidence import HeldStepRecord
from odf_node.store import MetadataStore
from odf_protocol.head import Head
from odf_protocol.policy import Trust
from support.store_values import (
    acceptance,
    blocks,
    creation,
    dataset_id,
    did_key,
    growth,
    object_hash,
    pulled_creation,
    quarantine_file,
    stored,
)


def test_pulled_dataset_shows_origin_trust_and_pinned_key(store: MetadataStore) -> None:
    commit = pulled_creation()
    record = store.commit(commit)
    assert (record.origin, record.origin_url) == (Origin.PULLED, "https://peer.example/d")
    assert (record.trust, record.pinned_key) == (Trust.REEXECUTED, did_key())
    assert list(store.iter_acceptances(dataset_id())) == [commit.acceptance]
    assert store.find_signed_head(dataset_id()) == HeldHead(dataset_id(), commit.new_head, b"signed head document")


def test_growth_moves_the_head_and_the_chain_state(store: MetadataStore) -> None:
    first = creation()
    store.commit(first)
    second = growth(first, 2)
    record = store.commit(second)
    assert record.head == second.new_head
    assert store.get_chain_state(dataset_id()) == (second.new_head, b"state after growth")
    assert [b.sequence_number for b in store.iter_blocks(dataset_id())] == [0, 1, 2]


def test_commit_on_an_old_head_loses_and_changes_nothing(store: MetadataStore) -> None:
    first = creation()
    store.commit(first)
    won = growth(first, salt="won")
    store.commit(won)
    lost = growth(first, salt="lost", objects=(object_hash(1),), merge_state=object_hash(2))
    with pytest.raises(HeadMovedError) as caught:
        store.commit(lost)
    assert (caught.value.expected, caught.value.found) == (first.new_head.hash, won.new_head.hash)
    assert store.get_head(dataset_id()) == won.new_head
    assert store.list_referenced_objects() == frozenset()
    assert store.find_block(dataset_id(), lost.blocks[0].hash) is None


def test_creating_a_dataset_twice_loses_the_second_time(store: MetadataStore) -> None:
    store.commit(creation())
    with pytest.raises(HeadMovedError):
        store.commit(creation(name="other"))
    assert len(store.list_datasets()) == 1


def test_taken_name_is_rejected_with_its_holder(store: MetadataStore) -> None:
    store.commit(creation(1, name="same"))
    with pytest.raises(NameTakenError) as caught:
        store.commit(creation(2, name="same"))
    assert caught.value.holder == dataset_id(1)
    assert len(store.list_datasets()) == 1


def test_growth_of_an_unknown_dataset_is_rejected(store: MetadataStore) -> None:
    with pytest.raises(DatasetNotFoundError):
        store.commit(growth(creation()))


def test_gap_after_the_head_is_our_own_mistake(store: MetadataStore) -> None:
    first = creation()
    store.commit(first)
    with pytest.raises(ValueError, match="expected block 1"):
        store.commit(growth(first, blocks=blocks(2, 1)))


def test_blocks_of_others_without_acceptance_are_our_own_mistake(store: MetadataStore) -> None:
    first = pulled_creation()
    store.commit(first)
    with pytest.raises(ValueError, match="acceptance"):
        store.commit(growth(first))
    assert store.get_head(dataset_id()) == first.new_head


def test_commit_carries_everything_or_nothing(store: MetadataStore) -> None:
    first = creation()
    store.commit(first)
    second = growth(
        first, objects=(object_hash(1), object_hash(2)), merge_state=object_hash(3), quarantine=quarantine_file()
    )
    block = replace(second.blocks[0], step_record=b"{replay}")
    store.commit(replace(second, blocks=(block,), signed_head=b"head"))
    assert store.find_step_record(dataset_id(), block.hash) == HeldStepRecord(dataset_id(), 1, block.hash, b"{replay}")
    assert store.find_merge_state(dataset_id(), block.hash) == object_hash(3)
    assert list(store.iter_quarantine(dataset_id())) == [quarantine_file()]
    assert store.list_referenced_objects() == {object_hash(n) for n in (1, 2, 3, 7)}
    assert [n for n in range(9) if store.is_referenced_object(object_hash(n))] == [1, 2, 3, 7]


def test_object_named_twice_is_one_object(store: MetadataStore) -> None:
    first = creation(objects=(object_hash(1),))
    store.commit(first)
    store.commit(growth(first, objects=(object_hash(1), object_hash(1))))
    assert store.list_referenced_objects() == {object_hash(1)}


def test_several_threads_see_their_commits_one_after_another(store: MetadataStore) -> None:
    base = creation()
    store.commit(base)
    outcomes: list[bool] = []

    def compete(name: str) -> None:
        head = base
        with suppress(HeadMovedError):
            for _ in range(5):
                attempt = growth(head, salt=name)
                store.commit(attempt)
                outcomes.append(True)
                head = attempt

    threads = [threading.Thread(target=compete, args=(f"thread {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Whoever extends the first block wins, and nobody can follow on a head that is not there.
    assert store.get_head(dataset_id()).sequence_number == len(outcomes) == 5
    assert [b.sequence_number for b in store.iter_blocks(dataset_id())] == list(range(6))


def test_what_was_not_brought_is_absent() -> None:
    named = (object_hash(1),)
    with pytest.raises(ValueError, match="absent"):
        replace(creation(), objects=named, not_brought=frozenset(named))


def test_later_acceptance_raises_the_trust(store: MetadataStore) -> None:
    commit = pulled_creation()
    assert commit.acceptance is not None
    store.commit(replace(commit, acceptance=replace(commit.acceptance, trust=Trust.SIGNED)))
    store.put_acceptance(dataset_id(), acceptance(commit.new_head))
    assert store.list_datasets()[0].trust is Trust.REEXECUTED
    assert [a.trust for a in store.iter_acceptances(dataset_id())] == [Trust.SIGNED, Trust.REEXECUTED]


def test_acceptance_of_an_old_head_is_rejected(store: MetadataStore) -> None:
    store.commit(pulled_creation())
    with pytest.raises(HeadMovedError):
        store.put_acceptance(dataset_id(), acceptance(Head(0, object_hash(1))))


def test_replaced_history_is_kept_aside_as_it_was(store: MetadataStore) -> None:
    """ACCEPT-10."""
    first = pulled_creation(count=4)
    store.commit(first)
    other = blocks(2, 3, salt="other")
    head = Head(other[-1].sequence_number, other[-1].hash)
    store.commit(growth(first, blocks=other, replaces_after=1, acceptance=acceptance(head)))
    assert store.get_head(dataset_id()) == head
    assert [b.hash for b in store.iter_blocks(dataset_id())] == [b.hash for b in (*first.blocks[:2], *other)]
    (history,) = store.list_replaced_histories(dataset_id())
    assert (history.after, history.head, history.replaced_by) == (1, first.new_head, head)
    assert list(store.iter_replaced_blocks(history)) == [stored(block) for block in first.blocks[2:]]


def test_own_history_is_not_replaced(store: MetadataStore) -> None:
    first = creation(count=4)
    store.commit(first)
    with pytest.raises(ValueError, match="others"):
        store.commit(growth(first, blocks=blocks(2, 3, salt="other"), replaces_after=1))
    assert store.get_head(dataset_id()) == first.new_head


def test_block_with_other_bytes_is_not_fixed(store: MetadataStore) -> None:
    commit = creation(count=2)
    store.commit(commit)
    with pytest.raises(ValueError, match="are not those of"):
        store.fix_block(dataset_id(), replace(commit.blocks[1], raw=b"other"))
    assert list(store.iter_blocks(dataset_id())) == [stored(block) for block in commit.blocks]
