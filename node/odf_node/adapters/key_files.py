"""The key port on files: PKCS#8 PEM, which ``openssl pkey`` reads, in a folder that only the owner can enter.

What each key signed last is kept outside of any home, as a home that was restored from a backup is older: small files
per dataset, ``$XDG_STATE_HOME/odf-node/signed/<public key>`` for the newest block, and with ``.keys`` behind it for the
newest key event; ``ODF_NODE_SIGNED_MARKS`` names another folder, and empty, none. A memory that cannot be read or
written is no memory: it is a second line behind what other nodes have seen.

Source: clauses HOME-14 and HOME-15 in ``spec/home.md``, HEAD-9 in ``spec/extensions/heads.md`` and KEY-19 in
``spec/extensions/keys.md``; RFC 8410 for the form of the key.
"""

import base64
import binascii
import os
import secrets
import stat
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from odf_node.home_folder import HomeFolder, fsync_folder
from odf_node.ports.keys import SEED_BYTES, PrivateKey
from odf_node.records.errors import HomeCorruptError, KeyNotFoundError, UnsafeKeyFileError, mapped_os_errors
from odf_node.store.writers_lock import shared_lease
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import OdfError
from odf_protocol.multihash import Multihash

# OneAsymmetricKey, version 0, algorithm id-Ed25519, the seed as OCTET STRING in OCTET STRING (RFC 8410 section 7).
_DER_PREFIX: Final = bytes.fromhex("302e020100300506032b657004220420")
_BEGIN: Final = "-----BEGIN PRIVATE KEY-----"
_END: Final = "-----END PRIVATE KEY-----"
MAX_FILE_BYTES: Final = 4096  # a key takes 119
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class KeyFiles:
    """``KeyStore`` in ``home.keys``; making the value touches nothing."""

    def __init__(self, home: HomeFolder) -> None:
        self._home = home

    def generate(self) -> PrivateKey:
        return PrivateKey(secrets.token_bytes(SEED_BYTES))

    def find_node_key(self) -> PrivateKey | None:
        return self._find(self._node_file)

    def get_or_create_node_key(self) -> PrivateKey:
        return self.find_node_key() or self._store(self._node_file, self.generate())

    def put_dataset_key(self, key: PrivateKey) -> DatasetId:
        dataset_id = DatasetId(key.public_key())
        if self._store(self._dataset_file(dataset_id), key) != key:
            raise HomeCorruptError(self._dataset_file(dataset_id), "expected the dataset's key, found another one")
        return dataset_id

    def find_dataset_key(self, dataset_id: DatasetId) -> PrivateKey | None:
        path = self._dataset_file(dataset_id)
        key = self._find(path)
        if key is not None and key.public_key() != dataset_id.public_key:
            raise HomeCorruptError(path, "expected the dataset's key, found another one")
        return key

    def get_dataset_key(self, dataset_id: DatasetId) -> PrivateKey:
        key = self.find_dataset_key(dataset_id)
        if key is None:
            raise KeyNotFoundError(dataset_id)
        return key

    def put_signing_key(self, key: PrivateKey) -> DidKey:
        """See ``KeyStore``; the file is named by the key, like that of a dataset."""
        return DidKey(self.put_dataset_key(key).public_key)

    def find_signing_key(self, key: DidKey) -> PrivateKey | None:
        return self.find_dataset_key(DatasetId(key.public_key))

    def note_key_event(self, dataset_id: DatasetId, index: int, event_hash: Multihash) -> None:
        write_mark(dataset_id, index, event_hash, MarkKind.KEY_EVENT)

    def find_last_key_event(self, dataset_id: DatasetId) -> tuple[int, Multihash] | None:
        return read_mark(dataset_id, MarkKind.KEY_EVENT)

    def note_signed(self, dataset_id: DatasetId, sequence_number: int, block_hash: Multihash) -> None:
        write_mark(dataset_id, sequence_number, block_hash, MarkKind.BLOCK)

    def find_last_signed(self, dataset_id: DatasetId) -> tuple[int, Multihash] | None:
        return read_mark(dataset_id, MarkKind.BLOCK)

    def delete_dataset_key(self, dataset_id: DatasetId) -> None:
        path = self._dataset_file(dataset_id)
        with mapped_os_errors(path), suppress(FileNotFoundError):
            path.unlink()
            fsync_folder(path.parent)

    def delete_signing_key(self, key: DidKey) -> None:
        self.delete_dataset_key(DatasetId(key.public_key))

    @property
    def _node_file(self) -> Path:
        return self._home.keys / "node.pem"

    def _dataset_file(self, dataset_id: DatasetId) -> Path:
        return self._home.keys / "datasets" / f"{dataset_id.public_key.hex()}.pem"

    def _find(self, path: Path) -> PrivateKey | None:
        if not path.parent.is_dir():
            return None
        for folder in {self._home.keys, path.parent}:
            require_private(folder, folder.lstat())
        try:
            return decode_pem(read_private(path, MAX_FILE_BYTES), path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise HomeCorruptError(path, f"the key cannot be read: {error.strerror}") from error

    def _store(self, path: Path, key: PrivateKey) -> PrivateKey:
        put_key_file(self._home, path, encode_pem(key))
        stored = self._find(path)
        assert stored is not None
        return stored


def put_key_file(home: HomeFolder, path: Path, content: bytes) -> bool:
    """Write a file of keys whole or not at all; one that is there stays as it is. Returns whether it is new."""
    # The lease keeps a sweep from taking the draft, and a sweep takes what a crash leaves of it.
    with shared_lease(home), mapped_os_errors(path):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fsync_folder(home.keys)
        draft = home.staging / f"key-{secrets.token_hex(8)}"
        is_new = True
        try:
            write_private(draft, content)
            # A link does not replace: of several first calls one key stays, and all return that one.
            try:
                os.link(draft, path)
            except FileExistsError:
                is_new = False
            fsync_folder(path.parent)
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
    return is_new


def encode_pem(key: PrivateKey) -> bytes:
    """Write a key as PKCS#8 PEM."""
    body = base64.b64encode(_DER_PREFIX + key.seed).decode("ascii")
    return f"{_BEGIN}\n{body}\n{_END}\n".encode("ascii")


def decode_pem(data: bytes, path: Path) -> PrivateKey:
    """Read a key from PKCS#8 PEM; ``path`` is where it was found.

    Raises:
        HomeCorruptError: It is something else.
    """
    try:
        begin, body, end = data.decode("ascii").split("\n")[:3]
        der = base64.b64decode(body, validate=True)
    except (UnicodeDecodeError, ValueError, binascii.Error) as error:
        raise HomeCorruptError(path, "expected an Ed25519 private key in PEM, found something else") from error
    if (begin, end) != (_BEGIN, _END) or len(der) != len(_DER_PREFIX) + SEED_BYTES or not der.startswith(_DER_PREFIX):
        raise HomeCorruptError(path, "expected an Ed25519 private key in PEM, found something else")
    return PrivateKey(der[len(_DER_PREFIX) :])


def read_private(path: Path, max_bytes: int) -> bytes:
    """Read the beginning of a file that holds secrets.

    Raises:
        OSError: There is none, or it cannot be read.
        UnsafeKeyFileError: As ``require_private``.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        require_private(path, os.fstat(descriptor))
        return file.read(max_bytes)


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that nobody else can read, durably but for its name; what is not whole is removed again.

    Raises:
        OSError: It exists, or cannot be made.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0) as file:
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[file.write(rest) :]
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        os.fsync(file.fileno())


def require_private(path: Path, entry: os.stat_result) -> None:
    """Check that nobody but this user can use a file or folder that holds secrets (HOME-14).

    Raises:
        UnsafeKeyFileError: Somebody can, or it is no plain file or folder.
    """
    if not (stat.S_ISREG(entry.st_mode) or stat.S_ISDIR(entry.st_mode)):
        raise UnsafeKeyFileError(path, "expected a plain file or folder, found a link or another kind of file")
    if entry.st_mode & _OTHERS:
        right = "700" if stat.S_ISDIR(entry.st_mode) else "600"
        raise UnsafeKeyFileError(
            path,
            f"others may use this private key: expected mode {right}, found {stat.S_IMODE(entry.st_mode):o};"
            f" if nobody did, run: chmod {right} {path}",
        )
    if entry.st_uid != os.geteuid():
        raise UnsafeKeyFileError(path, f"expected the owner {os.geteuid()}, found {entry.st_uid}")


FOLDER_VARIABLE: Final = "ODF_NODE_SIGNED_MARKS"


class MarkKind(StrEnum):
    """What was signed; the value ends the file's name."""

    BLOCK = ""
    KEY_EVENT = ".keys"


def read_mark(dataset_id: DatasetId, kind: MarkKind = MarkKind.BLOCK) -> tuple[int, Multihash] | None:
    """Return number and hash of the newest block or key event that this machine remembers to have signed, or None."""
    path = find_memory_file(dataset_id, kind.value)
    if path is None:
        return None
    try:
        number, block_hash = path.read_text("ascii").split()
        return int(number), Multihash.parse(block_hash)
    except (OSError, ValueError, OdfError):
        return None


def write_mark(dataset_id: DatasetId, number: int, hash_: Multihash, kind: MarkKind = MarkKind.BLOCK) -> None:
    """Remember that a block or key event was signed; the file is replaced whole."""
    path = find_memory_file(dataset_id, kind.value)
    if path is None:
        return
    with suppress(OSError):
        replace_memory(path, f"{number} {hash_}\n")


def replace_memory(path: Path, text: str) -> None:
    """Write a file of the machine's memory, whole or not at all.

    Raises:
        OSError: It cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        draft.write_text(text, "utf-8")
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def find_memory_file(dataset_id: DatasetId, ending: str) -> Path | None:
    """Return where this machine remembers something about a dataset, outside of any home; None where it must not."""
    name = f"{dataset_id.public_key.hex()}{ending}"
    named = os.environ.get(FOLDER_VARIABLE)
    if named == "":
        return None
    if named is not None:
        return Path(named) / name
    state = os.environ.get("XDG_STATE_HOME", "")
    try:
        base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return base / "odf-node" / "signed" / name
