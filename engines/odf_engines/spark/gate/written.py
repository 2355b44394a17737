"""What pins a query by the way it is written: functions called by name, and literals that name a time zone.

Source: clause GATE-17.
"""

import re
from collections.abc import Iterator

from odf_engines.contract import Finding
from odf_engines.spark.gate.functions import FUNCTIONS, FunctionUse
from odf_engines.spark.gate.statement import ParsedQuery

PIN = "pin the engine's digest"
ZONE = "it uses the table of time zones"

_QUOTED = re.compile(r"""(?s)['"](.*)['"]""")
_WORD = re.compile(r"[A-Za-z]{2,}")
_FIXED_ZONES = frozenset({"UTC", "GMT", "UT"})


def find_written(query: ParsedQuery) -> Iterator[Finding]:
    """Yield what is right only under one engine digest."""
    for name in sorted(query.functions):
        grade = FUNCTIONS[name]
        if grade.use is FunctionUse.PINNED:
            yield Finding(expression=name, reason=grade.reason, rewrite=PIN)
    for written in query.times:
        if (quoted := _QUOTED.search(written)) is None or names_a_zone(quoted[1]):
            yield Finding(expression=written, reason=ZONE, rewrite="the time in UTC, with Z at its end")


def names_a_zone(text: str) -> bool:
    """Whether the text of a time names a zone, whose offset a table says; escapes could hide one."""
    return "\\" in text or any(word.upper() not in _FIXED_ZONES for word in _WORD.findall(text))
