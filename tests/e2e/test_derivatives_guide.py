"""The guide to derivatives: its queries give what its tables say, step by step, and its pictures show them."""

import importlib.util
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from odf_engines.contract import QueryTable
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    SqlQueryStep,
    TemporalTable,
    TransformSql,
)
from odf_protocol.vocabulary import Vocabulary, system_fields
from support.view_histories import Change, View

GUIDES = Path(__file__).parents[2] / "spec" / "guides"
GUIDE = (GUIDES / "derivatives.md").read_text(encoding="utf-8")
DAY = datetime(2024, 1, 1, tzinfo=UTC)
OPERATIONS = {"+A": 0, "-R": 1, "-C": 2, "+C": 3}


def load_drawing() -> ModuleType:
    """The program that draws the pictures, which reads the guide."""
    spec = importlib.util.spec_from_file_location("draw_derivatives", GUIDES / "pictures" / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


DRAW = load_drawing()
EXAMPLES = {each.picture: each for each in DRAW.read_examples(GUIDE)}


def schema_of(**kinds: type) -> DataSchema:
    types = {int: DataTypeInt64(), str: DataTypeString()}
    fields = (DataField(name=name, type=DataTypeOption(inner=types[kind])) for name, kind in kinds.items())
    return DataSchema(fields=(*system_fields(Vocabulary()), *fields))


SCHEMAS = {
    "orders": schema_of(id=int, amount=int, currency=str),
    "rates": schema_of(currency=str, rate=int),
}


def ms_of(time: str) -> int:
    hour, minute = map(int, time.split(":"))
    return round((DAY + timedelta(hours=hour, minutes=minute)).timestamp() * 1000)


def row_of(event) -> tuple[object, ...]:
    return (ms_of(event.time), *(int(value) if value.isdigit() else value for value in event.values))


def transform_of(example) -> TransformSql:
    key = example.temporal_key
    return TransformSql(
        engine="spark",
        queries=(SqlQueryStep(query=example.query),),
        temporal_tables=None if key is None else (TemporalTable(name="rates", primary_key=(key,)),),
    )


@pytest.mark.spark
@pytest.mark.parametrize("name", EXAMPLES)
def test_query_of_the_guide_gives_what_its_table_says(spark_session, tmp_path, name):
    example = EXAMPLES[name]
    schemas = {table: schema for table, schema in SCHEMAS.items() if table in example.query}
    view = View.over(spark_session, transform_of(example), tmp_path, schemas)
    late, given = [], []
    for step in (1, 2, 3):
        gained = {}
        for table in schemas:
            events = [each for each in DRAW.read_input(GUIDE, table)[1] if each.step == step]
            rows = [Change(OPERATIONS[each.op], row_of(each)) for each in events if each.op != "watermark"]
            (mark,) = [ms_of(each.time) for each in events if each.op == "watermark"]
            gained[table] = [(rows, mark)]
        before = len(view.changes)
        late.append(view.blocks(gained).statistics.late_rows)
        given += [(step, each.op, each.row) for each in view.changes[before:]]
        if name == "map":  # it reads what is new and nothing else
            view.inputs = {table: replace(each, slices=()) for table, each in view.inputs.items()}
    expected = [(each.step, OPERATIONS[each.op], row_of(each)) for each in example.rows]
    assert Counter(given) == Counter(expected)
    assert [each for each in given if each[1] in (2, 3)] == [each for each in expected if each[1] in (2, 3)]
    assert tuple(late) == example.late


TABLES = {name: QueryTable(name=name, vocabulary=Vocabulary(), schema=schema) for name, schema in SCHEMAS.items()}
AS_OF = "orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.event_time AS r ON o.currency = r.currency"
BOTH = "(SELECT event_time FROM orders UNION ALL SELECT event_time FROM rates)"
WINDOW = "SELECT window.end AS event_time, count(*) AS n FROM"
HOUR = "GROUP BY window(event_time, '1 hour')"

# What this guide and supported-sql.md say of a query: its class, or a part of what would pass instead.
STATED = {
    "map": ("SELECT event_time, CASE WHEN id > 1 THEN amount END AS a FROM orders", "map"),
    "explode": ("SELECT event_time, explode(array(id, amount)) AS x FROM orders", "maintained"),
    "pivot": ("SELECT * FROM orders PIVOT (sum(amount) FOR currency IN ('EUR', 'USD'))", "maintained"),
    "except-all": ("SELECT event_time FROM orders EXCEPT ALL SELECT event_time FROM rates", "maintained"),
    "cube": ("SELECT max(event_time) AS event_time, id, count(*) AS n FROM orders GROUP BY CUBE (id)", "maintained"),
    "approximate": (
        "SELECT max(event_time) AS event_time, approx_count_distinct(id) AS n FROM orders", "maintained",
    ),
    "windows-that-overlap": (f"{WINDOW} orders GROUP BY window(event_time, '1 hour', '30 minutes')", "final"),
    "clock": ("SELECT event_time, current_date() AS today FROM orders", "a time from the rows"),
    "chance": ("SELECT event_time, rand() AS r FROM orders", "xxhash64"),
    "text-as-time": ("SELECT event_time, CAST(currency AS TIMESTAMP) AS t FROM orders", "with the format"),
    "group-over-a-join-as-of-a-time": (
        f"SELECT max(o.event_time) AS event_time, count(*) AS n FROM {AS_OF}", "maintained",
    ),
    "window-over-a-join-as-of-a-time": (f"{WINDOW} {AS_OF} GROUP BY window(o.event_time, '1 hour')", "final"),
    "group-over-a-named-join-as-of-a-time": (
        f"WITH j AS (SELECT o.event_time FROM {AS_OF}) SELECT max(event_time) AS event_time FROM j", "maintained",
    ),
    "window-over-a-union": (f"{WINDOW} {BOTH} {HOUR}", "final"),
    "window-over-distinct": (f"{WINDOW} (SELECT DISTINCT event_time FROM orders) {HOUR}", "final"),
    "window-over-a-join-in-event-time": (
        f"{WINDOW} orders o JOIN rates r ON r.event_time <= o.event_time GROUP BY window(o.event_time, '1 hour')",
        "final",
    ),
    "window-over-any-join": (
        f"{WINDOW} orders o JOIN rates r USING (currency) GROUP BY window(o.event_time, '1 hour')",
        "a bound in event time",
    ),
    "window-over-window-functions": (
        f"{WINDOW} (SELECT event_time, rank() OVER (ORDER BY id) FROM orders) {HOUR}", "date_trunc",
    ),
    "union-of-windows": (f"{WINDOW} orders {HOUR} UNION ALL {WINDOW} orders {HOUR}", "a derivative over this one"),
    "temporal-table-by-itself": ("SELECT event_time, rate FROM rates", "FOR SYSTEM_TIME AS OF"),
    "full-outer-join-without-equality": (
        "SELECT o.event_time, r.rate FROM orders o FULL OUTER JOIN rates r ON o.id < r.rate", "a condition with =",
    ),
    "windows-of-others": ("SELECT event_time FROM orders GROUP BY TUMBLE(event_time, INTERVAL '1' DAY)", "window("),
}  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("name", STATED)
def test_query_is_of_the_class_that_the_guide_says_or_rejected_with_what_passes(spark_session, name):
    query, stated = STATED[name]
    is_as_of = name.startswith("temporal") or name.endswith("as-of-a-time")
    transform = TransformSql(
        engine="spark",
        queries=(SqlQueryStep(query=query),),
        temporal_tables=(TemporalTable(name="rates", primary_key=("currency",)),) if is_as_of else None,
    )
    grade = spark_session.check(transform, [table for each, table in TABLES.items() if each in query])
    if stated in {"map", "maintained", "final"}:
        assert grade.transform_class == stated
        assert (grade.level.value == "pinned") == (name == "approximate")
    else:
        (finding,) = grade.findings
        assert (grade.level.value, grade.transform_class) == ("rejected", None)
        assert stated in f"{finding.reason} {finding.rewrite}"


def test_guide_shows_every_class_and_its_pictures_are_drawn_from_its_tables():
    assert list(EXAMPLES) == ["map", "maintained", "join", "windows", "sessions", "as-of"]
    drawn = DRAW.draw_all(GUIDE)
    assert {path.name for path in (GUIDES / "pictures").glob("*.svg")} == set(drawn)
    for name, content in drawn.items():
        assert (GUIDES / "pictures" / name).read_text(encoding="utf-8") == content, "run spec/guides/pictures/draw.py"
        assert f"](pictures/{name})" in GUIDE
