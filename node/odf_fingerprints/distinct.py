"""How many different values there are, for values that are counted in pieces: HyperLogLog with 256 registers.

A register is the maximum over all hashes of its share, so pieces join in any order to the same bytes, and nothing is
random. The standard error is 1.04 / sqrt(256) = 6.5 %.

Source: Flajolet, Fusy, Gandouet and Meunier 2007, "HyperLogLog"; clause FP-8 in ``spec/plug-ins/fingerprints.md``.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from odf_protocol.errors import MalformedError

REGISTERS: Final = 256
PACKED_BYTES: Final = 192  # 256 registers of 6 bits
STANDARD_ERROR: Final = 0.065
_INDEX_BITS: Final = 8
_RANK_BITS: Final = 32  # enough for 2^40 values; so many bits of a whole number are exact in a double
_MANY: Final = 1 << 16  # guess: the hashes of high ranks alone are looked at: 16 for each register
_HIGH: Final = np.uint64(1 << 60)  # 4 zeros behind the index
_ALPHA: Final = 0.7213 / (1 + 1.079 / REGISTERS)  # Source: Flajolet et al. 2007, figure 3
_LINEAR_UP_TO: Final = 2.5  # Source: the same
_Registers = npt.NDArray[np.uint8]


def registers_of(hashes: npt.NDArray[np.uint64]) -> _Registers:
    """Count hashes of 64 bits, each any number of times."""
    if hashes.size > _MANY:  # each register has its maximum among those of high ranks, or none of these
        high = _registers_of(hashes[hashes << np.uint64(_INDEX_BITS) < _HIGH])
        if high.all():
            return high
    return _registers_of(hashes)


def _registers_of(hashes: npt.NDArray[np.uint64]) -> _Registers:
    places = (hashes >> np.uint64(64 - _INDEX_BITS)).astype(np.int64)
    rest = (hashes >> np.uint64(64 - _INDEX_BITS - _RANK_BITS)) & np.uint64(2**_RANK_BITS - 1)
    ranks = _RANK_BITS + 1 - np.frexp(rest.astype(np.float64))[1].astype(np.int64)  # of 0: 33, as it should be
    seen = np.bincount(places * 64 + ranks, minlength=REGISTERS * 64).reshape(REGISTERS, 64) > 0
    highest = 63 - np.argmax(seen[:, ::-1], axis=1)
    return np.where(seen.any(axis=1), highest, 0).astype(np.uint8)


def pack_registers(registers: Sequence[int] | _Registers) -> bytes:
    """Write 256 registers of 6 bits, the first in the highest bits."""
    bits = np.unpackbits(np.asarray(registers, np.uint8)[:, None], axis=1)[:, 2:]
    return np.packbits(bits).tobytes()


def unpack_registers(raw: bytes) -> _Registers:
    """Read registers.

    Raises:
        MalformedError: Not 192 bytes, or a register that no hash gives.
    """
    if len(raw) != PACKED_BYTES:
        raise MalformedError("distinct values", expected=f"{PACKED_BYTES} bytes", found=len(raw))
    bits = np.unpackbits(np.frombuffer(raw, np.uint8)).reshape(REGISTERS, 6)
    found = np.packbits(np.pad(bits, ((0, 0), (2, 0))), axis=1)[:, 0]
    if int(found.max()) > _RANK_BITS + 1:
        raise MalformedError("distinct values", expected=f"registers up to {_RANK_BITS + 1}", found=int(found.max()))
    return found


def estimate(registers: _Registers) -> float:
    """Estimate how many different hashes were counted, with a standard error of 6.5 %."""
    harmonic = float(np.ldexp(1.0, -registers.astype(np.int64)).sum())
    found = _ALPHA * REGISTERS * REGISTERS / harmonic
    empty = int(np.count_nonzero(registers == 0))
    if found <= _LINEAR_UP_TO * REGISTERS and empty:
        return REGISTERS * math.log(REGISTERS / empty)
    return found
