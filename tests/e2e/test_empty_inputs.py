"""Inputs that have columns and no rows yet: a step is over what the others have, whatever the class of its query."""

from dataclasses import replace
from pathlib import Path

import pytest

from odf_engines.contract import TransformInput
from odf_protocol.events import TemporalTable
from support.transforms import orders_input, output_rows, transform_request, transform_sql, write_orders

pytestmark = pytest.mark.spark

ROWS = [(0, 0, 5_000, 1, "new", 10.0), (1, 0, 6_000, 2, "new", 20.5), (2, 0, 7_000, 3, "paid", 1.0)]

QUERIES = {
    "left join": "SELECT o.event_time, o.id, n.status AS s FROM orders o LEFT JOIN nothing n ON n.id = o.id",
    "inner join": "SELECT o.event_time, o.id FROM orders o JOIN nothing n ON n.id = o.id",
    "union": "SELECT event_time, id FROM orders UNION ALL SELECT event_time, id FROM nothing",
    "group": "SELECT max(event_time) AS event_time, status, count(*) AS n FROM (SELECT * FROM orders UNION ALL "
    "SELECT * FROM nothing) GROUP BY status",
    "ordered": "SELECT max(o.event_time) AS event_time, o.status, sum(o.amount) AS s FROM orders o "
    "LEFT JOIN nothing n ON n.id = o.id GROUP BY o.status",
    "subquery": "SELECT event_time, id FROM orders WHERE id NOT IN (SELECT id FROM nothing)",
    "window": "SELECT window.end AS event_time, count(*) AS n FROM (SELECT event_time FROM orders UNION ALL "
    "SELECT event_time FROM nothing) GROUP BY window(event_time, '1 second')",
    "session": "SELECT session_window.end AS event_time, count(*) AS n FROM (SELECT event_time FROM orders UNION ALL "
    "SELECT event_time FROM nothing) GROUP BY session_window(event_time, '1 second')",
}
AS_OF = "SELECT o.event_time, o.id, n.status AS s FROM orders o JOIN nothing FOR SYSTEM_TIME AS OF o.event_time AS n "
AS_OF += "ON n.id = o.id"
AS_OF_GROUPED = f"SELECT max(event_time) AS event_time, s, count(*) AS n FROM ({AS_OF}) GROUP BY s"


def inputs(folder: Path, first: int, last: int, marks: tuple[int, ...] = ()) -> tuple[TransformInput, TransformInput]:
    paths = [write_orders(folder / f"{row[0]}.parquet", [row]) for row in ROWS]
    orders = orders_input(paths[first : last + 1], (first, last), [10_000])
    stated = tuple(replace(each, last_offset=last) for each in orders.watermarks)
    earlier = tuple(paths[:first])
    orders = replace(orders, prev_offset=first - 1 if first else None, earlier_slices=earlier, watermarks=stated)
    return orders, replace(orders_input([], None, marks), alias="nothing", dataset_id="did:odf:nothing")


@pytest.mark.parametrize("marks", [(), (10_000,)], ids=["no-watermark", "watermark"])
@pytest.mark.parametrize("name", [*QUERIES, "as of", "as of, grouped"])
def test_step_over_an_input_without_rows_is_over_the_others(spark_session, tmp_path, name, marks) -> None:
    if name.startswith("as of"):
        query = transform_sql(AS_OF_GROUPED if "grouped" in name else AS_OF)
        query = replace(query, temporal_tables=(TemporalTable(name="nothing", primary_key=("id",)),))
    else:
        query = transform_sql(QUERIES[name])
    for first, last in ((0, 1), (2, 2)):
        response = spark_session.transform(
            transform_request(query, *inputs(tmp_path, first, last, marks), next_offset=10 * first)
        )
        rows = output_rows(response)
        gives_none = name in {"inner join", "as of", "as of, grouped"}
        if name not in {"window", "session"}:
            assert bool(rows) != gives_none
        elif not first:
            assert bool(rows) == bool(marks)
    both = tuple(replace(each, slices=(), offset_interval=None) for each in inputs(tmp_path, 0, 0, marks))
    assert output_rows(spark_session.transform(transform_request(query, *both))) == []
