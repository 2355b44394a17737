"""Convert records of text to the types of the schema; note everything that is wrong with those that do not convert.

The result has the columns `record`, `errors` (null for a good row, else a list) and one per field of the schema, named
by position (`v0`, `v1`, …), in carrier types. What is wrong is said as Spark SQL, inside lists and structs by element;
only records that did not convert are asked, so it may take its time.

Source: spec/ingest.md ING-4, ING-6; VALID-5 in ``spec/validation.md``; CONV-1 and CONV-2 in ``spec/conversion.md``.
"""

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from odf_engines.contract import IngestRequest
from odf_engines.ingest.converted import convert_rows
from odf_engines.ingest.quarantined_rows import BadRows
from odf_engines.ingest.read import ReadResult
from odf_engines.ingest.read_options import parse_times
from odf_engines.ingest.result import Folders
from odf_engines.ingest.text_forms import TextForm, text_form_of
from odf_engines.records.carriers import carrier_of, quoted, spark_name_of
from odf_engines.records.converted_texts import NOTHING, SHOWN_CHARACTERS, type_name_of
from odf_engines.records.source_records import (
    ERRORS,
    ERRORS_TYPE,
    FORM,
    MISFIT,
    NULL,
    RECORD,
    SourceRecords,
    physical_name,
    value_name,
)
from odf_engines.records.time_patterns import TimePatterns
from odf_engines.spark.ingest.handover import Handover
from odf_engines.spark.ingest.refused_rows import iter_unconverted
from odf_engines.stage_figures import IngestStage


def convert_records(spark: Any, records: SourceRecords, target: pa.Schema, times: TimePatterns) -> Any:
    """Give a data frame of the rows of `records`, converted to `target`.

    Args:
        spark: Session; its time zone is UTC.
        records: Result of a read step whose names include those of `target`.
        target: Fields in slice types.
        times: How dates and timestamps are written.
    """
    # A stated schema saves Spark a job that would look for it in the file.
    if records.is_typed:
        return _typed_rows(spark, records.path, target)
    texts = [f"{physical_name(i)} STRING" for i in range(len(records.names))]
    rows = spark.read.schema(", ".join([f"{RECORD} BIGINT", *texts])).parquet(str(records.path))
    # In two steps, so that Spark computes a value once although its error asks for it again.
    values, verdicts = _values(records.names, target, times), _verdicts(records.names, target, times)
    return rows.selectExpr("*", *values).selectExpr(*verdicts)


def _typed_rows(spark: Any, path: Path, target: pa.Schema) -> Any:
    values = [f"{value_name(i)} {spark_name_of(carrier_of(field.type))}" for i, field in enumerate(target)]
    errors = f"{ERRORS} {spark_name_of(ERRORS_TYPE)}"
    return spark.read.schema(", ".join([f"{RECORD} BIGINT", errors, *values])).parquet(str(path))


def _values(names: tuple[str, ...], target: pa.Schema, times: TimePatterns) -> list[str]:
    forms = [text_form_of(physical_name(names.index(field.name)), field.type, times) for field in target]
    return [f"{form.value} AS {value_name(index)}" for index, form in enumerate(forms)]


def _verdicts(names: tuple[str, ...], target: pa.Schema, times: TimePatterns) -> list[str]:
    good, errors = [], []
    for index, field in enumerate(target):
        text = physical_name(names.index(field.name))
        is_good = f"{value_name(index)} IS NOT NULL"
        good.append(f"({text} IS NULL OR {is_good})" if field.nullable else f"({is_good})")
        errors.append(f"CASE WHEN NOT {good[-1]} THEN {faults_of(text, field, times)} END")
    listed = f"flatten(array_compact(array({', '.join(errors)})))"
    verdict = f"CASE WHEN NOT ({' AND '.join(good)}) THEN {listed} END AS {quoted(ERRORS)}"
    return [RECORD, verdict, *(value_name(index) for index in range(len(target)))]


_MOST_FAULTS: Final = 100  # guess: of one value; who mends that many looks at the record


def faults_of(
    text: str, field: pa.Field, times: TimePatterns, place: str | None = None, names: "count[int] | None" = None
) -> str:
    """Give SQL of the list of what is wrong with a text that denotes no value.

    Args:
        text: SQL of the text; it is repeated in the result.
        field: Name, type and nullability of the column or element.
        times: How dates and timestamps are written.
        place: SQL of its path; None: it is a column, and its name is the path.
        names: Source of numbers for variables.
    """
    names = names or count()
    place = place or literal(field.name)
    form = text_form_of(text, field.type, times, names)
    whole = f"array({_fault(text, field, form, place)})"
    inner = _inner_faults(text, field.type, times, place, names)
    if inner is None:
        return whole
    # What is wrong with no element, such as their number, is said of the whole. The variable stands for a long text.
    found = f"found{next(names)}"
    inside = f"CASE WHEN size({found}) > 0 THEN slice({found}, 1, {_MOST_FAULTS}) ELSE {whole} END"
    return f"CASE WHEN {form.has_form} THEN transform(array({inner}), {found} -> {inside})[0] ELSE {whole} END"


def literal(text: str) -> str:
    """Write a text as SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _inner_faults(text: str, kind: pa.DataType, times: TimePatterns, place: str, names: "count[int]") -> str | None:
    """Give SQL of what is wrong with the elements; None for a type that has none."""
    types = pa.types
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        number = next(names)
        item, at = f"element{number}", f"place{number}"
        of_item = _element_faults(item, kind.value_field, times, f"concat({place}, '[', {at}, ']')", names)
        parsed = f"from_json({text}, 'ARRAY<STRING>')"
        return f"flatten(array_compact(transform({parsed}, ({item}, {at}) -> {of_item})))"
    if types.is_struct(kind):
        schema = ", ".join(f"{quoted(member.name)}: STRING" for member in kind)
        parsed = f"from_json({text}, {literal(f'STRUCT<{schema}>')})"
        faults = [
            _element_faults(
                f"{parsed}.{quoted(member.name)}",
                member,
                times,
                f"concat({place}, {literal(f'.{member.name}')})",
                names,
            )
            for member in kind
        ]
        return f"flatten(array_compact(array({', '.join(faults)})))"
    return None


def _element_faults(text: str, field: pa.Field, times: TimePatterns, place: str, names: "count[int]") -> str:
    """Give SQL of the list of what is wrong with an element; null where nothing is."""
    is_bad = f"({text_form_of(text, field.type, times, names).value}) IS NULL"
    if field.nullable:
        is_bad = f"{text} IS NOT NULL AND {is_bad}"
    return f"CASE WHEN {is_bad} THEN {faults_of(text, field, times, place, names)} END"


def _fault(text: str, field: pa.Field, form: TextForm, place: str) -> str:
    message = f"CASE WHEN {text} IS NULL THEN {literal(NOTHING)} WHEN {form.has_form} THEN '{form.misfit}'"
    message += f" ELSE {literal(f'not {form.expected}')} END"
    code = f"CASE WHEN {text} IS NULL THEN '{NULL}' WHEN {form.has_form} THEN '{MISFIT}' ELSE '{FORM}' END"
    return (
        f"named_struct('message', {message}, 'column', {place},"
        f" 'value', left({text}, {SHOWN_CHARACTERS}), 'expected', {literal(type_name_of(field))}, 'code', {code})"
    )


def convert_read(
    spark: Any, request: IngestRequest, folders: Folders, result: ReadResult, handover: Handover
) -> tuple[ReadResult, list[BadRows]]:
    """Let the records that were read go through the converters of a request.

    Returns:
        The records as if they had been read so, and those that are bad.

    Raises:
        InvalidSourceError: A converter cannot be applied to these columns.
    """
    path, bad, has_unread = result.records.path, [], False
    if not result.records.is_typed:
        with folders.clock.measuring(IngestStage.READ):
            times = parse_times(request.read)
            typed = handover.keep(convert_records(spark, result.records, result.target, times), "typed")
            bad.append(iter_unconverted(typed, handover))
            has_unread = not typed.where(f"{ERRORS} IS NOT NULL").isEmpty()
            folder = folders.scratch / "to-convert"
            # In one file and in the order of the source, as converters are to see them.
            good = typed.where(f"{ERRORS} IS NULL").drop(ERRORS)
            good.coalesce(1).sortWithinPartitions(RECORD).write.parquet(str(folder))
        (path,) = folder.glob("part-*.parquet")
    converted = convert_rows(request, folders, path, result)
    return replace(converted.result, has_unread=has_unread), [*bad, converted.iter_bad()]
