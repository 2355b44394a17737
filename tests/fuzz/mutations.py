"""Changed inputs, the same ones every time: what a plain runner tries without a tool that watches coverage."""

import random
import struct
from collections.abc import Iterator, Sequence

__all__ = ["iter_mutations"]

MAX_BYTES = 100_000
_NUMBERS = (
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    63,
    64,
    127,
    128,
    255,
    256,
    2**15 - 1,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
)
_TOKENS = (
    *(b"\0", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\x85", b"\x1b["),
    *(b"{", b"}", b"[", b"]", b'"', b"'", b"\\u0000", b"\\ud800", b",", b":", b"-", b"<", b">", b"(", b")", b"/", b"%"),
    *(b"1e400", b"-0", b"NaN", b"99999999999999999999", b"null", b"true", b"~", b"&a ", b"*a", b"<<: ", b'{"a":'),
    *(b"\r", b"\n", b"---\n", b"...\n", b"? ", b"- ", b"|\n ", b">+\n ", b"!!python/name:os ", b"${{ env.X || 'y' }}"),
    *(b"did:odf:", b"did:key:", b"+00:00", b"T24:00:00Z", b"ARRAY<", b"STRUCT<a:"),
)


def iter_mutations(seeds: Sequence[bytes], count: int, *, seed: int) -> Iterator[bytes]:
    """Yield ``count`` inputs made from ``seeds``, each by one to eight changes."""
    rng = random.Random(seed)
    for _ in range(count):
        data = bytearray(rng.choice(seeds))
        for _ in range(1 << rng.randrange(4)):
            _change(data, rng, seeds)
            if not data:
                data += b"\0"
        yield bytes(data[:MAX_BYTES])


def _change(data: bytearray, rng: random.Random, seeds: Sequence[bytes]) -> None:
    at = rng.randrange(len(data)) if data else 0
    match rng.randrange(100) % 11:
        case 0:
            data[at : at + 1] = bytes([data[at] ^ (1 << rng.randrange(8))]) if data else b""
        case 1:
            data[at : at + 1] = bytes([rng.randrange(256)])
        case 2:
            at -= at % 4
            data[at : at + 4] = struct.pack("<I", rng.choice(_NUMBERS))
        case 3:
            data[at : at + 2] = struct.pack("<H", rng.choice(_NUMBERS) & 0xFFFF)
        case 4:
            del data[at : at + rng.choice((1, 1, 2, 4, 16, 100))]
        case 5:
            data[at:at] = rng.choice(_TOKENS)
        case 6:
            size = rng.choice((1, 2, 4, 8, 32, 200))
            data[at:at] = data[at : at + size] * rng.choice((1, 1, 2, 50))
        case 7:
            other = rng.choice(seeds)
            start = rng.randrange(len(other)) if other else 0
            data[at:at] = other[start : start + rng.randrange(64)]
        case 8:
            size, to = rng.choice((1, 4, 8, 32)), rng.randrange(len(data) + 1)
            data[to : to + size] = data[at : at + size]
        case 9:
            data[at:at] = rng.choice(_TOKENS) * rng.choice((2, 40, 2_000, 20_000))
        case _:
            del data[at:]
