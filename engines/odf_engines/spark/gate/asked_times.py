"""Taking ``FOR SYSTEM_TIME AS OF a.column`` out of the text of a query: Spark's parser takes fixed times only.

The table gets a name that no query can write, under which its time is remembered; the parsed plan is put right by
``temporal_joins``. Quoted text and comments stay as they are.

Source: clause ASOF-1 in ``spec/extensions/as-of-joins.md``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from odf_engines.host.query_names import OPAQUE

_NAME = r"(?:[A-Za-z_]\w*|`(?:[^`]|``)+`)"
_TRAVEL = rf"""
    (?P<table>{_NAME}) \s+ (?:FOR\s+)? (?:SYSTEM_TIME|TIMESTAMP) \s+ AS \s+ OF \s+
    (?P<time>{_NAME}(?:\s*\.\s*{_NAME})*) (?![\w.]) (?!\s*['"(+*/-])
"""
_TOKEN = re.compile(rf"{_TRAVEL} | {OPAQUE} | [A-Za-z_]\w*", re.VERBOSE | re.DOTALL | re.IGNORECASE)
_PART = re.compile(_NAME)


@dataclass(frozen=True, slots=True)
class AskedTime:
    """A table, and the parts of the name of the column as of which it is asked."""

    table: str
    time: tuple[str, ...]


def take_times(sql: str) -> tuple[str, Mapping[str, AskedTime]]:
    """Return a query without its times, and what stands in it for a table as of a time."""
    asked: dict[str, AskedTime] = {}

    def take(found: re.Match[str]) -> str:
        if not found["table"]:
            return found[0]
        name = f"\0{len(asked)}"
        parts = tuple(map(_plain, _PART.findall(found["time"])))
        asked[name] = AskedTime(_plain(found["table"]), parts)
        return f"`{name}`"

    return _TOKEN.sub(take, sql), asked


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
