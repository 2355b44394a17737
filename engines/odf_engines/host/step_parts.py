"""Which part of a step was at work when it reached a limit, as its engine told it by a file.

Source: clause ENGINE-16 in ``spec/extensions/engine-contract.md``.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from odf_engines.contract import TransformRequest
from odf_engines.errors import EngineError, LimitExceededError
from odf_engines.host.queries import steps_of
from odf_engines.validation.running_name import read_running
from odf_protocol.errors import shown

PARTS: Final = {
    "scan": "reading its inputs",
    "join": "a join",
    "aggregate": "a grouping of rows",
    "window": "a window function",
    "sort": "a sort",
    "compute": "computing columns or filters",
    "exchange": "an exchange of rows between tasks",
    "write": "writing its rows",
}
"""Parts of a step, and what people call them."""

_MAX_QUERIES: Final = 8  # guess: more are no help
_REPORTED: Final = re.compile(r"([a-z]+)((?: \d{1,6})*)")


def reported_part(part: str, queries: Sequence[int]) -> str:
    """Write a part of a step for ``name_part``.

    Args:
        part: One of ``PARTS``.
        queries: Numbers of those that have such a part, where there are several queries.
    """
    return " ".join([part, *map(str, queries[:_MAX_QUERIES])])


def name_part(request: TransformRequest, folder: Path, error: EngineError) -> EngineError:
    """Say of a limit at which part of the step it was reached, as far as the engine told it."""
    reported = _REPORTED.fullmatch(read_running(folder) or "")
    if not isinstance(error, LimitExceededError) or reported is None or reported[1] not in PARTS:
        return error
    names = [each.alias for each in steps_of(request.transform)]
    queries = [
        shown(names[number] or "the last query") for number in map(int, reported[2].split()) if number < len(names)
    ]
    where = PARTS[reported[1]] + (f" (as in {', '.join(queries)})" if queries else "")
    where = f"{error.where}: {where}" if error.where else where
    return LimitExceededError(error.limit, allowed=error.allowed, found=error.found, where=where)
