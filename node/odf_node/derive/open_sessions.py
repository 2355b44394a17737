"""From when on rows before a step count for its sessions: since the first row of the oldest one that is still open.

Slices are read from the newest one backwards, no further than open sessions reach, so what this takes does not grow
with the history. Rows that are late, taken or filtered out are looked at as if they counted: they can only join what is
apart.

Source: WINDOW-11 in ``spec/extensions/event-windows.md``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odf_node.derive.input_rows import MOST_ROWS, InputRows, count_rows, number_alike

if TYPE_CHECKING:
    import pyarrow as pa


def find_open_since(since_us: int, follows_us: int, inputs: Sequence[InputRows], alike: Sequence[str]) -> int | None:
    """Return when the first of the rows happened from which others lead, each soon after the one before, to a time.

    Args:
        since_us: That time; what is returned is not after it.
        follows_us: What is soon.
        inputs: Whose rows before the step follow one another.
        alike: Columns in which rows are equal that do.

    Returns:
        Microseconds since 1970; None where some row has no event time, or too many would be looked at.
    """
    spans = [[*zip(each.earlier, each.event_times(each.earlier), strict=True)] for each in inputs]
    firsts = [None if span is None else span.first_us for found in spans for _, span in found]
    if None in firsts:
        return None
    least_us = min((each for each in firsts if each is not None), default=since_us)
    from_us = since_us
    while True:
        near = [[data for data, span in found if span is not None and span.last_us >= from_us] for found in spans]
        if sum(map(count_rows, near)) > MOST_ROWS:
            return None
        tables = [each for source, some in zip(inputs, near, strict=True) for each in source.read(some, alike)]
        known = [each for each in tables if each is not None]
        if len(known) < len(tables):
            return None
        first_us = _first_that_leads_to(since_us, follows_us, known)
        if first_us - follows_us >= from_us or from_us <= least_us:
            return first_us
        # Twice as far back each time, so that in a long session no row is read more often than its length says.
        from_us = min(first_us - follows_us, since_us - 2 * (since_us - from_us))


def _first_that_leads_to(since_us: int, follows_us: int, tables: "Sequence[pa.Table]") -> int:
    import numpy as np
    import pyarrow as pa

    if not tables:
        return since_us
    # A column that does not tell rows apart in one slice is left out in all.
    told = [name for name in tables[0].column_names if all(name in each.column_names for each in tables)]
    *columns, times = pa.concat_tables(each.select(told) for each in tables).columns
    times_us = np.asarray(times)
    kinds = number_alike(columns, len(times_us))
    order = np.lexsort((times_us, kinds))
    kinds, times_us = kinds[order], times_us[order]
    is_first = np.append(True, (np.diff(kinds) != 0) | (np.diff(times_us) > follows_us))
    firsts_us = times_us[is_first]
    lasts_us = times_us[np.append(is_first[1:], True)]
    return int(firsts_us[lasts_us >= since_us].min(initial=since_us))
