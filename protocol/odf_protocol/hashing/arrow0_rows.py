"""Lay out a column's values as the byte stream that ``arrow0-sha3-256`` digests.

The stream goes row by row: a null is one zero byte, a fixed-width value its bytes, text and lists a 64-bit count and
their content. Arrow's kernels build it without a Python step per row, and without holding the interpreter's lock.

Source: ODF "Logical Hashes" (arrow-digest, value framing).
"""

from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from odf_protocol.hashing.arrow0_types import fixed_width_bytes

_MAX_INT32_BYTES: Final = 1 << 30  # below this, 32-bit offsets cannot overflow even with a header per row
_TABLED_ROWS: Final = (1 << 17) + 8  # a chunk of the hasher, and the bits before its first row
_TABLED_WIDTH_BYTES: Final = 40  # the widest number and a header: offsets of such rows are kept, 512 KiB per width
_MAX_TABLED_LENGTH: Final = 4096  # guess: headers of shorter values come from a table that stays in the cache


def storage_array(array: pa.Array) -> pa.Array:
    """Strip extension types: the hash sees the stored values."""
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array


def row_bytes(array: pa.Array) -> memoryview:
    """Return the encoded rows of an array, one after another."""
    array = storage_array(array)
    if pat.is_boolean(array.type):
        return _boolean_codes(array).data
    width = fixed_width_bytes(array.type)
    if width is not None:
        return _slots_without_nulls(array, width) if array.null_count else _slots(array, width)
    if _is_text(array.type) and (even := _find_even_rows(array)) is not None:
        return even
    rows = encode_rows(array)
    offsets = _offsets(rows)
    return memoryview(rows.buffers()[2])[int(offsets[0]) : int(offsets[-1])]


def encode_rows(array: pa.Array) -> pa.Array:
    """Encode each row of an array as one element of a binary array without nulls.

    Args:
        array: Of a type that ``type_bytes`` accepts; a slice is fine.

    Returns:
        ``binary``, or ``large_binary`` where 32-bit offsets might not do; as many elements as ``array``.
    """
    array = storage_array(array)
    data_type = array.type
    width = fixed_width_bytes(data_type)
    if width is not None:
        if array.null_count:
            return _records_with_nulls(array, width)
        return _records(len(array), width, pa.py_buffer(_slots(array, width)))
    if pat.is_boolean(data_type):
        return _records(len(array), 1, pa.py_buffer(_boolean_codes(array)))
    if pat.is_fixed_size_binary(data_type):
        records = _headed_records(array)
        return pc.if_else(array.is_valid(), records, pa.scalar(b"\x00", records.type)) if array.null_count else records
    if pat.is_list(data_type) or pat.is_large_list(data_type) or pat.is_fixed_size_list(data_type):
        counts, content = _list_content(array)
        return _framed(counts, content, array)
    content = _as_binary(array)
    return _framed(np.diff(_offsets(content)), content, array)


def _slots(array: pa.Array, width: int) -> memoryview:
    if not len(array):
        return memoryview(b"")
    return memoryview(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]


def _offsets(array: pa.Array) -> "np.ndarray[Any, Any]":
    width: Any = np.int64 if pat.is_large_binary(array.type) or pat.is_large_list(array.type) else np.int32
    buffer = array.buffers()[1]
    if buffer is None or not buffer.size:  # an empty array may come without offsets
        return np.zeros(1, width)
    return np.frombuffer(buffer, width, len(array) + 1, array.offset * np.dtype(width).itemsize)


def _records(count: int, width: int, data: pa.Buffer) -> pa.Array:
    if count <= _TABLED_ROWS and width <= _TABLED_WIDTH_BYTES:
        return pa.Array.from_buffers(pa.binary(), count, [None, _tabled_offsets(width), data])
    large = count * width > _MAX_INT32_BYTES
    offsets = pa.py_buffer(np.arange(count + 1, dtype=np.int64 if large else np.int32) * width)
    return pa.Array.from_buffers(pa.large_binary() if large else pa.binary(), count, [None, offsets, data])


@lru_cache(maxsize=16)
def _tabled_offsets(width: int) -> pa.Buffer:
    return pa.py_buffer(np.arange(_TABLED_ROWS + 1, dtype=np.int32) * np.int32(width))


def _headed_records(array: pa.Array) -> pa.Array:
    width = array.type.byte_width
    table = np.empty((len(array), 8 + width), np.uint8)
    table[:, :8] = np.frombuffer(width.to_bytes(8, "little"), np.uint8)
    table[:, 8:] = np.frombuffer(_slots(array, width), np.uint8).reshape(len(array), width)
    return _records(len(array), 8 + width, pa.py_buffer(table))


def _records_with_nulls(array: pa.Array, width: int) -> pa.Array:
    # The validity bitmap is used where it lies: start at the byte that holds the first row's bit.
    skipped = array.offset % 8
    first = array.offset - skipped
    rows = len(array) + skipped
    validity = array.buffers()[0].slice(first // 8)
    data = array.buffers()[1].slice(first * width, rows * width)
    records = _records(rows, width, data)
    nullable = pa.Array.from_buffers(records.type, len(array), [validity, records.buffers()[1], data], offset=skipped)
    return nullable.fill_null(b"\x00")


def _slots_without_nulls(array: pa.Array, width: int) -> memoryview:
    """Return the values, one zero byte for each null: of a null's slot, all but the first byte is left out.

    Arrow's filter over single bytes is three times as fast as writing records of different lengths.
    """
    valid = _bits(array.buffers()[0], array.offset, len(array))
    word: Any = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}.get(width)
    slots = np.frombuffer(_slots(array, width), np.uint8)
    if word is not None:
        slots = (slots.view(word) * valid).view(np.uint8)
    else:
        slots = slots.copy()
        slots[::width] *= valid
    if width == 1:
        return slots.data
    keep = _kept_bytes(width)[np.packbits(valid, bitorder="little")]
    mask = pa.Array.from_buffers(pa.bool_(), len(slots), [None, pa.py_buffer(keep)])
    kept = pa.Array.from_buffers(pa.uint8(), len(slots), [None, pa.py_buffer(slots)]).filter(mask)
    return _slots(kept, 1)


@lru_cache(maxsize=8)
def _kept_bytes(width: int) -> "np.ndarray[Any, Any]":
    """For the validity bits of eight rows: which bytes of their slots are kept, as ``width`` bytes of bits."""
    valid = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    kept = np.repeat(valid, width, axis=1)
    kept[:, ::width] = 1
    return np.packbits(kept, axis=1, bitorder="little")


def _bits(buffer: pa.Buffer, first: int, count: int) -> "np.ndarray[Any, Any]":
    """Return bits of a bitmap as bytes of 0 and 1."""
    packed = np.frombuffer(buffer, np.uint8)[first // 8 : (first + count + 7) // 8]
    return np.unpackbits(packed, bitorder="little")[first % 8 : first % 8 + count]


def _is_text(data_type: pa.DataType) -> bool:
    return bool(
        pat.is_string(data_type)
        or pat.is_binary(data_type)
        or pat.is_large_string(data_type)
        or pat.is_large_binary(data_type)
    )


def _find_even_rows(array: pa.Array) -> memoryview | None:
    """Lay out texts of one and the same length, as keys and hashes have; None for others.

    One copy of a rectangle takes a third of the time of gathering piece by piece.
    """
    if array.null_count or not len(array):
        return None
    content = _as_binary(array)
    offsets = _offsets(content)
    first, last = int(offsets[0]), int(offsets[-1])
    length, rest = divmod(last - first, len(array))
    if not length or rest or (np.diff(offsets) != length).any():
        return None
    rows = np.empty((len(array), 8 + length), np.uint8)
    rows[:, :8] = np.frombuffer(length.to_bytes(8, "little"), np.uint8)
    rows[:, 8:] = np.frombuffer(content.buffers()[2], np.uint8)[first:last].reshape(len(array), length)
    return rows.reshape(-1).data


def _boolean_codes(array: pa.Array) -> "np.ndarray[Any, Any]":
    """Return 1 for false, 2 for true, 0 for null."""
    if not len(array):
        return np.zeros(0, np.uint8)
    codes = _bits(array.buffers()[1], array.offset, len(array))
    codes += np.uint8(1)
    if array.null_count:
        codes *= _bits(array.buffers()[0], array.offset, len(array))
    return codes


def _as_binary(array: pa.Array) -> pa.Array:
    """View text of any layout as bytes with offsets; validity is dropped, null elements may hold anything."""
    if pat.is_binary_view(array.type) or pat.is_string_view(array.type):
        array = array.cast(pa.large_binary() if array.nbytes > _MAX_INT32_BYTES else pa.binary())
    wide = pat.is_large_binary(array.type) or pat.is_large_string(array.type)
    _, offsets, data = array.buffers()
    if offsets is None or not offsets.size:
        return pa.array([b""] * len(array), pa.binary())
    target = pa.large_binary() if wide else pa.binary()
    return pa.Array.from_buffers(target, len(array), [None, offsets, data or pa.py_buffer(b"")], offset=array.offset)


def _list_content(array: pa.Array) -> tuple["np.ndarray[Any, Any]", pa.Array]:
    """Return the item counts, and the encoded items of each list as one element."""
    if pat.is_fixed_size_list(array.type):
        size = array.type.list_size
        items = array.values.slice(array.offset * size, len(array) * size)
        bounds = np.arange(len(array) + 1, dtype=np.int64) * size
    else:
        bounds = _offsets(array)
        first, last = int(bounds[0]), int(bounds[-1])
        items = array.values.slice(first, last - first)
        bounds = bounds - first
    rows = encode_rows(items)
    data = rows.buffers()[2]
    offsets = np.ascontiguousarray(_offsets(rows)[bounds])
    content = pa.Array.from_buffers(rows.type, len(array), [None, pa.py_buffer(offsets), data or pa.py_buffer(b"")])
    return np.diff(bounds), content


@lru_cache(maxsize=2)
def _header_table(width: Any) -> pa.Array:
    return _records(_MAX_TABLED_LENGTH, 8, pa.py_buffer(np.arange(_MAX_TABLED_LENGTH, dtype="<i8"))).cast(width)


def _framed(counts: "np.ndarray[Any, Any]", content: pa.Array, source: pa.Array) -> pa.Array:
    """Put a 64-bit count before each element; nulls become one zero byte.

    Two elements per row are gathered from the content followed by a table of headers: that is one copy of each byte
    in one kernel, about twice as fast as joining two columns.
    """
    rows = len(source)
    offsets = _offsets(content)
    content_bytes = int(offsets[-1] - offsets[0])
    if content_bytes + 9 * rows > _MAX_INT32_BYTES and not pat.is_large_binary(content.type):
        content = content.cast(pa.large_binary())
    if rows and int(counts.max()) >= _MAX_TABLED_LENGTH:
        headers = _records(rows, 8, pa.py_buffer(np.ascontiguousarray(counts, dtype="<i8"))).cast(content.type)
        header_index = np.arange(rows, 2 * rows, dtype=np.int32)
    else:
        headers = _header_table(content.type)
        header_index = counts + np.int32(rows)
    content_index = np.arange(rows, dtype=np.int32)
    parts = [content, headers]
    if source.null_count:
        null, empty = np.int32(rows + len(headers)), np.int32(rows + len(headers) + 1)
        valid = _bits(source.buffers()[0], source.offset, rows).view(np.bool_)
        header_index = np.where(valid, header_index, null)
        content_index = np.where(valid, content_index, empty)
        parts.append(pa.array([b"\x00", b""], content.type))
    gather = np.empty((rows, 2), np.int32)
    gather[:, 0] = header_index
    gather[:, 1] = content_index
    chunks = pa.concat_arrays(parts).take(pa.array(gather.reshape(-1)))
    kept = np.ascontiguousarray(_offsets(chunks)[::2])
    return pa.Array.from_buffers(chunks.type, rows, [None, pa.py_buffer(kept), chunks.buffers()[2]])
