"""One pass over the rows of a slice: what a fingerprint states of each column. Runs in the sandbox of readers.

Columns are read one after the other, so that memory holds one. Values are sorted and counted: what comes out depends on
neither their order nor how a reader cuts them into batches.

Source: clauses FP-1, FP-4 and FP-8 in ``spec/plug-ins/fingerprints.md``.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from odf_engines.reading.slices import Source, iter_columns, open_slice
from odf_fingerprints.column_tallies import ColumnTally, Side
from odf_fingerprints.documents import MAX_COLUMNS, ColumnFingerprint, RowsFingerprint, SliceFingerprint
from odf_protocol.changelog_balance import are_taken
from odf_protocol.errors import UnsupportedError
from odf_protocol.hashing.reader_schema import reader_schema
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.schema_compat import describe_type
from odf_protocol.vocabulary import Vocabulary

_OPERATIONS: Final = 4
_MAX_TYPE: Final = 256
_Mask = npt.NDArray[np.bool_]


def summarise_slice(
    path: Source, vocabulary: Vocabulary, *, system_time_ms: int, shown: Collection[str] = ()
) -> SliceFingerprint:
    """Describe the rows of a slice that passed ``check_slice``.

    Args:
        path: The slice.
        vocabulary: Names of the system columns.
        system_time_ms: Of the block, in milliseconds since 1970.
        shown: Columns whose frequent values are stated.

    Raises:
        MalformedError: The file is no Parquet file.
        UnsupportedError: It has more columns than a fingerprint.
    """
    with open_slice(path) as file:
        arrow = file.schema_arrow
    texts = [each.name for each in arrow if pat.is_string(each.type) or pat.is_large_string(each.type)]
    with open_slice(path, as_dictionaries=texts) as file:
        operations = _read_operations(file, vocabulary.op)
        taken = are_taken(operations)
        counts = np.bincount(operations, minlength=_OPERATIONS).tolist()
        own = {vocabulary.offset, vocabulary.op, vocabulary.system_time}
        kinds = {
            field.name: describe_type(field.type)[:_MAX_TYPE]
            for field in data_schema_of(reader_schema(arrow, file.metadata.metadata)).fields
            if field.name not in own
        }
        if len(kinds) > MAX_COLUMNS:
            raise UnsupportedError("columns of a fingerprint", found=len(kinds), supported=f"at most {MAX_COLUMNS}")
        names = sorted(kinds, key=lambda name: name != vocabulary.event_time)  # which is stable: the rest in its order
        sides = {side: int(np.count_nonzero(taken == (side is Side.REMOVED))) for side in Side}
        columns: dict[Side, list[ColumnFingerprint]] = {side: [] for side in Side}
        times = dict.fromkeys(Side, (b"", b""))
        for name in names:
            at = system_time_ms if name == vocabulary.event_time else None
            tallies = {
                side: ColumnTally(name, kinds[name], side, rows, is_shown=name in shown, system_time_ms=at)
                for side, rows in sides.items()
            }
            _read_column(file, name, taken, tallies)
            for side, tally in tallies.items():
                columns[side].append(tally.finish())
                if at is not None:
                    times[side] = tally.finish_times()
    found = {
        side: RowsFingerprint(rows=rows, columns=tuple(columns[side]), days=times[side][0], delay=times[side][1])
        if rows
        else RowsFingerprint()
        for side, rows in sides.items()
    }
    append, retract, correct_from, correct_to = counts
    return SliceFingerprint(
        operations=(append, retract, correct_from, correct_to), added=found[Side.ADDED], removed=found[Side.REMOVED]
    )


def _read_operations(file: pq.ParquetFile, name: str) -> npt.NDArray[np.uint8]:
    parts = [np.asarray(batch.column(name)).astype(np.uint8) for batch in iter_columns(file, [name])]
    return np.concatenate([np.zeros(0, np.uint8), *parts])


def _read_column(file: pq.ParquetFile, name: str, taken: _Mask, tallies: Mapping[Side, ColumnTally]) -> None:
    for start, array in _iter_arrays(file, name):
        mask = taken[start : start + len(array)]
        if not mask.any():
            tallies[Side.ADDED].add(array)
            continue
        tallies[Side.REMOVED].add(array.filter(pa.array(mask)))
        tallies[Side.ADDED].add(array.filter(pa.array(~mask)))


def _iter_arrays(file: pq.ParquetFile, name: str) -> Iterator[tuple[int, pa.Array]]:
    start = 0
    for batch in iter_columns(file, [name]):
        yield start, batch.column(name)
        start += batch.num_rows
