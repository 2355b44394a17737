"""A map without its input, rewritten so that every row keeps the offset and the operation of the row it came from.

The query says nothing about them, so they are added behind its back, on the analysed plan: the input gets two more
columns, and every list of columns above passes them on. Filters pass rows unchanged, and nothing else occurs in a
map. So a map is a chain of lists and filters, which is put over the rows of a step.

Source: MAP-2 in ``spec/extensions/changelog-maps.md``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from odf_protocol.vocabulary import Vocabulary
from odf_spark.gate.trees import items, simple_name, view_name
from odf_spark.java_side import analysed_plan, java_class, rows_of_plan, scala_sequence

# No name in a query can start with a NUL character, so these cannot meet a column of the user's.
SOURCE_OFFSET = "\0offset"
SOURCE_OP = "\0op"

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"


@dataclass(frozen=True, slots=True)
class MapPlan:
    """A map that can be put over rows; it knows neither rows nor a session.

    Attributes:
        layers: From the input up: the name of a plan's class, and its list of columns or its condition.
    """

    layers: tuple[tuple[str, Any], ...]

    def over(self, spark: SparkSession, rows: DataFrame) -> DataFrame:
        """Return the result of the map for rows as they stand in files.

        The last two of its columns are ``SOURCE_OFFSET`` and ``SOURCE_OP``.
        """
        plan = analysed_plan(rows)
        for name, content in self.layers:
            plan = java_class(f"{_LOGICAL}.{name}")(content, plan)
        return rows_of_plan(spark, plan)


def plan_map(plan: Any, rows: DataFrame, columns: Sequence[Any], alias: str, vocabulary: Vocabulary) -> MapPlan:
    """Take a map off the rows that it was analysed with.

    Args:
        plan: Analysed query that passed ``check_map``; reads the view ``alias``.
        rows: What the view ``alias`` was made from.
        columns: Of these rows, from ``stated_columns``.
        alias: Of the input.
        vocabulary: Of the input.
    """
    listed, passed = list(columns), []
    given = items(analysed_plan(rows).output())
    for name, source in ((SOURCE_OFFSET, vocabulary.offset), (SOURCE_OP, vocabulary.op)):
        attribute, column = next(each for each in zip(given, columns, strict=True) if str(each[0].name()) == source)
        attribute = attribute.newInstance().withName(name)
        passed.append(attribute)
        make_alias = java_class("org.apache.spark.sql.catalyst.expressions.Alias")
        nothing, none = scala_sequence([]), java_class("scala.Option").empty()
        listed.append(make_alias(column.child(), name, attribute.exprId(), nothing, none, nothing))
    return MapPlan((("Project", scala_sequence(listed)), *reversed([*_iter_layers(plan, alias, given, passed)])))


def _iter_layers(plan: Any, alias: str, given: list[Any], passed: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the lists and filters of a map from the top, each list with the columns that it passes on."""
    defined: dict[int, Any] = {}
    while view_name(plan) != alias:
        match simple_name(plan):
            case "CTERelationRef":
                table = defined[int(plan.cteId())]
                yield "Project", scala_sequence([*_renumbered(items(table.output()), plan), *passed])
                plan = table
            case "WithCTE":
                defined.update({int(each.id()): each.child() for each in items(plan.cteDefs())})
                plan = plan.plan()
            case "Project":
                columns = plan.projectList()
                for attribute in passed:
                    columns = columns.appended(attribute)
                yield "Project", columns
                plan = plan.child()
            case "Filter":
                yield "Filter", plan.condition()
                plan = plan.child()
            case "SubqueryAlias" | "PipeOperator" | "View":
                plan = plan.child()
            case name:
                raise AssertionError(f"not a plan of a map: {name}")

    yield "Project", scala_sequence([*_renumbered(given, plan), *passed])


def _renumbered(columns: list[Any], reference: Any) -> Iterator[Any]:
    """Yield the columns of a table under the numbers that a reference to it has given them.

    An analyser that sees two references gives the columns of the second numbers of their own.
    """
    make_alias = java_class("org.apache.spark.sql.catalyst.expressions.Alias")
    nothing, none = scala_sequence([]), java_class("scala.Option").empty()
    for column, known_as in zip(columns, items(reference.output()), strict=True):
        if column.exprId().equals(known_as.exprId()):
            yield column
        else:
            yield make_alias(column, known_as.name(), known_as.exprId(), nothing, none, nothing)
