"""Clause VIEW-8: the watermark of a maintained view follows those of its inputs, where its event time does."""

from dataclasses import replace
from typing import Any

import pytest

from odf_engines.contract import QueryTable, TransformInput
from odf_protocol.vocabulary import Vocabulary
from support.transforms import ORDERS, orders_input, transform_request, transform_sql, write_orders

pytestmark = pytest.mark.spark

HOUR = 3_600_000
DAY = 24 * HOUR
O_MARK, P_MARK = 40 * DAY + 5 * HOUR, 39 * DAY + 7 * HOUR
BOTH = "orders o JOIN payments p ON o.id = p.id"

KEPT = {
    "SELECT o.event_time, o.id, count(*) AS n FROM " + BOTH + " GROUP BY o.event_time, o.id": P_MARK,
    "SELECT max(o.event_time) AS event_time, o.status, sum(p.id) AS s FROM " + BOTH + " GROUP BY o.status": P_MARK,
    "SELECT greatest(o.event_time, p.event_time) AS event_time, o.id FROM " + BOTH: P_MARK,
    "SELECT event_time, id FROM orders UNION ALL SELECT event_time, id FROM payments": P_MARK,
    "SELECT date_trunc('DAY', o.event_time) AS event_time, count(*) AS n FROM " + BOTH + " GROUP BY 1": 39 * DAY,
    "SELECT CAST(o.event_time AS DATE) AS event_time, count(*) AS n FROM " + BOTH + " GROUP BY 1": 39 * DAY,
    "SELECT trunc(o.event_time, 'MM') AS event_time, count(*) AS n FROM " + BOTH + " GROUP BY 1": 31 * DAY,
    "WITH w AS (SELECT max(event_time) AS t, id FROM orders GROUP BY id) SELECT nvl(t, TIMESTAMP '1970-01-01') AS "
    "event_time, w.id FROM w JOIN payments p ON w.id = p.id": P_MARK,
    "SELECT coalesce(o.event_time, p.event_time) AS event_time, o.id FROM orders o FULL JOIN payments p ON o.id = p.id"
    : P_MARK,
    "SELECT event_time, id FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY event_time DESC) AS r FROM "
    "(SELECT * FROM orders UNION ALL SELECT * FROM payments)) WHERE r = 1": P_MARK,
    "SELECT event_time, id FROM orders EXCEPT SELECT event_time, id FROM payments": P_MARK,
}  # fmt: skip
COMPUTED = [
    "SELECT min(o.event_time) AS event_time, o.status FROM " + BOTH + " GROUP BY o.status",
    "SELECT o.event_time - INTERVAL 1 DAY AS event_time, o.id FROM " + BOTH,
    "SELECT least(o.event_time, p.event_time) AS event_time, o.id FROM " + BOTH,
    "SELECT TIMESTAMP '2024-01-01' AS event_time, count(*) AS n FROM " + BOTH,
    "SELECT timestamp_millis(o.id) AS event_time, p.id FROM " + BOTH,
    "SELECT event_time, id FROM orders UNION ALL SELECT event_time - INTERVAL 1 DAY, id FROM payments",
    "SELECT lag(o.event_time, 1, o.event_time) OVER (ORDER BY o.id, p.id) AS event_time, o.id FROM " + BOTH,
    "SELECT make_date(year(o.event_time), 1, 1) AS event_time, count(*) AS n FROM " + BOTH + " GROUP BY 1",
]


def inputs(folder: Any, *marks: int | None) -> tuple[TransformInput, ...]:
    found = []
    for name, mark in zip(("orders", "payments"), marks, strict=True):
        path = write_orders(folder / f"{name}.parquet", [(0, 0, 38 * DAY + HOUR, 1, "new", 1.0)])
        source = orders_input([path], (0, 0), [] if mark is None else [mark])
        found.append(replace(source, alias=name, dataset_id=f"did:odf:{name}"))
    return tuple(found)


def grade_of(session: Any, query: str) -> Any:
    tables = [QueryTable(name=name, vocabulary=Vocabulary(), schema=ORDERS) for name in ("orders", "payments")]
    return session.check(transform_sql(query), tables)


@pytest.mark.parametrize("query", KEPT)
def test_watermark_is_the_lowest_of_the_inputs_where_the_event_time_is_theirs(spark_session, tmp_path, query) -> None:
    response = spark_session.transform(transform_request(query, *inputs(tmp_path, O_MARK, P_MARK)))
    assert response.watermark is not None
    assert response.watermark.unix_ms == KEPT[query]
    assert grade_of(spark_session, query).follows_watermarks is True


@pytest.mark.parametrize("query", COMPUTED)
def test_no_watermark_is_stated_where_the_event_time_is_computed(spark_session, tmp_path, query) -> None:
    request = transform_request(query, *inputs(tmp_path, O_MARK, P_MARK))
    assert spark_session.transform(request).watermark is None
    assert grade_of(spark_session, query).follows_watermarks is False


def test_watermark_waits_for_all_inputs_and_never_goes_back(spark_session, tmp_path) -> None:
    query = next(iter(KEPT))
    silent = inputs(tmp_path, O_MARK, None)
    assert spark_session.transform(transform_request(query, *silent)).watermark is None
    kept = spark_session.transform(transform_request(query, *silent, prev_watermark_ms=P_MARK)).watermark
    assert kept is not None
    assert kept.unix_ms == P_MARK
    # What an input stated before the step counts, as what it states in the step; a lower one changes nothing.
    orders, payments = inputs(tmp_path, O_MARK, None)
    (mark,) = inputs(tmp_path, O_MARK, P_MARK)[1].watermarks
    before = replace(payments, prev_watermark=mark.event_time)
    found = spark_session.transform(transform_request(query, orders, before)).watermark
    assert found == mark.event_time
    lower = transform_request(query, orders, before, prev_watermark_ms=O_MARK)
    assert spark_session.transform(lower).watermark == lower.prev_watermark
