"""What every ``IngestStore`` must do; ``store`` is each adapter in turn."""

from odf_node.ports.commits import FetchedPlace
from support.store_values import (
    creation,
    dataset_id,
    growth,
    object_hash,
    quarantine_file,
)
from support.stores import Store


def test_quarantine_without_block_is_kept(store: Store) -> None:
    store.commit(creation())
    assert store.list_datasets_with_quarantine() == frozenset()
    store.put_quarantine(quarantine_file(None))
    assert store.list_datasets_with_quarantine() == {dataset_id()}
    assert list(store.iter_quarantine(dataset_id())) == [quarantine_file(None)]


def test_only_the_newest_merge_state_is_kept(store: Store) -> None:
    first = creation(merge_state=object_hash(1))
    store.commit(first)
    second = growth(first, merge_state=object_hash(2))
    store.commit(second)
    assert store.find_merge_state(dataset_id(), first.new_head.hash) is None
    assert store.find_merge_state(dataset_id(), second.new_head.hash) == object_hash(2)
    assert store.list_referenced_objects() == {object_hash(2)}
    assert store.find_newest_merge_state(dataset_id()) == object_hash(2)
    assert [store.is_referenced_object(object_hash(n)) for n in (1, 2)] == [False, True]


def test_place_of_a_source_state_is_that_of_the_newest_one(store: Store) -> None:
    """Clause ING-26."""
    first = creation(fetched_place=FetchedPlace("monday", b"here"))
    assert store.find_fetched_place(dataset_id(), "monday") is None
    store.commit(first)
    store.commit(second := growth(first))
    assert store.find_fetched_place(dataset_id(), "monday") == b"here"
    store.commit(growth(second, fetched_place=FetchedPlace("tuesday", b"there")))
    found = [store.find_fetched_place(dataset_id(), day) for day in ("monday", "tuesday")]
    assert found == [None, b"there"]


def test_size_of_the_last_batch_is_that_of_its_source(store: Store) -> None:
    store.commit(creation())
    assert store.find_batch_size(dataset_id(), None) is None
    store.put_batch_size(dataset_id(), None, 5)
    store.put_batch_size(dataset_id(), "pushed", 7)
    store.put_batch_size(dataset_id(), None, 6)
    assert [store.find_batch_size(dataset_id(), each) for each in (None, "pushed", "other")] == [6, 7, None]
