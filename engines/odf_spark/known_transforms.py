"""Transforms that passed the gate in this process, so that many steps of one dataset ask it once.

A transform is known by everything that its analysis looks at: its text, and what its inputs and its output are called.
What is kept of it is what follows from that alone, so no row, no file and no session of an earlier request is in it.

Source: clause GATE-14 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from odf_engines.contract import Finding, QueryTable, TransformRequest
from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_protocol.events import TransformSql
from odf_protocol.vocabulary import Vocabulary
from odf_spark.folded_rows import OFFSET, data_schema, with_versions
from odf_spark.gate.event_windows import EventSessions, EventWindow, find_event_window
from odf_spark.gate.kept_times import Units, find_kept_times
from odf_spark.gate.map_class import MapQuery, NoMapError, check_map, is_no_map
from odf_spark.gate.stages import list_stages
from odf_spark.gate.temporal_joins import AsOfQuery, find_as_of
from odf_spark.gate.view_class import NoViewError, ViewQuery, check_view
from odf_spark.map_plan import MapPlan, plan_map
from odf_spark.relations import empty_rows, list_columns, stated_columns, struct_of
from odf_spark.slices import output_schema
from odf_spark.steps import Analysis, ParsedStep, analyse_transform, parse_steps

_Tables = Mapping[str, tuple[str, ...]]
_MAX_KNOWN = 16  # guess: a process serves one stranger's dataset, or the derivatives of one home


@dataclass(frozen=True, slots=True)
class KnownMap:
    """A map that passed the gate.

    Attributes:
        query: What the gate says of it.
        struct: Columns of its input's files.
        plan: To be put over their rows.
        result: Columns of what comes out.
        schema: Of its slices.
    """

    query: MapQuery
    struct: Any
    plan: MapPlan
    result: StructType
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class KnownView:
    """A maintained view that passed the gate.

    Attributes:
        steps: Its queries.
        query: What the gate says of it.
        depends_on_order: Whether its result is exact only in one fixed order of execution.
        result: Columns of the query.
        schema: Of its slices.
        kept_times: How its event time is made of those of its inputs; None: it is another value (VIEW-8).
    """

    steps: tuple[ParsedStep, ...]
    query: ViewQuery
    depends_on_order: bool
    result: StructType
    schema: pa.Schema
    kept_times: frozenset[Units] | None = None


@dataclass(frozen=True, slots=True)
class KnownWindows:
    """A query over windows in event time that passed the gate.

    Attributes:
        steps: Its queries.
        window: How it cuts event time.
        depends_on_order: Whether its result is exact only in one fixed order of execution.
        result: Columns of the query.
        schema: Of its slices.
        tables: Columns of the primary key of each temporal table.
    """

    steps: tuple[ParsedStep, ...]
    window: EventWindow
    depends_on_order: bool
    result: StructType
    schema: pa.Schema
    tables: _Tables


@dataclass(frozen=True, slots=True)
class KnownSessions:
    """A query over sessions in event time that passed the gate; the other fields are those of ``KnownWindows``.

    Attributes:
        sessions: What they are made of.
        alike: By alias of an input, columns in which rows of a session are alike, where some are known (VIEW-13).
    """

    steps: tuple[ParsedStep, ...]
    sessions: EventSessions
    depends_on_order: bool
    result: StructType
    schema: pa.Schema
    tables: _Tables
    alike: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class KnownAsOf:
    """A query over joins as of event times that passed the gate.

    Attributes:
        steps: Its queries.
        query: What the gate says of it.
        tables: Columns of the primary key of each temporal table.
        result: Columns of the query.
        schema: Of its slices.
    """

    steps: tuple[ParsedStep, ...]
    query: AsOfQuery
    tables: _Tables
    result: StructType
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class KnownAsOfView:
    """A maintained view over joins as of event times that passed the gate (ASOF-9).

    Attributes:
        view: What is known of any view.
        tables: Columns of the primary key of each temporal table.
    """

    view: KnownView
    tables: _Tables

    @property
    def result(self) -> StructType:
        """Columns of the query."""
        return self.view.result

    @property
    def schema(self) -> pa.Schema:
        """Of its slices."""
        return self.view.schema


Known = KnownMap | KnownView | KnownWindows | KnownSessions | KnownAsOf | KnownAsOfView


@dataclass(frozen=True, slots=True)
class TransformCheck:
    """What the gate found about a transform whose result could be repeated.

    Attributes:
        findings: What pins it.
        known: What it takes to execute it, None if that cannot be done.
        obstacle: Why it cannot.
        stages: What it does with its rows, for people.
    """

    findings: tuple[Finding, ...]
    known: Known | None
    obstacle: NoViewError | None = None
    stages: tuple[str, ...] = ()


_Key = tuple[TransformSql, tuple[QueryTable, ...], Vocabulary]
_known: dict[_Key, TransformCheck] = {}


def find_out_transform(spark: SparkSession, request: TransformRequest) -> Known:
    """Return what it takes to execute the transform of a request.

    Raises:
        InvalidQueryError, NotReproducibleError: The gate's rejection, or why it cannot be executed.
    """
    inputs = tuple(
        QueryTable(name=each.alias, vocabulary=each.vocabulary, schema=each.schema) for each in request.inputs
    )
    examination = find_examination(spark, request.transform, inputs, request.vocabulary)
    if examination.known is None:
        assert examination.obstacle is not None
        raise examination.obstacle
    return examination.known


def find_examination(
    spark: SparkSession, transform: TransformSql, inputs: Sequence[QueryTable], vocabulary: Vocabulary
) -> TransformCheck:
    """Return what the gate says; it is asked at the first request that says the same (GATE-14).

    Raises:
        InvalidQueryError, NotReproducibleError: The gate's rejection, which is never kept.
    """
    key = (transform, tuple(inputs), vocabulary)
    found = _known.pop(key, None) or examine_transform(spark, *key)
    while len(_known) >= _MAX_KNOWN:
        del _known[next(iter(_known))]
    # Last in the dictionary is what was used last.
    _known[key] = found
    return found


def examine_transform(
    spark: SparkSession, transform: TransformSql, inputs: Sequence[QueryTable], vocabulary: Vocabulary
) -> TransformCheck:
    """Take a transform through the gate, over inputs without rows: as a map, else as a maintained view.

    Raises:
        InvalidQueryError, NotReproducibleError: The gate's rejection.
    """
    if transform.temporal_tables:
        return _examine_as_of(spark, transform, inputs, vocabulary)
    steps = parse_steps(spark, transform, [each.name for each in inputs])
    if is_no_map(steps[-1].query.plan):
        try:
            return _examine_view(spark, transform, inputs, vocabulary, steps)
        except (InvalidQueryError, NotReproducibleError):
            pass  # said below as of any query, over all columns that its inputs have
    structs = {each.name: struct_of(each.schema, alias=each.name) for each in inputs}
    columns = {each.name: stated_columns(each.schema, structs[each.name]) for each in inputs}
    stored = {name: empty_rows(spark, struct) for name, struct in structs.items()}
    rows = {name: list_columns(spark, stored[name], columns[name]) for name in stored}
    vocabularies = {each.name: each.vocabulary for each in inputs}
    analysis = analyse_transform(spark, transform, rows, steps)
    try:
        query = check_map(analysis.plan, vocabularies, vocabulary)
    except NoMapError:
        return _examine_view(spark, transform, inputs, vocabulary, steps)
    alias = query.input_alias
    plan = plan_map(analysis.plan, rows[alias], columns[alias], alias, vocabularies[alias])
    result = plan.over(spark, stored[alias]).schema
    own = type(result)(result.fields[:-2])
    known = KnownMap(query, structs[alias], plan, result, output_schema(own.json(), vocabulary))
    return TransformCheck(analysis.findings, known, stages=list_stages(analysis.plan, structs))


def _current_rows(spark: SparkSession, inputs: Sequence[QueryTable]) -> tuple[dict[str, Any], dict[str, DataFrame]]:
    """Return the columns of the data of each input, and no rows that have them."""
    schemas = {each.name: data_schema(each.schema, each.vocabulary) for each in inputs}
    structs = {name: struct_of(schema, alias=name) for name, schema in schemas.items()}
    rows = {
        name: list_columns(spark, empty_rows(spark, structs[name]), stated_columns(schema, structs[name]))
        for name, schema in schemas.items()
    }
    return structs, rows


def _examine_as_of(
    spark: SparkSession, transform: TransformSql, inputs: Sequence[QueryTable], vocabulary: Vocabulary
) -> TransformCheck:
    tables = {each.name: each.primary_key for each in transform.temporal_tables or ()}
    vocabularies = {each.name: each.vocabulary for each in inputs}
    for name, key in tables.items():
        if name not in vocabularies:
            raise InvalidQueryError(f"temporal table {name} is no input; the inputs are {', '.join(vocabularies)}")
        known = next(data_schema(each.schema, each.vocabulary) for each in inputs if each.name == name)
        absent = [each for each in key if each not in {field.name for field in known.fields}]
        if absent or not key:
            raise InvalidQueryError(f"temporal table {name}: {absent[0] if absent else 'its key'} is no column of it")
    structs, rows = _current_rows(spark, inputs)
    for name, key in tables.items():
        numbered = rows[name].selectExpr("*", f"0L AS `{OFFSET}`")
        rows[name] = with_versions(numbered, vocabularies[name].event_time, key)
    analysis = _analyse_over_data(spark, transform, rows)
    view = check_view(analysis.plan, structs, vocabulary)
    query = find_as_of(analysis.plan, vocabularies, tables, vocabulary)
    if query is None:
        known_view = _find_known(analysis, view, vocabularies, vocabulary, tables)
        return TransformCheck(analysis.findings, known_view, stages=list_stages(analysis.plan, structs))
    result = analysis.rows.schema
    examined = KnownAsOf(analysis.steps, query, tables, result, output_schema(result.json(), vocabulary))
    return TransformCheck(analysis.findings, examined, stages=list_stages(analysis.plan, structs))


def _examine_view(
    spark: SparkSession,
    transform: TransformSql,
    inputs: Sequence[QueryTable],
    vocabulary: Vocabulary,
    steps: Sequence[ParsedStep],
) -> TransformCheck:
    structs, rows = _current_rows(spark, inputs)
    analysis = _analyse_over_data(spark, transform, rows, steps)
    stages = list_stages(analysis.plan, structs)
    try:
        query = check_view(analysis.plan, structs, vocabulary)
    except NoViewError as error:
        return TransformCheck(analysis.findings, None, error, stages)
    vocabularies = {each.name: each.vocabulary for each in inputs}
    known = _find_known(analysis, query, vocabularies, vocabulary, {})
    return TransformCheck(analysis.findings, known, stages=stages)


def _find_known(
    analysis: Analysis, view: ViewQuery, inputs: Mapping[str, Vocabulary], vocabulary: Vocabulary, tables: _Tables
) -> Known:
    """Say what it takes to execute a query that is no map and no list of answers: windows, or a view."""
    result, in_order = analysis.rows.schema, analysis.depends_on_order
    schema = output_schema(result.json(), vocabulary)
    parsed = [each.query.plan for each in analysis.steps]
    match find_event_window(parsed, analysis.plan, inputs, vocabulary):
        case EventWindow() as window:
            return KnownWindows(analysis.steps, window, in_order, result, schema, tables)
        case EventSessions() as sessions:
            alike = {alias: each.names for alias, each in view.group_columns.items()}
            return KnownSessions(analysis.steps, sessions, in_order, result, schema, tables, alike)
        case None:
            kept_times = find_kept_times(analysis.plan, inputs, vocabulary)
            known = KnownView(analysis.steps, view, in_order, result, schema, kept_times)
            return KnownAsOfView(known, tables) if tables else known


def _analyse_over_data(
    spark: SparkSession,
    transform: TransformSql,
    rows: Mapping[str, DataFrame],
    steps: Sequence[ParsedStep] | None = None,
) -> Analysis:
    try:
        return analyse_transform(spark, transform, rows, steps)
    except InvalidQueryError as error:
        if "UNRESOLVED_COLUMN" not in error.message:
            raise
        hint = "; a query over whole inputs sees the current rows, without offset, operation and system time"
        raise InvalidQueryError(error.message + hint, position=error.position) from error
