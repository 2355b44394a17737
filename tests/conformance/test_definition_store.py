"""Blocks that define datasets in the store of a home."""

from odf_node.records.datasets import BlockRole
from odf_node.store import MetadataStore
from support.store_values import creation, dataset_id, growth


def test_each_dataset_comes_once_with_the_blocks_that_define_it_and_no_others(store: MetadataStore) -> None:
    commits = [creation(number, count=80) for number in range(3)]
    for commit in commits:
        store.commit(commit)
    more = growth(commits[1], 80, salt="more")
    store.commit(more)
    found = dict(store.iter_definitions())
    assert len(list(store.iter_definitions())) == 3
    for number, commit in enumerate(commits):
        blocks = [*commit.blocks, *(more.blocks if number == 1 else ())]
        newest = {block.role: block.raw for block in blocks if block.role < BlockRole.DEFINITION}
        wanted = [block.raw for block in blocks if block.role is BlockRole.DEFINITION]
        assert found[dataset_id(number)] == b"\0".join([*wanted, *(newest[role] for role in sorted(newest))])
        assert all(block.raw not in found[dataset_id(number)] for block in blocks if block.role >= BlockRole.ROWS)
    assert len(newest) == 3


def test_more_datasets_than_a_page_are_all_read(store: MetadataStore) -> None:
    for number in range(1_201):
        store.commit(creation(number))
    store.delete_dataset(dataset_id(700))
    assert {each for each, _ in store.iter_definitions()} == {dataset_id(n) for n in range(1_201) if n != 700}


def test_empty_store_has_none(store: MetadataStore) -> None:
    assert list(store.iter_definitions()) == []
