"""Base58btc, whose library takes 60 ms to load: ``multibase`` names it when somebody names a key."""

from multiformats import multibase

_BASE58BTC = multibase.get("base58btc")


def encode_base58btc(data: bytes) -> str:
    """Encode with prefix ``z``."""
    text: str = _BASE58BTC.encode(data)
    return text


def decode_base58btc(text: str) -> bytes:
    """Decode what begins with ``z``; raises ``ValueError`` where it cannot be."""
    data: bytes = _BASE58BTC.decode(text)
    return data
