"""The bytes of a leaf: up to 4,096 rows of one column, so that equal values give equal bytes and others never do.

A leaf is the row count and the *content* of its rows. Content is, one after another: one byte that says whether there
are nulls; if so, a bitmap of the rows that are not null; then what the type asks for:

=================================  ================================================================================
type                               after the bitmap
=================================  ================================================================================
null, struct as a column           nothing
boolean                            a bitmap of the true rows
numbers, dates, times, durations   the values, little-endian, nulls as zero; floats with one NaN and one zero
text, binary                       size of the end positions, end position of each row, bytes of all rows
list                               size of the end positions, end position of each row, content of all items
struct in a list                   content of each field
=================================  ================================================================================

Source: clauses LH1-6 to LH1-11 in ``spec/extensions/logical-hash-v1.md``.
"""

import struct
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from odf_protocol.errors import UnsupportedError
from odf_protocol.hashing.v1_types import logical_type

LEAF_ROWS: Final = 4096
"""Rows of one column that share a hash.  # measured: fewer cost speed, more make the proof of one cell longer"""
_MAX_NARROW: Final = 0xFFFF_FFFF

_FLOAT_TYPES: Final[dict[int, Any]] = {16: np.dtype("<f2"), 32: np.dtype("<f4"), 64: np.dtype("<f8")}

# Looked up first, as there is a leaf for every few hundred bytes of booleans.
_AS_THEY_ARE: Final = frozenset(
    plain.id for plain in (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.string(), pa.binary())
)

Buffer = bytes | memoryview


def leaf_parts(array: pa.Array, *, is_column: bool) -> list[Buffer]:
    """Return the bytes of a leaf in parts, for a hash to take one after another.

    Args:
        array: ``normalized``; null where a struct around it is null.
        is_column: Whether a struct stands for itself only, its fields being columns of their own.
    """
    parts: list[Buffer] = [struct.pack("<I", len(array))]
    _add_content(array, parts, is_column=is_column)
    return parts


def normalized(array: pa.Array) -> pa.Array:
    """Return an array in a layout that ``leaf_parts`` reads without a copy where the layout allows.

    Raises:
        UnsupportedError: A value that its logical type cannot hold, such as a ``date64`` within a day.
    """
    data_type = array.type
    if data_type.id in _AS_THEY_ARE:
        return array
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    data_type = array.type
    if pat.is_dictionary(data_type):
        return normalized(array.dictionary_decode())
    if pat.is_map(data_type):
        return _list_of_pairs(array)
    if pat.is_string_view(data_type):
        return array.cast(pa.large_string())
    if pat.is_decimal(data_type) or pat.is_date64(data_type):
        target = logical_type(data_type, "")
        try:
            return array if data_type == target else array.cast(target)
        except pa.ArrowInvalid as error:
            raise UnsupportedError("value for the logical hash v1", found=error) from error
    if pat.is_binary_view(data_type) or pat.is_fixed_size_binary(data_type):
        return array.cast(pa.large_binary())
    return array


def _list_of_pairs(array: pa.Array) -> pa.Array:
    pairs = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(
        pa.list_(pairs.type), len(array), [validity, offsets], offset=array.offset, children=[pairs]
    )


def _add_content(array: pa.Array, parts: list[Buffer], *, is_column: bool = False) -> None:
    array = normalized(array)
    data_type = array.type
    bitmap = _add_validity(array, parts)
    if pat.is_null(data_type):
        return
    if pat.is_boolean(data_type):
        true = _bitmap(array.buffers()[1], array.offset, len(array))
        parts.append((true if bitmap is None else true & bitmap).data)
        return
    valid = None if bitmap is None else np.unpackbits(bitmap, count=len(array), bitorder="little").view(bool)
    if pat.is_struct(data_type):
        if not is_column:
            for child in array.flatten():  # a child is null where its struct is
                _add_content(child, parts)
    elif pat.is_list(data_type) or pat.is_large_list(data_type) or pat.is_fixed_size_list(data_type):
        _add_list(array, valid, parts)
    elif pat.is_primitive(data_type) or pat.is_decimal(data_type):
        parts.append(_fixed_width(array, valid))
    else:
        _add_text(array, valid, parts)


def _add_validity(array: pa.Array, parts: list[Buffer]) -> Any:
    """Write flag and bitmap of the valid rows; return the bitmap, None where all are valid."""
    if not array.null_count:
        parts.append(b"\x00")
        return None
    parts.append(b"\x01")
    if pat.is_null(array.type):
        parts.append(bytes(-(-len(array) // 8)))
        return np.zeros(-(-len(array) // 8), np.uint8)
    bitmap = _bitmap(array.buffers()[0], array.offset, len(array))
    parts.append(bitmap.data)
    return bitmap


def _bitmap(buffer: pa.Buffer | None, first: int, count: int) -> Any:
    """Return ``count`` bits from ``first`` on as bytes, the bits after them zero; where they lie, if that can be."""
    if not count or buffer is None:
        return np.zeros(0, np.uint8)
    packed = np.frombuffer(buffer, np.uint8)[first // 8 : (first + count + 7) // 8]
    if first % 8:
        return np.packbits(np.unpackbits(packed, bitorder="little")[first % 8 :][:count], bitorder="little")
    if count % 8:
        packed = packed.copy()
        packed[-1] &= (1 << count % 8) - 1
    return packed


def _fixed_width(array: pa.Array, valid: Any) -> Buffer:
    data_type = array.type
    width = data_type.bit_width // 8
    if not len(array):
        return b""
    raw = memoryview(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]
    if pat.is_floating(data_type):
        values = np.frombuffer(raw, _FLOAT_TYPES[data_type.bit_width])
        if valid is not None:
            values = np.where(valid, values, values.dtype.type(0))
        values = values + values.dtype.type(0)  # minus zero becomes zero
        unordered = np.isnan(values)
        if unordered.any():
            values[unordered] = np.nan
        return memoryview(values.view(np.uint8))
    if valid is None:
        return raw
    if width > 8:
        words = np.frombuffer(raw, np.uint64).reshape(len(array), width // 8)
        return memoryview((words * valid[:, None]).reshape(-1).view(np.uint8))
    return memoryview((np.frombuffer(raw, f"<u{width}") * valid).view(np.uint8))


def _offsets(array: pa.Array) -> Any:
    data_type = array.type
    wide = pat.is_large_binary(data_type) or pat.is_large_string(data_type) or pat.is_large_list(data_type)
    width: Any = np.int64 if wide else np.int32
    buffer = array.buffers()[1]
    if not len(array) or buffer is None:
        return np.zeros(len(array) + 1, width)
    return np.frombuffer(buffer, width, len(array) + 1, array.offset * np.dtype(width).itemsize)


def _hides_values(offsets: Any, valid: Any) -> bool:
    """Say whether null rows own bytes or items, which Arrow allows."""
    return valid is not None and bool((np.diff(offsets)[~valid]).any())


def _add_text(array: pa.Array, valid: Any, parts: list[Buffer]) -> None:
    offsets = _offsets(array)
    if _hides_values(offsets, valid):
        array = pc.if_else(pa.array(valid), array, pa.scalar(b"", pa.binary()).cast(array.type))
        offsets = _offsets(array)
    _add_ends(offsets, parts)
    data = array.buffers()[2]
    if data is not None:
        parts.append(memoryview(data)[int(offsets[0]) : int(offsets[-1])])


def _add_list(array: pa.Array, valid: Any, parts: list[Buffer]) -> None:
    if pat.is_fixed_size_list(array.type):
        array = array.cast(pa.large_list(array.type.value_field))
    offsets = _offsets(array)
    if _hides_values(offsets, valid):
        items = array.flatten()  # leaves the items of null rows out
        offsets = np.concatenate([[0], np.cumsum(np.where(valid, np.diff(offsets), 0))])
    else:
        items = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    _add_ends(offsets, parts)
    _add_content(items, parts)


def _add_ends(offsets: Any, parts: list[Buffer]) -> None:
    ends = offsets[1:] - offsets[0]
    wide = len(ends) > 0 and int(ends[-1]) > _MAX_NARROW
    parts.append(b"\x08" if wide else b"\x04")
    parts.append(memoryview(ends.astype("<u8" if wide else "<u4").view(np.uint8)))
