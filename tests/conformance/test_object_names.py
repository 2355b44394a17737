"""Names of objects in the store of a home."""

from dataclasses import replace

import pytest

from odf_node.records.errors import DatasetNotFoundError
from odf_node.store import MetadataStore
from support.store_values import (
    creation,
    dataset_id,
    object_hash,
)


def test_dataset_has_what_was_brought_for_it_and_nothing_else(store: MetadataStore) -> None:
    first = creation()
    named = object_hash(1), object_hash(2), object_hash(3)
    absent = frozenset(named[1:])
    store.commit(replace(first, objects=named, absent=absent, not_brought=frozenset(named[2:])))
    assert [store.has_dataset_object(dataset_id(), name) for name in named] == [True, True, False]
    assert not store.has_dataset_object(dataset_id(), object_hash(4))
    assert not store.has_dataset_object(dataset_id(2), named[0])
    store.mark_brought(dataset_id(), named[2:])
    assert store.has_dataset_object(dataset_id(), named[2])
    assert store.list_absent_objects(dataset_id()) == absent
    assert store.list_incomplete_datasets() == {dataset_id()}
    store.mark_present(dataset_id(), named)
    assert store.list_incomplete_datasets() == frozenset()


def test_object_that_is_here_for_this_node_alone_is_none_that_the_dataset_has(store: MetadataStore) -> None:
    named = (object_hash(1),)
    both = frozenset(named)
    store.commit(replace(creation(), objects=named, absent=both, not_brought=both))
    store.mark_present(dataset_id(), named, brought=False)
    assert store.list_absent_objects(dataset_id()) == frozenset()
    assert not store.has_dataset_object(dataset_id(), named[0])
    store.mark_present(dataset_id(), named)
    store.mark_absent(dataset_id(), named)
    assert store.has_dataset_object(dataset_id(), named[0])


def test_expected_objects_are_all_but_the_absent_ones(store: MetadataStore) -> None:
    """PART-4."""
    named = object_hash(1), object_hash(2)
    absent = frozenset(named[1:])
    store.commit(creation(objects=named, absent=absent, merge_state=object_hash(3)))
    assert store.list_expected_objects() == {named[0], object_hash(3)}
    assert store.list_referenced_objects() == {*named, object_hash(3)}
    assert [store.names_object(dataset_id(), name) for name in (*named, object_hash(3))] == [True, True, False]
    assert not store.names_object(dataset_id(2), named[0])
    for mark in (store.mark_absent, store.mark_brought, store.mark_present):
        with pytest.raises(DatasetNotFoundError):
            mark(dataset_id(2), named)
