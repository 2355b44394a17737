"""Clauses QUERY-7 and QUERY-8: what DataFusion answers of questions in Spark's SQL, it answers as Spark does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import Limits, QueryRequest, QueryResponse, QueryTable
from odf_engines.engine import QuerySession
from odf_engines.errors import InvalidQueryError, UnsuitableQueryError
from odf_engines.registry import get_engine
from odf_node.adapters.rows_folder import RowsFolder
from odf_node.engine_workspace import EngineWorkspace
from odf_node.engines.sessions import EngineHost
from odf_node.home import Home
from support.ingests import engine_session
from support.question_makers import TYPES, iter_questions, make_tables

pytestmark = pytest.mark.spark

QUESTIONS = [*iter_questions(seed=1, count=155)]


@pytest.fixture(scope="module")
def tables(host_folder: Path) -> tuple[QueryTable, ...]:
    return make_tables(host_folder)


@pytest.fixture(scope="module")
def fusion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuerySession]:
    with get_engine("datafusion").open(tmp_path_factory.mktemp("fusion"), Limits(memory_bytes=1024**3)) as opened:
        yield opened


def answer(session: QuerySession, request: QueryRequest) -> tuple[pa.Schema, list[str]]:
    """Names, types and rows, as texts in which NaN is itself and zero has its sign."""
    with pq.ParquetFile(session.query(request).result_path) as file:
        table = file.read()
    schema = pa.schema([(field.name, field.type) for field in table.schema])
    return schema, [repr(tuple(row.values())) for row in table.to_pylist()]


def test_engines_answer_alike_or_the_first_leaves_it_query_8(
    tables: tuple[QueryTable, ...], fusion: QuerySession
) -> None:
    alike, left = 0, 0
    for sql in QUESTIONS:
        request = QueryRequest(tables=tables, sql=sql, dialect="spark")
        try:
            found = answer(fusion, request)
        except (UnsuitableQueryError, InvalidQueryError):
            left += 1
            continue
        assert found == answer(engine_session(), request), sql
        alike += 1
    assert (alike >= 100, left >= 10) == (True, True), (alike, left)


def test_nulls_are_compared_as_values_query_8(tables: tuple[QueryTable, ...], fusion: QuerySession) -> None:
    alike = " AND ".join(f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in TYPES)
    each = ", ".join(f"a.{name} IS DISTINCT FROM b.{name} AS `{name}`" for name in TYPES)
    for sql in (
        f"SELECT a.offset, count(*) AS n FROM my.things a JOIN my.things b ON {alike} GROUP BY a.offset",
        f"SELECT a.offset, b.offset AS other, {each} FROM my.things a CROSS JOIN my.things b",
        "SELECT whole <=> 4 AS b, small IS DISTINCT FROM whole AS c FROM my.things WHERE NOT word <=> 'a'",
    ):
        request = QueryRequest(tables=tables, sql=sql, dialect="spark")
        assert answer(fusion, request) == answer(engine_session(), request), sql


class Kept:
    """A session that others use as well."""

    def __init__(self, inner: QuerySession) -> None:
        self.inner = inner

    def query(self, request: QueryRequest) -> QueryResponse:
        return self.inner.query(request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture
def host(tmp_path: Path, fusion: QuerySession) -> EngineHost:
    sessions: dict[str, Any] = {"datafusion": Kept(fusion), "spark": Kept(engine_session())}
    return EngineHost(EngineWorkspace(tmp_path), RowsFolder(Home(tmp_path / "home")), find_warm=sessions.get)


def test_first_engine_answers_and_the_usual_one_what_it_leaves_query_7(
    tables: tuple[QueryTable, ...], host: EngineHost
) -> None:
    def ask(sql: str, engine: str | None = None) -> tuple[str, str | None]:
        name, _, reason = host.query(QueryRequest(tables=tables, sql=sql), engine)
        return name, reason

    assert ask("SELECT max(day) FROM other") == ("datafusion", None)
    window = "SELECT rank() OVER (ORDER BY whole) AS r FROM other"
    name, reason = ask(window)
    assert (name, "WINDOW" in (reason or "")) == ("spark", True)
    # What fails in the first one only.
    assert ask("SELECT heat, ratio FROM my.things ORDER BY ratio")[0] == "spark"
    # One that is named answers alone, in its own SQL.
    assert ask(window, "datafusion") == ("datafusion", None)
    assert ask("SELECT max(day) FROM other", "spark") == ("spark", None)


@pytest.mark.parametrize(
    "sql",
    ["SELECT nothing FROM other", "SELEC 1", "SELECT sum(Big) FROM my.things", "SELECT 1 / (whole - whole) FROM other"],
)
def test_error_is_that_of_the_engine_in_whose_sql_it_is_query_7(
    tables: tuple[QueryTable, ...], host: EngineHost, sql: str
) -> None:
    request = QueryRequest(tables=tables, sql=sql)
    with pytest.raises(InvalidQueryError) as told:
        host.query(request)
    with pytest.raises(InvalidQueryError) as expected:
        engine_session().query(request)
    assert str(told.value) == str(expected.value)
