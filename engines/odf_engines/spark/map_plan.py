"""Rewriting a map so that every row keeps the offset and the operation of the row it came from.

The query says nothing about them, so they are added behind its back, on the analysed plan: the input gets two more
columns, and every list of columns above passes them on. Filters pass rows unchanged, and nothing else occurs in a
map.

Source: MAP-2 in ``spec/extensions/changelog-maps.md``.
"""

from typing import TYPE_CHECKING, Any

from odf_engines.spark.gate.trees import items, simple_name, view_name
from odf_engines.spark.java_classes import java_class
from odf_protocol.schema_spark import quote_spark_name
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SOURCE_OFFSET", "SOURCE_OP", "carry_source"]

# No name in a query can start with a NUL character, so these cannot meet a column of the user's.
SOURCE_OFFSET = "\0offset"
SOURCE_OP = "\0op"

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"


def carry_source(
    spark: "SparkSession", plan: Any, rows: "DataFrame", alias: str, vocabulary: Vocabulary
) -> "DataFrame":
    """Return the result of a map with two more columns behind its own, ``SOURCE_OFFSET`` and ``SOURCE_OP``.

    Args:
        spark: Session.
        plan: Analysed query that passed ``check_map``; reads the view ``alias``.
        rows: What the view ``alias`` was made from.
        alias: Of the input.
        vocabulary: Of the input.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.classic.dataframe import DataFrame

    wider = rows.select(
        "*",
        f.col(quote_spark_name(vocabulary.offset)).alias(SOURCE_OFFSET),
        f.col(quote_spark_name(vocabulary.op)).alias(SOURCE_OP),
    )
    leaf = wider._jdf.queryExecution().analyzed()  # noqa: SLF001
    hidden = items(leaf.output())[-2:]
    make_project, make_filter = java_class(f"{_LOGICAL}.Project"), java_class(f"{_LOGICAL}.Filter")
    defined: dict[int, Any] = {}

    def rewrite(node: Any) -> Any:
        if view_name(node) == alias:
            return leaf
        name = simple_name(node)
        if name == "CTERelationRef":
            return rewrite(defined[int(node.cteId())])
        if name == "WithCTE":
            defined.update({int(each.id()): each.child() for each in items(node.cteDefs())})
            return rewrite(node.plan())
        child = items(node.children())[0]
        match name:
            case "Project":
                columns = node.projectList()
                for attribute in hidden:
                    columns = columns.appended(attribute)
                return make_project(columns, rewrite(child))
            case "Filter":
                return make_filter(node.condition(), rewrite(child))
            case "SubqueryAlias" | "PipeOperator" | "View":
                return rewrite(child)
        raise AssertionError(f"not a plan of a map: {name}")

    rewritten = rewrite(plan)
    dataset = java_class("org.apache.spark.sql.classic.Dataset").ofRows(spark._jsparkSession, rewritten)  # noqa: SLF001
    return DataFrame(dataset, spark)
