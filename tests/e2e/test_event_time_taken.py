"""Clause GATE-18: a result without an event time is told of with its way out, and the one time that it has is taken."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odf_engines.contract import GradeLevel, Limits
from odf_engines.errors import InvalidQueryError
from odf_engines.registry import get_engine
from odf_protocol.vocabulary import Vocabulary
from support.auction_queries import ONE_TIME, PASSING, SEVERAL_TIMES, tables_of
from support.city_datasets import add_cities, derivative_manifest
from support.nodes import RealNode
from support.transforms import transform_request, transform_sql

ENGINES = ["datafusion", pytest.param("spark", marks=pytest.mark.spark)]


@pytest.fixture
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "spark":
        yield request.getfixturevalue("spark_session")
    else:
        (tmp_path / "engine").mkdir()
        with get_engine("datafusion").open(tmp_path / "engine", Limits()) as opened:
            yield opened


@pytest.mark.parametrize("session", ENGINES, indirect=True)
def test_rejection_for_want_of_an_event_time_shows_the_query_that_would_pass(session: Any) -> None:
    for name, (query, passing) in PASSING.items():
        grade = session.check(transform_sql(query), tables_of(query))
        assert grade.level is GradeLevel.REJECTED, name
        assert "no event time, a date or timestamp called event_time" in grade.findings[0].reason, name
        rewrite = grade.findings[0].rewrite
        if passing is None:
            assert "max(event_time) AS event_time" in rewrite, name
        else:
            assert rewrite == passing, name
            assert session.check(transform_sql(passing), tables_of(query)).level is not GradeLevel.REJECTED, name


@pytest.mark.parametrize("session", ENGINES, indirect=True)
def test_only_time_of_a_result_is_named_and_would_pass_as_its_event_time(session: Any) -> None:
    for name, (query, time) in ONE_TIME.items():
        grade = session.check(transform_sql(query), tables_of(query))
        assert (grade.level, grade.time_columns) == (GradeLevel.REJECTED, (time,)), name
        taken = replace(Vocabulary(), event_time=time)
        assert session.check(transform_sql(query), tables_of(query), vocabulary=taken).schema is not None, name
    assert session.check(transform_sql(SEVERAL_TIMES), tables_of(SEVERAL_TIMES)).time_columns == ("sold", "expires")


@pytest.mark.parametrize("session", ENGINES, indirect=True)
def test_step_without_an_event_time_is_the_querys_fault(session: Any) -> None:
    with pytest.raises(InvalidQueryError, match=r"select a date or timestamp AS event_time, for a group max"):
        session.transform(transform_request("SELECT id FROM orders"))


@pytest.mark.usefixtures("light_engines")
def test_only_time_of_a_result_is_taken_and_said_when_it_is_added(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    add_cities(node, tmp_path)

    def write(name: str, query: str) -> str:
        quoted = query.replace("'", "''")
        path = tmp_path / f"{name}.yaml"
        path.write_text(derivative_manifest(name, f"{{kind: Sql, engine: datafusion, query: '{quoted}'}}"))
        return str(path)

    days = write("days", "SELECT date_trunc('day', event_time) AS day, sum(people) AS people FROM c GROUP BY 1")
    added = node.must("add", days)
    assert "event time: day, the only date or timestamp of the result" in added.err
    node.must("pull", "days")
    assert [row["day"][:10] for row in node.must("tail", "days", "-o", "json").json()] == ["2024-01-01", "2024-01-02"]
    assert node.must("add", "--replace", days).out.startswith("days: unchanged")
    refused = node.run("add", write("both", "SELECT event_time AS a, event_time AS b FROM c"))
    assert refused.code
    assert "SetVocab with 'eventTimeColumn: a'" in refused.err
    refused = node.run("add", write("totals", "SELECT city, sum(people) AS people FROM c GROUP BY city"))
    assert (
        "instead: SELECT max(event_time) AS event_time, city, sum(people) AS people FROM c GROUP BY city" in refused.err
    )
    assert "run_check" not in refused.err
