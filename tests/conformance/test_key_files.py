import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from conformance.key_store_suite import KeyStoreSuite
from odf_node.adapters.key_files import KeyFiles
from odf_node.home_folder import HomeFolder
from odf_node.ports.keys import KeyStore
from odf_node.records.errors import HomeCorruptError, UnsafeKeyFileError
from support.store_values import dataset_id


class TestKeyFiles(KeyStoreSuite):
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> None:
        self.home = HomeFolder(tmp_path / "home")

    @property
    def node_file(self) -> Path:
        return self.home.keys / "node.pem"

    def make_store(self) -> KeyFiles:
        return KeyFiles(self.home)

    def test_looking_for_keys_makes_no_home(self, store: KeyStore) -> None:
        store.find_node_key()
        store.find_dataset_key(dataset_id())
        assert not self.home.path.exists()

    def test_file_is_the_standard_form_of_the_key(self, store: KeyStore) -> None:
        key = store.get_or_create_node_key()
        loaded = load_pem_private_key(self.node_file.read_bytes(), None)
        assert loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) == self.node_file.read_bytes()
        assert loaded.public_key().public_bytes_raw() == key.public_key()  # type: ignore[union-attr]

    def test_files_and_folders_are_for_the_owner_only(self, store: KeyStore) -> None:
        store.get_or_create_node_key()
        store.put_dataset_key(store.generate())
        for path in (self.home.keys, *self.home.keys.rglob("*")):
            assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)
        assert list(self.home.staging.iterdir()) == [self.home.downloads]

    @pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o610])
    def test_key_that_others_can_use_is_rejected_with_the_remedy(self, store: KeyStore, mode: int) -> None:
        store.get_or_create_node_key()
        self.node_file.chmod(mode)
        with pytest.raises(UnsafeKeyFileError, match=f"expected mode 600, found {mode:o}.*chmod 600") as caught:
            store.find_node_key()
        assert caught.value.path == self.node_file

    def test_key_in_an_open_folder_is_rejected(self, store: KeyStore) -> None:
        store.get_or_create_node_key()
        self.home.keys.chmod(0o755)
        with pytest.raises(UnsafeKeyFileError, match="chmod 700"):
            store.get_or_create_node_key()

    def test_link_to_a_key_is_rejected(self, store: KeyStore) -> None:
        store.get_or_create_node_key()
        self.node_file.rename(self.home.path / "elsewhere.pem")
        self.node_file.symlink_to(self.home.path / "elsewhere.pem")
        with pytest.raises(HomeCorruptError):
            store.find_node_key()

    @pytest.mark.parametrize(
        "content",
        [b"", b"\xff", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", b"a\nb\nc"],
        ids=["empty", "binary", "too-short", "no-pem"],
    )
    def test_damaged_key_is_named(self, store: KeyStore, content: bytes) -> None:
        store.get_or_create_node_key()
        self.node_file.write_bytes(content)
        with pytest.raises(HomeCorruptError, match=r"node\.pem: expected an Ed25519"):
            store.find_node_key()

    def test_key_of_another_dataset_is_noticed(self, store: KeyStore) -> None:
        first, second = (store.put_dataset_key(store.generate()) for _ in range(2))
        files = self.home.keys / "datasets"
        (files / f"{first.public_key.hex()}.pem").replace(files / f"{second.public_key.hex()}.pem")
        with pytest.raises(HomeCorruptError, match="another one"):
            store.find_dataset_key(second)

    def test_signature_verifies_under_the_dataset_identity(self, store: KeyStore) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        identity = store.put_dataset_key(store.generate())
        signature = store.get_dataset_key(identity).sign(b"head")
        Ed25519PublicKey.from_public_bytes(identity.public_key).verify(signature, b"head")

    def test_openssl_reads_the_key_where_it_is_installed(self, store: KeyStore) -> None:
        key = store.get_or_create_node_key()
        try:
            text = subprocess.run(
                ["openssl", "pkey", "-in", self.node_file, "-noout", "-text_pub"], capture_output=True, check=True
            ).stdout.decode()
        except FileNotFoundError:
            pytest.skip("no openssl here")
        assert key.public_key().hex() in "".join(text.split()).replace(":", "")
