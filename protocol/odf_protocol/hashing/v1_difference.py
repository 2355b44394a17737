"""Find where two tables differ by exchanging a few hashes: a conversation without I/O, about one of the two tables.

One party holds the ``DifferenceSearch``; the other one answers from its ``TableSummary``::

    search = DifferenceSearch(mine, their_root, their_header)
    while search.questions:
        for question in search.questions:
            search.answer(question, ask_them(question))     # they: answer_query(theirs, question)
    search.differences

Every answer is checked against a hash that is known already, so the other party can reject but not mislead: what is
reported differs between my table and the table that has their root. Nodes are named by their place, and trees grow to
the right, so tables with different row counts are compared as well.

Source: clauses LH1-18 to LH1-20 in ``spec/extensions/logical-hash-v1.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odf_protocol.errors import RejectedError
from odf_protocol.hashing.v1 import (
    FAN_OUT,
    HASH_BYTES,
    LOGICAL_V1_SHA2_256,
    PackedHashes,
    TableSummary,
    leaf_count,
    node_hash,
    root_hash,
)
from odf_protocol.hashing.v1_leaf import LEAF_ROWS
from odf_protocol.hashing.v1_types import decode_schema, iter_columns
from odf_protocol.multihash import Multihash

_MAX_FOUND: Final = 1000  # guess: more differing leaves than this are one finding: everything differs
_MAX_OPEN: Final = 4096  # guess: questions waiting at once; bounds memory and the size of a round


@dataclass(frozen=True, slots=True)
class TableHeader:
    """What a root binds together."""

    row_count: int
    schema: bytes
    columns_top: bytes


@dataclass(frozen=True, slots=True)
class NodeName:
    """A node by its place.

    Attributes:
        column: Index of the column, None for the tree over the columns.
        level: Above the leaves, which have level 0; a question is about level 1 or higher.
        index: From the left.
    """

    column: int | None
    level: int
    index: int


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows ``start`` up to but without ``stop`` of a column have other values in the two tables, somewhere.

    ``column_index`` is the column's place in ``TableSummary.columns``, ``column`` its dotted name.
    """

    column_index: int
    column: str
    start: int
    stop: int


def answer_query(summary: TableSummary, query_text: NodeName) -> tuple[bytes, ...]:
    """Return the hashes of a node's children.

    Raises:
        RejectedError: There is no such node.
    """
    levels = _levels(summary, query_text.column)
    if (
        levels is None
        or not 1 <= query_text.level < len(levels)
        or not 0 <= query_text.index < len(levels[query_text.level])
    ):
        raise RejectedError("LH1-19 question-names-a-node", found=query_text)
    return _children(levels, query_text)


class DifferenceSearch:
    """Walks down another table's trees wherever they differ from mine.

    Attributes:
        query_service: Nodes whose children are needed next; empty when the search is over.
        differences: Differing row ranges so far, at the grain of leaves, ordered when the search is over.
        is_complete: False where the limit on findings cut the search short.

    Raises:
        RejectedError: The header does not belong to the root, or the tables have other columns.
    """

    def __init__(self, mine: TableSummary, their_root: Multihash, their_header: TableHeader) -> None:
        found = root_hash(their_header.row_count, their_header.schema, their_header.columns_top)
        if their_root != Multihash(LOGICAL_V1_SHA2_256, found):
            raise RejectedError("LH1-18 header-belongs-to-the-root", expected=their_root, found=found.hex())
        if their_header.schema != mine.schema:
            expected, theirs = (_one_line(raw) for raw in (mine.schema, their_header.schema))
            raise RejectedError("LH1-18 same-columns", expected=expected, found=theirs)
        self._mine = mine
        self._row_count = their_header.row_count
        self._column_names = [column.name for column in iter_columns(decode_schema(mine.schema))]
        self._known: dict[NodeName, bytes] = {}
        self.differences: list[Difference] = []
        self.is_complete = True
        top_level = _height(len(self._column_names))
        self._compare(NodeName(None, top_level, 0), their_header.columns_top)
        if not self._known:
            self._finish()

    @property
    def query_service(self) -> tuple[NodeName, ...]:
        """Nodes whose children are needed next."""
        return tuple(self._known)

    def answer(self, query_text: NodeName, children: Sequence[bytes]) -> None:
        """Take the children of a node.

        Raises:
            KeyError: Not one of ``questions``.
            RejectedError: The children are not those of the node.
        """
        expected = self._known[query_text]
        of_columns = query_text.column is None
        if len(children) > FAN_OUT or any(len(child) != HASH_BYTES for child in children):
            raise RejectedError("LH1-19 answer-has-hashes", expected=f"at most {FAN_OUT} of {HASH_BYTES} bytes")
        found = node_hash(children, of_columns=of_columns)
        if found != expected or len(children) != self._child_count(query_text):
            raise RejectedError("LH1-19 children-belong-to-their-node", expected=expected.hex(), found=found.hex())
        del self._known[query_text]
        for place, child in enumerate(children):
            self._compare(NodeName(query_text.column, query_text.level - 1, query_text.index * FAN_OUT + place), child)
        if not self._known:
            self._finish()

    def _compare(self, node: NodeName, theirs: bytes) -> None:
        levels = _levels(self._mine, node.column)
        mine = None
        if levels is not None and node.level < len(levels) and node.index < len(levels[node.level]):
            mine = levels[node.level][node.index]
        if mine == theirs:
            return
        if node.level:
            if len(self._known) >= _MAX_OPEN:
                self.is_complete = False
            else:
                self._known[node] = theirs
        elif node.column is None:
            self._compare(NodeName(node.index, _height(leaf_count(self._row_count)), 0), theirs)
        elif len(self.differences) >= _MAX_FOUND:
            self.is_complete = False
        else:
            start = node.index * LEAF_ROWS
            stop = min(start + LEAF_ROWS, max(self._row_count, self._mine.row_count))
            self.differences.append(Difference(node.column, self._column_names[node.column], start, stop))

    def _child_count(self, node: NodeName) -> int:
        leaves = len(self._column_names) if node.column is None else leaf_count(self._row_count)
        width = leaves
        for _ in range(node.level - 1):
            width = -(-width // FAN_OUT)
        return min(FAN_OUT, width - node.index * FAN_OUT)

    def _finish(self) -> None:
        # Leaves that only my table has are no one's child over there.
        if self._mine.row_count > self._row_count:
            first = leaf_count(self._row_count) * LEAF_ROWS
            if first < self._mine.row_count:
                rows = (first, self._mine.row_count)
                self.differences += [Difference(i, name, *rows) for i, name in enumerate(self._column_names)]
        self.differences.sort(key=lambda found: (found.column_index, found.start))


def _height(width: int) -> int:
    """Return the level of the top of a tree with so many leaves."""
    height = 0
    while width > 1:
        width, height = -(-width // FAN_OUT), height + 1
    return height


def _levels(summary: TableSummary, column: int | None) -> tuple[PackedHashes, ...] | None:
    if column is None:
        return summary.column_levels
    return summary.levels[column] if 0 <= column < len(summary.levels) else None


def _children(levels: tuple[PackedHashes, ...], node: NodeName) -> tuple[bytes, ...]:
    below = levels[node.level - 1]
    return below[node.index * FAN_OUT : (node.index + 1) * FAN_OUT]


def _one_line(schema: bytes) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in decode_schema(schema))
