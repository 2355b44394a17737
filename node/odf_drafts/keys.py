"""Which columns tell rows apart: the fewest of which no two rows have the same values."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final

from odf_drafts.columns import DraftColumn

_WHOLE: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_MAX_COLUMNS: Final = 4
_MAX_CANDIDATES: Final = 10  # guess: 375 combinations of up to four; keys stand on the left
_IDENTIFYING: Final = (
    "id",
    "key",
    "code",
    "nr",
    "no",
    "number",
    "nummer",
    "uuid",
    "guid",
    "isin",
    "ean",
    "iso",
    "year",
    "jahr",
)
"""Last parts of names of whole-number columns that are no measurements.  # guess"""

_SIGNS: Final = ("n°", "nº", "№", "#")
"""First letters of such names."""

_MIN_COUNTED: Final = 10  # guess: so many measurements are in an order by chance once in millions of files


@dataclass(frozen=True, slots=True)
class Key:
    """Columns that tell rows apart.

    Attributes:
        names: Of the columns, as the dataset has them.
        is_only_one: No other set of as many would do as well.
        identifies: Each is called as what identifies, or counts, or says when: they hold for rows to come, too.
    """

    names: tuple[str, ...]
    is_only_one: bool
    identifies: bool = False


def find_key(columns: Sequence[DraftColumn], texts: Sequence[Sequence[str | None]]) -> Key | None:
    """Find the columns that tell all rows apart; None where none do, or there is no row.

    Measurements are no candidates, as they tell the rows of a small file apart by chance; nor is what some rows lack.

    Args:
        columns: Guessed.
        texts: Of each, one for each row.
    """
    count = len(texts[0]) if texts else 0
    if not count:
        return None
    is_id = {place for place, column in enumerate(columns) if _is_named_so(column.source)}
    if columns[0].type == "Int64" and _counts(texts[0]):
        is_id.add(0)  # whatever it is called, and in whatever language
    places = [place for place, column in enumerate(columns) if _can_identify(column, is_id=place in is_id)]
    places.sort(key=lambda place: place not in is_id)  # an id is tried before other columns
    codes = {place: _number(texts[place]) for place in places[:_MAX_CANDIDATES]}
    for size in range(1, _MAX_COLUMNS + 1):
        found = [
            chosen for chosen in combinations(codes, size) if _distinguishes([codes[each] for each in chosen], count)
        ]
        if found:
            # A time alone tells rows apart only until two things happen at once.
            best = min(found, key=lambda chosen: [columns[each].is_time for each in chosen]) if size == 1 else found[0]
            has_time = any(columns[each].is_time for each in best)
            identifies = has_time or all(each in is_id for each in best)
            return Key(tuple(columns[each].name for each in sorted(best)), len(found) == 1, identifies)
    return None


def _can_identify(column: DraftColumn, *, is_id: bool) -> bool:
    if column.has_nulls or column.is_mixed:
        return False
    return column.is_time or column.type == "String" or (column.type == "Int64" and is_id)


def _counts(texts: Sequence[str | None]) -> bool:
    """Say whether texts are whole numbers, each larger than the one before, or each smaller."""
    if len(texts) < _MIN_COUNTED or not all(text is not None and _WHOLE.fullmatch(text) for text in texts):
        return False
    numbers = [int(text) for text in texts if text is not None]
    steps = {(later > earlier) - (later < earlier) for earlier, later in pairwise(numbers)}
    return steps in ({1}, {-1})


def _is_named_so(name: str) -> bool:
    if name.lower().startswith(_SIGNS):
        return True
    last = name.lower().replace("-", "_").replace(" ", "_").rpartition("_")[2]
    return last in _IDENTIFYING or name.endswith(("Id", "ID"))


def _number(texts: Sequence[str | None]) -> tuple[list[int], int]:
    """Give equal texts equal numbers; return them and how many there are."""
    numbers: dict[str | None, int] = {}
    return [numbers.setdefault(text, len(numbers)) for text in texts], len(numbers)


def _distinguishes(codes: Sequence[tuple[list[int], int]], count: int) -> bool:
    most = 1
    for _, size in codes:
        most *= size
    # Where there are fewer combinations of values than rows, two rows have the same.
    return most >= count and len(set(zip(*(numbers for numbers, _ in codes), strict=True))) == count
