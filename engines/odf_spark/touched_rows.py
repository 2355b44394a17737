"""The rows of a large input that a step of a maintained view looks at: those that meet rows which it brings.

A query may say that rows which differ in some columns never meet (``group_columns``). Then what is made of rows unlike
any that a step brings is the same before and after it, and both results are computed without them. The others are
found here, in one pass by Arrow that counts all rows meanwhile, and written to a file that stands for the input then.

Rows that take and are taken are alike, so both are in that file or neither. Where values have several forms (0.0 and
-0.0, NaN) any form is like any other, as it is to the query.

Source: clause VIEW-13 in ``spec/extensions/maintained-views.md``.
"""

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.contract import TransformInput, TransformRequest
from odf_protocol.comparison_form import in_comparison_form
from odf_protocol.errors import UnsupportedError
from odf_spark.chunks import compute_ahead, fit_in_memory
from odf_spark.folded_rows import data_schema, slices_upto, take_rows
from odf_spark.known_transforms import KnownView
from odf_spark.small_inputs import RowsRead, Work, columns_read, may_be_small

_MAX_BROUGHT: Final = 0.25  # guess: of the bytes; where more come, most groups may be touched
_MAX_BROUGHT_BYTES: Final = 16 * 1024 * 1024  # guess: of files, whose values are held in memory
_MAX_TOUCHED: Final = 0.25  # guess: of the rows; beyond, Spark is as fast over all of them
_SAMPLED: Final = 8  # guess: row groups, of a hundred thousand rows each
_MAX_UNSAMPLED: Final = 2 * _SAMPLED  # fewer are read at once
_AT_ONCE: Final = min(4, os.cpu_count() or 1)  # guess: row groups, each of some megabytes
_MAX_NUMBERED: Final = 2**62  # combinations of values; their numbers are signed and have 64 bits


@dataclass(frozen=True, slots=True)
class _Touched:
    """Combinations of values that the rows of a step have.

    Attributes:
        values: That each column has.
        numbers: Of the combinations, see ``_number``.
    """

    values: Mapping[str, pa.Array]
    numbers: pa.Array

    def choose(self, rows: pa.Table) -> pa.ChunkedArray:
        """Say which rows have one of them."""
        return pc.is_in(_number(rows, self.values), self.numbers)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of the file of touched rows.

    Attributes:
        kept: All of them.
        reported: By which rows are chosen, with offset and operation.
        wanted: Of the others, those that are read; the rest are null.
    """

    kept: pa.Schema
    reported: pa.Schema
    wanted: frozenset[str]


def keep_touched(request: TransformRequest, known: KnownView, work: Work) -> TransformRequest:
    """Return a request that gives what this one does, over those rows of a large input that its step touches.

    Args:
        request: With the earlier slices of all inputs.
        known: The view.
        work: Of this request, which knows afterwards what was read.

    Returns:
        The request as it is where more than one input changed, or it is not known which rows are touched, or these
        would be most.
    """
    changed = [each for each in request.inputs if each.offset_interval is not None]
    if len(changed) != 1 or any(each.prev_schema not in (None, each.schema) for each in request.inputs):
        return request
    (source,) = changed
    columns = known.query.group_columns.get(source.alias)
    # In which order the rows of a join come may follow from the sizes of its sides.
    if columns is None or (known.depends_on_order and len(request.inputs) > 1) or not _is_worth_it(source):
        return request
    target = work.folder / "touched.parquet"
    try:
        read = _write_touched(target, source, columns.names, None if known.depends_on_order else columns.read, work)
    except (UnsupportedError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return request  # Spark says what is wrong with it, or reads it all the same
    if read is None:
        return request
    assert source.offset_interval is not None
    work.read[source.alias, source.offset_interval.end] = read
    touched = replace(source, earlier_slices=(target,), slices=(target,))
    return replace(request, inputs=tuple(touched if each is source else each for each in request.inputs))


def _is_worth_it(source: TransformInput) -> bool:
    if source.prev_offset is None or may_be_small(source.earlier_slices, data_schema(source.schema, source.vocabulary)):
        return False
    earlier_bytes = sum(path.stat().st_size for path in source.earlier_slices)
    new_bytes = sum(path.stat().st_size for path in source.slices)
    # A row group is held in memory whole.
    is_little = new_bytes <= min(_MAX_BROUGHT * earlier_bytes, _MAX_BROUGHT_BYTES)
    return is_little and fit_in_memory((*source.earlier_slices, *source.slices))


def _write_touched(
    target: Path, source: TransformInput, names: Sequence[str], looked_at: frozenset[str] | None, work: Work
) -> RowsRead | None:
    """Write the rows that a step touches, in the order of their offsets, with offset and operation.

    Args:
        target: File that does not exist yet.
        source: The input.
        names: Columns in which rows are alike that meet.
        looked_at: Columns that the query looks at, None for all. Others are needed to tell which rows are taken.
        work: Of this request.

    Returns:
        What was read. None: too many rows are touched.
    """
    assert source.offset_interval is not None
    offset, op, last = source.vocabulary.offset, source.vocabulary.op, source.offset_interval.end
    kept = columns_read(data_schema(source.schema, source.vocabulary), source.vocabulary)
    reported = pa.schema(
        each for each in kept if each.name in {offset, op} or (each.name in names and not pa.types.is_nested(each.type))
    )
    slices = slices_upto(source, last)
    if looked_at is None or take_rows(slices, op):
        looked_at = frozenset(kept.names)
    touched = _find_touched(source, reported)
    if touched is None:
        return None
    groups = [(path, group) for path in slices for group in range(pq.read_metadata(path).num_row_groups)]
    if len(groups) > _MAX_UNSAMPLED and _seem_max(groups[:: len(groups) // _SAMPLED], reported, touched):
        return None
    most = _MAX_TOUCHED * sum(pq.read_metadata(path).num_rows for path in slices)
    choose = partial(_choose, columns=_Columns(kept, reported, looked_at), offset=offset, last=last, touched=touched)
    rows = written = 0
    ends: list[int] = []
    with pq.ParquetWriter(target, kept) as writer:
        for offsets, chosen in compute_ahead((partial(choose, *each) for each in groups), _AT_ONCE):
            rows += len(offsets)
            ends += [each for each in pc.min_max(offsets).as_py().values() if each is not None]
            written += chosen.num_rows
            if written > most:
                return None
            if chosen.num_rows:
                writer.write_table(chosen)
    if may_be_small([target], data_schema(source.schema, source.vocabulary)):
        work.keep(target, pq.read_table(target))
    return {"rows": rows, "first": min(ends, default=None), "last": max(ends, default=None)}


def _seem_max(groups: Sequence[tuple[Path, int]], reported: pa.Schema, touched: _Touched) -> bool:
    """Say whether too many rows of some row groups are touched, which is known after a few and true of most steps."""
    rows = found = 0
    for path, group in groups:
        with pq.ParquetFile(path) as file:
            chosen = touched.choose(_read(file, group, reported, [*touched.values]))
        rows, found = rows + len(chosen), found + (pc.sum(chosen).as_py() or 0)
    return found > _MAX_TOUCHED * rows


def _choose(
    path: Path, group: int, *, columns: _Columns, offset: str, last: int, touched: _Touched
) -> tuple[pa.ChunkedArray, pa.Table]:
    """Read a row group: return the offsets of its rows up to the last of a step, and those of them that it touches."""
    with pq.ParquetFile(path) as file:
        found = _read(file, group, columns.reported, columns.reported.names)
        is_read = pc.less_equal(found.column(offset), last)
        chosen = pc.and_(is_read, touched.choose(found))
        offsets = found.column(offset).filter(is_read)
        if not pc.any(chosen).as_py():
            return offsets, columns.kept.empty_table()
        others = _read(file, group, columns.kept, columns.wanted - {*columns.reported.names})
    whole = [
        (found if each in columns.reported.names else others).column(each).filter(chosen) for each in columns.kept.names
    ]
    return offsets, pa.Table.from_arrays(whole, schema=columns.kept)


def _find_touched(source: TransformInput, reported: pa.Schema) -> _Touched | None:
    """Find the values that rows of the step have; None where no column of theirs can be compared here."""
    assert source.offset_interval is not None
    first, last = source.offset_interval.start, source.offset_interval.end
    brought = pa.concat_tables(_read_all(path, reported) for path in source.slices)
    offsets = brought.column(source.vocabulary.offset)
    brought = brought.filter(pc.and_(pc.greater_equal(offsets, first), pc.less_equal(offsets, last)))
    values: dict[str, pa.Array] = {}
    log = {source.vocabulary.offset, source.vocabulary.op}
    for name in (each for each in reported.names if each not in log):
        known = pc.unique(in_comparison_form(brought.column(name)))
        # Rows that are alike in fewer columns are more, which does no harm.
        if math.prod(map(len, values.values())) * len(known) <= _MAX_NUMBERED:
            values[name] = known
    return _Touched(values, pc.unique(_number(brought, values))) if values else None


def _number(rows: pa.Table, values: Mapping[str, pa.Array]) -> pa.ChunkedArray:
    """Number the combinations of values of rows; a row with a value that is not known has none."""
    numbers = None
    for name, known in values.items():
        found = pc.index_in(in_comparison_form(rows.column(name)), known).cast(pa.int64())
        numbers = found if numbers is None else pc.add(pc.multiply(numbers, len(known)), found)
    return numbers


def _read_all(path: Path, columns: pa.Schema) -> pa.Table:
    with pq.ParquetFile(path) as file:
        return pa.concat_tables([_read(file, group, columns, columns.names) for group in range(file.num_row_groups)])


def _read(file: pq.ParquetFile, group: int, columns: pa.Schema, wanted: Collection[str]) -> pa.Table:
    """Read columns of a row group; one that is not wanted is null, as is one that came into the schema later."""
    stored = [each for each in columns.names if each in wanted and each in file.schema_arrow.names]
    rows = file.read_row_group(group, columns=stored)
    nothing = (pa.nulls(file.metadata.row_group(group).num_rows, each.type) for each in columns)
    given = (
        rows.column(each.name).cast(each.type) if each.name in stored else nulls
        for each, nulls in zip(columns, nothing, strict=True)
    )
    return pa.Table.from_arrays(list(given), schema=columns)
