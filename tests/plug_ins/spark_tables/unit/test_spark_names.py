"""Clauses SPARKTABLE-2 and SPARKTABLE-9: what datasets are called in Spark, and how columns differ."""

import pytest

from odf_protocol.events import DataField, DataSchema, DataTypeInt64, DataTypeOption, DataTypeString
from odf_spark_tables.columns import WrittenColumns, describe_difference
from odf_spark_tables.names import CHANGES, INSERT, SparkName, spark_name_of


@pytest.mark.parametrize(
    ("dataset", "suffix", "expected"),
    [
        ("cities", "", SparkName("`cities`", None, is_temporary=False)),
        ("countries.daily", CHANGES, SparkName("`countries`.`daily__changes`", "countries", is_temporary=False)),
        ("a.b.c", INSERT, SparkName("`a.b.c__insert`", None, is_temporary=True)),
        ("my-data", "", SparkName("`my-data`", None, is_temporary=True)),
        # Whatever a name is, it is one name: quotes are doubled.
        ("a`b", "", SparkName("`a``b`", None, is_temporary=True)),
        ("städte", "", SparkName("`städte`", None, is_temporary=True)),
    ],
)
def test_name_in_a_session(dataset: str, suffix: str, expected: SparkName) -> None:
    assert spark_name_of(dataset, suffix) == expected


def test_difference_names_each_column_that_is_missing_more_or_of_another_type() -> None:
    fields = (
        DataField(name="event_time", type=DataTypeOption(inner=DataTypeString())),
        DataField(name="city", type=DataTypeString()),
        DataField(name="people", type=DataTypeOption(inner=DataTypeInt64())),
    )
    expected = WrittenColumns(DataSchema(fields=fields), frozenset({"event_time"}))
    assert describe_difference(expected, [("people", "bigint"), ("city", "string")]) == ""
    found = [("people", "int"), ("more", "array<string>")]
    difference = "- `city` STRING, - `people` BIGINT, + `people` INT, + `more` ARRAY<STRING>"
    assert describe_difference(expected, found) == difference
