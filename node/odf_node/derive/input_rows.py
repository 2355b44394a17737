"""The rows of one input of a step, as far as they are looked at to choose which of them the step is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odf_node.ports.rows import EventTimes
from odf_protocol.events import DataSlice

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class InputRows:
    """Slices of an input, and what finds out about their rows.

    Attributes:
        earlier: Slices with all rows before the step, oldest first; a bound may cut the last one.
        new: Slices with the rows of the step.
        event_times: Gives, of each of some slices, the event times of its rows; None: not known.
        read: Gives the event times of all rows of some slices, in microseconds, as the last column of a table, behind
            columns with these names, as texts. None: not known.
    """

    earlier: Sequence[DataSlice]
    new: Sequence[DataSlice]
    event_times: Callable[[Sequence[DataSlice]], Sequence[EventTimes | None]]
    read: Callable[[Sequence[DataSlice], Sequence[str]], "pa.Table | None"]
