"""Key logs as owners and thieves make them."""

from dataclasses import dataclass, field, replace
from typing import Any

from odf_protocol.did import DatasetId
from odf_protocol.key_history import KeyHistory
from odf_protocol.key_logs import sign_recovery, sign_recovery_key, sign_rotation
from odf_protocol.multihash import Multihash
from support.signing import NOON, dataset_of, did_key_of

RECOVERY_KEY = b"\x0a" * 32


@dataclass(frozen=True)
class KeyLog:
    """The log of the dataset that began with a key; every step gives a new one, so that logs can part."""

    first_key: bytes
    keys: tuple[bytes, ...] = ()
    """Private keys that were named to speak, the last one in force."""
    recovery_key: bytes = RECOVERY_KEY
    raws: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def id(self) -> DatasetId:
        return dataset_of(self.first_key)

    @property
    def key(self) -> bytes:
        return (self.first_key, *self.keys)[-1]

    @property
    def history(self) -> KeyHistory:
        return KeyHistory.fold(self.id, self.raws)

    def rotate(self, key: bytes, number: int) -> "KeyLog":
        raw = sign_rotation(self.key, self.history, new_key=did_key_of(key), first_sequence_number=number, time=NOON)
        return replace(self, keys=(*self.keys, key), raws=(*self.raws, raw))

    def prepare(self, key: bytes = RECOVERY_KEY, *, signer: bytes | None = None) -> "KeyLog":
        raw = sign_recovery_key(signer or self.key, self.history, recovery_key=did_key_of(key), time=NOON)
        return replace(self, recovery_key=key, raws=(*self.raws, raw))

    def recover(self, key: bytes, number: int, *, stolen_from: int, keeps: Multihash, **changes: Any) -> "KeyLog":
        raw = sign_recovery(
            self.recovery_key,
            self.history,
            new_key=did_key_of(key),
            first_sequence_number=number,
            stolen_from=stolen_from,
            keeps=keeps,
            time=NOON,
            **changes,
        )
        return replace(self, keys=(*self.keys, key), raws=(*self.raws, raw))
