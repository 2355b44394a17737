"""The table of what a derivative may say, a query or two a cell, and what another database makes of each.

A query names its inputs ``orders`` (event_time, k, s, a) and ``people`` (event_time, k, r). Where DuckDB reads another
text, it stands beside it. Text in braces is a watermark, which the oracle is told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from odf_protocol.events import SqlQueryStep, TemporalTable, TransformSql

__all__ = ["TABLE", "Case"]


@dataclass(frozen=True)
class Case:
    """A query of the table.

    Attributes:
        name: The cell.
        query: The last step, for Spark.
        oracle: The same for DuckDB; None where it reads the same text.
        steps: Names and queries of the steps before, in a text that both read.
        as_of: Primary keys of temporal tables.
        has_watermarks: Whether what is given rests on them.
    """

    name: str
    query: str
    oracle: str | None = None
    steps: Sequence[tuple[str, str]] = ()
    as_of: Sequence[tuple[str, tuple[str, ...]]] = ()
    has_watermarks: bool = False

    @property
    def transform(self) -> TransformSql:
        """For the engine."""
        steps = [SqlQueryStep(alias=alias, query=query) for alias, query in self.steps]
        tables = tuple(TemporalTable(name=name, primary_key=key) for name, key in self.as_of)
        return TransformSql(
            engine="spark", queries=(*steps, SqlQueryStep(query=self.query)), temporal_tables=tables or None
        )

    @property
    def query_text(self) -> str:
        """For the oracle."""
        last = self.query if self.oracle is None else self.oracle
        if not self.steps or self.oracle is not None:
            return last
        return f"WITH {', '.join(f'{alias} AS ({query})' for alias, query in self.steps)} {last}"


_GROUP = "max(event_time) AS event_time"
_SOME_TIME = "TIMESTAMP '2020-01-01 00:00:00'"

AGGREGATES = [
    Case("expressions", f"SELECT {_GROUP}, a % 3 AS g, sum(a + 1) AS n FROM orders GROUP BY a % 3"),
    Case("rollup", f"SELECT {_GROUP}, k, s, count(*) AS n FROM orders GROUP BY ROLLUP (k, s) HAVING count(*) > 0"),
    Case("cube", f"SELECT {_GROUP}, k, s, sum(a) AS n FROM orders GROUP BY CUBE (k, s) HAVING count(*) > 0"),
    Case(
        "grouping sets",
        f"SELECT {_GROUP}, k, s, grouping_id(k, s) AS g, count(a) AS n FROM orders "
        "GROUP BY GROUPING SETS ((k, s), (k), ()) HAVING count(*) > 0",
        f"SELECT {_GROUP}, k, s, grouping(k, s) AS g, count(a) AS n FROM orders "
        "GROUP BY GROUPING SETS ((k, s), (k), ()) HAVING count(*) > 0",
    ),
    Case("having", f"SELECT {_GROUP}, k, count(*) AS n FROM orders GROUP BY k HAVING sum(a) > 2 AND count(*) > 1"),
    Case("filter", f"SELECT {_GROUP}, k, sum(a) FILTER (WHERE s = 'x') AS n FROM orders GROUP BY k"),
    Case("distinct inside", f"SELECT {_GROUP}, k, count(DISTINCT a) AS n, sum(DISTINCT a) AS m FROM orders GROUP BY k"),
    Case(
        "first and last with an order",
        f"SELECT {_GROUP}, k, min_by(a, struct(event_time, a)) AS f, max_by(a, struct(event_time, a)) AS l "
        "FROM orders WHERE a IS NOT NULL GROUP BY k",
        f"SELECT {_GROUP}, k, first(a ORDER BY event_time, a) AS f, last(a ORDER BY event_time, a) AS l "
        "FROM orders WHERE a IS NOT NULL GROUP BY k",
    ),
    Case(
        "first and last as they are",
        f"SELECT {_GROUP}, k, first(a) AS f, last(a) AS l FROM orders WHERE a IS NOT NULL GROUP BY k",
        f"SELECT {_GROUP}, k, first(a ORDER BY event_time, s NULLS FIRST, a) AS f, "
        "last(a ORDER BY event_time, s NULLS FIRST, a) AS l FROM orders WHERE a IS NOT NULL GROUP BY k",
    ),
    Case(
        "deviation",
        f"SELECT {_GROUP}, k, round(stddev_samp(a), 6) AS d, round(var_pop(a), 6) AS v FROM orders GROUP BY k",
    ),
    Case(
        "percentile",
        f"SELECT {_GROUP}, k, percentile(a, 0.5) AS p, median(a) AS m FROM orders GROUP BY k",
        f"SELECT {_GROUP}, k, quantile_cont(a, 0.5) AS p, median(a) AS m FROM orders GROUP BY k",
    ),
    Case(
        "percentile within a group",
        f"SELECT {_GROUP}, k, percentile_cont(0.25) WITHIN GROUP (ORDER BY a) AS p FROM orders GROUP BY k",
    ),
    Case(
        "lists with an order",
        f"SELECT {_GROUP}, k, array_join(sort_array(collect_list(a)), ',') AS l, size(collect_set(s)) AS n "
        "FROM orders GROUP BY k",
        f"SELECT {_GROUP}, k, coalesce(string_agg(a, ',' ORDER BY a), '') AS l, count(DISTINCT s) AS n "
        "FROM orders GROUP BY k",
    ),
    Case(
        "text within a group",
        f"SELECT {_GROUP}, k, listagg(s, ',') WITHIN GROUP (ORDER BY s) AS l FROM orders GROUP BY k",
        f"SELECT {_GROUP}, k, string_agg(s, ',' ORDER BY s) AS l FROM orders GROUP BY k",
    ),
    Case(
        "approximations",
        f"SELECT {_GROUP}, k, approx_count_distinct(a) AS n, percentile_approx(a, 0.5) AS p FROM orders GROUP BY k",
        f"SELECT {_GROUP}, k, count(DISTINCT a) AS n, quantile_disc(a, 0.5) AS p FROM orders GROUP BY k",
    ),
    Case(
        "global",
        f"SELECT coalesce(max(event_time), {_SOME_TIME}) AS event_time, count(*) AS n, sum(a) AS m FROM orders",
    ),
]

JOINS = [
    Case("inner", "SELECT o.event_time, o.k, a, r FROM orders o JOIN people p ON o.k = p.k"),
    Case("left", "SELECT o.event_time, o.k, a, r FROM orders o LEFT JOIN people p ON o.k = p.k AND p.r = 'north'"),
    Case("right", "SELECT p.event_time, p.k, a, r FROM orders o RIGHT JOIN people p ON o.k = p.k"),
    Case(
        "full",
        "SELECT coalesce(o.event_time, p.event_time) AS event_time, o.k, a, r "
        "FROM orders o FULL OUTER JOIN people p ON o.k = p.k",
    ),
    Case("semi", "SELECT * FROM orders o LEFT SEMI JOIN people p ON o.k = p.k"),
    Case("anti", "SELECT * FROM orders o LEFT ANTI JOIN people p ON o.k = p.k"),
    Case(
        "several",
        "SELECT o.event_time, o.k, o.a, p.r, q.s FROM orders o JOIN people p ON o.k = p.k LEFT JOIN orders q "
        "ON q.k = p.k AND q.a > o.a",
    ),
    Case("self", "SELECT o.event_time, o.k, o.a, q.a AS b FROM orders o JOIN orders q ON o.k = q.k AND o.a < q.a"),
    Case("using", "SELECT o.event_time, k, a, r FROM orders o JOIN people p USING (k)"),
    Case(
        "null keys",
        "SELECT o.event_time, o.k, a, r FROM orders o JOIN people p ON o.k <=> p.k",
        "SELECT o.event_time, o.k, a, r FROM orders o JOIN people p ON o.k IS NOT DISTINCT FROM p.k",
    ),
    Case("cross", "SELECT o.event_time, o.a, p.r FROM orders o CROSS JOIN people p WHERE o.a > 1 AND p.k > 2"),
    Case(
        "in event time",
        "SELECT o.event_time, o.k, a, r FROM orders o LEFT JOIN people p ON o.k = p.k AND p.event_time "
        "BETWEEN o.event_time - INTERVAL 1 DAY AND o.event_time",
    ),
    Case(
        "beside each other",
        "SELECT o.event_time, o.k, t.most FROM orders o, LATERAL (SELECT max(p.r) AS most FROM people p "
        "WHERE p.k = o.k) t",
    ),
]

OVERS = [
    Case(
        "rows",
        "SELECT event_time, k, s, a, sum(a) OVER (PARTITION BY k ORDER BY event_time, s NULLS FIRST, a NULLS FIRST "
        "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS n FROM orders",
    ),
    Case(
        "range",
        "SELECT event_time, k, a, count(*) OVER (PARTITION BY k ORDER BY event_time "
        "RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS n FROM orders",
    ),
    Case(
        "lag",
        "SELECT event_time, k, s, a, lag(a) OVER (PARTITION BY k ORDER BY event_time, s NULLS FIRST, a NULLS "
        "FIRST) AS n "
        "FROM orders",
    ),
    Case(
        "share",
        "SELECT event_time, k, a, sum(a) OVER (PARTITION BY k) AS whole, rank() OVER (ORDER BY a NULLS "
        "FIRST) AS n FROM orders",
    ),
]

SETS = [
    Case("union", "SELECT event_time, k FROM orders UNION SELECT event_time, k FROM people"),
    Case("union all", "SELECT event_time, k FROM orders UNION ALL SELECT event_time, k FROM people"),
    Case("intersect", "SELECT event_time, k FROM orders INTERSECT SELECT event_time, k FROM people"),
    Case("intersect all", "SELECT event_time, k FROM orders INTERSECT ALL SELECT event_time, k FROM people"),
    Case("except", "SELECT event_time, k FROM orders EXCEPT SELECT event_time, k FROM people"),
    Case("except all", "SELECT event_time, k FROM orders EXCEPT ALL SELECT event_time, k FROM people"),
    Case("distinct", "SELECT DISTINCT event_time, k FROM orders"),
    Case("exists", "SELECT * FROM orders o WHERE EXISTS (SELECT 1 FROM people p WHERE p.k = o.k AND p.r = 'south')"),
    Case("not exists", "SELECT * FROM orders o WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.k = o.k)"),
    Case("in", "SELECT * FROM orders WHERE k IN (SELECT k FROM people)"),
    Case("not in", "SELECT * FROM orders WHERE k NOT IN (SELECT k FROM people WHERE k IS NOT NULL AND r = 'north')"),
    Case("scalar", "SELECT event_time, a - (SELECT min(a) FROM orders) AS n FROM orders"),
    Case("correlated", "SELECT event_time, k, (SELECT max(r) FROM people p WHERE p.k = o.k) AS r FROM orders o"),
    Case(
        "tables",
        f"WITH t AS (SELECT k, sum(a) AS n FROM orders GROUP BY k), u AS (SELECT * FROM t WHERE n > 1) "
        f"SELECT {_SOME_TIME} AS event_time, k, n FROM u",
    ),
    Case(
        "unfolding",
        "SELECT event_time, k, part FROM orders LATERAL VIEW explode(array(a, a + 1)) AS part",
        "SELECT event_time, k, unnest([a, a + 1]) AS part FROM orders",
    ),
    Case(
        "values",
        "SELECT event_time, k, n FROM orders JOIN (VALUES ('x', 1), ('y', 2)) AS v(s, n) USING (s)",
    ),
    Case(
        "pivot",
        "SELECT * FROM (SELECT event_time, s, a FROM orders) PIVOT (sum(a) FOR s IN ('x' AS x, 'y' AS y))",
        "SELECT event_time, sum(a) FILTER (WHERE s = 'x') AS x, sum(a) FILTER (WHERE s = 'y') AS y "
        "FROM orders GROUP BY event_time",
    ),
]

_UNIQUE = "event_time, k NULLS FIRST, s NULLS FIRST, a NULLS FIRST"
RANKINGS = [
    Case("top", f"SELECT * FROM orders ORDER BY a DESC NULLS LAST, {_UNIQUE} LIMIT 3"),
    Case("top and offset", f"SELECT * FROM orders ORDER BY {_UNIQUE} LIMIT 3 OFFSET 2"),
    Case(
        "top of each",
        "SELECT event_time, k, s, a FROM (SELECT *, row_number() OVER (PARTITION BY s ORDER BY a DESC NULLS "
        f"LAST, {_UNIQUE}) AS nr "
        "FROM orders) t WHERE nr <= 2",
    ),
    Case(
        "first of each key",
        f"SELECT event_time, k, s, a FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY {_UNIQUE}) AS "
        "nr FROM orders) t "
        "WHERE nr = 1",
    ),
    Case(
        "last of each key",
        "SELECT event_time, k, s, a FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY event_time "
        "DESC, s NULLS FIRST, "
        "a NULLS FIRST) AS nr FROM orders) t WHERE nr = 1",
    ),
]

_PEOPLE = (("people", ("k",)),)
_PRICED = (
    "SELECT o.event_time, o.k, o.s, o.a, p.r FROM orders o LEFT JOIN people FOR SYSTEM_TIME AS OF o.event_time AS p "
    "ON o.k = p.k"
)
_PRICED_FOR_DUCKDB = (
    "SELECT o.event_time, o.k, o.s, o.a, p.r FROM (SELECT * FROM orders WHERE event_time <= {people}) o "
    "ASOF LEFT JOIN people p ON o.k = p.k AND o.event_time >= p.event_time"
)
_DAY = "CAST(date_trunc('DAY', event_time) AS TIMESTAMP)"

_BOTH = "SELECT event_time, k FROM orders UNION ALL SELECT event_time, k FROM people"
_NEAR = "o.k = p.k AND p.event_time BETWEEN o.event_time - INTERVAL 1 DAY AND o.event_time + INTERVAL 6 HOURS"
_PAIRS = f"SELECT o.event_time, o.k, o.a, p.r FROM orders o LEFT JOIN people p ON {_NEAR}"
_ASKED = f"SELECT o.event_time, o.k, o.a FROM orders o LEFT SEMI JOIN people p ON {_NEAR}"


def _window(columns: str, rows: str, more: str = "", size: str = "'1 day'") -> str:
    return f"SELECT window.end AS event_time, {columns} FROM ({rows}) t GROUP BY window(event_time, {size}){more}"


def _closed(columns: str, rows: str, more: str = "", until: str = "least({orders}, {people})") -> str:
    """The same for DuckDB: windows of a day that end at a watermark or before."""
    day = "time_bucket(INTERVAL 1 DAY, event_time) + INTERVAL 1 DAY AS event_time"
    return f"SELECT * FROM (SELECT {day}, {columns} FROM ({rows}) t GROUP BY ALL{more}) u WHERE event_time <= {until}"


_HOPS = (
    "SELECT e AS event_time, k FROM (SELECT k, unnest([time_bucket(INTERVAL 1 DAY, event_time) + INTERVAL 1 DAY, "
    f"time_bucket(INTERVAL 1 DAY, event_time) + INTERVAL 2 DAY]) AS e FROM ({_BOTH}) v) w"
)
_SESSIONS = f"""
    WITH t AS (SELECT *, CASE WHEN event_time - lag(event_time) OVER w <= INTERVAL 5 HOURS THEN 0 ELSE 1 END AS begins
        FROM ({_BOTH}) v WINDOW w AS (ORDER BY event_time)),
    u AS (SELECT *, sum(begins) OVER (ORDER BY event_time RANGE UNBOUNDED PRECEDING) AS nr FROM t)
    SELECT * FROM (SELECT max(event_time) + INTERVAL 5 HOURS AS event_time, count(*) AS n FROM u GROUP BY nr) x
    WHERE event_time < least({{orders}}, {{people}})
"""

TIMES = [
    Case(
        "tumbling",
        _window("k, sum(a) AS n", "SELECT * FROM orders", ", k"),
        _closed("k, sum(a) AS n", "SELECT * FROM orders", until="{orders}"),
    ),
    Case("as of", _PRICED, _PRICED_FOR_DUCKDB, as_of=_PEOPLE),
    Case("tumbling over a union", _window("k, count(*) AS n", _BOTH, ", k"), _closed("k, count(*) AS n", _BOTH)),
    Case(
        "hopping over a union",
        _window("k, count(*) AS n", _BOTH, ", k", "'2 days', '1 day'"),
        f"SELECT event_time, k, count(*) AS n FROM ({_HOPS}) x GROUP BY ALL "
        "HAVING event_time <= least({orders}, {people})",
    ),
    Case(
        "sessions over a union",
        f"SELECT session_window.end AS event_time, count(*) AS n FROM ({_BOTH}) GROUP BY "
        "session_window(event_time, '5 hours')",
        _SESSIONS,
    ),
    Case(
        "tumbling over distinct rows",
        _window("count(*) AS n", "SELECT DISTINCT event_time, s FROM orders"),
        _closed("count(*) AS n", "SELECT DISTINCT event_time, s FROM orders", until="{orders}"),
    ),
    Case(
        "tumbling over a join in event time",
        _window("r, sum(a) AS n", _PAIRS, ", r"),
        _closed("r, sum(a) AS n", _PAIRS, until="least({orders}, {people} - INTERVAL 6 HOURS)"),
    ),
    Case(
        "tumbling over a semi-join in event time",
        _window("k, count(*) AS n", _ASKED, ", k"),
        _closed("k, count(*) AS n", _ASKED, until="least({orders}, {people} - INTERVAL 6 HOURS)"),
    ),
    Case(
        "tumbling over a join as of a time",
        _window("r, sum(a) AS n", _PRICED, ", r"),
        _closed("r, sum(a) AS n", _PRICED_FOR_DUCKDB),
        as_of=_PEOPLE,
    ),
    Case(
        "tumbling over a join as of a time in steps",
        "SELECT event_time, r, n FROM days WHERE n > 1",
        f"SELECT * FROM ({_closed('r, count(*) AS n', _PRICED_FOR_DUCKDB + ' WHERE a IS NOT NULL')}) z WHERE n > 1",
        steps=[
            ("priced", _PRICED),
            ("known", "SELECT * FROM priced WHERE a IS NOT NULL"),
            ("days", _window("r, count(*) AS n", "SELECT * FROM known", ", r")),
        ],
        as_of=_PEOPLE,
    ),
    Case(
        "a defined table of a join below a window",
        f"WITH t AS ({_PAIRS}) " + _window("count(r) AS n", "SELECT * FROM t"),
        f"WITH t AS ({_PAIRS}) "
        + _closed("count(r) AS n", "SELECT * FROM t", until="least({orders}, {people} - INTERVAL 6 HOURS)"),
    ),
]

COMPOSED = [
    Case(
        "groups over a join as of a time",
        f"SELECT {_GROUP}, r, sum(a) AS n FROM ({_PRICED}) GROUP BY r",
        f"SELECT {_GROUP}, r, sum(a) AS n FROM ({_PRICED_FOR_DUCKDB}) GROUP BY r",
        as_of=_PEOPLE,
    ),
    Case(
        "groups over a join as of a time in steps",
        f"SELECT {_GROUP}, r, sum(a) AS n FROM big GROUP BY r",
        f"SELECT {_GROUP}, r, sum(a) AS n FROM ({_PRICED_FOR_DUCKDB}) WHERE a > 1 GROUP BY r",
        steps=[("priced", _PRICED), ("big", "SELECT * FROM priced WHERE a > 1")],
        as_of=_PEOPLE,
    ),
    Case(
        "a table over a join as of a time",
        f"WITH t AS ({_PRICED}) SELECT {_GROUP}, s, count(*) AS n FROM t GROUP BY s",
        f"WITH t AS ({_PRICED_FOR_DUCKDB}) SELECT {_GROUP}, s, count(*) AS n FROM t GROUP BY s",
        as_of=_PEOPLE,
    ),
    Case(
        "window functions over a join as of a time",
        f"SELECT *, row_number() OVER (PARTITION BY r ORDER BY {_UNIQUE}) AS nr FROM ({_PRICED})",
        f"SELECT *, row_number() OVER (PARTITION BY r ORDER BY {_UNIQUE}) AS nr FROM ({_PRICED_FOR_DUCKDB})",
        as_of=_PEOPLE,
    ),
    Case(
        "a join as of a time beside a maintained total",
        f"SELECT t.event_time, t.k, t.r, u.n FROM ({_PRICED}) t JOIN (SELECT k, sum(a) AS n FROM orders GROUP "
        "BY k) u ON t.k = u.k",
        f"SELECT t.event_time, t.k, t.r, u.n FROM ({_PRICED_FOR_DUCKDB}) t "
        "JOIN (SELECT k, sum(a) AS n FROM orders GROUP BY k) u ON t.k = u.k",
        as_of=_PEOPLE,
    ),
    Case(
        "a join as of the time of a group",
        "SELECT o.event_time, o.k, o.n, p.r FROM (SELECT max(event_time) AS event_time, k, count(*) AS n "
        "FROM orders GROUP BY k) o "
        "JOIN people FOR SYSTEM_TIME AS OF o.event_time AS p ON o.k = p.k",
        "SELECT o.event_time, o.k, o.n, p.r FROM (SELECT max(event_time) AS event_time, k, count(*) AS n "
        "FROM orders GROUP BY k) o "
        "ASOF JOIN people p ON o.k = p.k AND o.event_time >= p.event_time WHERE o.event_time <= {people}",
        as_of=_PEOPLE,
    ),
    Case(
        "union of a join as of a time and its probes",
        f"SELECT event_time, k, r FROM ({_PRICED}) UNION ALL SELECT event_time, k, s FROM orders",
        f"SELECT event_time, k, r FROM ({_PRICED_FOR_DUCKDB}) UNION ALL SELECT event_time, k, s FROM orders",
        as_of=_PEOPLE,
    ),
    Case(
        "distinct over a join as of a time",
        "SELECT DISTINCT date_trunc('DAY', event_time) AS event_time, r FROM (SELECT DISTINCT o.*, p.r FROM orders o "
        "JOIN people FOR SYSTEM_TIME AS OF o.event_time AS p ON o.k = p.k) t",
        "SELECT DISTINCT date_trunc('DAY', event_time) AS event_time, r FROM "
        f"({_PRICED_FOR_DUCKDB.replace('LEFT', '')}) t",
        as_of=_PEOPLE,
    ),
]

TABLE = {
    "aggregates": AGGREGATES,
    "joins": JOINS,
    "window functions": OVERS,
    "sets and subqueries": SETS,
    "rankings": RANKINGS,
    "event time": [replace(each, has_watermarks=True) for each in TIMES],
    "composed": [replace(each, has_watermarks=True) for each in COMPOSED],
}
