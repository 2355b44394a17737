"""What a step really read of its inputs, counted by the engine.

======================  ==============================================================================
the step                how rows are counted
======================  ==============================================================================
a map: small, stored    where rows enter the plan of the query; Spark skips none before
a map in pieces         scans of the plan count their rows, which costs nothing; which offsets these
                        are is asked of Spark afterwards, which must read as many. Counting in the plan
                        would double the time of a large step
over whole inputs       those of small ones where they are read (``small_inputs``), of a large one where the rows
                        are chosen that a step touches (``touched_rows``) or the times of all are read
                        (``arrivals``); of others afterwards, of the column of offsets alone: such a query reads an
                        input several times, in parts
an input of a map that  afterwards, too
its query does not name
======================  ==============================================================================

Source: clause ENGINE-27 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql.functions import expr

from odf_engines.contract import TransformInput
from odf_protocol.schema_spark import quote_spark_name
from odf_spark.folded_rows import reaches_beyond, slices_upto
from odf_spark.gate.trees import items
from odf_spark.java_side import query_execution
from odf_spark.small_inputs import NOTHING_READ, RowsRead, Work

_NAME = "rows_read"
_READ = ("rows", "first", "last")


class Computed(Enum):
    """How the result of a step is computed."""

    SMALL = auto()  # collected in one piece
    CHUNKS = auto()  # collected piece by piece
    STORED = auto()  # by Spark, in files


def observe_rows(rows: DataFrame, offset: str, computed: Computed) -> tuple[DataFrame, Callable[[DataFrame], RowsRead]]:
    """Let Spark count rows as they pass.

    Args:
        rows: By offset.
        offset: Name of the column of offsets.
        computed: How what is made of them will be computed.

    Returns:
        The rows, and a function that says what passed once all that was made of them, its argument, was computed.
    """
    counted = _counted(offset)
    observation = Observation(_NAME)

    def count_rows() -> RowsRead:
        found: RowsRead = rows.agg(*counted).collect()[0].asDict()
        return found

    def count_chunks(result: DataFrame) -> RowsRead:
        found = rows.agg(*counted)
        read: RowsRead = found.collect()[0].asDict()
        if (scanned := _scanned_rows(result)) != _scanned_rows(found):
            read["rows"] = scanned
        return read

    def on_progress(result: DataFrame) -> RowsRead:
        if not _reads_files(result):  # as of WHERE false, whose result no row can change
            return count_rows()
        match computed:
            case Computed.SMALL:
                return _counted_in_plan(result)
            case Computed.CHUNKS:
                return count_chunks(result)
            case Computed.STORED:
                return dict(observation.get)

    observed = {Computed.SMALL: _NAME, Computed.STORED: observation}.get(computed)
    return rows if observed is None else rows.observe(observed, *counted), on_progress


def count_inputs(inputs: Sequence[TransformInput], work: Work) -> list[RowsRead]:
    """Count the rows of inputs: those of the step, and those before it where the query is over whole inputs.

    Args:
        inputs: Of the step.
        work: Of this request, with what was counted when it was read.
    """
    return [_count_input(each, work) for each in inputs]


def _count_input(source: TransformInput, work: Work) -> RowsRead:
    last = source.last_offset
    slices = slices_upto(source, last)
    if last is None or not slices:
        return NOTHING_READ
    first = 0 if source.earlier_slices or source.offset_interval is None else source.offset_interval.start
    if not first and (source.alias, last) in work.read:
        return work.read[source.alias, last]
    work.check(slices)
    is_cut = reaches_beyond(slices, source.vocabulary.offset, last)
    rows, ends = 0, set[int]()
    for path in slices:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=[source.vocabulary.offset]):
                offsets = batch.column(0)
                # Of others each row counts, whatever its offset is: none is to be there that was not asked for.
                offsets = offsets.filter(pc.greater_equal(offsets, first)) if first else offsets
                offsets = offsets.filter(pc.less_equal(offsets, last)) if is_cut else offsets
                rows += len(offsets)
                ends.update(each for each in pc.min_max(offsets).as_py().values() if each is not None)
    return {"rows": rows, "first": min(ends, default=None), "last": max(ends, default=None)}


def _counted(offset: str) -> list[Column]:

    column = quote_spark_name(offset)
    asked = ("count(1)", f"min({column})", f"max({column})")
    return [expr(text).alias(name) for name, text in zip(_READ, asked, strict=True)]


def _counted_in_plan(result: DataFrame) -> RowsRead:
    # A piece is a job of its own on the plan, which Spark's own observer hears nothing of.
    found = query_execution(result).observedMetrics().get(_NAME)
    row = found.get() if found.isDefined() else None
    return {name: None if row is None else row.get(place) for place, name in enumerate(_READ)}


def _reads_files(computed: DataFrame) -> bool:
    leaves = query_execution(computed).optimizedPlan().collectLeaves()
    return any(leaf.nodeName() == "LogicalRelation" for leaf in items(leaves))


def _scanned_rows(computed: DataFrame) -> int:
    leaves = query_execution(computed).executedPlan().collectLeaves()
    return sum(int(leaf.metrics().apply("numOutputRows").value()) for leaf in items(leaves))
