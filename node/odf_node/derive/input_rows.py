"""The rows of one input of a step, as far as they are looked at to choose which of them the step is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odf_engines.contract import Watermark
from odf_node.ports.rows import EventTimes
from odf_protocol.events import DataSlice

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

Tables = Sequence["pa.Table | None"]

MOST_ROWS: Final = 8_388_608  # guess: a gigabyte where all texts are long, else some hundred megabytes
"""Rows that are looked at at once. Every node gives up at as many: what it chooses, others have to choose as well."""


@dataclass(frozen=True, slots=True)
class InputRows:
    """Slices of an input, and what finds out about their rows.

    Attributes:
        earlier: Slices with all rows before the step, oldest first; a bound may cut the last one.
        new: Slices with the rows of the step.
        watermarks: That blocks before the step stated, oldest first.
        event_times: Gives, of each of some slices, the event times of its rows; None: not known.
        read: Gives, of each of some slices, the columns of these names as ``read_times_beside`` does.
        read_newest: Gives, of each of some slices, its versions by these columns as ``find_newest`` does; None where
            the event time of one is not known, or its key.
    """

    earlier: Sequence[DataSlice]
    new: Sequence[DataSlice]
    watermarks: Sequence[Watermark]
    event_times: Callable[[Sequence[DataSlice]], Sequence[EventTimes | None]]
    read: Callable[[Sequence[DataSlice], Sequence[str]], Tables]
    read_newest: Callable[[Sequence[DataSlice], Sequence[str]], Tables]


def count_rows(slices: Sequence[DataSlice]) -> int:
    """Add up the rows of slices, as their blocks state them, which was compared with their files."""
    return sum(each.offset_interval.row_count for each in slices)


def number_alike(columns: "Sequence[pa.ChunkedArray]", rows: int) -> "npt.NDArray[np.int64]":
    """Number rows so that those that are equal in all columns, and only those, have the same number, from 0 on."""
    import numpy as np

    found = np.zeros(rows, dtype=np.int64)
    for column in columns if rows else ():
        codes = np.asarray(column.combine_chunks().dictionary_encode(null_encoding="encode").indices)
        found = np.unique(found * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    return found
