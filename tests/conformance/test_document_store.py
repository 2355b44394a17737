"""Signed documents in the store of a home."""

from dataclasses import replace

import pytest

from odf_node.records.datasets import HeldHead
from odf_node.records.errors import BlockNotFoundError, HeadMovedError, KeyLogMovedError
from odf_node.records.evidence import DocumentKind, EvidenceDocument, KeyLogChange, SeenHead
from odf_node.store import MetadataStore
from odf_protocol.did import DidKey
from odf_protocol.head import Head
from odf_protocol.policy import Trust
from support.store_values import (
    NOON,
    acceptance,
    creation,
    dataset_id,
    did_key,
    growth,
    object_hash,
    pulled_creation,
)


def test_signed_head_of_an_older_block_is_not_the_present_one(store: MetadataStore) -> None:
    first = pulled_creation()
    store.commit(first)
    second = growth(first)
    store.commit(replace(second, acceptance=acceptance(second.new_head, trust=Trust.UNSIGNED)))
    assert store.find_signed_head(dataset_id()) is None
    assert [s.raw for s in store.iter_signed_heads(dataset_id())] == [b"signed head document"]
    assert store.list_datasets()[0].trust is Trust.UNSIGNED


def test_contradicting_documents_stay_beside_each_other(store: MetadataStore) -> None:
    commit = pulled_creation()
    store.commit(commit)
    other = HeldHead(dataset_id(), commit.new_head, b"other document")
    store.put_signed_head(other)
    store.put_signed_head(other)
    assert [s.raw for s in store.iter_signed_heads(dataset_id())] == [b"signed head document", b"other document"]


def test_key_events_are_added_to_what_was_known_or_not_at_all(store: MetadataStore) -> None:
    commit = pulled_creation()
    store.commit(commit)
    pin, other = did_key(), DidKey(b"\x02" * 32)
    change = KeyLogChange(
        dataset_id=dataset_id(), raws=(b"first", b"second"), known=0, received_at=NOON, pinned_key=other
    )
    for wrong, error in (
        (replace(change, known=1), KeyLogMovedError),
        (replace(change, expected_head=object_hash(1)), HeadMovedError),
    ):
        with pytest.raises(error):
            store.add_key_events(wrong)
        assert list(store.iter_documents(dataset_id(), DocumentKind.KEY_EVENT)) == []
        assert store.list_datasets()[0].pinned_key == pin

    store.add_key_events(replace(change, expected_head=commit.new_head.hash, signed_head=b"by the new key"))

    kept = [item.raw for item in store.iter_documents(dataset_id(), DocumentKind.KEY_EVENT)]
    assert kept == [b"first", b"second"]
    assert store.list_datasets()[0].pinned_key == other
    signed = store.find_signed_head(dataset_id())
    assert signed is not None
    assert signed.raw == b"by the new key"
    with pytest.raises(KeyLogMovedError):
        store.commit(growth(commit, acceptance=acceptance(growth(commit).new_head)))
    store.commit(growth(commit, acceptance=acceptance(growth(commit).new_head), known_key_events=2))
    store.delete_dataset(dataset_id())
    assert len(list(store.iter_documents(dataset_id(), DocumentKind.KEY_EVENT))) == 2


def test_unsigned_dataset_gets_no_pin_by_key_events(store: MetadataStore) -> None:
    store.commit(creation())
    store.add_key_events(
        KeyLogChange(dataset_id=dataset_id(), raws=(b"x",), known=0, received_at=NOON, pinned_key=DidKey(b"\x01" * 32))
    )
    assert store.list_datasets()[0].pinned_key is None


def test_signed_head_of_a_foreign_block_is_rejected(store: MetadataStore) -> None:
    store.commit(creation())
    with pytest.raises(BlockNotFoundError):
        store.put_signed_head(HeldHead(dataset_id(), Head(0, object_hash(1)), b"x"))


def test_signed_head_is_kept_by_whoever_knew_all_key_events_or_not_at_all(store: MetadataStore) -> None:
    """KEY-17: what an old key signed while it was changed would count for the newest word."""
    commit = pulled_creation()
    store.commit(commit)
    before = store.list_head_documents()
    late = HeldHead(dataset_id(), commit.new_head, b"by the old key")
    with pytest.raises(KeyLogMovedError):
        store.put_signed_head(late, known_key_events=1)
    assert store.list_head_documents() == before
    store.put_signed_head(late, known_key_events=0)
    assert store.list_head_documents() != before


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64 - 1])
def test_block_whose_number_no_chain_reaches_is_not_there(store: MetadataStore, number: int) -> None:
    """A stranger names any number that 64 bits hold."""
    store.commit(creation())
    assert store.find_block_by_number(dataset_id(), number) is None


def test_number_of_a_head_changes_with_the_document_that_counts(store: MetadataStore) -> None:
    commit = pulled_creation()
    store.commit(commit)
    store.commit(creation(2))
    before = store.list_head_documents()
    assert list(before) == [dataset_id()]
    store.put_signed_head(HeldHead(dataset_id(), commit.new_head, b"another"))
    assert store.list_head_documents()[dataset_id()] > before[dataset_id()]


def test_only_a_newer_head_is_kept_in_mind(store: MetadataStore) -> None:
    def seen(number: int) -> SeenHead:
        return SeenHead(
            dataset_id=dataset_id(),
            sequence_number=number,
            block_hash=object_hash(number),
            raw=b"head",
            source="gossip",
            seen_at=NOON,
        )

    assert store.find_seen_head(dataset_id()) is None
    assert [store.put_seen_head(seen(number)) for number in (3, 3, 2, 4)] == [True, False, False, True]
    assert store.find_seen_head(dataset_id()) == seen(4)


def test_document_is_kept_once_and_by_its_kind(store: MetadataStore) -> None:
    proof = EvidenceDocument(DocumentKind.EQUIVOCATION, dataset_id(), b"proof", NOON)
    assert [store.put_document(proof), store.put_document(proof)] == [True, False]
    assert list(store.iter_documents(dataset_id(), DocumentKind.EQUIVOCATION)) == [proof]
    assert list(store.iter_documents(dataset_id(), DocumentKind.SETTLEMENT)) == []
    assert store.list_subjects(DocumentKind.EQUIVOCATION) == {dataset_id()}
    assert store.list_subjects(DocumentKind.SETTLEMENT) == frozenset()
    assert list(store.iter_documents(dataset_id(2), DocumentKind.EQUIVOCATION)) == []
