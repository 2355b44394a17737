"""A result without an event time: which of its columns could be it, and what its query would say instead.

Source: clauses GATE-8 and GATE-18 in ``spec/extensions/engine-contract.md``.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_engines.host.queries import OPAQUE, steps_of
from odf_protocol.events import TransformSql

_PARTS: Final = re.compile(
    rf"(?P<opaque>{OPAQUE})|(?P<open>\()|(?P<close>\))|\bSELECT(?:\s+(?:DISTINCT|ALL))?\b",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_PLAIN: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MAX_INPUTS: Final = 2  # guess: each costs two more looks at the query


@dataclass(frozen=True, slots=True)
class AbsentEventTime:
    """What a result without an event time has.

    Attributes:
        name: That is missing.
        columns: Of the result.
        times: Those of them that are dates or timestamps.
    """

    name: str
    columns: tuple[str, ...]
    times: tuple[str, ...]

    @property
    def message(self) -> str:
        """Say it, and what would do."""
        found = ", ".join(self.columns)
        return f"the result has no event time, a date or timestamp called {self.name}; it has {found}; {self.ways_out}"

    @property
    def ways_out(self) -> str:
        """What would do, whatever the query is."""
        name = self.name
        if self.times:
            first = self.times[0]
            return f"select {first} AS {name}, or declare it in the manifest: SetVocab with 'eventTimeColumn: {first}'"
        return f"select a date or timestamp AS {name}, for a group max({name}) AS {name}"


class NoEventTimeError(InvalidQueryError):
    """Raised where a query is looked at; ``absent`` says what it gives."""

    def __init__(self, name: str, columns: Sequence[str], times: Sequence[str]) -> None:
        self.absent = AbsentEventTime(name, tuple(columns), tuple(times))
        super().__init__(self.absent.message)


def suggest_query(
    transform: TransformSql, inputs: Mapping[str, str], name: str, look_at: Callable[[TransformSql], object]
) -> str | None:
    """Return the last query of a transform as it would pass, with an event time of an input's; None: none is known.

    Args:
        transform: Whose result has no event time.
        inputs: The event time of each by alias.
        name: What it is to be called.
        look_at: Takes a transform through the gate, and raises the gate's rejections.
    """
    *before, last = steps_of(transform)
    for column in _iter_columns(inputs, name):
        query = insert_column(last.query, column)
        if query is None:
            return None
        try:
            look_at(replace(transform, query=None, queries=(*before, replace(last, query=query))))
        except (InvalidQueryError, NotReproducibleError):
            continue
        return " ".join(query.split())
    return None


def _iter_columns(inputs: Mapping[str, str], name: str) -> Iterator[str]:
    for alias, time in [*inputs.items()][:_MAX_INPUTS]:
        if not (_PLAIN.fullmatch(alias) and _PLAIN.fullmatch(time) and _PLAIN.fullmatch(name)):
            continue
        for column in (time, f"{alias}.{time}") if len(inputs) > 1 else (time,):
            yield column if time == name else f"{column} AS {name}"
            yield f"max({column}) AS {name}"


def insert_column(sql: str, column: str) -> str | None:
    """Put a column first in the list of the outermost SELECT of a query; None where there is none."""
    depth = 0
    for part in _PARTS.finditer(sql):
        if part["open"]:
            depth += 1
        elif part["close"]:
            depth -= 1
        elif not part["opaque"] and not depth:
            return f"{sql[: part.end()]} {column},{sql[part.end() :]}"
    return None
