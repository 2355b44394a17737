"""Which rows before a step a query still needs, by their event time.

Source: WINDOW-10 and WINDOW-11 in ``spec/extensions/event-windows.md``, ASOF-10 in ``spec/extensions/as-of-joins.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Lookback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookback:
    """Which rows of an input before a step can count for it, by their event time (WINDOW-10, WINDOW-11, ASOF-10).

    What is *closed* before a step is the lowest, over the inputs of ``waits_for``, of the highest watermark that each
    stated before the step and its delay before that. Where one of them has stated none, every row can count.

    Attributes:
        waits_for: Delays of inputs in microseconds, by alias.
        behind_us: Rows that are older than what is closed by more than this do not count.
        meets_new: Rows of slices that overlap a new slice in event time count as well, whatever is closed.
        follows_us: Where a row counts, so does one that is older by no more than this, of any input that follows, and
            so on; None: no row counts because of another.
        alike: Columns in which the two are equal; none of them where several inputs follow.
    """

    waits_for: Mapping[str, int]
    behind_us: int
    meets_new: bool = False
    follows_us: int | None = None
    alike: tuple[str, ...] = ()
