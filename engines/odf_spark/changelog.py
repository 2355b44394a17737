"""Operations of a map's output: a filtered changelog made sound again.

=====================  ======================================  ==============================
row of the input        what became of its partner              row of the output
=====================  ======================================  ==============================
append, retract                                                the same
correct-from            its correct-to passed too               correct-from
correct-from            none, or filtered away                  retract
correct-to              its correct-from passed too             correct-to
correct-to              none, or filtered away                  append
both of a pair          both passed, equal in every column      no rows
=====================  ======================================  ==============================

A correct-from at offset *i* and a correct-to at *i + 1* are a pair. Since a map treats rows one by one, the sign of a
row (append and correct-to give, retract and correct-from take) is all that the content of its output depends on, and
no rule above changes a sign except the last, which drops a giving and a taking of the same row.

Source: MAP-3 to MAP-6 in ``spec/extensions/changelog-maps.md``; ODF "Operation types".
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["APPEND", "CORRECT_FROM", "CORRECT_TO", "RETRACT", "fix_operations", "fix_tables"]

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)

_Int64s = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


def fix_tables(tables: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, _Int64s]]:
    """Fix a changelog that comes in pieces, holding back at most one row.

    Args:
        tables: Rows in input order; the last two columns are source offset and source operation (null: append).

    Yields:
        Rows without these two columns, and their operations; pieces without rows are left out.

    Raises:
        ValueError: Offsets do not increase, or an operation is unknown.
    """
    held: pa.Table | None = None
    last_offset = -1
    for table in tables:
        if not table.num_rows:
            continue
        offsets = _numbers(table.column(table.num_columns - 2))
        if offsets[0] <= last_offset or np.any(np.diff(offsets) <= 0):
            raise ValueError("rows are not in the order of the input")
        last_offset = int(offsets[-1])
        whole = table if held is None else pa.concat_tables([held, table])
        ends_open = _numbers(whole.column(whole.num_columns - 1))[-1] == CORRECT_FROM
        held = whole.slice(whole.num_rows - 1) if ends_open else None
        ready = whole.slice(0, whole.num_rows - 1) if ends_open else whole
        if ready.num_rows:
            yield from _fixed(ready)
    if held is not None:
        yield from _fixed(held)


def fix_operations(offsets: _Int64s, operations: _Int64s) -> tuple[_Int64s, _Int64s]:
    """Give surviving rows their operations.

    Args:
        offsets: Of the rows in the input, increasing.
        operations: Of the rows in the input.

    Returns:
        Operations of the output, and the positions of the first row of every pair that survived whole.

    Raises:
        ValueError: An operation is unknown.
    """
    if operations.size and (operations.min() < APPEND or operations.max() > CORRECT_TO):
        raise ValueError("an operation is not 0 to 3")
    is_pair = (operations[:-1] == CORRECT_FROM) & (operations[1:] == CORRECT_TO) & (offsets[1:] - offsets[:-1] == 1)
    first = np.flatnonzero(is_pair)
    fixed = operations.copy()
    fixed[operations == CORRECT_FROM] = RETRACT
    fixed[operations == CORRECT_TO] = APPEND
    fixed[first] = CORRECT_FROM
    fixed[first + 1] = CORRECT_TO
    return fixed, first


def _fixed(table: pa.Table) -> Iterator[tuple[pa.Table, _Int64s]]:
    width = table.num_columns
    offsets, operations = (_numbers(table.column(position)) for position in (width - 2, width - 1))
    rows = table.select(range(width - 2))
    fixed, pairs = fix_operations(offsets, operations)
    idle = pairs[_are_equal(rows.take(pairs), rows.take(pairs + 1))] if pairs.size else pairs
    if idle.size:
        stays = np.ones(rows.num_rows, dtype=np.bool_)
        stays[idle] = stays[idle + 1] = False
        rows, fixed = rows.filter(pa.array(stays)), fixed[stays]
    if rows.num_rows:
        yield rows, fixed


def _are_equal(left: pa.Table, right: pa.Table) -> _Bools:
    """Compare rows bit by bit: a null equals a null, and 0.0 does not equal -0.0."""
    equal = np.ones(left.num_rows, dtype=np.bool_)
    for ours, theirs in zip(left.columns, right.columns, strict=True):
        equal &= _are_cells_equal(ours.combine_chunks(), theirs.combine_chunks())
    return equal


def _are_cells_equal(left: pa.Array, right: pa.Array) -> _Bools:
    kind = left.type
    if pa.types.is_nested(kind):
        # Arrow does not compare lists; corrections are few, so Python may. Text tells -0.0 from 0.0 and NaN is one
        # word.
        return np.array([repr(a) == repr(b) for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True)])
    if pa.types.is_floating(kind):
        bits = pa.int64() if kind == pa.float64() else pa.int32()
        left, right = left.view(bits), right.view(bits)
    both_null = pc.and_(left.is_null(), right.is_null())
    found: _Bools = pc.or_(pc.fill_null(pc.equal(left, right), False), both_null).to_numpy(zero_copy_only=False)
    return found


def _numbers(column: pa.ChunkedArray) -> _Int64s:
    found: _Int64s = column.fill_null(0).cast(pa.int64()).to_numpy()
    return found
