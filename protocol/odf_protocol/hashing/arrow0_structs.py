"""Nulls inside structs, as ``arrow0-sha3-256`` sees them in the reference implementation.

For a leaf inside structs, the reference combines the validity of the structs and of the leaf by a bitwise OR. In a
slice read from Parquet a leaf is always null where a struct around it is, so the OR leaves the validity of the
outermost node of the path that has a null in the batch at all. Where that node is valid and the leaf is not, the
reference hashes the slot of the null as if it held a value. Its reader makes the slots like this: it decodes the values
of a row group without gaps, and then moves them, last one first, to the rows that have a value. So a null's slot keeps
the value that was decoded to its place if there was one, and zero if not.

All of it happens per batch of 10,000 rows of the reader, and the decoding per row group within a batch.

Source: ODF "Logical Hashes" (arrow-digest, struct validity; batches of the reference reader).
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from odf_protocol.hashing.arrow0_rows import storage_array
from odf_protocol.hashing.arrow0_types import Leaf, fixed_width_bytes, storage_type

READER_BATCH_ROWS: Final = 10_000  # ODF: batch size of the reference implementation's Parquet reader


class StructColumn:
    """Collects a leaf and the validity on its path until a batch of the reference reader is complete."""

    def __init__(self, leaf: Leaf, row_group_rows: tuple[int, ...]) -> None:
        self._leaf = leaf
        self._row_group_ends = np.cumsum(np.array(row_group_rows, np.int64))
        self._keeps_slot = _keeps_slot(leaf.type)
        self._start = 0
        self._values: list[pa.Array] = []
        self._validities: list[Any] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.Array]:
        """Take the rows of a batch and give what is complete, ready to be encoded like any column."""
        values, validities = self._path(batch)
        position = 0
        while position < batch.num_rows:
            count = min(batch.num_rows - position, READER_BATCH_ROWS - self._rows)
            self._values.append(values.slice(position, count))
            self._validities.append(validities[:, position : position + count])
            self._rows += count
            position += count
            if self._rows == READER_BATCH_ROWS:
                yield from self.pending()
                self._start += self._rows
                self._values, self._validities, self._rows = [], [], 0

    def pending(self) -> Iterator[pa.Array]:
        """Give what would be complete if no row followed; changes nothing."""
        if not self._rows:
            return
        values = pa.concat_arrays(self._values)
        validities = np.concatenate(self._validities, axis=1)
        own = validities[-1]
        effective = next((validity for validity in validities if not validity.all()), own)
        if (effective == own).all():
            yield values
            return
        inner = self._row_group_ends[
            (self._row_group_ends > self._start) & (self._row_group_ends < self._start + self._rows)
        ]
        bounds = [0, *(int(end) - self._start for end in inner), self._rows]
        for start, end in pairwise(bounds):
            yield _with_decoded_slots(
                values.slice(start, end - start), own[start:end], effective[start:end], keeps_slot=self._keeps_slot
            )

    def _path(self, batch: pa.RecordBatch) -> tuple[pa.Array, Any]:
        """Return the leaf, and for each node from the column to the leaf which rows are valid there and above."""
        array = storage_array(batch.column(self._leaf.path[0]))
        validities = [_validity(array)]
        for index in self._leaf.path[1:]:
            array = storage_array(array.flatten()[index])  # flatten also applies the struct's own validity
            validities.append(_validity(array))
        return array, np.stack(validities)


def _validity(array: pa.Array) -> Any:
    return array.is_valid().to_numpy(zero_copy_only=False)


def _keeps_slot(data_type: pa.DataType) -> bool:
    # Text and lists are offsets in the reference, and a null's offsets are made equal; all else is moved in place.
    return not (
        pat.is_list(data_type)
        or pat.is_large_list(data_type)
        or pat.is_fixed_size_list(data_type)
        or pat.is_string(data_type)
        or pat.is_large_string(data_type)
        or pat.is_binary(data_type)
        or pat.is_large_binary(data_type)
    )


def _without_views(data_type: pa.DataType) -> pa.DataType:
    """Return a type with the same encoding that Arrow's kernels can filter and gather."""
    if pat.is_string_view(data_type) or pat.is_binary_view(data_type):
        return pa.large_binary()
    if pat.is_fixed_size_list(data_type):
        return pa.list_(_without_views(storage_type(data_type.value_type)), data_type.list_size)
    if pat.is_list(data_type) or pat.is_large_list(data_type):
        return pa.large_list(_without_views(storage_type(data_type.value_type)))
    return data_type


def _with_decoded_slots(values: pa.Array, own: Any, effective: Any, *, keeps_slot: bool) -> pa.Array:
    """Return the rows that are null only where ``effective`` says so; other nulls show what the reader left there."""
    values = values.cast(_without_views(values.type))
    decoded = values.filter(pa.array(own))
    places = np.cumsum(own) - 1
    rows = np.arange(len(values))
    stale = rows if keeps_slot else np.full(len(values), len(decoded))
    blank = len(decoded)
    index = np.where(own, places, np.where(stale < len(decoded), stale, blank))
    source = pa.concat_arrays([decoded, _blank(values.type)])
    return source.take(pa.array(index, mask=~effective))


def _blank(data_type: pa.DataType) -> pa.Array:
    """One element as a slot nobody wrote to: zero, false, empty."""
    if pat.is_fixed_size_binary(data_type):
        return pa.array([bytes(data_type.byte_width)], data_type)
    if pat.is_list(data_type) or pat.is_large_list(data_type):
        return pa.array([[]], data_type)
    if pat.is_fixed_size_list(data_type):
        return pa.array([[None] * data_type.list_size], data_type)
    width = fixed_width_bytes(data_type)
    if width is not None:
        return pa.Array.from_buffers(data_type, 1, [None, pa.py_buffer(bytes(width))])
    if pat.is_boolean(data_type):
        return pa.array([False])
    return pc.cast(pa.array([b""]), data_type)
