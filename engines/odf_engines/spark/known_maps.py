"""Transforms that passed the gate in this process, so that many steps of one dataset ask it once.

A transform is known by everything that its analysis looks at: its text, and what its inputs and its output are called.
What is kept of it is what follows from that alone, so no row, no file and no session of an earlier request is in it.

Source: clause GATE-14 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from odf_engines.contract import QueryTable, TransformRequest
from odf_engines.spark.gate.map_class import MapQuery
from odf_engines.spark.map_plan import MapPlan, plan_map
from odf_engines.spark.relations import empty_rows, list_columns, stated_columns, struct_of
from odf_engines.spark.slices import output_schema
from odf_engines.spark.steps import Analysis, analyse_transform
from odf_protocol.events import TransformSql
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["KnownMap", "examine_transform", "find_out_map"]

_MOST_KNOWN = 16  # guess: a process serves one stranger's dataset, or the derivatives of one home


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
    result: "StructType"
    schema: pa.Schema


_Key = tuple[TransformSql, tuple[QueryTable, ...], Vocabulary]
_known: dict[_Key, KnownMap] = {}


def find_out_map(spark: "SparkSession", request: TransformRequest) -> KnownMap:
    """Return what is known of the map of a request; the gate is asked at the first request for it.

    Raises:
        InvalidQueryError, NotReplayableError: The gate's refusal, which is never kept.
    """
    inputs = tuple(
        QueryTable(name=each.alias, vocabulary=each.vocabulary, schema=each.schema) for each in request.inputs
    )
    key = (request.transform, inputs, request.vocabulary)
    known = _known.pop(key, None)
    if known is None:
        analysis, known = examine_transform(spark, *key)
        analysis.get_map()
        assert known is not None
    while len(_known) >= _MOST_KNOWN:
        del _known[next(iter(_known))]
    # Last in the dictionary is what was used last.
    _known[key] = known
    return known


def examine_transform(
    spark: "SparkSession", transform: TransformSql, inputs: Sequence[QueryTable], vocabulary: Vocabulary
) -> tuple[Analysis, KnownMap | None]:
    """Take a transform through the gate, over inputs without rows.

    Args:
        spark: A session without views.
        transform: The queries.
        inputs: Names, vocabularies and schemas.
        vocabulary: Of the output.

    Returns:
        The gate's answer and, for a map, what it takes to execute it.

    Raises:
        InvalidQueryError, NotReplayableError: The gate's refusal.
    """
    structs = {each.name: struct_of(each.schema, alias=each.name) for each in inputs}
    columns = {each.name: stated_columns(each.schema, structs[each.name]) for each in inputs}
    stored = {name: empty_rows(spark, struct) for name, struct in structs.items()}
    rows = {name: list_columns(spark, stored[name], columns[name]) for name in stored}
    relations = {each.name: (rows[each.name], each.vocabulary) for each in inputs}
    analysis = analyse_transform(spark, transform, relations, vocabulary)
    if (query := analysis.map) is None:
        return analysis, None
    alias = query.input_alias
    plan = plan_map(analysis.plan, rows[alias], columns[alias], alias, relations[alias][1])
    result = plan.over(spark, stored[alias]).schema
    own = type(result)(result.fields[:-2])
    return analysis, KnownMap(query, structs[alias], plan, result, output_schema(own.json(), vocabulary))
