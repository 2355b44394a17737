"""Judging one version of a dataset by a contract: every number is measured over the current rows after the version.

Queries run confined, as questions of people do. A rule that cannot be measured is broken: a contract lets nothing
through that was not looked at.

Source: CONTRACT-4, CONTRACT-5 and CONTRACT-8.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final

import pyarrow as pa

from odf_contracts.drifting import DriftReader
from odf_contracts.keeping import ContractStore, FindingNotes, KeptContract, NotedFinding
from odf_contracts.measures import BEFORE, JUDGED, MeasuredVersion, MeasureText, write_measure
from odf_contracts.rules import ContractObject, ContractRule, MeasureKind
from odf_contracts.versions import JudgedVersion, find_taken, iter_standings, list_versions
from odf_contracts.wording import describe_value
from odf_engines.errors import InvalidQueryError
from odf_node.datasets.chains import load_view
from odf_node.datasets.queries import QueryRunner
from odf_node.engines.sessions import EngineHost
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord
from odf_protocol.errors import OdfError
from odf_protocol.manifest.errors import find_nearest
from odf_protocol.schema_arrow import rows_schema_of


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What a rule found of a version.

    Attributes:
        rule: The rule.
        value: What was measured; None: it could not be.
        problem: Why not; empty where it was.
    """

    rule: ContractRule
    value: float | None
    problem: str = ""

    @property
    def is_broken(self) -> bool:
        """Whether the version does not satisfy the rule."""
        return self.value is None or not self.rule.bound.allows(self.value)

    def describe(self) -> str:
        """Say what is found, and what is allowed."""
        return describe_value(self.rule, self.value, self.problem)


@dataclass(frozen=True)
class VersionJudge:
    """Judges versions of one dataset by what a contract says of one table."""

    queries: QueryRunner
    record: DatasetRecord
    table: ContractObject

    @cached_property
    def drift(self) -> DriftReader:
        """Reads fingerprints once for all versions that are judged."""
        return DriftReader(self.queries.home, self.record)

    def judge(self, version: JudgedVersion) -> list[RuleFinding]:
        """Measure what every rule asks for, in the order of the contract.

        Raises:
            ObjectsAbsentError: Files of the dataset are not here.
            EngineError: The engine does not answer at all.
            NotFoundError, UsageError: There are no fingerprints to measure drift of.
        """
        measured = self.describe_version(version)
        texts = [write_measure(each, measured) for each in self.table.rules]
        values = dict(zip(self.table.rules, self._measure_all(version, texts), strict=True))
        found = []
        for rule, (value, problem) in values.items():
            if rule.measure.kind is MeasureKind.COLUMN:
                value, problem = self._find_column(rule, version)
            elif rule.measure.kind is MeasureKind.DRIFT:
                value, problem = self.drift.measure(rule.measure, version.number, version.before)
            found.append(RuleFinding(rule, value, problem))
        return found

    def sample(self, finding: RuleFinding, version: JudgedVersion, *, rows: int) -> pa.Table | None:
        """Read the first rows that show what a rule found; None: no row shows it.

        Raises:
            ObjectsAbsentError, EngineError: As ``judge``.
        """
        text = write_measure(finding.rule, self.describe_version(version))
        if text is None or text.sample is None or finding.problem:
            return None
        return self._ask(text.sample, version, max_rows=rows)

    def describe_version(self, version: JudgedVersion) -> MeasuredVersion:
        """Give what the text of a measure depends on."""
        view = load_view(self.queries.home.store, self.record.id, upto=version.number)
        then = version.before_published
        gap_s = None if then is None else (version.published.unix_ms - then.unix_ms) / 1000
        names = [self.table.name, self.table.physical_name, self.record.name]
        return MeasuredVersion(
            view.vocabulary.event_time,
            version.published,
            gap_s,
            tuple(dict.fromkeys(filter(None, names))),
            {} if view.schema is None else {each.name: each.type for each in rows_schema_of(view.schema)},
        )

    def _measure_all(
        self, version: JudgedVersion, texts: Sequence[MeasureText | None]
    ) -> list[tuple[float | None, str]]:
        """Measure in one question what this node wrote itself, and each other rule, and what fails, by itself."""
        found: list[tuple[float | None, str]] = [(None, "")] * len(texts)
        own = [
            (number, text)
            for number, (text, rule) in enumerate(zip(texts, self.table.rules, strict=True))
            if text is not None and rule.measure.kind is not MeasureKind.QUERY
        ]
        asked = {number: text for number, text in enumerate(texts) if text is not None}
        if own:
            columns = ", ".join(f"CAST(({text.value}) AS DOUBLE) AS m{number}" for number, text in own)
            with suppress(InvalidQueryError):
                answer = self._ask(f"SELECT {columns}", version, max_rows=1)
                for number, _text in own:
                    found[number] = _number_in(answer.column(f"m{number}"))
                    del asked[number]
        for number, text in asked.items():
            try:
                answer = self._ask(text.value, version, max_rows=2)
            except InvalidQueryError as error:
                found[number] = None, str(error)
                continue
            if answer.num_rows != 1 or answer.num_columns != 1:
                found[number] = None, "the query gives no single number"
            else:
                found[number] = _number_in(answer.column(0))
        return found

    def _ask(self, sql: str, version: JudgedVersion, *, max_rows: int) -> pa.Table:
        tables = [self.queries.make_table(self.record, None, JUDGED, version=version.number)]
        if BEFORE in sql and version.before is not None:
            tables.append(self.queries.make_table(self.record, None, BEFORE, version=version.before))
        return self.queries.run(sql, as_of=None, max_rows=max_rows, records=(), more=tables).rows

    def _find_column(self, rule: ContractRule, version: JudgedVersion) -> tuple[float | None, str]:
        view = load_view(self.queries.home.store, self.record.id, upto=version.number)
        assert view.schema is not None  # it has rows
        columns = rows_schema_of(view.schema)
        (name,) = rule.measure.columns
        if name not in columns.names:
            nearest = find_nearest(name, columns.names)
            return None, f"there is no column {name!r}" + (f"; {nearest!r} is there" if nearest else "")
        kind = columns.field(name).type
        if rule.measure.values and not is_logical_type(kind, rule.measure.values[0]):
            return None, f"the column {name!r} is {kind}, no {rule.measure.values[0]}"
        return 1.0, ""


def note_findings(findings: Sequence[RuleFinding]) -> NotedFinding:
    """Sum up what rules found of a version."""
    # What is wrong with the table as a whole first: of many sentences, a few are shown.
    broken = sorted((each for each in findings if each.is_broken), key=lambda each: bool(each.rule.measure.columns))
    return NotedFinding(
        tuple(each.describe() for each in broken if not each.rule.only_warns),
        tuple(each.describe() for each in broken if each.rule.only_warns),
    )


def judge_version(judge: VersionJudge, contract: KeptContract, version: JudgedVersion) -> NotedFinding:
    """Judge a version, and note what is found.

    Args:
        judge: Measures what the contract asks for.
        contract: For which it is noted.
        version: With what it is compared with.
    """
    try:
        noted = note_findings(judge.judge(version))
    except OdfError as error:
        # Files that come later, an engine that comes back: it is judged again then, and held until it is.
        noted = NotedFinding((f"it cannot be judged: {error}",), is_open=True)
    FindingNotes(judge.queries.home.folder).put(contract, version.block, version.before, noted)
    return noted


def judge_input(home: Home, engines: EngineHost, consumer: DatasetRecord, source: DatasetRecord) -> None:
    """Judge the versions of an input that a derivative has not taken, oldest first, and the one on which it stands."""
    contracts = ContractStore(home.folder).list_of(source.id, consumer.id)
    if not contracts:
        return
    versions = list_versions(home.store, source)
    taken = find_taken(home, consumer, source)
    gained = [each.number for each in versions if each.number > taken]
    if not gained:
        return
    stands_on = [each.number for each in versions if each.number <= taken][-1:]  # what comes is compared with it
    wanted = {*stands_on, *gained[-MAX_JUDGED:]}
    queries = QueryRunner(home, engines)
    for contract in contracts:
        judge = VersionJudge(queries, source, contract.rules)

        def judge_wanted(
            version: JudgedVersion, judge: VersionJudge = judge, contract: KeptContract = contract
        ) -> NotedFinding | None:
            return judge_version(judge, contract, version) if version.number in wanted else None

        for _standing in iter_standings(home, contract, versions, judge_wanted):
            pass


MAX_JUDGED: Final = 64
"""Versions that one run judges for one edge, the newest ones.  # guess: minutes of a large dataset"""

_LOGICAL: Final[dict[str, Callable[[pa.DataType], bool]]] = {
    "string": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind),
    "date": lambda kind: pa.types.is_date(kind) or pa.types.is_timestamp(kind),
    "timestamp": pa.types.is_timestamp,
    "time": pa.types.is_time,
    "number": lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind),
    "integer": pa.types.is_integer,
    "boolean": pa.types.is_boolean,
    "object": pa.types.is_struct,
    "array": lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind),
    "map": pa.types.is_map,
}


def is_logical_type(kind: pa.DataType, logical: str) -> bool:
    """Say whether a type of rows is what the standard calls ``logical``; the standard has dates with times of day."""
    return _LOGICAL[logical](kind)


def _number_in(column: pa.ChunkedArray) -> tuple[float | None, str]:
    value = column[0].as_py() if len(column) else None
    if isinstance(value, bool):
        return float(value), ""
    if isinstance(value, int | float | Decimal) and not math.isnan(value):
        return float(value), ""
    return None, "there is nothing to measure" if value is None else f"{str(value)[:60]!r} is no number"
