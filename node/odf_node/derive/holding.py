"""What holds newer versions of an input back from a derivative of this node, as plug-ins decide.

A held version stays in the chain that is held here: only the derivative's steps end before it. What is held is found
again before every run, so the derivative goes on by itself once nothing holds its input.

Source: clause PLUG-28 in ``spec/plug-ins.md``, PLAN-21 in ``spec/transform.md``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odf_node.datasets.chains import load_view
from odf_node.home import Home
from odf_node.plug_ins import contained, load_plug_ins
from odf_node.records.datasets import DatasetRecord, Origin
from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import RejectedError, UnavailableError
from odf_protocol.transform_plan import input_ids

if TYPE_CHECKING:
    from odf_node.engines.sessions import EngineHost

GROUP: Final = "odf_node.holds"


@dataclass(frozen=True, slots=True)
class InputHold:
    """That an input is read up to a block for now.

    Attributes:
        name: Of the input.
        upto: The number of the last block that may be read; None: nothing of it yet.
        reason: Why, in a sentence for people.
        command: What shows more, as it is typed.
        fails: A pull of the derivative ends with an error, after what may be read was taken.
    """

    name: str
    upto: int | None
    reason: str
    command: str
    fails: bool = False

    def describe(self) -> str:
        """Say what is held, and why."""
        kept = "takes nothing of" if self.upto is None else f"keeps to block {self.upto} of"
        return f"{kept} {self.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class HoldRule:
    """What an entry point of ``odf_node.holds`` leads to.

    Attributes:
        is_used: Says, without reading chains, whether it could hold anything in a home.
        judge: Looks at what an input (second) of a derivative (first) gained, before its steps are planned, and notes
            what it finds; it may ask engines.
        find: Says from what was noted whether the input is held back; changes nothing and asks no engine.
    """

    is_used: Callable[[Home], bool]
    judge: Callable[[Home, "EngineHost", DatasetRecord, DatasetRecord], None]
    find: Callable[[Home, DatasetRecord, DatasetRecord], InputHold | None]


class InputHeldError(RejectedError):
    """An input of a derivative is held back by a rule that fails the pull; what it may read was taken before."""

    def __init__(self, dataset: str, holds: tuple[InputHold, ...]) -> None:
        super().__init__("PLAN-21 held-inputs-are-not-read")
        self.args = ("; ".join(f"'{dataset}' {each.describe()}: {each.command}" for each in holds),)


class InputMovedError(UnavailableError):
    """What holds the inputs of a derivative back changed whenever a step was planned; no step was run."""

    def __init__(self, dataset: str) -> None:
        super().__init__(f"inputs of '{dataset}' grew, or were judged, faster than its step was planned; pull again")


def judge_inputs(home: Home, engines: "EngineHost", record: DatasetRecord) -> None:
    """Have plug-ins look at what the inputs of a derivative gained."""
    for name, rule, source in _iter_asked(home, record):
        with contained(GROUP, name):
            rule.judge(home, engines, record, source)


def find_holds(home: Home, record: DatasetRecord) -> Mapping[DatasetId, InputHold]:
    """Find what holds inputs of a dataset back; of several holds of one input the one that reads less counts."""
    found: dict[DatasetId, InputHold] = {}
    for name, rule, source in _iter_asked(home, record):
        with contained(GROUP, name):
            hold = rule.find(home, record, source)
            if hold is not None and (source.id not in found or _reach(hold) < _reach(found[source.id])):
                found[source.id] = hold
    return found


def _iter_asked(home: Home, record: DatasetRecord) -> Iterator[tuple[str, HoldRule, DatasetRecord]]:
    """Yield the rules that could hold something here, with each input; others' derivatives are computed elsewhere."""
    if record.kind is not DatasetKind.DERIVATIVE or record.origin is not Origin.OWN:
        return
    used: dict[str, HoldRule] = {}
    for name, rule in load_plug_ins(GROUP, HoldRule).items():
        with contained(GROUP, name):
            used |= {name: rule} if rule.is_used(home) else {}
    transform = load_view(home.store, record.id).transform if used else None
    for dataset_id in dict.fromkeys(() if transform is None else input_ids(transform)):
        source = home.store.find_dataset(dataset_id)
        for name, rule in used.items() if source is not None else ():
            assert source is not None
            yield name, rule, source


def _reach(hold: InputHold) -> int:
    return -1 if hold.upto is None else hold.upto
