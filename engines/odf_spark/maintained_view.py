"""One step of a maintained view: its result before and after the step, and what changed between the two.

Both results are computed from the rows of the inputs alone, and never from what the view said before. So there is no
state that somebody could have made up, and whoever has the inputs can check any step by itself.

Source: clauses VIEW-2 to VIEW-9 in ``spec/extensions/maintained-views.md``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql.functions import col, expr, lit
from pyspark.sql.functions import max as most
from pyspark.sql.functions import min as least
from pyspark.sql.functions import sum as total

from odf_engines.contract import TransformInput, TransformRequest
from odf_engines.errors import InvalidQueryError
from odf_protocol.timestamp import Timestamp
from odf_spark.arrivals import highest_watermark
from odf_spark.changelog import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odf_spark.chunks import CHUNK_BYTES, bound_rows, collect_chunks, fit_in_memory, store_chunks
from odf_spark.fixed_order import allow_any_order, unspilled
from odf_spark.folded_rows import folded_rows
from odf_spark.gate.kept_times import Units
from odf_spark.gate.trees import iter_plan, simple_name
from odf_spark.java_side import analysed_plan
from odf_spark.known_transforms import KnownView
from odf_spark.small_inputs import Work
from odf_spark.sorted_runs import find_runs, has_plain_columns
from odf_spark.steps import analyse_transform, compute_steps
from odf_spark.touched_rows import keep_touched

_COUNT, _MIN, _MAX = "count", "least", "most"  # columns of the query are v0, v1, ... meanwhile
OP = "op"
"""The column of operations of what ``changes_between`` gives, behind v0, v1, ..."""
_PARTITION_BYTES = 32 * 1024 * 1024  # guess: of files, for one task
_MAX_PARTITIONS = 64  # guess: a task of its own for each of more would cost more than it does
_MAX_FILES = 256  # guess: a task of its own, or several, for each
_COLLECTED_BYTES = 64 * 1024 * 1024  # guess: of input files whose result may be held in memory


def iter_changes(
    spark: SparkSession, request: TransformRequest, known: KnownView, work: Work, chunk_rows: int
) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
    """Yield the rows of one step, in their order, and the operation of each.

    Args:
        spark: A session of this request's own.
        request: With the earlier slices of all inputs.
        known: The view.
        work: Of this request.
        chunk_rows: Rows of a table at most.

    Raises:
        PySparkException, LimitExceededError: The query failed on a row; or its order rests on more than memory holds.
    """
    request = keep_touched(request, known, work)
    is_joined_whole = not known.depends_on_order and _is_large(request) and len(request.inputs) > 1

    def compute(inputs: Sequence[TransformInput], ends: Sequence[int | None]) -> DataFrame:
        fold = partial(folded_rows, spark, in_content_order=known.depends_on_order, work=work)
        if any(one.schema != now.schema for one, now in zip(inputs, request.inputs, strict=True)):
            rows = {each.alias: fold(each, end) for each, end in zip(inputs, ends, strict=True)}
            return analyse_transform(spark, request.transform, rows).rows  # the gate has not seen these columns
        for is_whole in (True, False) if is_joined_whole else (False,):
            rows = {
                each.alias: fold(each, end, is_joined_whole=is_whole) for each, end in zip(inputs, ends, strict=True)
            }
            result = compute_steps(spark, known.steps, rows)
            if not is_whole or not _multiplies_rows(result):
                break
        return result

    yield from iter_differences(spark, request, known, work, chunk_rows, compute)


def iter_differences(
    spark: SparkSession,
    request: TransformRequest,
    known: KnownView,
    work: Work,
    chunk_rows: int,
    compute: Callable[[Sequence[TransformInput], Sequence[int | None]], DataFrame],
) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
    """Yield what a step changed between two results.

    Args:
        spark: See ``iter_changes``, as are the next four.
        request: Its inputs are given to ``compute`` as they were at the time.
        known: The view.
        work: Of this request.
        chunk_rows: Rows of a table at most.
        compute: Gives the result over inputs up to the offsets beside them.

    Raises:
        PySparkException, LimitExceededError: See ``iter_changes``.
    """
    make_ready(spark, request, in_one_order=known.depends_on_order)
    after = compute(request.inputs, [each.last_offset for each in request.inputs])
    before, ends = None, [each.prev_offset for each in request.inputs]
    # A step without rows, as of a watermark alone, gives what the query gives over none: a total has a row there too.
    if request.next_offset != 0 or any(end is not None for end in ends):
        before = compute([_as_before(each) for each in request.inputs], ends)
    runs = None
    if before is None and not known.depends_on_order:
        runs = _find_runs(after, request, known, work, chunk_rows)
    if runs is not None:
        for chunk in runs:
            yield chunk.rename_columns(known.result.names), np.full(chunk.num_rows, APPEND, dtype=np.int64)
        return
    with unspilled(spark, matters=known.depends_on_order):
        changes = changes_between(after, before, known.query.key)
        yield from iter_operations(changes, known.result.names, request, work, chunk_rows)


def promised_watermark(spark: SparkSession, request: TransformRequest, known: KnownView) -> Timestamp | None:
    """Return the watermark after a step: up to where all inputs are complete, never below the one before (VIEW-8)."""
    stated = [highest_watermark(each) for each in request.inputs]
    reached = [each for each in stated if each is not None]
    if known.kept_times is None or len(reached) < len(stated):
        return request.prev_watermark
    lowest = min(reached)
    if any(known.kept_times):
        lowest = Timestamp.from_unix_ms(min(_cut_down(spark, lowest.unix_ms, units) for units in known.kept_times))
    return lowest if request.prev_watermark is None else max(lowest, request.prev_watermark)


def _cut_down(spark: SparkSession, unix_ms: int, units: Units) -> int:
    time = f"timestamp_millis({unix_ms}L)"
    for unit in units:  # a word of letters, from the query
        time = f"date_trunc('{unit}', {time})"
    (found,) = spark.sql(f"SELECT unix_millis({time})").collect()[0]
    # What is no unit gives null, as do the rows of the query then.
    return unix_ms if found is None else int(found)


def _as_before(each: TransformInput) -> TransformInput:
    # What a query gives may rest on the order and the number of columns, so it sees those that there were.
    return replace(each, schema=each.prev_schema or each.schema, watermarks=())


def make_ready(spark: SparkSession, request: TransformRequest, *, in_one_order: bool) -> None:
    """Set a session up for queries over whole inputs.

    Args:
        spark: A session of this request's own.
        request: With the earlier slices of all inputs.
        in_one_order: Whether the result is exact only in one fixed order of execution.
    """
    if not in_one_order:
        allow_any_order(spark)
        partitions = 1 + _read_bytes(request) // _PARTITION_BYTES
        spark.conf.set("spark.sql.files.maxPartitionBytes", max(CHUNK_BYTES, _PARTITION_BYTES))
        spark.conf.set("spark.sql.shuffle.partitions", min(_MAX_PARTITIONS, partitions))


def iter_operations(
    changes: DataFrame, names: Sequence[str], request: TransformRequest, work: Work, chunk_rows: int
) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
    """Compute what ``changes_between`` gave: yield the rows under their names, and the operation of each.

    Args:
        changes: The last column is ``OP``.
        names: Of the others.
        request: Whose limits count.
        work: Of this request.
        chunk_rows: Rows of a table at most.
    """
    is_held = _read_bytes(request) <= _COLLECTED_BYTES
    chunks = (
        collect_chunks(changes, changes.schema) if is_held else store_chunks(changes, work.folder / "rows", chunk_rows)
    )
    for chunk in bound_rows(chunks, request.limits.output_rows):
        if chunk.num_rows:
            rows = chunk.drop_columns([OP]).rename_columns(names)
            yield rows, np.asarray(chunk.column(OP)).astype(np.int64)


def _is_large(request: TransformRequest) -> bool:
    return _read_bytes(request) >= _PARTITION_BYTES


def _find_runs(
    after: DataFrame, request: TransformRequest, known: KnownView, work: Work, chunk_rows: int
) -> Iterator[pa.Table] | None:
    """Find the rows of a large first step in their order without an exchange; None where that is not possible."""
    slices = [path for each in request.inputs for path in each.slices]
    columns = [f"v{position}" for position in range(len(after.columns))]
    order = columns if known.query.key is None else [columns[position] for position in known.query.key]
    if not (order and _is_large(request) and len(slices) <= _MAX_FILES):
        return None
    if not (has_plain_columns(after) and fit_in_memory(slices)):
        return None
    max_rows = request.limits.output_rows
    return find_runs(after.toDF(*columns), order, work.folder / "runs", max_rows=max_rows, chunk_rows=chunk_rows)


def _multiplies_rows(result: DataFrame) -> bool:
    """Say whether many rows may come of a row of a small input before it is joined."""
    return any(simple_name(node) in {"Expand", "Generate"} for node in iter_plan(analysed_plan(result)))


def _read_bytes(request: TransformRequest) -> int:
    return sum(path.stat().st_size for each in request.inputs for path in (*each.earlier_slices, *each.slices))


def _check_same_columns(after: DataFrame, before: DataFrame) -> None:
    """Check that the change of an input's schema left the columns of the result as they were (VIEW-3).

    Raises:
        InvalidQueryError: It did not.
    """
    if _columns_of(after) != _columns_of(before):
        raise InvalidQueryError(
            "the schema of an input changed, and the columns of the result with it; name the columns instead of *"
        )


def _columns_of(rows: DataFrame) -> list[tuple[str, str]]:
    return [(each.name, each.dataType.simpleString()) for each in rows.schema.fields]


def changes_between(after: DataFrame, before: DataFrame | None, key: Sequence[int] | None) -> DataFrame:
    """Return the rows that a step gives and takes, with their operations, in the one order that they have (VIEW-7).

    Args:
        after: The result after the step.
        before: The result before it, None where there was none.
        key: Positions of the columns that tell rows apart, None where nothing is known.

    Raises:
        InvalidQueryError: The results have other columns.
    """
    columns = [f"v{position}" for position in range(len(after.columns))]
    order = columns if key is None else [columns[position] for position in key]
    if before is None and has_plain_columns(after):
        return after.toDF(*columns).withColumn(OP, lit(APPEND)).orderBy(*order, OP)
    rows = after.toDF(*columns).withColumn(_COUNT, lit(1))
    if before is not None:
        _check_same_columns(after, before)
        rows = rows.unionAll(before.toDF(*columns).withColumn(_COUNT, lit(-1)))
    counted = rows.groupBy(*columns).agg(total(_COUNT).alias(_COUNT)).where(col(_COUNT) != 0)
    operation = f"CASE WHEN `{_COUNT}` > 0 THEN {APPEND} ELSE {RETRACT} END"
    if key is not None:
        same_key = Window.partitionBy(*(order or [lit(0)]))
        counted = counted.withColumns({_MIN: least(_COUNT).over(same_key), _MAX: most(_COUNT).over(same_key)})
        operation = (
            f"CASE WHEN `{_MIN}` > 0 THEN {APPEND} WHEN `{_MAX}` < 0 THEN {RETRACT} "
            f"WHEN `{_COUNT}` < 0 THEN {CORRECT_FROM} ELSE {CORRECT_TO} END"
        )
    changed = counted.select(
        *columns, expr(f"explode(array_repeat({operation}, CAST(abs(`{_COUNT}`) AS INT)))").alias(OP)
    )
    # Of a pair the row that is taken comes first; other rows are equal in the order only if they are the same.
    return changed.orderBy(*order, OP)
