"""Remotes and repositories in the store of a home."""

from odf_node.records.datasets import Remote, RemoteDirection, Repository
from odf_node.store import MetadataStore
from support.store_values import (
    creation,
    dataset_id,
)


def test_remotes_are_kept_once_and_in_order(store: MetadataStore) -> None:
    store.commit(creation())
    remotes = tuple(Remote(dataset_id(), RemoteDirection.PULL, url) for url in ("https://b", "https://a"))
    for remote in (*remotes, remotes[0]):
        store.put_remote(remote)
    assert store.list_remotes(dataset_id(), RemoteDirection.PULL) == remotes
    assert store.list_remotes(dataset_id(), RemoteDirection.PUSH) == ()
    store.delete_remote(remotes[0])
    assert store.list_remotes(dataset_id(), RemoteDirection.PULL) == remotes[1:]


def test_repository_is_found_without_regard_to_case_and_replaced(store: MetadataStore) -> None:
    store.put_repository(Repository("Acme", "https://a"))
    store.put_repository(Repository("acme", "https://b"))
    store.put_repository(Repository("aaa", "https://c"))
    assert store.find_repository("ACME") == Repository("acme", "https://b")
    assert [each.name for each in store.list_repositories()] == ["aaa", "acme"]
    store.delete_repository("aCME")
    store.delete_repository("aCME")
    assert [each.name for each in store.list_repositories()] == ["aaa"]
