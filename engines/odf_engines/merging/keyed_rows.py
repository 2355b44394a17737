"""What becomes of rows with a primary key, found of rows and state in one order: by key, old before new.

Each batch is looked at with the row before it, all its rows at once: whether a row's key is that of the row before says
whether it is new, changed, equal, or one of several with its key.

Source: ODF "Merge strategies"; spec/ingest.md ING-9 to ING-11; ENGINE-16 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from odf_engines.ingest.columns import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odf_engines.merging.row_order import SIDE

UNREAD, OLD, NEW = range(-1, 2)
"""Values of ``SIDE``: a key that could not be taken, a row of the state, a new row."""

_STAYS: Final = "stays"

Mask = np.ndarray


@dataclass(frozen=True, slots=True)
class Decided:
    """What a batch of rows decided; of each row whether it is meant.

    Attributes:
        rows: All of them, in the order of their keys.
        operations: Of the changes among them.
        changed: Changes.
        kept: Rows of the new state.
        lost: New rows that have the key of another.
        unknown: New rows whose key is not in the state, all of a key.
        first: The first rows of their keys.
    """

    rows: pa.RecordBatch
    operations: pa.Array
    changed: Mask
    kept: Mask
    lost: Mask
    unknown: Mask
    first: Mask

    def take(self, chosen: Mask) -> pa.RecordBatch:
        """Give the rows that are meant."""
        return self.rows.filter(pa.array(chosen))


@dataclass(slots=True)
class KeyedRows:
    """Decides batches one after the other.

    Args:
        keys: Names of the columns of the key.
        compared: Names of the columns whose change is a change of the row.
        event_time: Name of the event time, of which a null is no change.
        op: Name of the column that says of a new row whether it retracts; None: none does.
        retracts_missing: Retract what is of the state and not new.
        keeps_all: But for that: nothing that is missing is known to be gone.

    Attributes:
        kept_count: Rows that are missing and stay, so far.
    """

    keys: tuple[str, ...]
    compared: tuple[str, ...]
    event_time: str
    op: str | None
    retracts_missing: bool
    keeps_all: bool = False
    kept_count: int = 0
    _last: pa.RecordBatch | None = None
    _is_known: bool = field(default=False)

    def iter_decided(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Decided]:
        """Decide rows with the columns ``SIDE``, ``ORD`` and those of the rows, ordered by key, side and ``ORD``."""
        for batch in batches:
            if batch.num_rows:
                yield self._decide(batch, is_end=False)
        if self._last is not None:
            yield self._decide(self._last.slice(0, 0), is_end=True)

    def _decide(self, batch: pa.RecordBatch, *, is_end: bool) -> Decided:
        """Decide a batch and the row before it; its own last row, if it is of the state, waits for what follows."""
        rows = batch if self._last is None else pa.concat_batches([self._last, batch])
        had = 0 if self._last is None else 1
        is_new = rows.column(SIDE).to_numpy(zero_copy_only=False).astype(bool)
        is_first = np.ones(rows.num_rows, bool)  # of its key
        is_first[1:] = ~self._all_same(rows, self.keys)
        if had:
            is_first[0] = True  # decided before; what it is, is carried
        # A key is known if the first row of it is of the state.
        starts = np.flatnonzero(is_first)
        known_starts = ~is_new[starts]
        if had:
            known_starts[0] = self._is_known
        is_known = np.repeat(known_starts, np.diff(np.append(starts, rows.num_rows)))
        own = np.ones(rows.num_rows, bool)
        own[:had] = False
        was_new = np.append(False, is_new[:-1])
        meets_old = is_new & ~is_first & ~was_new  # the new row that counts, and its old one stands before it
        is_alone = is_new & is_first & own
        next_meets = _before(meets_old)
        ended = np.ones(rows.num_rows, bool)
        if not is_end:
            ended[-1] = False
        left = ~is_new & ~next_meets & ended  # of the state, without a new row
        retracts = self._retracts(rows) if self.op is not None else np.zeros(rows.num_rows, bool)
        differs = np.append(False, self._differs(rows)) if rows.num_rows > 1 else np.zeros(rows.num_rows, bool)
        gone = meets_old & retracts
        changed = meets_old & ~retracts & differs
        equal = meets_old & ~retracts & ~differs
        appended = is_alone & ~retracts
        operations = np.full(rows.num_rows, -1, np.int32)
        operations[appended] = APPEND
        operations[changed] = CORRECT_TO
        operations[_before(changed)] = CORRECT_FROM
        operations[_before(gone)] = RETRACT
        if self.retracts_missing:
            stays = left & (self.keeps_all | np.asarray(rows.column(_STAYS).to_numpy(zero_copy_only=False), bool))
            operations[left & ~stays] = RETRACT
            self.kept_count += int(stays.sum())
            left = stays
        kept = appended | changed | _before(equal) | left
        self._last, self._is_known = rows.slice(rows.num_rows - 1), bool(is_known[-1])
        is_change = operations >= 0
        return Decided(
            rows,
            pa.array(operations[is_change]),
            is_change,
            kept,
            lost=own & is_new & ~is_alone & ~meets_old,
            unknown=own & is_new & ~is_known,
            first=own & is_first,
        )

    def _retracts(self, rows: pa.RecordBatch) -> Mask:
        assert self.op is not None
        return np.asarray(pc.fill_null(pc.equal(rows.column(self.op), RETRACT), False))

    def _all_same(self, rows: pa.RecordBatch, names: tuple[str, ...]) -> Mask:
        same = np.ones(max(rows.num_rows - 1, 0), bool)
        for name in names:
            column = rows.column(name)
            same &= _same(column.slice(0, len(column) - 1), column.slice(1))
        return same

    def _differs(self, rows: pa.RecordBatch) -> Mask:
        """Say of each row but the first whether it differs from the one before."""
        differs = np.zeros(rows.num_rows - 1, bool)
        for name in self.compared:
            column = rows.column(name)
            old, new = column.slice(0, len(column) - 1), column.slice(1)
            changes = ~_same(old, new)
            # A source that does not know when something happened does not say that it happened at another time.
            if name == self.event_time:
                changes &= np.asarray(pc.is_valid(new))
            differs |= changes
        return differs


def iter_marked(batches: Iterable[pa.RecordBatch], keys: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Leave out the keys that could not be taken, and mark the rows of the state that have one of them.

    They stand just before these: rows are ordered by key and then by ``SIDE``.
    """
    last: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = batch if last is None else pa.concat_batches([last, batch])
        had = 0 if last is None else 1
        side = rows.column(SIDE).to_numpy(zero_copy_only=False)
        stays = np.zeros(rows.num_rows, bool)
        stays[1:] = (side[:-1] == UNREAD) & (side[1:] == 0)
        for name in keys if stays.any() else ():
            column = rows.column(name)
            stays[1:] &= _same(column.slice(0, len(column) - 1), column.slice(1))
        is_row = side != UNREAD
        is_row[:had] = False
        last = rows.slice(rows.num_rows - 1)
        yield rows.append_column(_STAYS, pa.array(stays)).filter(pa.array(is_row))


def _before(chosen: Mask) -> Mask:
    """Choose the rows before those that are chosen: the old ones of pairs."""
    return np.append(chosen[1:], False)


def _same(one: pa.Array, other: pa.Array) -> Mask:
    """Say where two columns are equal: null to null, what is no number to what is none, and so inside of values."""
    if pa.types.is_struct(one.type):
        same = np.ones(len(one), bool)
        for mine, others in zip(one.flatten(), other.flatten(), strict=True):
            same &= _same(mine, others)
    elif pa.types.is_list(one.type):
        same = _same_lists(one, other)
    else:
        equal = pc.fill_null(pc.equal(one, other), False)
        if pa.types.is_floating(one.type):
            equal = pc.or_(equal, pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False))
        same = np.array(equal)
    if one.null_count or other.null_count:
        nulls, other_nulls = np.asarray(one.is_null()), np.asarray(other.is_null())
        same = (same & ~nulls & ~other_nulls) | (nulls & other_nulls)
    return same


def _same_lists(one: pa.ListArray, other: pa.ListArray) -> Mask:
    same: Mask
    lengths, others = (np.asarray(pc.fill_null(pc.list_value_length(each), -1)) for each in (one, other))
    same = lengths == others
    chosen = pa.array(same & (lengths > 0))
    items = ~_same(one.filter(chosen).flatten(), other.filter(chosen).flatten())
    owners = np.repeat(np.flatnonzero(chosen), lengths[np.asarray(chosen)])
    same[owners[items]] = False
    return same


class KeptRows:
    """A file of batches, written within a ``with`` and read afterwards.

    Args:
        path: Of a file that is not there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pa.ipc.RecordBatchFileWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_stream(str(self._path), batch.schema, options=options)
        if batch.num_rows:
            self._writer.write_batch(batch)

    def iter_batches(self) -> Iterator[pa.RecordBatch]:
        """Give them back."""
        if self._path.exists():
            with pa.ipc.open_stream(str(self._path)) as reader:
                yield from reader
