"""Clause GATE-17: queries whose result rests on the engine's build, written so that they look as if it did not.

A grade is what others rely on when they re-execute a step with another build: *reproducible* that is not true lets
an honest publisher be shown as a liar, or a liar as one of two builds.
"""

import pytest

from odf_engines.contract import GradeLevel, QueryTable
from odf_engines.errors import InvalidQueryError
from odf_protocol.vocabulary import Vocabulary
from odf_spark.gate.functions import FUNCTIONS, FunctionUse
from support.transforms import ORDERS, transform_request, transform_sql

pytestmark = pytest.mark.spark

TABLE = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)

# Expression over (id BIGINT, status STRING, amount DOUBLE, event_time TIMESTAMP), and part of the reason.
PINNED = {
    "float-in-json": ("to_json(struct(amount))", "JSON"),
    "number-taken-out-of-json": ("get_json_object(status, '$.a')", "JSON"),
    "number-read-from-json-as-text": ("from_json(status, 'a STRING').a", "JSON"),
    "float-in-an-array-as-text": ("CAST(array(amount) AS STRING)", "digits"),
    "float-in-a-map-as-text": ("CAST(map(1, amount) AS STRING)", "digits"),
    "float-in-a-struct-as-text": ("struct(id, amount)::string", "digits"),
    "float-in-an-array-as-texts": ("CAST(array(amount) AS ARRAY<STRING>)", "digits"),
    "float-in-a-struct-as-texts": ("CAST(struct(id, amount) AS STRUCT<a: BIGINT, b: STRING>)", "digits"),
    "float-in-maps-of-structs-as-texts": ("CAST(map(1, struct(amount)) AS MAP<INT, STRUCT<a: STRING>>)", "digits"),
    "float-of-four-bytes-as-text": ("CAST(CAST(id AS FLOAT) AS STRING)", "digits"),
    "float-joined-to-text": ("concat_ws(',', status, amount)", "digits"),
    "float-among-texts": ("elt(1, status, amount)", "digits"),
    "floats-joined": ("array_join(array(amount), ',')", "digits"),
    "float-by-a-format": ("format_string('%s', amount)", "formats"),
    "float-in-an-array-by-a-format": ("printf('%s', array(amount))", "formats"),
    "number-by-a-format": ("format_number(id, 2)", "formats"),
    "time-by-a-format": ("to_char(event_time, 'MMM')", "formats"),
    "float-as-decimal": ("CAST(amount AS DECIMAL(18, 2))", "digits"),
    "float-in-an-array-as-decimal": ("CAST(array(amount) AS ARRAY<DECIMAL(18, 2)>)", "digits"),
    "rounded-float": ("round(amount, 2)", "digits"),
    "rounded-to-even": ("bround(amount)", "digits"),
    "ceiling-with-places": ("ceil(amount, 2)", "digits"),
    "hash-of-a-float": ("hash(id, amount)", "-0.0"),
    "long-hash-of-floats": ("xxhash64(array(amount))", "-0.0"),
    "nested-values-as-text": ("CAST(array(id) AS STRING)", "nested"),
    "variant": ("CAST(CAST(amount AS VARIANT) AS STRING)", "variant"),
    "letters-without-a-function": ("status ILIKE 'a%'", "letters"),
    "letters-without-a-function-of-several": ("status ILIKE ANY ('a%', 'b%')", "letters"),
    "masked-letters": ("mask(status)", "letters"),
    "pattern": ("status RLIKE '^[a-z]+$'", "pattern"),
    "pattern-of-a-column": ("regexp_replace(status, status, 'x')", "pattern"),
    "pattern-behind-a-function": ("regexp_count(status, '\\\\w')", "pattern"),
    "split-by-a-pattern": ("split(status, '[,;]')", "pattern"),
    "map-by-a-pattern": ("str_to_map(status, ',', '.')", "pattern"),
    "names-of-months": ("to_date(status, 'dd MMM yyyy')", "names"),
    "morning-and-afternoon": ("to_timestamp(status, 'yyyy-MM-dd hh:mm a')", "names"),
    "pattern-of-times-of-a-column": ("unix_timestamp(status, status)", "names"),
    "zone-in-a-literal": ("TIMESTAMP '2020-06-01 00:00:00 Europe/Berlin'", "zones"),
    "zone-in-a-literal-by-letters": ("TIMESTAMP '2020-06-01 00:00:00 EST'", "zones"),
    "zone-in-a-literal-behind-escapes": (r"TIMESTAMP '2020-06-01 00:00:00 \u0045\u0053\u0054'", "zones"),
    "zone-in-a-cast": ("CAST('2020-06-01 00:00:00 Asia/Tokyo' AS TIMESTAMP)", "zones"),
    "zone-in-a-comparison": ("event_time < '2020-06-01 00:00:00 Asia/Tokyo'", "zones"),
    "zone-of-parts": ("make_timestamp(2020, 6, 1, 0, 0, 0, status)", "zones"),
    "address": ("parse_url(status, 'HOST')", "addresses"),
    "order-by-an-own-comparison": ("array_sort(array(id), (a, b) -> 0)", "sort"),
    "angles": ("degrees(amount)", "mathematical"),
    "names-of-types": ("typeof(amount)", "words"),
}

REPRODUCIBLE = {
    "whole-numbers-as-text": "CAST(id AS STRING)",
    "decimals-as-text": "CAST(CAST(id AS DECIMAL(18, 2)) AS STRING)",
    "times-as-text": "CAST(event_time AS STRING)",
    "floats-as-whole-numbers": "CAST(amount AS BIGINT)",
    "text-as-float": "CAST(status AS DOUBLE)",
    "floats-in-arrays": "CAST(array(amount) AS ARRAY<FLOAT>)",
    "struct-with-names-of-types": "struct(id AS double, status AS float)",
    "rounded-decimals": "round(CAST(id AS DECIMAL(18, 4)), 2)",
    "floor": "floor(amount)",
    "float-arithmetic": "amount * 2 + 1 / amount",
    "hash-of-texts": "xxhash64(id, status)",
    "plain-text-searched": "split(status, ',')",
    "escaped-text-searched": "split(status, '\\\\.')",
    "like": "status LIKE 'a%'",
    "digits-of-times": "to_timestamp(status, \"yyyy-MM-dd'T'HH:mm:ss\")",
    "literal-in-utc": "TIMESTAMP '2020-06-01T00:00:00Z'",
    "literal-in-utc-by-name": "TIMESTAMP '2020-06-01 00:00:00 UTC'",
    "literal-with-an-offset": "TIMESTAMP '2020-06-01 00:00:00+02:00'",
    "compared-with-a-day": "event_time > '2020-06-01'",
}

# Functions that are rejected outright, with a call of each that would be valid.
REJECTED = {
    "text-of-a-struct": "to_csv(struct(amount))",
    "document-of-a-struct": "to_xml(struct(amount))",
    "variant": "parse_json(status)",
    "schema-of-text": "schema_of_json('{}')",
    "collate-as-a-function": "collate(status, 'UNICODE')",
    "encryption": "aes_encrypt(status, 'abcdefghijklmnop')",
    "sketch": "bitmap_count(CAST(status AS BINARY))",
    "sentences": "sentences(status)",
}


def grade_of(session, expression):
    query = transform_sql(f"SELECT event_time, {expression} AS x FROM orders")
    return session.check(query, [TABLE])


COLLATED = {
    "collation": "status COLLATE UNICODE_CI = 'a'",
    "collation-of-plain-letters": "status COLLATE UTF8_LCASE = 'a'",
    "collation-by-a-cast": "CAST(status AS STRING COLLATE UNICODE) < 'a'",
    "collation-inside-a-cast": "CAST(array(status) AS ARRAY<STRING COLLATE UNICODE_CI>)",
    "order-of-a-collation": "greatest(status COLLATE DE, 'a')",
}


@pytest.mark.parametrize(("expression", "reason"), PINNED.values(), ids=PINNED)
def test_what_rests_on_the_engines_build_is_pinned_with_its_reason(spark_session, expression, reason):
    grade = grade_of(spark_session, expression)
    assert grade.level is GradeLevel.PINNED, grade
    assert any(reason in each.reason for each in grade.findings), grade.findings


@pytest.mark.parametrize("expression", REPRODUCIBLE.values(), ids=REPRODUCIBLE)
def test_what_follows_from_the_values_is_replayable(spark_session, expression):
    grade = grade_of(spark_session, expression)
    assert (grade.level, grade.findings) == (GradeLevel.REPRODUCIBLE, ())


@pytest.mark.parametrize("expression", COLLATED.values(), ids=COLLATED)
def test_collation_is_rejected_however_it_is_written(spark_session, expression):
    grade = grade_of(spark_session, expression)
    assert grade.level is GradeLevel.REJECTED
    assert "collation" in grade.findings[0].reason


@pytest.mark.parametrize("expression", REJECTED.values(), ids=REJECTED)
def test_function_that_is_not_for_queries_is_rejected_with_its_reason(spark_session, expression):
    grade = FUNCTIONS[expression.split("(")[0]]
    assert grade.use is FunctionUse.REJECTED
    with pytest.raises(InvalidQueryError) as caught:
        spark_session.transform(transform_request(f"SELECT event_time, {expression} AS x FROM orders"))
    assert caught.value.message.endswith(grade.reason)


def test_grade_of_a_step_holds_what_an_earlier_one_is_pinned_by(spark_session):
    steps = transform_sql(
        ("t", "SELECT event_time, to_json(struct(amount)) AS s FROM orders"), "SELECT event_time, s FROM t"
    )
    assert spark_session.check(steps, [TABLE]).level is GradeLevel.PINNED
