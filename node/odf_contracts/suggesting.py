"""Learning a contract from the versions that there are.

What may hold is measured of every version, by the same measures as a contract. A bound is what was seen, and room
beyond it; where what was seen does not agree with a rule, there is none. A version whose event times lie after its own
publication is suspicious: nothing is learned from it.

Source: CONTRACT-13.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from odf_contracts.bounds import Bound, at_least, at_most, exactly
from odf_contracts.judging import RuleFinding, VersionJudge, is_logical_type
from odf_contracts.rules import ContractObject, ContractRule, MeasureKind, RuleMeasure
from odf_contracts.versions import JudgedVersion
from odf_node.datasets.chains import load_view
from odf_node.datasets.queries import QueryRunner
from odf_node.records.datasets import DatasetRecord
from odf_protocol.dataset_view import DatasetView
from odf_protocol.schema_arrow import rows_schema_of

MAX_VERSIONS: Final = 32  # guess: the newest month of a daily dataset
CUMULATIVE_MAX: Final = 2.0
"""A column is cumulative where in no version more of its rows fall, in percent.  # guess: honest revisions are fewer"""
_ROOM: Final = 2.0  # guess: twice what was seen
_FALLS_ROOM: Final = 0.5  # guess: percent; a history of few versions has seen few revisions
_MIN_OF_PREVIOUS: Final = 90.0  # guess: percent
_MAX_OF_PREVIOUS: Final = 150.0  # guess: percent; three weeks of a daily dataset that is half a year old are 112
_MIN_REWRITTEN_BOUND: Final = 10.0  # guess: percent; three weeks of honest revisions of 16 countries are 5.8
_MAX_REWRITTEN: Final = 50.0  # guess: percent; rows that change all the time say nothing by it
_DAY_S: Final = 86_400.0
_ANY: Final = Bound(())


@dataclass(frozen=True, slots=True)
class LearnedBound:
    """A rule that was learned.

    Attributes:
        rule: With its bound.
        lowest: The lowest value seen.
        highest: The highest value seen.
        versions: In how many versions.
    """

    rule: ContractRule
    lowest: float
    highest: float
    versions: int

    @property
    def confidence(self) -> float:
        """How probable it is that a further version of the same kind stays within what was seen: n / (n + 1).

        Of n + 1 values that can come in any order, the last one is the largest with a probability of 1 / (n + 1),
        whatever their distribution. The room beyond what was seen comes on top.
        """
        return self.versions / (self.versions + 1)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What was learned of a dataset.

    Attributes:
        bounds: The rules.
        suspicious: Versions from which nothing was learned, with what is odd.
        columns: The columns and their logical types, in order.
        key: The columns that are a key; empty: none is known.
    """

    bounds: tuple[LearnedBound, ...]
    suspicious: tuple[tuple[JudgedVersion, str], ...]
    columns: tuple[tuple[str, str | None], ...]
    key: tuple[str, ...]

    def to_table(self, name: str) -> ContractObject:
        """Give it as what a contract says of a table."""
        return ContractObject(name, None, (), tuple(each.rule for each in self.bounds), ())


def suggest_contract(queries: QueryRunner, record: DatasetRecord, versions: Sequence[JudgedVersion]) -> Suggestion:
    """Learn a contract from versions, oldest first, the newest 32 of them.

    Raises:
        ObjectsAbsentError, EngineError: They cannot be measured.
    """
    view = load_view(queries.home.store, record.id, upto=versions[-1].number)
    assert view.schema is not None  # versions have rows
    of_log = (view.vocabulary.offset, view.vocabulary.op, view.vocabulary.system_time)
    schema = [field for field in rows_schema_of(view.schema) if field.name not in of_log]
    key = _find_key(view, [field.name for field in schema])
    candidates = list(_list_candidates(schema, key, view.vocabulary.event_time))
    table = ContractObject(record.name, None, (), tuple(candidates), ())
    measured: list[tuple[JudgedVersion, list[RuleFinding]]] = []
    suspicious: list[tuple[JudgedVersion, str]] = []
    for version in versions[-MAX_VERSIONS:]:
        good = measured[-1][0] if measured else None
        compared = replace(
            version,
            before=None if good is None else good.number,
            before_published=None if good is None else good.published,
        )
        findings = VersionJudge(queries, record, table).judge(compared)
        ahead = next(each for each in findings if each.rule.measure.kind is MeasureKind.AHEAD)
        if ahead.value:
            suspicious.append((version, f"{ahead.value:,.0f} event times are later than its publication"))
        else:
            measured.append((compared, findings))
    bounds = []
    for index, rule in enumerate(candidates):
        of_rule = [findings[index] for version, findings in measured if _counts(rule, version)]
        values = [each.value for each in of_rule if each.value is not None]
        if values and len(values) == len(of_rule):
            bound = _BOUNDS[rule.measure.kind](min(values), max(values))
            if bound is not None:
                bounds.append(LearnedBound(replace(rule, bound=bound), min(values), max(values), len(values)))
    columns = tuple((field.name, _logical_type(field.type)) for field in schema)
    return Suggestion(tuple(bounds), tuple(suspicious), columns, key)


def _counts(rule: ContractRule, version: JudgedVersion) -> bool:
    """Say whether a version has anything to say of a rule: the first one is compared with none."""
    return rule.measure.kind not in {MeasureKind.OF_PREVIOUS, MeasureKind.REWRITTEN} or version.before is not None


def _list_candidates(schema: Sequence[pa.Field], key: tuple[str, ...], event_time: str) -> Sequence[ContractRule]:
    measures: list[tuple[RuleMeasure, bool, bool]] = [
        (RuleMeasure(MeasureKind.AHEAD), False, False),
        (RuleMeasure(MeasureKind.DAYS_MISSING), False, False),
        (RuleMeasure(MeasureKind.OF_PREVIOUS), True, False),
        (RuleMeasure(MeasureKind.REWRITTEN), True, False),
        (RuleMeasure(MeasureKind.LATENCY), False, True),
    ]
    if key:
        measures.append((RuleMeasure(MeasureKind.DUPLICATES, key), False, False))
    by = tuple(each for each in key if each != event_time)
    for field in schema:
        measures.append((RuleMeasure(MeasureKind.NULLS, (field.name,)), False, False))
        if _is_number(field.type):
            measures.append((RuleMeasure(MeasureKind.INVALID, (field.name,), low=0.0), False, False))
            if event_time in key and field.name not in key:
                measures.append((RuleMeasure(MeasureKind.FALLS, (field.name, *by)), True, False))
    return [ContractRule(0, "", measure, _ANY, is_percent, only_warns) for measure, is_percent, only_warns in measures]


def _is_number(kind: pa.DataType) -> bool:
    return is_logical_type(kind, "number")


def _logical_type(kind: pa.DataType) -> str | None:
    names = ("string", "integer", "number", "boolean", "timestamp", "date", "time", "array", "object", "map")
    return next((each for each in names if is_logical_type(kind, each)), None)


def _find_key(view: DatasetView, columns: Sequence[str]) -> tuple[str, ...]:
    """Find the key by which the dataset's rows are merged."""
    sources = [view.polling_source, *view.push_sources.values()]
    keys = [getattr(each.merge, "primary_key", None) for each in sources if each is not None]
    return next((tuple(each) for each in keys if each and set(each) <= set(columns)), ())


def _nothing(_lowest: float, highest: float) -> Bound | None:
    return exactly(0) if highest == 0 else None


def _of_previous(lowest: float, highest: float) -> Bound:
    low = min(_MIN_OF_PREVIOUS, 100 - _ROOM * (100 - lowest))
    high = max(_MAX_OF_PREVIOUS, 100 + _ROOM * (highest - 100))
    return Bound((*at_least(round(low, 1)).tests, *at_most(round(high, 1)).tests))


def _rewritten(_lowest: float, highest: float) -> Bound | None:
    bound = max(_MIN_REWRITTEN_BOUND, _ROOM * highest)
    return at_most(round(bound, 1)) if bound < _MAX_REWRITTEN else None


def _falls(_lowest: float, highest: float) -> Bound | None:
    return at_most(round(_ROOM * highest + _FALLS_ROOM, 2)) if highest <= CUMULATIVE_MAX else None


def _latency(_lowest: float, highest: float) -> Bound | None:
    return at_most(max(_DAY_S, _ROOM * highest)) if highest > 0 else None


_BOUNDS: Final[Mapping[MeasureKind, Callable[[float, float], Bound | None]]] = {
    MeasureKind.AHEAD: _nothing,
    MeasureKind.DAYS_MISSING: _nothing,
    MeasureKind.NULLS: _nothing,
    MeasureKind.INVALID: _nothing,
    MeasureKind.DUPLICATES: _nothing,
    MeasureKind.OF_PREVIOUS: _of_previous,
    MeasureKind.REWRITTEN: _rewritten,
    MeasureKind.FALLS: _falls,
    MeasureKind.LATENCY: _latency,
}
