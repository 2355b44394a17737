"""Read a leaf's bytes back into values: untrusted bytes, and only those that ``leaf_parts`` writes.

That reading is possible, and gives one result, is why two different columns never share a leaf.

Source: clauses LH1-6 to LH1-11 in ``spec/extensions/logical-hash-v1.md``.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from odf_protocol.errors import MalformedError
from odf_protocol.hashing.v1_leaf import LEAF_ROWS, leaf_parts

__all__ = ["read_leaf"]

_ITEMS_PER_BYTE: Final = 8  # the smallest items are nulls and booleans, a bit each
_MAX_FREE_ITEMS: Final = 1 << 20
"""Structs without fields take no bytes at all, so bytes alone would not bound them.  # guess: nobody has such a list"""


def read_leaf(raw: bytes, data_type: pa.DataType, *, is_column: bool) -> pa.Array:
    """Return the rows of a leaf.

    Args:
        raw: The leaf's bytes, untrusted; their size bounds the result.
        data_type: Logical type of the column.
        is_column: Whether a struct stands for itself only; then the rows are booleans: present or not.

    Raises:
        MalformedError: Not a leaf of this type, or not the one encoding of its rows.
    """
    reader = _Reader(raw)
    row_count = reader.take_integer(4)
    if row_count > LEAF_ROWS:
        raise MalformedError("leaf", where=0, expected=f"at most {LEAF_ROWS} rows", found=row_count)
    try:
        if is_column and pat.is_struct(data_type):
            valid = reader.take_validity(row_count)
            rows = pa.array(np.ones(row_count, bool) if valid is None else valid)
            canonical = _presence(row_count, valid)
        else:
            rows = reader.take_content(row_count, data_type)
            rows.validate(full=True)
            canonical = b"".join(leaf_parts(rows, is_column=False))
    except pa.ArrowException as error:
        raise MalformedError("leaf", expected=str(data_type), found=error) from error
    if canonical != raw:
        raise MalformedError("leaf", expected="the one encoding of its rows", found="another")
    return rows


def _presence(row_count: int, valid: Any) -> bytes:
    head = row_count.to_bytes(4, "little")
    if valid is None or valid.all():
        return head + b"\x00"
    return head + b"\x01" + np.packbits(valid, bitorder="little").tobytes()


class _Reader:
    def __init__(self, raw: bytes) -> None:
        self._raw = memoryview(raw)
        self._position = 0

    def take(self, size: int) -> memoryview:
        part = self._raw[self._position : self._position + size]
        if len(part) != size:
            raise MalformedError("leaf", where=self._position, expected=f"{size} bytes", found=len(part))
        self._position += size
        return part

    def take_integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def take_bits(self, count: int) -> Any:
        packed = np.frombuffer(self.take(-(-count // 8)), np.uint8)
        return np.unpackbits(packed, count=count, bitorder="little").astype(bool)

    def take_validity(self, count: int) -> Any:
        return self.take_bits(count) if self.take_integer(1) else None

    def take_ends(self, count: int) -> Any:
        width = 8 if self.take_integer(1) == 8 else 4
        ends = np.frombuffer(self.take(count * width), f"<u{width}")
        if count and (ends[1:] < ends[:-1]).any():
            raise MalformedError("leaf", where=self._position, expected="end positions that ascend", found="others")
        most = max(_MAX_FREE_ITEMS, _ITEMS_PER_BYTE * len(self._raw))
        if count and int(ends[-1]) > most:
            raise MalformedError("leaf", where=self._position, expected=f"at most {most} items", found=int(ends[-1]))
        return np.concatenate([np.zeros(1, np.int64), ends.astype(np.int64)])

    def take_content(self, count: int, data_type: pa.DataType) -> pa.Array:
        valid = self.take_validity(count)
        validity = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
        if pat.is_null(data_type):
            if count and valid is None:
                raise MalformedError("leaf", where=self._position, expected="the bitmap of nulls", found="no nulls")
            return pa.nulls(count)
        if pat.is_struct(data_type):
            children = [self.take_content(count, field.type) for field in data_type]
            return pa.Array.from_buffers(data_type, count, [validity], children=children)
        if pat.is_boolean(data_type):
            rows = self.take(-(-count // 8))
            return pa.Array.from_buffers(data_type, count, [validity, pa.py_buffer(rows)])
        if pat.is_large_list(data_type):
            ends = self.take_ends(count)
            items = self.take_content(int(ends[-1]), data_type.value_type)
            return pa.Array.from_buffers(data_type, count, [validity, pa.py_buffer(ends)], children=[items])
        if pat.is_large_string(data_type) or pat.is_large_binary(data_type):
            ends = self.take_ends(count)
            return pa.Array.from_buffers(
                data_type, count, [validity, pa.py_buffer(ends), pa.py_buffer(self.take(int(ends[-1])))]
            )
        values = self.take(count * data_type.bit_width // 8)
        return pa.Array.from_buffers(data_type, count, [validity, pa.py_buffer(bytes(values))])
