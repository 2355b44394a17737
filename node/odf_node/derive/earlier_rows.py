"""Which slices before a step its query needs, by the event times of their rows.

An engine says of a query which rows can still count (``Lookback``); here that becomes a list of slices, so that others
are neither looked for nor read. What decides are event times that this node found in rows which it had checked, and
watermarks of the inputs' chains, so every node chooses the same slices of the same chains.

Source: WINDOW-10 in ``spec/extensions/event-windows.md``, ASOF-10 in ``spec/extensions/as-of-joins.md``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from odf_engines.contract import Lookback, Watermark
from odf_node.ports.rows import EventTimes
from odf_protocol.events import DataSlice
from odf_protocol.timestamp import Timestamp

_PER_MS = 1000


@dataclass(frozen=True, slots=True)
class EarlierRows:
    """Chooses among the slices of one input.

    Attributes:
        lookback: Of the query.
        reached: The highest watermark that each input stated before the step, by alias.
        event_times: Gives, of each of some slices, the event times of its rows; None: not known.
    """

    lookback: Lookback
    reached: Mapping[str, Timestamp | None]
    event_times: Callable[[Sequence[DataSlice]], Sequence[EventTimes | None]]

    def choose(self, earlier: Sequence[DataSlice], new: Sequence[DataSlice]) -> list[DataSlice]:
        """Leave out the slices before a step none of whose rows can count for it.

        Args:
            earlier: With all rows before the step, oldest first; a bound may cut the last one.
            new: With the rows of the step.
        """
        since_us = self._since_us()
        if since_us is None:
            return list(earlier)
        met = self.event_times(new) if self.lookback.meets_new else ()
        if None in met:
            return list(earlier)
        times = [each for each in met if each is not None]
        cut = {each.physical_hash for each in new}
        return [
            each
            for each, found in zip(earlier, self.event_times(earlier), strict=True)
            if found is None
            or found.last_us >= since_us
            or each.physical_hash in cut
            or any(one.first_us <= found.last_us and found.first_us <= one.last_us for one in times)
        ]

    def _since_us(self) -> int | None:
        """Return from which event time on rows count, in microseconds since 1970; None: all do."""
        closed = []
        for alias, delay_us in self.lookback.waits_for.items():
            reached = self.reached.get(alias)
            if reached is None:
                return None
            closed.append(reached.unix_ms * _PER_MS - delay_us)
        return min(closed) - self.lookback.behind_us if closed else None


def needed_watermarks(stated: Sequence[Watermark], kept: Sequence[DataSlice]) -> tuple[Watermark, ...]:
    """Leave out watermarks that say no more of the rows that were kept: before these, only the highest counts."""
    first = kept[0].offset_interval.start if kept else None
    before = [each for each in stated if first is None or each.last_offset is None or each.last_offset < first]
    if len(before) < 2:
        return tuple(stated)
    highest = max(before, key=lambda each: each.event_time)
    return (highest, *stated[len(before) :])
