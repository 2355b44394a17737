"""The validate step: staged rows as a file, with what conditions in SQL say of them; what is good is staged again.

Conditions see the columns of the rows by their names and pass the gate like any query. They are computed without ANSI's
errors: what cannot be computed is null, and so not true, and keeps one row away instead of all.

Source: clauses VALID-2 and VALID-7 in ``spec/validation.md``.
"""

from typing import Any

from pyspark.errors import PySparkException

from odf_engines.contract import IngestRequest
from odf_engines.errors import InvalidQueryError, InvalidSourceError
from odf_engines.ingest.columns import ORD, Columns
from odf_engines.ingest.result import Folders
from odf_engines.ingest.validated import Validated, validate_rows
from odf_engines.ingest_parts import PREDICATE, conditions_of
from odf_engines.records.carriers import quoted
from odf_engines.records.source_records import value_name
from odf_engines.spark.gate.statement import invalid_query
from odf_engines.spark.ingest.preprocess import run_query
from odf_engines.spark.java_side import java_session
from odf_engines.stage_figures import IngestStage
from odf_engines.validation.validated_rows import verdict_name

_ROWS = "rows"
_KEPT = "\1kept"
_ANSI = "spark.sql.ansi.enabled"


def validate_staged(
    spark: Any, request: IngestRequest, staged: Any, columns: Columns, folders: Folders
) -> tuple[Validated, Any]:
    """Let the validators of a request look at staged rows.

    Returns:
        What they said, and the good rows, staged.

    Raises:
        InvalidSourceError: A validator cannot be applied to these columns, or failed on the batch as a whole.
    """
    path = folders.scratch / "to-validate"
    with folders.clock.measuring(IngestStage.VALIDATE):
        judged = _with_verdicts(spark, request, staged, columns)
        # In one file and in the order of the source, as validators are to see them.
        judged.coalesce(1).sortWithinPartitions(ORD).write.parquet(str(path))
    (file,) = path.glob("part-*.parquet")
    validated = validate_rows(request, folders, file, ORD, columns.schema)
    return validated, spark.read.schema(staged.schema).parquet(str(validated.path))


def _with_verdicts(spark: Any, request: IngestRequest, staged: Any, columns: Columns) -> Any:
    conditions = {verdict_name(index): sql for index, sql in conditions_of(request.validators).items()}
    if not conditions:
        return staged
    names = columns.schema.names
    values = [f"`{value_name(index)}` AS {quoted(name)}" for index, name in enumerate(names)]
    # All under one name that no column of a source has.
    kept = f"struct(`{ORD}`, {_listed(len(names))}) AS {quoted(_KEPT)}"
    staged.selectExpr(kept, *values).createOrReplaceTempView(_ROWS)
    try:
        spark.conf.set(_ANSI, "false")
        for sql in conditions.values():
            _check_condition(spark, sql)
        verdicts = [f"CAST((\n{sql}\n) AS BOOLEAN) AS {name}" for name, sql in conditions.items()]
        # Each was parsed as one expression, so the text says what it seems to say.
        query = f"SELECT {quoted(_KEPT)}.*, {', '.join(verdicts)} FROM {_ROWS}"  # noqa: S608
        judged = run_query(spark, query, {_ROWS})
    except InvalidQueryError as error:
        raise InvalidSourceError(request.source_name, f"validator {PREDICATE}: {error}") from error
    finally:
        spark.conf.set(_ANSI, "true")
    return judged


def _listed(count: int) -> str:
    return ", ".join(f"`{value_name(index)}`" for index in range(count))


def _check_condition(spark: Any, sql: str) -> None:
    """Refuse what is more, or less, than one expression.

    Raises:
        InvalidQueryError: It is.
    """
    try:
        java_session(spark).sessionState().sqlParser().parseExpression(sql)
    except PySparkException as error:
        raise invalid_query(error) from error
