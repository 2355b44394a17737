"""Private Ed25519 keys: the node's identity and one per own dataset."""

from dataclasses import dataclass, field
from typing import Final, Protocol

from odf_protocol.did import DatasetId, DidKey
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import public_key_of, sign_bytes

SEED_BYTES: Final = 32
"""Length of an Ed25519 private key. Source: RFC 8032 section 5.1.5."""


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """An Ed25519 private key; its text form never shows the secret."""

    seed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.seed) != SEED_BYTES:
            raise ValueError(f"an Ed25519 private key has {SEED_BYTES} bytes, found {len(self.seed)}")

    def public_key(self) -> bytes:
        """Return the 32 bytes of the public key."""
        return public_key_of(self.seed)

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of the signature; equal messages get equal signatures."""
        return sign_bytes(self.seed, message)


class SignedMarks(Protocol):
    """What this machine signed last for its datasets; a restored home takes none of it back."""

    def note_key_event(self, dataset_id: DatasetId, index: int, event_hash: Multihash) -> None:
        """Remember, outside of the home, the newest key event of an own dataset; failing to is no error."""
        ...

    def find_last_key_event(self, dataset_id: DatasetId) -> tuple[int, Multihash] | None:
        """Return the newest key event that this machine remembers to have made, or None."""
        ...

    def note_signed(self, dataset_id: DatasetId, sequence_number: int, block_hash: Multihash) -> None:
        """Remember, outside of the home, the newest block that a dataset's key signed; failing to is no error."""
        ...

    def find_last_signed(self, dataset_id: DatasetId) -> tuple[int, Multihash] | None:
        """Return the newest block that this machine remembers to have signed, or None."""
        ...


class KeyStore(SignedMarks, Protocol):
    """Where private keys live. A key is durable when the method that stores it returns, and never changes after."""

    def generate(self) -> PrivateKey:
        """Make a key from the operating system's randomness; nothing is stored."""
        ...

    def find_node_key(self) -> PrivateKey | None:
        """Return the node's identity, or None when none was made yet.

        Raises:
            UnsafeKeyFileError: Others than the owner can read or change the key.
            HomeCorruptError: What is stored is not a key.
        """
        ...

    def get_or_create_node_key(self) -> PrivateKey:
        """Return the node's identity, making it when there is none; concurrent first calls agree on one key.

        Raises:
            UnsafeKeyFileError, HomeCorruptError: As ``find_node_key``.
            HomeFullError, HomeReadOnlyError: It could not be stored.
        """
        ...

    def put_dataset_key(self, key: PrivateKey) -> DatasetId:
        """Store the key of an own dataset and return the dataset's identity; storing it again changes nothing.

        Called before the commit that creates the dataset: a crash between leaves a key that no dataset uses, which is
        harmless, while the other order could leave a dataset that nobody can sign for.
        """
        ...

    def find_dataset_key(self, dataset_id: DatasetId) -> PrivateKey | None:
        """Return the key of a dataset or None when this node does not hold it; errors as ``find_node_key``."""
        ...

    def get_dataset_key(self, dataset_id: DatasetId) -> PrivateKey:
        """Return the key of a dataset.

        Raises:
            KeyNotFoundError: This node does not hold it.
            UnsafeKeyFileError, HomeCorruptError: As ``find_node_key``.
        """
        ...

    def put_signing_key(self, key: PrivateKey) -> DidKey:
        """Store a later key of an own dataset and return its public half; storing it again changes nothing.

        Called before the key event that names it is committed, for the reason that ``put_dataset_key`` gives.
        """
        ...

    def find_signing_key(self, key: DidKey) -> PrivateKey | None:
        """Return the private half of any key of an own dataset, or None; errors as ``find_node_key``."""
        ...

    def delete_dataset_key(self, dataset_id: DatasetId) -> None:
        """Forget a key for ever; forgetting an unknown one is no error."""
        ...

    def delete_signing_key(self, key: DidKey) -> None:
        """Forget a later key for ever; forgetting an unknown one is no error."""
        ...
