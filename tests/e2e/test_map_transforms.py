"""Transforms in a real Spark in a real sandbox: results, changelogs, watermarks, types."""

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import GradeLevel, Limits, QueryTable
from odf_engines.errors import EngineFailureError, InvalidQueryError, LimitExceededError, NotReproducibleError
from odf_protocol.events import DataField, DataSchema, DataTypeInt32, DataTypeInt64, DataTypeList, OffsetInterval
from odf_protocol.vocabulary import Vocabulary
from odf_spark.chunks import CHUNK_BYTES, MAX_GROUP_BYTES, fit_in_memory
from support.transforms import (
    ORDERS,
    SYSTEM_TIME,
    orders_input,
    output_rows,
    transform_request,
    transform_sql,
    write_orders,
)

pytestmark = pytest.mark.spark

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)

ROWS = [
    (0, APPEND, 5_000, 1, "new", 10.0),
    (1, APPEND, 5_001, 2, "new", 20.5),
    (2, CORRECT_FROM, 5_000, 1, "new", 10.0),
    (3, CORRECT_TO, 5_000, 1, "paid", 10.0),
    (4, RETRACT, 5_001, 2, "new", 20.5),
    (5, CORRECT_FROM, 5_000, 1, "paid", 10.0),
    (6, CORRECT_TO, 5_000, 1, "new", None),
]


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("orders")
    return [write_orders(folder / "0.parquet", ROWS[:3]), write_orders(folder / "1.parquet", ROWS[3:])]


def run(session, query, orders, **more):
    return session.transform(transform_request(query, orders_input(orders, (0, 6)), **more))


def test_projection_keeps_order_and_operations(spark_session, orders):
    response = run(spark_session, "SELECT event_time, id * 10 AS tens, status FROM orders", orders, next_offset=100)
    assert output_rows(response) == [(op, order * 10, status) for _, op, _, order, status, _ in ROWS]
    assert response.offset_interval == OffsetInterval(start=100, end=106)
    table = pq.read_table(response.data_path)
    assert table.column("offset").to_pylist() == list(range(100, 107))
    assert set(table.column("system_time").cast(pa.int64()).to_pylist()) == {SYSTEM_TIME.unix_ms}
    assert table.column("event_time").cast(pa.int64()).to_pylist() == [row[2] for row in ROWS]
    assert response.statistics.rows_in == response.statistics.rows_out == 7


def test_correction_across_a_filter_becomes_retraction_and_append(spark_session, orders):
    response = run(spark_session, "SELECT event_time, id, status FROM orders WHERE status = 'new'", orders)
    assert output_rows(response) == [
        (APPEND, 1, "new"),
        (APPEND, 2, "new"),
        (RETRACT, 1, "new"),
        (RETRACT, 2, "new"),
        (APPEND, 1, "new"),
    ]


def test_correction_of_columns_that_are_left_out_is_dropped(spark_session, orders):
    response = run(spark_session, "SELECT event_time, id FROM orders", orders)
    assert output_rows(response) == [(APPEND, 1), (APPEND, 2), (RETRACT, 2)]


def test_selected_operation_is_the_fixed_one(spark_session, orders):
    response = run(spark_session, "SELECT op, event_time, id, status FROM orders WHERE status = 'paid'", orders)
    assert output_rows(response) == [(APPEND, 1, "paid"), (RETRACT, 1, "paid")]
    assert response.schema.names == ["offset", "op", "system_time", "event_time", "id", "status"]


def test_steps_tables_and_nested_selects_are_one_map(spark_session, orders):
    query = transform_sql(
        ("big", "SELECT * FROM orders WHERE amount > 5"),
        """
        WITH named AS (SELECT * EXCEPT (system_time), amount / 2 AS half FROM big)
        SELECT event_time, `half of it` FROM (SELECT event_time, half AS `half of it`, id FROM named) WHERE id = 1
        """,
    )
    assert output_rows(run(spark_session, query, orders)) == [(APPEND, 5.0), (RETRACT, 5.0)]


def test_types_come_out_as_slices_have_them(spark_session, orders):
    query = """
        SELECT CAST(event_time AS DATE) AS event_time, status AS text, id AS big, CAST(id AS INT) AS whole,
               CAST(id AS SMALLINT) AS short, CAST(id AS TINYINT) AS tiny, amount, CAST(amount AS FLOAT) AS single,
               id = 1 AS flag, event_time AS at, timestamp_micros(-1) AS before,
               CAST(event_time AS TIMESTAMP_NTZ) AS plain,
               CAST(amount AS DECIMAL(10, 2)) AS money, CAST('ab' AS BINARY) AS raw, array(status, NULL) AS list,
               named_struct('a', id) AS one
        FROM orders
    """
    response = run(spark_session, query, orders)
    instant = pa.timestamp("ms", "UTC")
    assert [(f.name, f.type, f.nullable) for f in response.schema][3:] == [
        ("event_time", pa.date32(), False),
        ("text", pa.string(), True),
        ("big", pa.int64(), False),
        ("whole", pa.int32(), False),
        ("short", pa.int16(), False),
        ("tiny", pa.int8(), False),
        ("amount", pa.float64(), True),
        ("single", pa.float32(), True),
        ("flag", pa.bool_(), False),
        ("at", instant, False),
        ("before", instant, False),
        ("plain", instant, False),
        ("money", pa.decimal128(10, 2), True),
        ("raw", pa.binary(), False),
        ("list", pa.list_(pa.field("item", pa.string())), False),
        ("one", pa.struct([pa.field("a", pa.int64(), nullable=False)]), False),
    ]
    first = pq.read_table(response.data_path).slice(0, 1).to_pylist()[0]
    assert first["event_time"] == dt.date(1970, 1, 1)
    assert first["money"] == Decimal("10.00")
    assert first["before"] == dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC)
    assert first["list"] == ["new", None]
    assert pq.read_schema(response.data_path).remove_metadata() == response.schema


def test_first_run_without_data_gives_the_schema_that_runs_with_data_have(spark_session, orders):
    query = "SELECT event_time, id, upper(status) AS s, id + 1 AS n, array(amount) AS a FROM orders"
    empty = spark_session.transform(transform_request(query, orders_input()))
    assert empty.data_path is None
    assert empty.offset_interval is None
    assert empty.schema == run(spark_session, query, orders).schema


def test_schema_of_a_list_is_the_same_with_rows_without_and_in_the_grade(spark_session, tmp_path):
    # A file does not say that items of a list are never null.
    schema = DataSchema(fields=(*ORDERS.fields, DataField(name="tags", type=DataTypeList(item_type=DataTypeInt64()))))
    table = pq.read_table(write_orders(tmp_path / "orders.parquet", ROWS[:2]))
    pq.write_table(table.append_column("tags", pa.array([[1], [2, 3]])), tmp_path / "tags.parquet")
    without = replace(orders_input(), schema=schema)
    source = replace(without, slices=(tmp_path / "tags.parquet",), offset_interval=OffsetInterval(start=0, end=1))
    request = transform_request("SELECT event_time, tags FROM orders", source)
    response = spark_session.transform(request)
    assert output_rows(response) == [(APPEND, [1]), (APPEND, [2, 3])]
    assert spark_session.transform(replace(request, inputs=(without,))).schema == response.schema
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=schema)
    assert spark_session.check(request.transform, (table,)).schema == response.schema


def test_query_of_earlier_requests_means_what_the_schema_and_the_names_of_this_one_say(spark_session, orders, tmp_path):
    query = "SELECT event_time, id + id AS twice, status FROM orders"
    source = orders_input(orders[:1], (0, 2))
    known = spark_session.transform(transform_request(query, source))

    # The same text over another column of that name, then over other names of system columns.
    fields = tuple(replace(each, type=DataTypeInt32()) if each.name == "id" else each for each in ORDERS.fields)
    table = pq.read_table(orders[0])
    narrow = table.set_column(table.schema.get_field_index("id"), "id", table.column("id").cast(pa.int32()))
    pq.write_table(narrow, tmp_path / "narrow.parquet")
    whole = replace(source, schema=DataSchema(fields=fields), slices=(tmp_path / "narrow.parquet",))
    other = spark_session.transform(transform_request(query, whole))
    assert (known.schema.field("twice").type, other.schema.field("twice").type) == (pa.int64(), pa.int32())
    assert output_rows(other) == output_rows(known)
    with pytest.raises(InvalidQueryError, match="has no event time"):
        spark_session.transform(transform_request(query, source, vocabulary=Vocabulary(event_time="at")))
    renamed = replace(source, vocabulary=Vocabulary(op="id", offset="op"))
    with pytest.raises(NotReproducibleError, match="id"):
        spark_session.transform(transform_request(query, renamed))

    again = spark_session.transform(transform_request(query, source))
    assert (again.logical_hash, again.schema) == (known.logical_hash, known.schema)


def test_no_row_passing_gives_no_file_but_the_watermark(spark_session, orders):
    request = transform_request(
        "SELECT event_time, id FROM orders WHERE id > 99", orders_input(orders, (0, 6), [3_000, 4_000])
    )
    response = spark_session.transform(request)
    assert (response.data_path, response.offset_interval) == (None, None)
    assert response.watermark.unix_ms == 4_000


def test_only_the_interval_is_read(spark_session, orders):
    request = transform_request("SELECT event_time, id, status FROM orders", orders_input(orders, (1, 2)))
    assert output_rows(spark_session.transform(request)) == [(APPEND, 2, "new"), (RETRACT, 1, "new")]


@pytest.mark.parametrize(
    ("stated", "previous", "expected"),
    [
        pytest.param([], None, None, id="never-stated"),
        pytest.param([], 7_000, 7_000, id="not-stated-again"),
        pytest.param([1_000, 9_000], 7_000, 9_000, id="newest-counts"),
        pytest.param([5_000], 7_000, 7_000, id="never-goes-back"),
    ],
)
def test_watermark_is_the_newest_one_known(spark_session, stated, previous, expected):
    request = transform_request(
        "SELECT event_time FROM orders", orders_input(watermarks_ms=stated), prev_watermark_ms=previous
    )
    found = spark_session.transform(request).watermark
    assert (found and found.unix_ms) == expected


def test_names_of_system_columns_follow_the_vocabularies(spark_session, orders):
    mine = Vocabulary(offset="nr", op="change", system_time="written_at", event_time="day")
    query = "SELECT CAST(event_time AS DATE) AS day, op AS change, id FROM orders"
    with pytest.raises(NotReproducibleError):
        run(spark_session, query, orders, vocabulary=mine)
    response = run(spark_session, "SELECT event_time AS day, id FROM orders", orders, vocabulary=mine)
    assert response.schema.names == ["nr", "change", "written_at", "day", "id"]


def test_value_that_fails_is_the_querys_fault(spark_session, orders):
    with pytest.raises(InvalidQueryError, match="DIVIDE_BY_ZERO"):
        run(spark_session, "SELECT event_time, 1 / (id - 1) AS x FROM orders", orders)


def test_bytes_that_a_query_calls_text_are_its_fault_rows_8(spark_session, orders):
    with pytest.raises(InvalidQueryError, match="column t of the result holds what is no string"):
        run(spark_session, "SELECT event_time, CAST(X'ff' AS STRING) AS t FROM orders", orders)


def test_slices_that_lack_rows_of_the_interval_fail_the_step_engine_27(spark_session, tmp_path):
    source = orders_input([write_orders(tmp_path / "0", [(n, 0, n, n, "a", 1.0) for n in (0, 1, 3)])], (0, 3))
    with pytest.raises(EngineFailureError, match="asked for 4 rows, offsets 0 to 3, the engine read 3 rows"):
        spark_session.transform(transform_request("SELECT event_time, id FROM orders WHERE id = 0", source))


def test_too_many_rows_are_rejected_and_the_session_goes_on(spark_session, orders):
    query = "SELECT event_time, id FROM orders"
    with pytest.raises(LimitExceededError) as caught:
        run(spark_session, query, orders, limits=Limits(output_rows=3))
    assert caught.value.limit == "output_rows"
    assert output_rows(run(spark_session, query, orders))


def test_many_slices_are_read_in_order_whatever_their_sizes(spark_session, tmp_path):
    rows, paths = [], []
    for number in range(70):
        length = 1 + (number * 7) % 5
        part = [(len(rows) + i, APPEND, 0, number, "x" * (length * 50), None) for i in range(length)]
        paths.append(write_orders(tmp_path / f"{number}.parquet", part))
        rows += part
    for count in (60, 70):
        whole = sum(1 + (number * 7) % 5 for number in range(count))
        request = transform_request("SELECT event_time, id FROM orders", orders_input(paths[:count], (0, whole - 1)))
        assert [row[1] for row in output_rows(spark_session.transform(request))] == [row[3] for row in rows[:whole]]


@pytest.mark.parametrize("is_held", [True, False], ids=["held-in-memory-in-pieces", "stored-by-spark"])
def test_large_rows_come_out_as_few_do(spark_session, tmp_path, is_held):
    random = Random(1)
    count = 11_000
    # What is random makes the file large, what comes after it only its values; the query leaves that out, so that the
    # engine need not end for the memory that it took. Rows would cost more than their bytes.
    padding = "" if is_held else "x" * (MAX_GROUP_BYTES // count - 1_500)
    # A correction may begin in one piece and end in the next.
    rows = [
        (n, (APPEND, CORRECT_FROM, CORRECT_TO)[n % 3], n, n // 3, random.randbytes(800).hex() + padding, n / 7)
        for n in range(count)
    ]
    path = write_orders(tmp_path / "rows.parquet", rows, group_rows=1_000 if is_held else count)
    assert path.stat().st_size > 2 * CHUNK_BYTES
    assert fit_in_memory([path]) == is_held
    query = """
        SELECT event_time, id, left(status, 1600) AS status, amount, array(left(status, 20)) AS list FROM orders
        WHERE id % 5 <> 0 OR status < 'b'
    """

    many = pq.read_table(
        spark_session.transform(transform_request(query, orders_input([path], (0, count - 1)))).data_path
    )

    for first in (0, 6_000, 10_098):  # where no correction is under way
        few_path = write_orders(tmp_path / f"{first}.parquet", rows[first : first + 900])
        request = transform_request(query, orders_input([few_path], (first, first + 899)))
        few = pq.read_table(spark_session.transform(request).data_path)
        position = many.column("id").index(few.column("id")[0]).as_py()
        assert few.num_rows > 100
        assert few.drop(["offset"]).equals(many.slice(position, few.num_rows).drop(["offset"]))
    assert many.column("offset").to_pylist() == list(range(many.num_rows))

    # Spark drops the rows from a plan that they cannot change; the step has read them all the same (ENGINE-27).
    nothing = spark_session.transform(
        transform_request("SELECT event_time, id FROM orders WHERE false", orders_input([path], (0, count - 1)))
    )
    assert (nothing.data_path, nothing.statistics.rows_in) == (None, count)
    with pytest.raises(EngineFailureError, match=f"the engine read {count} rows"):
        spark_session.transform(transform_request(query, orders_input([path], (0, count))))
    # An input that the query does not name is counted, too: nobody has to believe that it names none.
    others = replace(orders_input([few_path], (first, first + 899)), alias="others")
    both = transform_request("SELECT event_time, id FROM orders", orders_input([path], (0, count - 1)), others)
    assert spark_session.transform(both).statistics.rows_in == count + 900


def test_grade_says_what_a_query_rests_on(spark_session):
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=orders_input().schema)
    plain = spark_session.check(transform_sql("SELECT event_time, id + 1 AS n FROM orders"), [table])
    assert (plain.level, plain.findings) == (GradeLevel.REPRODUCIBLE, ())
    assert plain.schema.names == ["offset", "op", "system_time", "event_time", "n"]
    pinned = spark_session.check(transform_sql("SELECT event_time, sin(amount) AS s FROM orders"), [table])
    assert pinned.level is GradeLevel.PINNED
    assert [finding.expression for finding in pinned.findings] == ["sin"]
    refused = spark_session.check(transform_sql("SELECT event_time, rand() AS r FROM orders"), [table])
    assert (refused.level, refused.schema) == (GradeLevel.REJECTED, None)
    assert refused.findings[0].expression == "rand()"


@pytest.mark.parametrize(
    ("query", "is_passed_on"),
    [
        ("SELECT event_time, id FROM orders", True),
        ("SELECT * EXCEPT (offset, system_time) FROM orders", True),
        ("SELECT t AS event_time FROM (SELECT event_time AS t, id FROM orders WHERE id > 1)", True),
        (
            "WITH a AS (SELECT event_time AS t FROM orders), b AS (SELECT t AS u FROM a) SELECT u AS event_time FROM b",
            True,
        ),
        ("FROM orders |> EXTEND id + 1 AS x |> SELECT event_time, x", True),
        ("SELECT CAST(event_time AS TIMESTAMP) AS event_time FROM orders", True),
        ("SELECT event_time - INTERVAL 1 DAY AS event_time FROM orders", False),
        ("SELECT date_trunc('DAY', event_time) AS event_time FROM orders", False),
        ("SELECT CAST(event_time AS DATE) AS event_time FROM orders", False),
        ("SELECT timestamp_seconds(id) AS event_time FROM orders", False),
        ("SELECT t AS event_time FROM (SELECT coalesce(event_time, event_time) AS t FROM orders)", False),
    ],
)
def test_watermark_is_passed_on_only_with_the_event_time_it_is_about(spark_session, orders, query, is_passed_on):
    source = orders_input(orders, (0, 6), [7_000, 6_000])
    assert _watermark_ms(spark_session, query, source, 6_500) == (7_000 if is_passed_on else 6_500)


def test_watermark_follows_the_event_time_through_steps(spark_session, orders):
    source = orders_input(orders, (0, 6), [7_000])
    renamed = ("a", "SELECT event_time AS t, id FROM orders"), "SELECT t AS event_time, id FROM a"
    computed = ("a", "SELECT event_time + INTERVAL 1 DAY AS t FROM orders"), "SELECT t AS event_time FROM a"
    assert _watermark_ms(spark_session, transform_sql(*renamed), source, None) == 7_000
    assert _watermark_ms(spark_session, transform_sql(*computed), source, None) is None


def _watermark_ms(session, query, source, before):
    watermark = session.transform(transform_request(query, source, prev_watermark_ms=before)).watermark
    return None if watermark is None else watermark.unix_ms


def test_letters_are_those_of_java(spark_session, orders):
    query = (
        "SELECT event_time, upper('straße \u0149'), lower('ΣΟΦΟΣ İ'), initcap('ßeta \u0149eta-eta') AS c FROM orders"
    )
    mapped = output_rows(run(spark_session, query, orders))[0][1:]
    assert mapped == ("STRASSE \u02bcN", "σοφος i̇", "ßeta \u0149eta-eta")
