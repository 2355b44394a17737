"""What ingests leave in the store of a home."""

import pytest

from odf_node.records.commits import FetchedPlace
from odf_node.records.ingests import IngestKey, KeptAnswer, KeyInUseError
from odf_node.store import MetadataStore
from support.store_values import (
    creation,
    dataset_id,
    growth,
    object_hash,
    quarantine_file,
)


def test_quarantine_without_block_is_kept(store: MetadataStore) -> None:
    store.commit(creation())
    assert store.list_datasets_with_quarantine() == frozenset()
    store.put_quarantine(quarantine_file(None))
    assert store.list_datasets_with_quarantine() == {dataset_id()}
    assert list(store.iter_quarantine(dataset_id())) == [quarantine_file(None)]


def test_only_the_newest_merge_state_is_kept(store: MetadataStore) -> None:
    first = creation(merge_state=object_hash(1))
    store.commit(first)
    second = growth(first, merge_state=object_hash(2))
    store.commit(second)
    assert store.find_merge_state(dataset_id(), first.new_head.hash) is None
    assert store.find_merge_state(dataset_id(), second.new_head.hash) == object_hash(2)
    assert store.list_referenced_objects() == {object_hash(2)}
    assert store.find_newest_merge_state(dataset_id()) == object_hash(2)
    assert [store.is_referenced_object(object_hash(n)) for n in (1, 2)] == [False, True]


def test_place_of_a_source_state_is_that_of_the_newest_one(store: MetadataStore) -> None:
    """Clause ING-26."""
    first = creation(fetched_place=FetchedPlace("monday", b"here"))
    assert store.find_fetched_place(dataset_id(), "monday") is None
    store.commit(first)
    store.commit(second := growth(first))
    assert store.find_fetched_place(dataset_id(), "monday") == b"here"
    store.commit(growth(second, fetched_place=FetchedPlace("tuesday", b"there")))
    found = [store.find_fetched_place(dataset_id(), day) for day in ("monday", "tuesday")]
    assert found == [None, b"there"]


def test_size_of_the_last_batch_is_that_of_its_source(store: MetadataStore) -> None:
    store.commit(creation())
    assert store.find_batch_size(dataset_id(), None) is None
    store.put_batch_size(dataset_id(), None, 5)
    store.put_batch_size(dataset_id(), "pushed", 7)
    store.put_batch_size(dataset_id(), None, 6)
    assert [store.find_batch_size(dataset_id(), each) for each in (None, "pushed", "other")] == [6, 7, None]


def answer(text: str = "monday", *, caller: str = "", asked: bytes = b"asked") -> KeptAnswer:
    return KeptAnswer(key=IngestKey(caller=caller, text=text, asked=asked), sequence_number=1, text="{}")


def test_answer_is_kept_with_its_block_for_its_caller_and_dataset_alone(store: MetadataStore) -> None:
    """Clauses FEED-1 and FEED-3."""
    store.commit(first := creation())
    store.commit(creation(2))
    store.commit(growth(first, answer=answer(caller="a")))
    assert store.find_answer(dataset_id(), "a", "monday") == answer(caller="a")
    assert store.find_answer(dataset_id(), "b", "monday") is None
    assert store.find_answer(dataset_id(), "a", "tuesday") is None
    assert store.find_answer(dataset_id(2), "a", "monday") is None


def test_second_answer_under_a_key_leaves_everything_as_it_is(store: MetadataStore) -> None:
    """Clause FEED-1."""
    store.commit(first := creation())
    store.put_answer(dataset_id(), answer(), quarantine_file(None))
    with pytest.raises(KeyInUseError):
        store.commit(growth(first, answer=answer(asked=b"another")))
    with pytest.raises(KeyInUseError):
        store.put_answer(dataset_id(), answer(asked=b"another"), quarantine_file(None))
    assert store.find_dataset(dataset_id()).head == first.new_head
    assert list(store.iter_quarantine(dataset_id())) == [quarantine_file(None)]
    assert store.find_answer(dataset_id(), "", "monday") == answer()


def test_oldest_keys_of_a_caller_are_forgotten(store: MetadataStore) -> None:
    """Clause FEED-3."""
    store.commit(creation())
    store.put_answer(dataset_id(), answer("kept", caller="other"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("odf_node.store.ingests.MAX_KEPT_KEYS", 2)
        for text in ("one", "two", "three"):
            store.put_answer(dataset_id(), answer(text))
    found = [store.find_answer(dataset_id(), "", text) is not None for text in ("one", "two", "three")]
    assert found == [False, True, True]
    assert store.find_answer(dataset_id(), "other", "kept") is not None
