"""What every ``KeyStore`` must do; an adapter's test subclasses this and provides ``make_store``."""

import threading
from abc import ABC, abstractmethod

import pytest

from odf_node.ports.keys import KeyStore, PrivateKey
from odf_node.records.errors import KeyNotFoundError
from support.store_values import dataset_id


class KeyStoreSuite(ABC):
    @abstractmethod
    def make_store(self) -> KeyStore:
        """Open the store of this test; a second call opens the same one again, as another process would."""

    @pytest.fixture
    def store(self) -> KeyStore:
        return self.make_store()

    def test_empty_store_holds_no_key(self, store: KeyStore) -> None:
        assert store.find_node_key() is None
        assert store.find_dataset_key(dataset_id()) is None
        with pytest.raises(KeyNotFoundError):
            store.get_dataset_key(dataset_id())

    def test_node_key_is_made_once(self, store: KeyStore) -> None:
        key = store.get_or_create_node_key()
        assert key == store.get_or_create_node_key() == self.make_store().find_node_key()

    def test_first_calls_at_once_agree_on_one_key(self, store: KeyStore) -> None:
        keys: list[PrivateKey] = []
        threads = [
            threading.Thread(target=lambda: keys.append(self.make_store().get_or_create_node_key())) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(keys) == 8
        assert len({key.seed for key in keys}) == 1

    def test_dataset_key_comes_back_and_names_its_dataset(self, store: KeyStore) -> None:
        key = store.generate()
        identity = store.put_dataset_key(key)
        assert identity.public_key == key.public_key()
        assert store.put_dataset_key(key) == identity
        assert self.make_store().get_dataset_key(identity) == key

    def test_later_key_comes_back_by_its_public_half_and_is_forgotten(self, store: KeyStore) -> None:
        key = store.generate()
        public = store.put_signing_key(key)
        assert public.public_key == key.public_key()
        assert self.make_store().find_signing_key(public) == key
        store.delete_signing_key(public)
        store.delete_signing_key(public)
        assert store.find_signing_key(public) is None

    def test_forgotten_key_is_gone(self, store: KeyStore) -> None:
        identity = store.put_dataset_key(store.generate())
        store.delete_dataset_key(identity)
        store.delete_dataset_key(identity)
        assert store.find_dataset_key(identity) is None

    def test_generated_keys_differ_and_store_nothing(self, store: KeyStore) -> None:
        assert store.generate() != store.generate()
        assert store.find_node_key() is None

    def test_key_never_shows_its_secret(self, store: KeyStore) -> None:
        key = store.generate()
        assert key.seed.hex() not in repr(key)
        assert repr(key) == "PrivateKey()"
