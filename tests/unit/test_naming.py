"""From what a user typed to the datasets that are meant."""

from pathlib import Path

import pytest

from odf_node.datasets.naming import get_dataset, select_datasets
from odf_node.errors import UnknownDatasetError
from odf_node.home_folder import HomeFolder
from odf_node.store import MetadataStore
from odf_protocol.errors import MalformedError
from support.open_stores import open_store
from support.store_values import creation, dataset_id

NAMES = ("cities", "large.cities", "rivers", "x_y", "xay")


@pytest.fixture
def store(tmp_path: Path) -> MetadataStore:
    store = open_store(HomeFolder(tmp_path))
    for number, name in enumerate(NAMES, start=1):
        store.commit(creation(number, name=name))
    return store


def selected(store: MetadataStore, *patterns: str) -> list[str]:
    return [record.name for record in select_datasets(store, patterns)]


@pytest.mark.parametrize("text", ["cities", "CITIES", "Cities", str(dataset_id(1))])
def test_name_in_any_case_or_identity_finds_the_dataset(store: MetadataStore, text: str) -> None:
    assert get_dataset(store, text).name == "cities"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("citise", "did you mean 'cities'"),
        ("large.city", "did you mean 'large.cities'"),
        ("entirely.else", "'odf-node list' shows what there is"),
        (str(dataset_id(99)), "shows the identities"),
    ],
)
def test_unknown_dataset_is_answered_with_what_may_be_meant(store: MetadataStore, text: str, hint: str) -> None:
    with pytest.raises(UnknownDatasetError, match=hint):
        get_dataset(store, text)


def test_identity_with_a_typing_mistake_is_malformed(store: MetadataStore) -> None:
    with pytest.raises(MalformedError):
        get_dataset(store, str(dataset_id(1))[:-1])


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("%", [*NAMES]),
        ("%cities", ["cities", "large.cities"]),
        ("large%", ["large.cities"]),
        ("%.%", ["large.cities"]),
        ("%I%I%", ["cities", "large.cities"]),
        ("c%s", ["cities"]),
        ("%e%r%s", ["rivers"]),
        ("x_y", ["x_y"]),
        ("x_%", ["x_y"]),
        ("cities%", ["cities"]),
    ],
)
def test_pattern_selects_as_like_does_without_single_letter_wildcards(
    store: MetadataStore, pattern: str, names: list[str]
) -> None:
    assert sorted(selected(store, pattern)) == sorted(names)


def test_overlapping_parts_of_a_pattern_need_text_of_their_own(store: MetadataStore) -> None:
    for pattern in ("cities%cities", "cit%ities", "rivers%s"):
        with pytest.raises(UnknownDatasetError, match="no dataset of this node matches"):
            select_datasets(store, [pattern])


def test_each_dataset_is_selected_once_in_the_order_given(store: MetadataStore) -> None:
    assert selected(store, "rivers", "%cities", "RIVERS", "cities") == ["rivers", "cities", "large.cities"]


def test_nothing_named_is_nothing_selected(store: MetadataStore) -> None:
    assert selected(store) == []
