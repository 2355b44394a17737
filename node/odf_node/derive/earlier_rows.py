"""Which slices before a step its query needs, by the event times of their rows.

An engine says of a query which rows can still count (``Lookback``); here that becomes a list of slices, so that others
are neither looked for nor read. What decides are rows that this node had checked, and watermarks of the inputs' chains,
so every node chooses the same slices of the same chains.

Source: WINDOW-10 and 11 in ``spec/extensions/event-windows.md``, ASOF-10 and 11 in ``spec/extensions/as-of-joins.md``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from odf_engines.contract import Lookback, Watermark
from odf_node.derive.input_rows import InputRows
from odf_node.derive.open_sessions import find_open_since
from odf_node.derive.versions_in_force import find_in_force
from odf_protocol.events import DataSlice
from odf_protocol.timestamp import Timestamp

_PER_MS = 1000


@dataclass(frozen=True)
class EarlierRows:
    """Chooses among the slices of the inputs of a step.

    Attributes:
        lookbacks: Of the query, by alias.
        reached: The highest watermark that each input stated before the step, by alias.
        inputs: By alias.
    """

    lookbacks: Mapping[str, Lookback]
    reached: Mapping[str, Timestamp | None]
    inputs: Mapping[str, InputRows]

    def choose(self, alias: str) -> list[DataSlice]:
        """Leave out the slices of an input before a step none of whose rows can count for it."""
        rows, lookback = self.inputs[alias], self.lookbacks.get(alias)
        if lookback is None:
            return list(rows.earlier)
        since_us = self._since_us(lookback) if lookback.follows_us is None else self.open_since_us
        for asking in lookback.asked_by if since_us is not None else ():
            since_us = self._since_asked(since_us, self.inputs[asking])
        if since_us is None:
            return list(rows.earlier)
        if lookback.newest_by is not None:
            return find_in_force(since_us, rows, lookback.newest_by)
        met = rows.event_times(rows.new) if lookback.meets_new else ()
        if None in met:
            return list(rows.earlier)
        times = [each for each in met if each is not None]
        cut = {each.physical_hash for each in rows.new}
        return [
            each
            for each, found in zip(rows.earlier, rows.event_times(rows.earlier), strict=True)
            if found is None
            or found.last_us >= since_us
            or each.physical_hash in cut
            or any(one.first_us <= found.last_us and found.first_us <= one.last_us for one in times)
        ]

    def get_since_us(self, alias: str) -> int | None:
        """Return from which event time on rows count whatever stands beside them; None: the query says."""
        lookback = self.lookbacks.get(alias)
        return self.open_since_us if lookback is not None and lookback.follows_us is not None else None

    @cached_property
    def open_since_us(self) -> int | None:
        """When the first row of the oldest open session happened, in microseconds since 1970; None: all rows count."""
        following = {
            alias: each
            for alias, each in self.lookbacks.items()
            if each.follows_us is not None and each.newest_by is None
        }
        for lookback in following.values():  # which are alike, but for the columns, of which there are none for several
            since_us = self._since_us(lookback)
            if since_us is None or lookback.follows_us is None:
                return None
            inputs = [self.inputs[alias] for alias in following]
            return find_open_since(since_us, lookback.follows_us, inputs, lookback.alike)
        return None

    def _since_asked(self, since_us: int | None, asking: InputRows) -> int | None:
        """Return from which event time on versions are asked, by new rows too; None: from any."""
        times = asking.event_times(asking.new)
        if since_us is None or None in times:
            return None
        return min(since_us, *(each.first_us for each in times if each is not None), since_us)

    def _since_us(self, lookback: Lookback) -> int | None:
        """Return from which event time on rows count, in microseconds since 1970; None: all do."""
        closed = []
        for alias, delay_us in lookback.waits_for.items():
            reached = self.reached.get(alias)
            if reached is None:
                return None
            closed.append(reached.unix_ms * _PER_MS - delay_us)
        return min(closed) - lookback.behind_us if closed else None


def needed_watermarks(stated: Sequence[Watermark], kept: Sequence[DataSlice]) -> tuple[Watermark, ...]:
    """Leave out watermarks that say no more of the rows that were kept: before these, only the highest counts."""
    first = kept[0].offset_interval.start if kept else None
    before = [each for each in stated if first is None or each.last_offset is None or each.last_offset < first]
    if len(before) < 2:
        return tuple(stated)
    highest = max(before, key=lambda each: each.event_time)
    return (highest, *stated[len(before) :])
