"""Logical hash v1: an injective Merkle hash of a table's rows.

Nouns: a *column* is a leaf field or a struct as such; its rows are cut into *leaves* of 4,096; over the leaves' hashes
stands a tree of *nodes* with up to 16 children each, whose top is the column's root; over the columns' roots stands a
tree of the same kind; the *root* of the table binds its top to the row count and the schema.

Equal tables have equal roots whatever their batches and their layout; different tables have different roots unless
SHA-256 collides. ``v1_difference`` finds where two tables differ.

Source: clauses LH1-1 to LH1-14 in ``spec/extensions/logical-hash-v1.md``.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Self, overload

import pyarrow as pa

from odf_protocol.errors import MalformedError
from odf_protocol.hashing.column_work import ColumnExecutor
from odf_protocol.hashing.v1_leaf import LEAF_ROWS, leaf_parts, normalized
from odf_protocol.hashing.v1_types import Column, decode_schema, encode_schema, iter_columns
from odf_protocol.multihash import Multihash

LOGICAL_V1_SHA2_256: Final = 0x300DF1
"""Multihash code of ours, in the range that the multicodec table leaves for private use."""
FAN_OUT: Final = 16
"""Children of a node.  # guess: two tables of a billion rows are compared in five questions, a proof stays small"""
HASH_BYTES: Final = 32

# Every hash input starts with eight bytes that no other kind of input starts with (LH1-2).
_LEAF: Final = b"ODFLH1/L"
_ROW_NODE: Final = b"ODFLH1/R"
_COLUMN_NODE: Final = b"ODFLH1/C"
_TABLE: Final = b"ODFLH1/T"


def leaf_hash(parts: Sequence[bytes | memoryview]) -> bytes:
    """Hash a leaf's bytes (LH1-6)."""
    state = hashlib.sha256(_LEAF)
    for part in parts:
        state.update(part)
    return state.digest()


def node_hash(children: Sequence[bytes], *, of_columns: bool) -> bytes:
    """Hash the children of a node (LH1-12)."""
    return hashlib.sha256((_COLUMN_NODE if of_columns else _ROW_NODE) + b"".join(children)).digest()


def root_hash(row_count: int, schema: bytes, columns_top: bytes) -> bytes:
    """Bind the columns to the row count and the schema (LH1-13)."""
    return hashlib.sha256(_TABLE + struct.pack("<QQ", row_count, len(schema)) + schema + columns_top).digest()


def leaf_count(row_count: int) -> int:
    """Return how many leaves each column of a table has; a table without rows has one leaf of no rows."""
    return max(1, -(-row_count // LEAF_ROWS))


@dataclass(frozen=True, slots=True)
class PackedHashes(Sequence[bytes]):
    """Hashes one after another, without the object for each that takes more memory than the hash."""

    raw: bytes = field(repr=False)

    def __len__(self) -> int:
        return len(self.raw) // HASH_BYTES

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[bytes, ...]: ...

    def __getitem__(self, index: int | slice) -> bytes | tuple[bytes, ...]:
        places = range(len(self))[index]
        return self._at(places) if isinstance(places, int) else tuple(map(self._at, places))

    def _at(self, place: int) -> bytes:
        return self.raw[place * HASH_BYTES : (place + 1) * HASH_BYTES]


def tree_levels(leaves: Sequence[bytes], *, of_columns: bool) -> tuple[PackedHashes, ...]:
    """Return the levels of a tree, leaves first; the last level has one hash (LH1-12)."""
    if not isinstance(leaves, PackedHashes):
        leaves = PackedHashes(b"".join(leaves))
    levels = [leaves if leaves.raw else PackedHashes(node_hash((), of_columns=of_columns))]
    while len(levels[-1]) > 1:
        below = levels[-1]
        groups = (below[start : start + FAN_OUT] for start in range(0, len(below), FAN_OUT))
        levels.append(PackedHashes(b"".join(node_hash(group, of_columns=of_columns) for group in groups)))
    return tuple(levels)


@dataclass(frozen=True, slots=True)
class TableSummary:
    """All hashes of a table, from which its root, proofs and comparisons follow; 32 bytes per leaf and a little more.

    Attributes:
        row_count: Rows of the table.
        schema: As ``encode_schema`` writes it.
        levels: For each column the levels of its tree, leaves first.
        column_levels: The levels of the tree over the columns' roots.
    """

    row_count: int
    schema: bytes = field(repr=False)
    levels: tuple[tuple[PackedHashes, ...], ...] = field(repr=False)
    column_levels: tuple[PackedHashes, ...] = field(repr=False)

    @classmethod
    def of_leaves(cls, row_count: int, schema: bytes, columns: Iterable[Sequence[bytes]]) -> Self:
        """Compute everything from the leaves of each column."""
        levels = tuple(tree_levels(leaves, of_columns=False) for leaves in columns)
        return cls(
            row_count=row_count,
            schema=schema,
            levels=levels,
            column_levels=tree_levels([tree[-1][0] for tree in levels], of_columns=True),
        )

    @property
    def columns(self) -> tuple[Column, ...]:
        """In the order of ``levels``; read from the schema each time."""
        return tuple(iter_columns(decode_schema(self.schema)))

    @property
    def columns_top(self) -> bytes:
        """Top of the tree over the columns."""
        return self.column_levels[-1][0]

    @property
    def root(self) -> Multihash:
        """The table's hash."""
        return Multihash(LOGICAL_V1_SHA2_256, root_hash(self.row_count, self.schema, self.columns_top))


class LogicalHasher:
    """Hashes rows that arrive in batches; holds fewer than 4,096 rows, and 32 bytes for each leaf.

    Args:
        schema: All columns that count, in their order.
        executor: Runs the columns of a batch side by side; None for one after another.

    Raises:
        UnsupportedError: A column's type cannot be hashed; the message names the column.
    """

    def __init__(self, schema: pa.Schema, *, executor: ColumnExecutor | None = None) -> None:
        self._schema = schema
        self._encoded = encode_schema(schema)
        self._map = map if executor is None else executor.map
        self._columns = [_ColumnLeaves(column) for column in iter_columns(decode_schema(self._encoded))]
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._row_count = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch.

        Raises:
            MalformedError: The batch does not have the schema's columns in the schema's order.
            UnsupportedError: A value that its logical type cannot hold.
        """
        if batch.schema.names != self._schema.names or batch.schema.types != self._schema.types:
            raise MalformedError("record batch", expected=_one_line(self._schema), found=_one_line(batch.schema))
        self._row_count += batch.num_rows
        if self._pending_rows:
            missing = min(LEAF_ROWS - self._pending_rows, batch.num_rows)
            self._keep(batch.slice(0, missing))
            batch = batch.slice(missing)
            if self._pending_rows < LEAF_ROWS:
                return
            self._add(_joined(self._pending))
            self._pending, self._pending_rows = [], 0
        whole = batch.num_rows - batch.num_rows % LEAF_ROWS
        if whole:
            self._add(batch.slice(0, whole))
        self._keep(batch.slice(whole))

    def summary(self) -> TableSummary:
        """Return the hashes of all rows so far; more may follow."""
        last: list[tuple[bytes, ...]] = [()] * len(self._columns)
        if self._pending_rows:
            rest = _joined(self._pending)
            last = [column.hash_leaves(rest) for column in self._columns]
        elif not self._row_count:
            empty = pa.RecordBatch.from_pylist([], schema=self._schema)
            last = [(column.hash_leaf(empty),) for column in self._columns]
        leaves = ((*column.leaves, *more) for column, more in zip(self._columns, last, strict=True))
        return TableSummary.of_leaves(self._row_count, self._encoded, leaves)

    def digest(self) -> Multihash:
        """Return the hash of all rows so far; more may follow."""
        return self.summary().root

    @property
    def leaf_count(self) -> int:
        """How many leaves all columns of the rows so far have together."""
        return len(self._columns) * leaf_count(self._row_count)

    def _keep(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._pending.append(batch)
            self._pending_rows += batch.num_rows

    def _add(self, batch: pa.RecordBatch) -> None:
        for _ in self._map(lambda column: column.leaves.extend(column.hash_leaves(batch)), self._columns):
            pass  # an executor's map raises what a column raised only when its results are read


class _ColumnLeaves:
    def __init__(self, column: Column) -> None:
        self.column = column
        self.leaves: list[bytes] = []

    def hash_leaves(self, batch: pa.RecordBatch) -> tuple[bytes, ...]:
        array = column_array(batch, self.column)
        starts = range(0, len(array), LEAF_ROWS)
        return tuple(leaf_hash(leaf_parts(array.slice(start, LEAF_ROWS), is_column=True)) for start in starts)

    def hash_leaf(self, batch: pa.RecordBatch) -> bytes:
        return leaf_hash(leaf_parts(column_array(batch, self.column), is_column=True))


def column_array(batch: pa.RecordBatch, column: Column) -> pa.Array:
    """Return a column's values, null where the column or a struct around it is null."""
    array = normalized(batch.column(column.path[0]))
    for index in column.path[1:]:
        array = normalized(array.flatten()[index])
    return array


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _one_line(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
