"""The analysis of a declared query has a limit of its own, which a rejection names (SANDBOX-18)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_engines.contract import GradeLevel, Limits, QueryTable
from odf_engines.datafusion.engine import DataFusionEngine
from odf_engines.engine import EngineSession
from odf_engines.errors import LimitExceededError
from odf_engines.host import query_bounds
from odf_protocol.vocabulary import Vocabulary
from support.transforms import ORDERS, transform_sql

TABLE = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)
PLAIN = transform_sql("SELECT event_time, id FROM orders")
# Some tables of which each is a join of the one before with itself: sixteen kinds of rows in a text of a kilobyte.
SWELLING = transform_sql(
    "WITH t0 AS (SELECT event_time, id FROM orders)"
    + "".join(f", t{n + 1} AS (SELECT a.event_time, a.id FROM t{n} a JOIN t{n} b ON a.id = b.id)" for n in range(14))
    + " SELECT event_time, id FROM t14"
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[EngineSession]:
    with DataFusionEngine().open(tmp_path, Limits()) as opened:
        yield opened


def test_query_that_takes_long_to_analyse_is_ended_and_the_next_one_is_answered(
    session: EngineSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert session.check(PLAIN, [TABLE]).level is not GradeLevel.REJECTED
    with monkeypatch.context() as lowered:
        lowered.setattr(query_bounds, "ANALYSIS_S", 0.2)
        with pytest.raises(LimitExceededError, match="limit wall_s reached at the analysis of the query"):
            session.check(SWELLING, [TABLE])
    assert session.check(PLAIN, [TABLE]).level is not GradeLevel.REJECTED
