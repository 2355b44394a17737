"""What ``odf-node status`` names, and what a plug-in of the group ``odf_node.status`` is, which adds to it.

Source: clause PLUG-11 in ``spec/plug-ins.md``.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from odf_node.home import Home
from odf_node.plug_ins import contained, load_plug_ins

GROUP: Final = "odf_node.status"


class Condition(StrEnum):
    """What is the matter, from worst to least."""

    UNSOUND = "unsound"
    FAILING = "failing"
    STALE = "stale"
    WAITING = "waiting"
    SCHEDULED = "scheduled"


@dataclass(frozen=True, slots=True)
class StatusFinding:
    """One thing that wants doing.

    Attributes:
        condition: Of which kind it is.
        dataset: Its name; None where it is about the whole node.
        what: What is found.
        command: What fixes it, or shows more, as it is typed.
    """

    condition: Condition
    dataset: str | None
    what: str
    command: str


@dataclass(frozen=True, slots=True)
class StatusReport:
    """What a plug-in adds to ``status``.

    Attributes:
        list_findings: Reads what the home keeps, asks no other node and changes nothing.
    """

    list_findings: Callable[[Home], Iterable[StatusFinding]]


def iter_reported(home: Home) -> Iterator[StatusFinding]:
    """Yield what plug-ins find, in the order of their names."""
    for name, report in load_plug_ins(GROUP, StatusReport).items():
        found: list[StatusFinding] = []
        with contained(GROUP, name):
            found += report.list_findings(home)
        yield from found
