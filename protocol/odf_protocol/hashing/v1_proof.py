"""Proofs that one cell of a table has one value, checked against nothing but the table's root.

A proof holds the schema, the leaf that has the cell, and the hashes beside the way from the leaf to the root. It shows
the other rows of the same leaf as well: up to 4,095 neighbours in the same column.

Source: clauses LH1-15 to LH1-17 in ``spec/extensions/logical-hash-v1.md``.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
import pyarrow as pa

from odf_protocol.canonical_json import Count, Document, decode_canonical, encode_canonical
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.hashing.v1 import (
    FAN_OUT,
    HASH_BYTES,
    LOGICAL_V1_SHA2_256,
    PackedHashes,
    TableSummary,
    leaf_count,
    leaf_hash,
    node_hash,
    root_hash,
)
from odf_protocol.hashing.v1_leaf import LEAF_ROWS, leaf_parts, normalized
from odf_protocol.hashing.v1_leaf_reader import read_leaf
from odf_protocol.hashing.v1_types import decode_schema, iter_columns
from odf_protocol.multihash import Multihash

__all__ = ["MAX_PROOF_BYTES", "ProvedCell", "leaf_rows", "prove_cell", "verify_cell"]

MAX_PROOF_BYTES: Final = 64 * 1024 * 1024  # guess: a leaf of 4,096 texts of ten thousand characters
_Hash = Annotated[bytes, msgspec.Meta(min_length=HASH_BYTES, max_length=HASH_BYTES)]
_Siblings = Annotated[tuple[_Hash, ...], msgspec.Meta(max_length=FAN_OUT - 1)]
_Path = Annotated[tuple[_Siblings, ...], msgspec.Meta(max_length=16)]  # 16 ** 16 leaves


class _Proof(Document, frozen=True, kw_only=True):
    version: Literal[1]
    type: Literal["cell-proof"]
    row_count: Count
    schema: bytes
    column: Count
    row: Count
    leaf: bytes
    row_path: _Path
    column_path: _Path


@dataclass(frozen=True, slots=True)
class ProvedCell:
    """A cell whose value a root commits to.

    Attributes:
        column: Dotted name.
        row: From 0.
        value: Arrow scalar of the column's logical type; for a struct a boolean, whether it is present.
    """

    column: str
    row: int
    value: Any


def leaf_rows(row: int, row_count: int) -> range:
    """Return the rows that share a leaf with a row; ``prove_cell`` needs their values."""
    first = row - row % LEAF_ROWS
    return range(first, min(first + LEAF_ROWS, row_count))


def prove_cell(summary: TableSummary, column: int, row: int, leaf: pa.Array) -> bytes:
    """Build the proof of a cell.

    Args:
        summary: Of the whole table.
        column: Index in ``summary.columns``.
        row: From 0.
        leaf: The column's values in ``leaf_rows``, null where a struct around them is.

    Raises:
        ValueError: No such cell, or ``leaf`` is not what was hashed.
    """
    if not (0 <= column < len(summary.columns) and 0 <= row < summary.row_count):
        raise ValueError(f"no cell in row {row} of column {column}")
    content = b"".join(leaf_parts(normalized(leaf), is_column=True))
    levels = summary.levels[column]
    if leaf_hash([content]) != levels[0][row // LEAF_ROWS]:
        raise ValueError("these are not the rows that were hashed")
    return encode_canonical(
        _Proof(
            version=1,
            type="cell-proof",
            row_count=summary.row_count,
            schema=summary.schema,
            column=column,
            row=row,
            leaf=content,
            row_path=_path(levels, row // LEAF_ROWS),
            column_path=_path(summary.column_levels, column),
        )
    )


def verify_cell(root: Multihash, raw: bytes) -> ProvedCell:
    """Check a proof and return the cell.

    Args:
        root: The table's root, from a source that is trusted for it.
        raw: The proof, untrusted.

    Raises:
        MalformedError: Not a proof.
        RejectedError: It does not lead to ``root``.
    """
    if root.code != LOGICAL_V1_SHA2_256:
        raise RejectedError("LH1-15 root-is-v1", expected=hex(LOGICAL_V1_SHA2_256), found=hex(root.code))
    proof = decode_canonical(raw, _Proof, what="cell proof", max_bytes=MAX_PROOF_BYTES)
    # The hashes first: what the root does not commit to is not worth reading.
    if proof.row >= proof.row_count:
        raise RejectedError("LH1-15 row-in-table", expected=f"below {proof.row_count}", found=proof.row)
    leaves = leaf_count(proof.row_count)
    column_top = _climb(leaf_hash([proof.leaf]), proof.row // LEAF_ROWS, leaves, proof.row_path, of_columns=False)
    columns = tuple(iter_columns(decode_schema(proof.schema)))
    if proof.column >= len(columns):
        raise RejectedError("LH1-15 column-in-table", expected=f"below {len(columns)}", found=proof.column)
    top = _climb(column_top, proof.column, len(columns), proof.column_path, of_columns=True)
    found = Multihash(LOGICAL_V1_SHA2_256, root_hash(proof.row_count, proof.schema, top))
    if found != root:
        raise RejectedError("LH1-15 proof-leads-to-the-root", expected=root, found=found)
    column = columns[proof.column]
    rows = read_leaf(proof.leaf, column.type, is_column=True)
    expected_rows = len(leaf_rows(proof.row, proof.row_count))
    if len(rows) != expected_rows:
        raise MalformedError("cell proof", expected=f"a leaf of {expected_rows} rows", found=len(rows))
    return ProvedCell(column.name, proof.row, rows[proof.row % LEAF_ROWS])


def _path(levels: tuple[PackedHashes, ...], index: int) -> tuple[tuple[bytes, ...], ...]:
    path = []
    for level in levels[:-1]:
        first = index - index % FAN_OUT
        group = level[first : first + FAN_OUT]
        path.append(group[: index - first] + group[index - first + 1 :])
        index //= FAN_OUT
    return tuple(path)


def _climb(start: bytes, index: int, width: int, path: tuple[tuple[bytes, ...], ...], *, of_columns: bool) -> bytes:
    """Return the top of a tree from one leaf and its siblings; the tree's shape follows from its width."""
    current = start
    for siblings in path:
        place = index % FAN_OUT
        group_size = min(FAN_OUT, width - (index - place))
        if width < 2 or len(siblings) != group_size - 1:
            raise RejectedError("LH1-15 path-has-the-shape-of-the-tree", expected=group_size - 1, found=len(siblings))
        current = node_hash((*siblings[:place], current, *siblings[place:]), of_columns=of_columns)
        index, width = index // FAN_OUT, -(-width // FAN_OUT)
    if width != 1:
        raise RejectedError("LH1-15 path-reaches-the-top", expected="more levels", found=len(path))
    return current
