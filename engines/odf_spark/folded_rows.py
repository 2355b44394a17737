"""The rows of an input that are in force after an offset: everything given and not taken again.

Rows are compared by all columns of their data. Their order is none, or that of their content, which does not depend on
how the rows arrived.

Source: clauses VIEW-2 and VIEW-5 in ``spec/extensions/maintained-views.md``.
"""

import secrets
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql.functions import broadcast, col, expr, lead

from odf_engines.contract import TransformInput
from odf_protocol.events import DataSchema
from odf_protocol.schema_spark import quote_spark_name
from odf_protocol.vocabulary import Vocabulary
from odf_spark.changelog import APPEND, CORRECT_TO
from odf_spark.gate.temporal_joins import FROM, UNTIL
from odf_spark.java_side import java_class, java_session, rows_of, scala_sequence
from odf_spark.relations import empty_rows, list_columns, stated_columns, struct_of
from odf_spark.small_inputs import Work, write_folded

# No name in a dataset can start with a NUL character, so these cannot meet a column of the data.
_HASH, _COUNT = "\0hash", "\0count"
OFFSET = "\0offset"
"""Where a row that is in force was given last."""
_FLOATS = frozenset({"float", "double"})
_LEFT_OUT = "left out"


def data_schema(schema: DataSchema, vocabulary: Vocabulary) -> DataSchema:
    """Return the columns that describe a row and not its change."""
    log = (vocabulary.offset, vocabulary.op, vocabulary.system_time)
    return DataSchema(fields=tuple(each for each in schema.fields if each.name not in log))


def folded_rows(
    spark: SparkSession,
    source: TransformInput,
    upto: int | None,
    *,
    in_content_order: bool,
    event_times_us: tuple[int, int] | None = None,
    without: npt.NDArray[np.int64] | None = None,
    work: Work,
    with_offset: bool = False,
    is_joined_whole: bool = False,
) -> DataFrame:
    """Return the current rows after an offset, without the columns of the changelog.

    Args:
        spark: Session.
        source: The input, with its slices from the first row on.
        upto: Last offset that counts, None for no rows.
        in_content_order: In one partition, ordered by all columns.
        event_times_us: Only rows from the first of these times on and before the second; None for all.
        without: Offsets of rows that do not count, whether they give or take.
        work: Of this request, for rows and offsets that are written down for Spark, and what was read.
        with_offset: The last column is ``OFFSET``.
        is_joined_whole: Let joins take all rows of a small input to each part of the other side, which stays in place.
    """
    data = data_schema(source.schema, source.vocabulary)
    struct = struct_of(data, alias=source.alias)
    slices = slices_upto(source, upto)
    if upto is None or not slices:
        rows = empty_rows(spark, struct)
        rows = rows.selectExpr("*", f"0L AS `{OFFSET}`") if with_offset else rows
    else:
        struct_of_files = struct_of(source.schema, alias=source.alias)
        reader = java_session(spark).read().schema(struct_of_files)
        small = work.folder / f"folded-{secrets.token_hex(4)}.parquet"
        read = write_folded(
            small, slices, data, source.vocabulary, upto, event_times_us=event_times_us, without=without, work=work
        )
        if read is not None:
            work.read.setdefault((source.alias, upto), read)  # whoever chose the rows has counted all of them
            listed = _listed(data, source.vocabulary, with_offset=with_offset)
            rows = rows_of(spark, reader.parquet(scala_sequence([str(small)]))).selectExpr(*listed)
            rows = broadcast(rows) if is_joined_whole else rows
        else:
            work.check(slices)
            stored = rows_of(spark, reader.parquet(scala_sequence(map(str, slices))))
            stored = _counting(spark, stored, source, slices, upto, event_times_us, without, work.folder)
            rows = _fold(stored, data, source.vocabulary, slices, with_offset=with_offset)
    if in_content_order:
        rows = order_by_content(rows)
    columns = stated_columns(data, struct)
    if with_offset:
        columns.append(
            java_class("org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute")(scala_sequence([OFFSET]))
        )
    return list_columns(spark, rows, columns)


def order_by_content(rows: DataFrame) -> DataFrame:
    """Return rows in one partition, ordered by all their columns but ``OFFSET`` from left to right (VIEW-5)."""
    kinds = {quote_spark_name(name): kind for name, kind in rows.dtypes if name != OFFSET}
    # Two zeros are equal in an order, and not to a query that writes them as text: files would say which comes first.
    zeros = [expr(f"IF({name} = 0, CAST({name} AS STRING), '')") for name, kind in kinds.items() if kind in _FLOATS]
    return rows.coalesce(1).sortWithinPartitions(*kinds, *zeros)


def _counting(
    spark: SparkSession,
    stored: DataFrame,
    source: TransformInput,
    slices: Sequence[Path],
    upto: int,
    event_times_us: tuple[int, int] | None,
    without: npt.NDArray[np.int64] | None,
    work: Path,
) -> DataFrame:
    if reaches_beyond(slices, source.vocabulary.offset, upto):
        stored = stored.where(f"{quote_spark_name(source.vocabulary.offset)} <= {upto}L")
    if event_times_us is not None:
        first, end = (f"timestamp_micros({each}L)" for each in event_times_us)
        event_time = quote_spark_name(source.vocabulary.event_time)
        stored = stored.where(f"{event_time} >= {first} AND {event_time} < {end}")
    if without is not None and without.size:
        stored = _leave_out(spark, stored, source.vocabulary.offset, without, work)
    return stored


def slices_upto(source: TransformInput, upto: int | None) -> tuple[Path, ...]:
    """List the slices of an input that have rows up to an offset; the last of them may have others behind it."""
    is_earlier = upto is None or (source.prev_offset is not None and upto <= source.prev_offset)
    # One that the bound of a step cuts is among the earlier ones and among those of the step.
    return tuple(dict.fromkeys(source.earlier_slices if is_earlier else (*source.earlier_slices, *source.slices)))


def reaches_beyond(slices: Sequence[Path], offset: str, upto: int) -> bool:
    """Say whether the last slice has rows behind an offset, as it does where the bound of a step cuts it.

    Only then does a plan name the offset. It is another one in each step, and what Spark compiles for a plan that names
    numbers serves no other.
    """
    with pq.ParquetFile(slices[-1]) as file:
        return any(
            np.any(np.asarray(rows.column(0).fill_null(-1)) > upto) for rows in file.iter_batches(columns=[offset])
        )


def _leave_out(
    spark: SparkSession, rows: DataFrame, offset: str, offsets: npt.NDArray[np.int64], work: Path
) -> DataFrame:

    # A file, because there may be many, and a plan that lists them is planned for long.
    path = work / f"left-out-{secrets.token_hex(4)}.parquet"
    pq.write_table(pa.table({_LEFT_OUT: offsets}), path)
    left_out = broadcast(spark.read.parquet(str(path)))
    return rows.join(left_out, rows[quote_spark_name(offset)] == left_out[f"`{_LEFT_OUT}`"], "left_anti")


def _fold(
    rows: DataFrame, data: DataSchema, vocabulary: Vocabulary, slices: Sequence[Path], *, with_offset: bool
) -> DataFrame:

    names = [quote_spark_name(each.name) for each in data.fields]
    op, offset = quote_spark_name(vocabulary.op), quote_spark_name(vocabulary.offset)
    listed = _listed(data, vocabulary, with_offset=with_offset)
    if not take_rows(slices, vocabulary.op):
        return rows.selectExpr(*listed)
    is_given = f"{op} IN ({APPEND}, {CORRECT_TO})"
    given, taken = rows.where(is_given), rows.where(f"NOT {is_given}")
    # Few rows are taken, as a rule: only those like them are grouped, all others are in force as they stand.
    content = expr(f"xxhash64({', '.join(names)})").alias(_HASH)
    hashed = given.select("*", content)
    like_taken = broadcast(taken.select(content).distinct())
    touched = hashed.join(like_taken, _HASH, "left_semi").drop(_HASH).unionAll(taken)
    count = expr(f"sum(CASE WHEN {is_given} THEN 1 ELSE -1 END)").alias(_COUNT)
    given_last = expr(f"max(CASE WHEN {is_given} THEN {offset} END)").alias(OFFSET)
    left = touched.groupBy(*names).agg(count, given_last).where(f"`{_COUNT}` > 0")
    known = [*names, f"`{OFFSET}`"] if with_offset else names
    left = left.select(*known, expr(f"explode(array_repeat(0, CAST(`{_COUNT}` AS INT)))")).select(*known)
    return hashed.join(like_taken, _HASH, "left_anti").selectExpr(*listed).unionAll(left)


def _listed(data: DataSchema, vocabulary: Vocabulary, *, with_offset: bool) -> list[str]:
    names = [quote_spark_name(each.name) for each in data.fields]
    return [*names, f"{quote_spark_name(vocabulary.offset)} AS `{OFFSET}`"] if with_offset else names


def take_rows(slices: Sequence[Path], op: str) -> bool:
    """Say whether any row of these files takes another one away; what a file says of its own rows may be false."""
    for path in slices:
        with pq.ParquetFile(path) as file:
            for rows in file.iter_batches(columns=[op]):
                if np.any(np.asarray(rows.column(0).fill_null(-1)) != APPEND):
                    return True
    return False


def with_versions(rows: DataFrame, event_time: str, key: Sequence[str]) -> DataFrame:
    """Add to the rows of a temporal table from when and until when each is the newest of its key.

    Args:
        rows: The last column is ``OFFSET``, which is taken away.
        event_time: Name of its event time.
        key: Names of the columns of its primary key.
    """
    time = col(quote_spark_name(event_time)).cast("timestamp")
    # Of versions of one time, all but the one given last are in force for no time at all.
    in_order = Window.partitionBy(*(quote_spark_name(each) for each in key)).orderBy(time, f"`{OFFSET}`")
    return rows.withColumns({FROM: time, UNTIL: lead(time).over(in_order)}).drop(OFFSET)
