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
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

import pyarrow as pa

from odf_protocol.hashing.arrow0_rows import row_bytes, storage_array
from odf_protocol.hashing.arrow0_structs import StructColumn
from odf_protocol.hashing.arrow0_types import Leaf, iter_leaves, schema_bytes, type_bytes
from odf_protocol.hashing.reader_schema import as_reader_types
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash

__all__ = ["Arrow0Hasher", "ColumnExecutor", "hash_batches"]

_CHUNK_ROWS: Final = 1 << 16  # measured: larger chunks fall out of the second-level cache
_CHUNK_BYTES: Final = 1 << 22  # guess: four times that cache; bounds what is laid out at once


class ColumnExecutor(Protocol):
    """What is needed of a ``concurrent.futures`` executor."""

    def map(self, work: Callable[[Any], Any], items: Iterable[Any], /) -> Iterable[Any]:
        """Apply ``work`` to each item."""
        ...


class Arrow0Hasher:
    """Hashes rows that arrive in batches; holds one SHA3 state per column and at most 10,000 rows.

    Args:
        schema: All columns of the slice in file order, system columns included, in the types of
            ``reader_schema``.
        executor: Runs the columns of a batch side by side; None for one after another.
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
        self._map = map if executor is None else executor.map
        self._names = schema_bytes(schema)
        row_groups = tuple(row_group_rows)
        self._columns = [_Column(leaf, row_groups) for leaf in iter_leaves(schema)]

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch.

        Raises:
            MalformedError: The batch does not have the schema's columns in the schema's order.
        """
        batch = as_reader_types(batch, self._schema)
        if not batch.num_rows:
            return
        for _ in self._map(lambda column: column.update(batch), self._columns):
            pass  # an executor's map raises what a column raised only when its results are read

    def digest(self) -> Multihash:
        """Return the hash of all rows so far; more may follow."""
        final = hashlib.sha3_256(self._names)
        for column in self._columns:
            final.update(column.digest())
        return Multihash(ARROW0_SHA3_256, final.digest())


def hash_batches(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    executor: ColumnExecutor | None = None,
    row_group_rows: Iterable[int] = (),
) -> Multihash:
    """Hash all rows of a table.

    Args:
        schema: As for ``Arrow0Hasher``, and so are the two last arguments.
        batches: Rows in offset order, read once and not kept.
        executor: Runs the columns of a batch side by side.
        row_group_rows: Rows in each row group of the file.
    """
    hasher = Arrow0Hasher(schema, executor=executor, row_group_rows=row_group_rows)
    for batch in batches:
        hasher.update(batch)
    return hasher.digest()


class _Column:
    def __init__(self, leaf: Leaf, row_group_rows: tuple[int, ...]) -> None:
        self._leaf = leaf
        self._hash = hashlib.sha3_256(type_bytes(leaf.type, leaf.name))
        self._structs = StructColumn(leaf, row_group_rows) if leaf.nullable_nodes > 1 else None

    def update(self, batch: pa.RecordBatch) -> None:
        if self._structs is not None:
            for array in self._structs.add(batch):
                _feed(self._hash, array)
            return
        _feed(self._hash, leaf_array(batch, self._leaf))

    def digest(self) -> bytes:
        if self._structs is None:
            return self._hash.digest()
        final = self._hash.copy()
        for array in self._structs.pending():
            _feed(final, array)
        return final.digest()


def leaf_array(batch: pa.RecordBatch, leaf: Leaf) -> pa.Array:
    """Return a leaf's values, null where the leaf or a struct around it is null."""
    array = storage_array(batch.column(leaf.path[0]))
    for index in leaf.path[1:]:
        array = storage_array(array.flatten()[index])
    return array


def _feed(state: Any, array: pa.Array) -> None:
    average_bytes = max(1, array.nbytes // max(1, len(array)))
    rows = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // average_bytes))
    for start in range(0, len(array), rows):
        state.update(row_bytes(array.slice(start, rows)))
