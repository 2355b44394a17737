"""``arrow0-sha3-256``: ODF's logical hash, row for row what the reference implementation computes from a slice.

One hash takes the names of all fields; each leaf column has a hash of its own that starts with the type and takes the
values; the result is the hash of the names followed by the columns' digests. Rows may come in batches of any size.

Two things are worth knowing. The stream of values is not framed: ``['', null]`` and ``[null, '']`` have one hash, and
so have ``int16 [null, 0]`` and ``[0, null]``; use ``odf_protocol.hashing.v1`` where an attacker chooses the data. And a
null inside a struct that also has nulls is not hashed as a null but as whatever the reference implementation's Parquet
reader leaves in that slot; ``odf_protocol.hashing.arrow0_structs`` does the same.

Source: ODF "Logical Hashes" (arrow-digest).
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from odf_protocol.hashing.arrow0_rows import row_bytes, storage_array
from odf_protocol.hashing.arrow0_structs import StructColumn
from odf_protocol.hashing.arrow0_types import Leaf, fixed_width_bytes, iter_leaves, schema_bytes, type_bytes
from odf_protocol.hashing.column_work import ColumnExecutor, run_columns
from odf_protocol.hashing.reader_schema import as_reader_types
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash

_CHUNK_ROWS: Final = 1 << 17  # measured: smaller ones cost more for starting than they gain by staying in the cache
_CHUNK_BYTES: Final = 1 << 22  # guess: four times the second-level cache; bounds what is laid out at once
_SHARED_BYTES: Final = 1 << 23  # guess: workers wait for each other at the end; more would be memory touched anew


class Arrow0Hasher:
    """Hashes rows that arrive in batches; holds one SHA3 state per column and at most 10,000 rows.

    With an executor it also holds batches until 8 MiB are there, which then are hashed side by side.

    Args:
        schema: All columns of the slice in file order, system columns included, in the types of
            ``reader_schema``.
        executor: Threads that hash columns side by side; None for one after another.
        row_group_rows: Rows in each row group of the file. They matter only for nulls inside structs that have nulls
            themselves, in a file with several row groups; without them the file counts as one row group.

    Raises:
        UnsupportedError: A column's type has no encoding; the message names the column.

    >>> hasher = Arrow0Hasher(pa.schema([("a", pa.int32())]))
    >>> hasher.update(pa.record_batch({"a": pa.array([1, 2, 3], pa.int32())}))
    >>> hasher.digest().short
    'e7cb3655'
    """

    def __init__(
        self, schema: pa.Schema, *, executor: ColumnExecutor | None = None, row_group_rows: Iterable[int] = ()
    ) -> None:
        self._schema = schema
        self._executor = executor
        self._names = schema_bytes(schema)
        row_groups = tuple(row_group_rows)
        self._columns = [_Column(leaf, row_groups) for leaf in iter_leaves(schema)]
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch.

        Raises:
            MalformedError: The batch does not have the schema's columns in the schema's order.
        """
        batch = as_reader_types(batch, self._schema)
        if not batch.num_rows:
            return
        self._waiting.append(batch)
        if self._executor is not None:
            self._waiting_bytes += batch.nbytes
            if self._waiting_bytes < _SHARED_BYTES:
                return
        self._hash_waiting()

    def digest(self) -> Multihash:
        """Return the hash of all rows so far; more may follow."""
        self._hash_waiting()
        final = hashlib.sha3_256(self._names)
        for column in self._columns:
            final.update(column.digest())
        return Multihash(ARROW0_SHA3_256, final.digest())

    def _hash_waiting(self) -> None:
        batches, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if batches:
            run_columns([column.steps(batches) for column in self._columns], self._executor)


class _Column:
    def __init__(self, leaf: Leaf, row_group_rows: tuple[int, ...]) -> None:
        self._leaf = leaf
        self._hash = hashlib.sha3_256(type_bytes(leaf.type, leaf.name))
        self._structs = StructColumn(leaf, row_group_rows) if leaf.nullable_nodes > 1 else None
        self._width = 1 if pat.is_boolean(leaf.type) else fixed_width_bytes(leaf.type)

    def steps(self, batches: Sequence[pa.RecordBatch]) -> Iterator[float]:
        """Hash the rows of some batches, a chunk per step; give about how many bytes are left."""
        rows = sum(batch.num_rows for batch in batches)
        row_bytes_about = self._width or sum(batch.column(self._leaf.path[0]).nbytes for batch in batches) / rows
        for batch in batches:
            for array in self._arrays(batch):
                for chunk in self._chunks(array):
                    yield rows * row_bytes_about
                    self._hash.update(row_bytes(chunk))
                    rows -= len(chunk)

    def _arrays(self, batch: pa.RecordBatch) -> Iterable[pa.Array]:
        return (leaf_array(batch, self._leaf),) if self._structs is None else self._structs.add(batch)

    def digest(self) -> bytes:
        if self._structs is None:
            return self._hash.digest()
        final = self._hash.copy()
        for array in self._structs.pending():
            for chunk in self._chunks(array):
                final.update(row_bytes(chunk))
        return final.digest()

    def _chunks(self, array: pa.Array) -> Iterable[pa.Array]:
        rows = _CHUNK_ROWS
        if self._width is None:  # asking how large an array is costs as much as laying out thousands of numbers
            average_bytes = max(1, array.nbytes // max(1, len(array)))
            rows = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // average_bytes))
        if len(array) <= rows:
            return (array,)
        return (array.slice(start, rows) for start in range(0, len(array), rows))


def leaf_array(batch: pa.RecordBatch, leaf: Leaf) -> pa.Array:
    """Return a leaf's values, null where the leaf or a struct around it is null."""
    array = storage_array(batch.column(leaf.path[0]))
    for index in leaf.path[1:]:
        array = storage_array(array.flatten()[index])
    return array
