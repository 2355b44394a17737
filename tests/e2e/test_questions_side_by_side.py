"""Clause FUSION-9: one contract of questions, and the engines that answer them side by side."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow.parquet as pq
import pytest

from odf_engines.contract import Limits, QueryRequest, QueryTable
from odf_engines.engine import QuerySession
from odf_engines.errors import InvalidQueryError
from odf_engines.registry import get_engine
from odf_protocol.events import DataTypeInt32, DataTypeInt64, DataTypeString, MergeStrategyUpsertStream, ReadStepCsv
from odf_protocol.timestamp import Timestamp
from support.ingests import RootDataset, engine_session, schema

pytestmark = pytest.mark.spark

DAYS = ("2024-02-01T00:00:00Z", "2024-02-02T00:00:00Z", "2024-02-03T00:00:00Z")

QUERY_SERVICE = {
    "changelog": 'SELECT "offset", op, account, balance FROM my.accounts ORDER BY "offset"',
    "system-columns": 'SELECT system_time, event_time FROM my.accounts ORDER BY "offset"',
    "state": "SELECT account, balance FROM my.accounts__state ORDER BY account",
    "count": "SELECT count(*) AS n, sum(balance) AS s FROM my.accounts",
    "group": "SELECT account, max(balance) AS m FROM my.accounts GROUP BY account ORDER BY account",
    "join": "SELECT a.account FROM my.accounts a JOIN my.accounts__state s ON a.account = s.account ORDER BY 1",
    "window": 'SELECT account, row_number() OVER (ORDER BY "offset") AS n FROM my.accounts ORDER BY n',
    "with": "WITH t AS (SELECT balance FROM my.accounts) SELECT avg(balance) AS a FROM t",
    "union": "SELECT account FROM my.accounts UNION SELECT 'zoe' ORDER BY account",
    "nothing": "SELECT account FROM my.accounts WHERE balance > 100",
    "clock": "SELECT count(*) AS n FROM my.accounts WHERE event_time < now()",
}
REJECTED = (
    "DELETE FROM my.accounts",
    "CREATE TABLE t AS SELECT 1",
    "SELECT * FROM nowhere",
    "SELECT 1; SELECT 2",
    "SELEC",
)


@cache
def accounts() -> QueryTable:
    types = {"op": DataTypeInt32(), "account": DataTypeString(), "balance": DataTypeInt64()}
    dataset = RootDataset(
        ReadStepCsv(header=True, schema=schema(**types)), MergeStrategyUpsertStream(primary_key=("account",))
    )
    for day, source in zip(DAYS, ("0,ann,1\n0,bob,2\n", "0,ann,5\n1,bob,\n", "0,bob,7\n1,ann,\n"), strict=True):
        dataset.ingest("op,account,balance\n" + source, system_time=day)
    return dataset.table("my.accounts")


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, QuerySession]]:
    folder = tmp_path_factory.mktemp("engine")
    with get_engine("datafusion").open(folder, Limits(memory_bytes=1024**3)) as opened:
        yield {"spark": engine_session(), "datafusion": opened}


def ask(session: QuerySession, engine: str, sql: str, **options: Any) -> list[tuple[Any, ...]]:
    # Double quotes are text in the one's SQL and names in the other's.
    text = sql.replace('"', "`") if engine == "spark" else sql
    response = session.query(QueryRequest(tables=(accounts(),), sql=text, **options))
    table = pq.read_table(response.result_path)
    assert response.rows == table.num_rows
    return [tuple(row.values()) for row in table.to_pylist()]


# What was known at a moment is cut out of the tables, whatever is asked of them: of each kind, with and without rows.
MOMENTS = [(name, day) for name in ("changelog", "state", "join", "nothing") for day in DAYS]


@pytest.mark.parametrize(("name", "as_of"), [*((name, None) for name in QUERY_SERVICE), *MOMENTS])
def test_engines_give_the_same_answer(sessions: dict[str, QuerySession], name: str, as_of: str | None) -> None:
    moment = None if as_of is None else Timestamp.parse(as_of)
    answers = [ask(session, engine, QUERY_SERVICE[name], as_of=moment) for engine, session in sessions.items()]
    assert answers[0] == answers[1]
    assert answers[0] or name == "nothing" or (name == "state" and as_of is None)


@pytest.mark.parametrize("engine", ["spark", "datafusion"])
def test_answer_is_cut_where_asked(sessions: dict[str, QuerySession], engine: str) -> None:
    assert len(ask(sessions[engine], engine, QUERY_SERVICE["changelog"], max_rows=2)) == 2


@pytest.mark.parametrize("engine", ["spark", "datafusion"])
@pytest.mark.parametrize("sql", REJECTED)
def test_anything_but_one_query_is_rejected(sessions: dict[str, QuerySession], engine: str, sql: str) -> None:
    with pytest.raises(InvalidQueryError):
        ask(sessions[engine], engine, sql)
