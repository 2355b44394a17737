"""Records of datasets in the store of a home."""

from dataclasses import replace

import pytest

from odf_node.datasets.naming import list_named
from odf_node.records.access import READS_EVERYTHING as ANYTHING
from odf_node.records.access import ReadGrants
from odf_node.records.datasets import Remote, RemoteDirection
from odf_node.records.errors import DatasetNotFoundError, NameMovedError, NameTakenError
from odf_node.store import MetadataStore
from odf_protocol.names import DatasetName
from support.store_values import (
    attestation,
    creation,
    dataset_id,
    object_hash,
    pulled_creation,
    quarantine_file,
)
from support.stores import find_named


def test_publishing_is_switched(store: MetadataStore) -> None:
    store.commit(creation())
    store.set_published(dataset_id(), False)
    assert store.list_datasets()[0].published is False


def test_deleted_dataset_leaves_only_evidence(store: MetadataStore) -> None:
    commit = creation(objects=(object_hash(1),), merge_state=object_hash(2), quarantine=quarantine_file())
    store.commit(commit)
    store.put_remote(Remote(dataset_id(), RemoteDirection.PULL, "https://a"))
    store.put_attestation(attestation(b"a"))
    store.delete_dataset(dataset_id())
    assert store.find_dataset(dataset_id()) is None
    assert store.find_block(dataset_id(), commit.blocks[0].hash) is None
    assert store.list_referenced_objects() == frozenset()
    assert len(list(store.iter_attestations(dataset_id()))) == 1


def test_renamed_dataset_is_found_under_its_new_name_alone(store: MetadataStore) -> None:
    store.commit(creation(name="old"))
    store.commit(creation(2, name="other"))
    store.rename_dataset(dataset_id(), "old", "new")
    assert find_named(store, "old") is None
    found = find_named(store, "new")
    assert found is not None
    assert found.id == dataset_id()
    for taken in ("other", "OTHER"):
        with pytest.raises(NameTakenError):
            store.rename_dataset(dataset_id(), "new", taken)
    with pytest.raises(DatasetNotFoundError):
        store.rename_dataset(dataset_id(7), "seven", "x")
    assert [record.name for record in store.list_datasets()] == ["new", "other"]


def test_second_of_two_renames_at_once_changes_nothing(store: MetadataStore) -> None:
    store.commit(creation(name="old"))
    store.rename_dataset(dataset_id(), "old", "first")
    with pytest.raises(NameMovedError, match="'old' was renamed to 'first' meanwhile; nothing was changed"):
        store.rename_dataset(dataset_id(), "old", "second")
    assert [record.name for record in store.list_datasets()] == ["first"]


def test_deleted_dataset_can_come_back(store: MetadataStore) -> None:
    store.commit(creation())
    store.delete_dataset(dataset_id())
    store.commit(creation(name="again"))
    assert [b.sequence_number for b in store.iter_blocks(dataset_id())] == [0]


@pytest.mark.parametrize(
    "method",
    ["get_head", "get_chain_state", "delete_dataset", "iter_acceptances", "iter_signed_heads", "iter_quarantine"],
)
def test_absent_dataset_is_named(store: MetadataStore, method: str) -> None:
    store.commit(creation(2))
    with pytest.raises(DatasetNotFoundError) as caught:
        getattr(store, method)(dataset_id(1))
    assert str(dataset_id(1)) in str(caught.value)


def test_dataset_is_readable_by_those_who_were_granted_it(store: MetadataStore) -> None:
    store.commit(creation(1, name="shown"))
    store.commit(creation(2, name="hidden"))
    store.set_published(dataset_id(2), False)
    anybody, nobody = ReadGrants(published=True), ReadGrants(published=False)
    granted = ReadGrants(published=False, datasets=frozenset({dataset_id(2)}))
    for reads, names in ((anybody, ["shown"]), (nobody, []), (granted, ["hidden"]), (ANYTHING, ["hidden", "shown"])):
        assert [record.name for record in store.list_readable(reads)] == names
        for which, name in ((dataset_id(1), "shown"), (dataset_id(2), "hidden")):
            by_name = store.find_readable(DatasetName.parse(name.upper()), reads)
            assert by_name == store.find_readable(which, reads)
            assert (by_name is not None) == (name in names)


def test_dataset_whose_name_was_taken_keeps_it_for_those_who_may_not_know(store: MetadataStore) -> None:
    """EX-85."""
    store.commit(creation(1, name="cities"))
    pushed = pulled_creation(2)
    assert pushed.new_dataset is not None
    store.commit(replace(pushed, new_dataset=replace(pushed.new_dataset, name="cities.x", asked_name="cities")))
    pusher, name = ReadGrants(published=False, datasets=frozenset({dataset_id(2)})), DatasetName.parse("cities")
    found = store.find_readable(name, pusher)
    assert found is not None
    assert (found.id, found.name) == (dataset_id(2), "cities")
    mine = store.find_readable(name, ANYTHING)
    assert mine is not None
    assert mine.id == dataset_id(1)
    both = ReadGrants(published=False, datasets=frozenset({dataset_id(1), dataset_id(2)}))
    assert [each.name for each in store.list_readable(both)] == ["cities", "cities"]
    assert [each.id for each in list_named(store, both)] == [dataset_id(1)]
