"""A step of an own derivative that reaches a limit says of which derivative it is, and over how many rows.

Clause ENGINE-16, for every class of queries. Memory and processor time belong to sessions (``test_engine_sessions``);
a step that is re-executed is named by its block (``test_reexecution``).
"""

from dataclasses import replace
from pathlib import Path

import pytest

from odf_engines.contract import Limits
from odf_engines.errors import LimitExceededError
from odf_protocol.events import AddData, DatasetKind, Seed, TemporalTable
from odf_protocol.timestamp import Timestamp
from support.offers import CITIES, NOON, Judge, PeerChain, PublisherHome, root_chain, select
from support.signing import NEW_KEY

pytestmark = pytest.mark.spark

CUT = "SELECT {window}.end AS event_time, city, count(*) AS n FROM in0 GROUP BY {window}(event_time, '1 hour'), city"
QUERIES = {
    "windows": CUT.format(window="window"),
    "sessions": CUT.format(window="session_window"),
    "join in time": """
        SELECT window.end AS event_time, city, count(*) AS n FROM (
            SELECT a.event_time, a.city FROM in0 a JOIN in1 b ON a.city = b.city AND b.event_time = a.event_time
        ) GROUP BY window(event_time, '1 hour'), city
    """,
    "join as of a time": """
        SELECT a.event_time, a.city, b.people FROM in0 a
        JOIN in1 FOR SYSTEM_TIME AS OF a.event_time b ON a.city = b.city
    """,
    "view": "SELECT max(event_time) AS event_time, city, count(*) AS n FROM in0 GROUP BY city",
    "map": "SELECT event_time, city FROM in0",
}


@pytest.mark.parametrize("name", QUERIES)
def test_step_that_reaches_a_limit_is_named_and_leaves_nothing(spark_session, tmp_path: Path, name: str) -> None:
    folders = [tmp_path / each for each in ("one", "other")]
    for each in folders:
        each.mkdir()
    home = PublisherHome(Judge.create(tmp_path / "home", spark_session))
    roots = [root_chain(folders[0], slices=0)]
    if "in1" in QUERIES[name]:
        roots.append(root_chain(folders[1], slices=0, key=b"\x07" * 32, name="reference"))
    chain = PeerChain(folders[0], key=NEW_KEY, name="figures")
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE))
    declared = select(QUERIES[name], *(each.id for each in roots))
    if "SYSTEM_TIME" in QUERIES[name]:
        tables = (TemporalTable(name="in1", primary_key=("city",)),)
        declared = replace(declared, transform=replace(declared.transform, temporal_tables=tables))
    chain.add(declared)
    for root in roots:
        mark = Timestamp(NOON.seconds + 36_000)
        home.keep(root.add_rows(CITIES).add(AddData(prev_offset=2, new_watermark=mark)))
    home.keep(chain)
    before = home.judge.snapshot()

    home.judge.engines.limits = Limits(output_rows=2)
    with pytest.raises(LimitExceededError) as caught:
        home.run(chain, at=Timestamp(NOON.seconds + 90_000))
    reported = (
        "limit output_rows reached at writing its rows, the next step of figures, "
        f"over {3 * len(roots)} rows of its inputs: allowed 2, "
    )
    assert str(caught.value).startswith(reported)
    assert home.judge.snapshot() == before

    home.judge.engines.limits = Limits(output_rows=3)
    assert home.run(chain, at=Timestamp(NOON.seconds + 90_000)).new_rows == 3
