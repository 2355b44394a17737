"""Which rows before a step a query still needs, by their event time.

Source: WINDOW-10 and WINDOW-11 in ``spec/extensions/event-windows.md``, ASOF-10 and ASOF-11 in
``spec/extensions/as-of-joins.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookback:
    """Which rows of an input before a step can count for it, by their event time (WINDOW-10 and 11, ASOF-10 and 11).

    What is *closed* before a step is the lowest, over the inputs of ``waits_for``, of the highest watermark that each
    stated before the step and its delay before that. Where one of them has stated none, every row can count.

    Attributes:
        waits_for: Delays of inputs in microseconds, by alias.
        behind_us: Rows that are older than what is closed by more than this do not count.
        meets_new: Rows of slices that overlap a new slice in event time count as well, whatever is closed.
        follows_us: Where a row counts, so does one that is older by no more than this, of any input that follows, and
            so on; None: no row counts because of another.
        alike: Columns in which the two are equal; none of them where several inputs follow.
        newest_by: Columns of its key, where rows are versions: of each key, and of what is older than the others that
            count, the newest one counts as well. None: they are no versions.
        asked_by: Inputs whose new rows ask for versions: of the time of the oldest of them, where that is earlier.
    """

    waits_for: Mapping[str, int]
    behind_us: int
    meets_new: bool = False
    follows_us: int | None = None
    alike: tuple[str, ...] = ()
    newest_by: tuple[str, ...] | None = None
    asked_by: tuple[str, ...] = ()
