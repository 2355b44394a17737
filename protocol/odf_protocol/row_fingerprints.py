"""Fingerprints of rows: 128 bits, equal for equal rows, and for others only by a chance that nobody can raise.

A row is what its event time and data columns say; offset, operation and system time are of its change. Rows are equal
as SQL groups them: null is null, all NaN are one, 0.0 is -0.0. A column that a slice does not have yet is null in its
rows, also inside structs, so that a row keeps its fingerprint when optional columns come (SCHEMA-1).

Each value is cut into numbers of 32 bits. Every number has a multiplier of 64 bits of its own, drawn for the path of
its column and its place in the value, and the upper halves of four such sums are the fingerprint ("multilinear
hashing", Lemire and Kaser 2014: two rows that were chosen without knowing the multipliers meet with a chance of
2^-128). A null adds nothing. Long texts and lists are first brought to 128 bits by BLAKE2b with the same key. The key
never leaves a node.

Source: clause ROWS-12 in ``spec/extensions/acceptance.md``.
"""

import hashlib
from collections.abc import Collection
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from odf_protocol.comparison_form import in_comparison_form
from odf_protocol.errors import UnsupportedError
from odf_protocol.hashing.v1_leaf import normalized

FINGERPRINT: Final = np.dtype([("high", "<u8"), ("low", "<u8")])

_Words = npt.NDArray[np.uint64]
_LANES: Final = 4  # of 32 bits that are kept
_DIGEST_BYTES: Final = 16
_MAX_TEXT_BYTES: Final = 128
"""Longer texts are hashed one by one.  # guess: as long as both ways cost about the same"""
_MAX_NUMBERS: Final = _MAX_TEXT_BYTES // 4
_ROWS_AT_ONCE: Final = 8192  # measured: twice as many, or half, are slower; sums stay close to the processor
_NUMBER: Final = np.uint64(0xFFFF_FFFF)
_HALF: Final = np.uint64(32)
_WORD_BITS: Final = 64


class RowFingerprints:
    """Computes fingerprints under one key; those of other keys cannot be compared with them."""

    def __init__(self, key: bytes, *, tells_bits: bool = False) -> None:
        """Begin.

        Args:
            key: 32 bytes that nobody else knows.
            tells_bits: Whether 0.0 is not -0.0, and NaN of other bits are others.
        """
        self._key = key
        self._tells_bits = tells_bits
        self._multipliers: dict[tuple[str, ...], _Words] = {}

    def of(self, batch: pa.RecordBatch, left_out: Collection[str]) -> npt.NDArray[Any]:
        """Compute the fingerprints of rows, as ``FINGERPRINT`` has them.

        Args:
            batch: Rows; what nulls stand for in memory is of no matter.
            left_out: Columns that are no part of the row.

        Raises:
            UnsupportedError: A type that the logical hash does not define.
        """
        found = np.empty(batch.num_rows, FINGERPRINT)
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            part = batch.slice(start, _ROWS_AT_ONCE)
            sums = np.zeros((_LANES, part.num_rows), np.uint64)
            for name, column in zip(part.schema.names, part.columns, strict=True):
                if name not in left_out:
                    self._add(sums, column, (name,))
            found[start : start + _ROWS_AT_ONCE] = self._finish(sums)
        return found

    def _finish(self, sums: _Words) -> npt.NDArray[Any]:
        sums += self._multipliers_of(())[:, :1]
        halves = sums >> _HALF
        found = np.empty(sums.shape[1], FINGERPRINT)
        found["high"] = halves[0] << _HALF | halves[1]
        found["low"] = halves[2] << _HALF | halves[3]
        return found

    def _multipliers_of(self, path: tuple[str, ...]) -> _Words:
        """Return the multipliers of a column, a row a lane: of whether there is a value, its size, its numbers."""
        known = self._multipliers.get(path)
        if known is None:
            named = b"".join(len(part := each.encode()).to_bytes(8, "little") + part for each in path)
            count = _LANES * (2 + _MAX_NUMBERS)
            drawn = hashlib.shake_256(self._key + named).digest(8 * count)
            known = self._multipliers[path] = np.frombuffer(drawn, "<u8").reshape(_LANES, -1)
        return known

    def _add(self, sums: _Words, array: pa.Array, path: tuple[str, ...]) -> None:
        array = normalized(array)
        kind = array.type
        if pat.is_null(kind) or not len(array):
            return
        valid = np.asarray(array.is_valid())
        multipliers = self._multipliers_of(path)
        for lane in range(_LANES):
            sums[lane] += valid * multipliers[lane, 0]
        if pat.is_struct(kind):
            for field, child in zip(kind, array.flatten(), strict=True):  # a child is null where its struct is
                self._add(sums, child, (*path, field.name))
        elif pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind):
            self._add_digests(sums, self._digests_of_lists(array, path), multipliers)
        elif pat.is_decimal(kind):
            raw = np.frombuffer(array.buffers()[1], "<u8").reshape(-1, kind.bit_width // 64)
            words = raw[array.offset : array.offset + len(array)] * valid[:, None]
            for place in range(words.shape[1]):
                _add_word(sums, words[:, place], multipliers, 2 * place)
        elif pat.is_large_string(kind) or pat.is_large_binary(kind) or pat.is_string(kind) or pat.is_binary(kind):
            self._add_texts(sums, array, multipliers)
        else:
            words = _bits_of(array, kind) if self._tells_bits and pat.is_floating(kind) else _word_of(array, kind)
            _add_word(sums, words, multipliers, 0)

    def _add_texts(self, sums: _Words, array: pa.Array, multipliers: _Words) -> None:
        """Add texts that are short; of longer ones, their digests."""
        array = array.cast(pa.large_binary())
        if array.null_count:
            array = array.fill_null(b"")  # also where bytes stand behind a null
        ends, content = _bytes_of(array)
        sizes = np.diff(ends)
        for lane in range(_LANES):
            sums[lane] += sizes.astype(np.uint64) * multipliers[lane, 1]
        is_long = sizes > _MAX_TEXT_BYTES
        if is_long.any():
            digests = np.zeros((len(array), 2), np.uint64)
            for row in np.flatnonzero(is_long):
                digests[row] = np.frombuffer(self._digest(content[int(ends[row]) : int(ends[row + 1])]), "<u8")
            self._add_digests(sums, digests, multipliers)
            ends, content = _bytes_of(pc.if_else(pa.array(is_long), pa.scalar(b"", array.type), array))
            sizes = np.diff(ends)
        counts = (sizes + 3) // 4
        firsts = np.concatenate([[0], np.cumsum(counts)])
        if not firsts[-1]:
            return
        # All texts behind one another, each from a whole number on and filled up with zeros.
        numbers = np.zeros(int(firsts[-1]), "<u4")
        targets = np.repeat(firsts[:-1] * 4 - ends[:-1], sizes) + np.arange(int(ends[0]), int(ends[-1]))
        numbers.view(np.uint8)[targets] = np.frombuffer(content, np.uint8)[int(ends[0]) : int(ends[-1])]
        places = np.arange(len(numbers)) - np.repeat(firsts[:-1], counts) + 2
        wide = numbers.astype(np.uint64)
        running = np.zeros(len(numbers) + 1, np.uint64)
        for lane in range(_LANES):
            np.cumsum(wide * multipliers[lane].take(places), out=running[1:])
            sums[lane] += running[firsts[1:]] - running[firsts[:-1]]

    def _digests_of_lists(self, array: pa.Array, path: tuple[str, ...]) -> _Words:
        """Hash the fingerprints of the items of each list, in their order."""
        array = array.cast(pa.large_list(array.type.value_field))
        ends = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
        items = array.values.slice(int(ends[0]), int(ends[-1] - ends[0]))
        sums = np.zeros((_LANES, len(items)), np.uint64)
        self._add(sums, items, (*path, ""))  # a field has a name
        content = memoryview(self._finish(sums).tobytes())
        size, first = FINGERPRINT.itemsize, int(ends[0])
        digests = np.zeros((len(array), 2), np.uint64)
        for row in np.flatnonzero(np.asarray(array.is_valid())):
            digest = self._digest(content[(int(ends[row]) - first) * size : (int(ends[row + 1]) - first) * size])
            digests[row] = np.frombuffer(digest, "<u8")
        return digests

    def _digest(self, content: memoryview) -> bytes:
        return hashlib.blake2b(content, key=self._key, digest_size=_DIGEST_BYTES).digest()

    @staticmethod
    def _add_digests(sums: _Words, digests: _Words, multipliers: _Words) -> None:
        for place in range(digests.shape[1]):
            _add_word(sums, digests[:, place], multipliers, 2 * place)


def _bytes_of(array: pa.Array) -> tuple[npt.NDArray[np.int64], memoryview]:
    """Return where the texts of an array end, beginning with where the first one starts, and the bytes of all."""
    _, ends, content = array.buffers()
    found = np.frombuffer(ends, np.int64, len(array) + 1, array.offset * 8)
    return found, memoryview(b"" if content is None else content)


def _add_word(sums: _Words, words: _Words, multipliers: _Words, place: int) -> None:
    """Add words of 64 bits as the numbers ``place`` and ``place + 1`` of their values; 0 where there is no value."""
    lower, upper = words & _NUMBER, words >> _HALF
    for lane in range(_LANES):
        sums[lane] += lower * multipliers[lane, 2 + place]
        sums[lane] += upper * multipliers[lane, 3 + place]


def _bits_of(array: pa.Array, kind: pa.DataType) -> _Words:
    """Return the bits of floating-point numbers; 0 for a null."""
    words = array.view({16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[kind.bit_width])
    return np.asarray(pc.fill_null(words, pa.scalar(0, words.type))).astype(np.uint64)


def _word_of(array: pa.Array, kind: pa.DataType) -> _Words:
    """Return one word for each value, so that equal values have equal words; 0 for a null."""
    if pat.is_floating(kind):
        return _bits_of(in_comparison_form(array.cast(pa.float64())), pa.float64())
    if pat.is_boolean(kind):
        return np.asarray(array.cast(pa.uint8()).fill_null(0)).astype(np.uint64)
    if pat.is_date32(kind) or pat.is_time32(kind):
        array = array.view(pa.int32())
    elif pat.is_temporal(kind) and kind.bit_width == _WORD_BITS:
        array = array.view(pa.int64())
    elif not pat.is_integer(kind):
        raise UnsupportedError("column type in a fingerprint of rows", found=kind)
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0, array.type))
    return np.asarray(array).astype(np.int64 if not pat.is_uint64(array.type) else np.uint64).view(np.uint64)
