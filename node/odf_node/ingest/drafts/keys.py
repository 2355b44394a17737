"""Which columns tell rows apart: the fewest of which no two rows have the same values."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from odf_node.ingest.drafts.columns import Column

_MOST_COLUMNS: Final = 4
_MOST_CANDIDATES: Final = 10  # guess: 375 combinations of up to four; keys stand on the left
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


@dataclass(frozen=True, slots=True)
class Key:
    """Names of the columns, as the dataset has them; and whether other sets of as many would do as well."""

    names: tuple[str, ...]
    is_only_one: bool


def find_key(columns: Sequence[Column], texts: Sequence[Sequence[str | None]]) -> Key | None:
    """Find the columns that tell all rows apart; None where none do, or there is no row.

    Measurements are no candidates, as they tell the rows of a small file apart by chance; nor is what some rows lack.

    Args:
        columns: Guessed.
        texts: Of each, one for each row.
    """
    count = len(texts[0]) if texts else 0
    if not count:
        return None
    places = [place for place, column in enumerate(columns) if _can_identify(column)]
    places.sort(key=lambda place: not _is_named_so(columns[place].source))  # an id is tried before other columns
    codes = {place: _number(texts[place]) for place in places[:_MOST_CANDIDATES]}
    for size in range(1, _MOST_COLUMNS + 1):
        found = [
            chosen for chosen in combinations(codes, size) if _tells_apart([codes[each] for each in chosen], count)
        ]
        if found:
            # A time alone tells rows apart only until two things happen at once.
            best = min(found, key=lambda chosen: [columns[each].is_time for each in chosen]) if size == 1 else found[0]
            return Key(tuple(columns[each].name for each in sorted(best)), len(found) == 1)
    return None


def _can_identify(column: Column) -> bool:
    if column.has_nulls or column.is_mixed:
        return False
    return column.is_time or column.type == "String" or (column.type == "Int64" and _is_named_so(column.source))


def _is_named_so(name: str) -> bool:
    last = name.lower().replace("-", "_").replace(" ", "_").rpartition("_")[2]
    return last in _IDENTIFYING or name.endswith(("Id", "ID"))


def _number(texts: Sequence[str | None]) -> tuple[list[int], int]:
    """Give equal texts equal numbers; return them and how many there are."""
    numbers: dict[str | None, int] = {}
    return [numbers.setdefault(text, len(numbers)) for text in texts], len(numbers)


def _tells_apart(codes: Sequence[tuple[list[int], int]], count: int) -> bool:
    most = 1
    for _, size in codes:
        most *= size
    # Where there are fewer combinations of values than rows, two rows have the same.
    return most >= count and len(set(zip(*(numbers for numbers, _ in codes), strict=True))) == count
