"""Rows in quarantine in the store of a home (QUAR-3)."""

from dataclasses import replace

import pytest

from odf_node.records.quarantine import Fate, RowId, RowNote, SettledError, SettledRows, WaitingBatch
from odf_node.store import MetadataStore
from odf_protocol.events import SourceState
from support.store_values import LATER, creation, dataset_id, growth, object_hash, quarantine_file

BATCH = WaitingBatch(
    file=object_hash(9),
    why="at most 2% may fail",
    event_time=LATER,
    new_state=SourceState(source_name="polling", kind="odf/etag", value="b"),
    known_state=None,
)


def put(store: MetadataStore, **changes: object) -> int:
    """Add an entry to the one dataset; give its number."""
    store.put_quarantine(replace(quarantine_file(None), **changes))
    return list(store.iter_quarantine(dataset_id()))[-1].id


def test_entry_comes_back_as_it_was_given(store: MetadataStore) -> None:
    store.commit(creation())
    given = replace(quarantine_file(None), push_source="default", resent_from=(RowId(1, 2), RowId(1, 30)), batch=BATCH)
    store.put_quarantine(given)
    (found,) = store.iter_quarantine(dataset_id())
    assert found == given
    assert found.id > 0
    assert store.list_referenced_objects() == {object_hash(7), object_hash(9)}
    assert [store.is_referenced_object(object_hash(n)) for n in (7, 8, 9)] == [True, False, True]


def test_row_is_fixed_until_it_is_settled_and_never_again(store: MetadataStore) -> None:
    store.commit(creation())
    entry = put(store)
    rows = RowId(entry, 1), RowId(entry, 3)
    store.fix_rows(dataset_id(), {rows[0]: {"a": "1", "b": None}, rows[1]: {"a": "x"}})
    store.fix_rows(dataset_id(), {rows[0]: {"a": "2", "b": None}})
    assert store.list_row_notes(entry) == {1: RowNote(columns={"a": "2", "b": None}), 3: RowNote(columns={"a": "x"})}
    store.settle(dataset_id(), SettledRows(fate=Fate.DROPPED, rows=rows[:1]))
    notes = store.list_row_notes(entry)
    assert notes[1] == RowNote(columns={"a": "2", "b": None}, fate=Fate.DROPPED)
    for attempt in (
        lambda: store.fix_rows(dataset_id(), {rows[1]: {"a": "y"}, rows[0]: {"a": "3"}}),
        lambda: store.settle(dataset_id(), SettledRows(fate=Fate.RESENT, rows=(rows[1], rows[0])), quarantine_file()),
    ):
        with pytest.raises(SettledError, match=f"{entry}.1 of the quarantine"):
            attempt()
        assert store.list_row_notes(entry) == notes
        assert len(list(store.iter_quarantine(dataset_id()))) == 1


@pytest.mark.parametrize("row", [RowId(1, 0), RowId(1, 4), RowId(77, 1)], ids=["before", "behind", "elsewhere"])
def test_row_that_is_not_there_is_not_settled(store: MetadataStore, row: RowId) -> None:
    store.commit(creation())
    entry = put(store)
    with pytest.raises(SettledError):
        store.settle(dataset_id(), SettledRows(fate=Fate.RESENT, rows=(replace(row, entry=entry + row.entry - 1),)))
    assert store.list_row_notes(entry) == {}


def test_row_of_another_dataset_is_not_settled(store: MetadataStore) -> None:
    store.commit(creation())
    store.commit(replace(creation(2), dataset_id=dataset_id(2)))
    entry = put(store)
    with pytest.raises(SettledError):
        store.settle(dataset_id(2), SettledRows(fate=Fate.RESENT, rows=(RowId(entry, 1),)))
    assert store.list_row_notes(entry) == {}


def test_rows_are_settled_with_the_block_that_takes_them_or_not_at_all(store: MetadataStore) -> None:
    first = creation()
    store.commit(first)
    entry = put(store)
    settlement = SettledRows(fate=Fate.RESENT, rows=(RowId(entry, 2),))
    grown = growth(first, settlement=settlement, quarantine=quarantine_file(2))
    store.commit(grown)
    assert store.list_row_notes(entry) == {2: RowNote(fate=Fate.RESENT, sequence_number=grown.new_head.sequence_number)}
    before = list(store.iter_quarantine(dataset_id()))
    assert len(before) == 2
    with pytest.raises(SettledError):
        store.commit(growth(grown, settlement=settlement, quarantine=quarantine_file(3)))
    assert store.get_head(dataset_id()) == grown.new_head
    assert list(store.iter_quarantine(dataset_id())) == before


def test_batch_waits_once_and_is_settled_once(store: MetadataStore) -> None:
    store.commit(creation())
    first = put(store, batch=BATCH)
    second = put(store, batch=replace(BATCH, why="another limit"))
    assert first != second
    assert [each.id for each in store.iter_quarantine(dataset_id())] == [second]
    store.settle(dataset_id(), SettledRows(fate=Fate.DROPPED, batches=(second,)))
    (found,) = store.iter_quarantine(dataset_id())
    assert found.batch == replace(BATCH, why="another limit", file=None, fate=Fate.DROPPED)
    assert store.list_referenced_objects() == {object_hash(7)}
    for entry in (first, second):
        with pytest.raises(SettledError):
            store.settle(dataset_id(), SettledRows(fate=Fate.RESENT, batches=(entry,)))
    with pytest.raises(SettledError):
        store.settle(dataset_id(), SettledRows(fate=Fate.RESENT, rows=(RowId(second, 1),)))
