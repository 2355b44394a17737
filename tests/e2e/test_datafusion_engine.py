"""FUSION-1, FUSION-2, FUSION-6 to FUSION-8 and SWITCH-5: the DataFusion engine in its sandbox, and in a node."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from odf_engines.contract import GradeLevel, Limits, QueryTable, TransformInput
from odf_engines.engine import Capability, EngineSession
from odf_engines.errors import EngineFailureError, EngineMissingError, InvalidQueryError, LimitExceededError
from odf_engines.registry import engines_offering, get_engine
from odf_protocol.multihash import Multihash
from odf_protocol.vocabulary import Vocabulary
from support.city_datasets import derivative_manifest, root_manifest
from support.nodes import RealNode
from support.transforms import ORDERS, orders_input, output_rows, transform_request, write_orders

KAMU = Path(__file__).parents[1] / "data" / "kamu" / "datasets"
MIB = 1024 * 1024
ROWS = [(number, 0, number * 1000, number, "new", 1.5 * number) for number in range(10)]

LARGE = "SELECT event_time, people FROM c WHERE people > 10"
TOTALS = "SELECT event_time, sum(people) AS people, count(*) AS cities FROM large GROUP BY event_time"
DERIVATIVE = derivative_manifest(
    "totals", f"{{kind: Sql, engine: DataFusion, queries: [{{alias: large, query: '{LARGE}'}}, {{query: '{TOTALS}'}}]}}"
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineSession]:
    limits = Limits(memory_bytes=1024 * MIB)
    with get_engine("datafusion").open(tmp_path_factory.mktemp("engine"), limits) as opened:
        yield opened


@pytest.fixture
def orders(tmp_path: Path) -> TransformInput:
    return orders_input([write_orders(tmp_path / "0.parquet", ROWS)], (0, 9), [7_000])


def test_engine_says_what_it_offers_and_is_not_asked_for_more() -> None:
    assert get_engine("DataFusion").capabilities == {Capability.TRANSFORM, Capability.PREPROCESS, Capability.QUERY}
    assert engines_offering(Capability.INGEST) == ("arrow",)
    with pytest.raises(EngineMissingError, match=r"does not offer ingest \(offered by: arrow\)"):
        get_engine("datafusion", Capability.INGEST)


def test_digest_is_of_what_is_installed() -> None:
    engine = get_engine("datafusion")
    assert engine.digest() == get_engine("datafusion").digest()
    assert engine.digest() != get_engine("spark").digest()
    assert [need.is_there for need in engine.examine()] == [True]


def test_step_has_rows_watermark_and_offsets(session: EngineSession, orders: TransformInput) -> None:
    request = transform_request(
        "SELECT op, event_time, id * 2 AS twice FROM orders WHERE id > 7", orders, next_offset=5
    )
    response = session.transform(request)
    assert output_rows(response) == [(0, 16), (0, 18)]
    assert response.offset_interval is not None
    assert (response.offset_interval.start, response.offset_interval.end) == (5, 6)
    assert response.watermark is not None
    assert response.watermark.unix_ms == 7_000
    assert response.logical_hash is not None


def test_watermark_never_goes_back(session: EngineSession, orders: TransformInput) -> None:
    request = transform_request("SELECT event_time FROM orders", orders, prev_watermark_ms=8_000)
    assert session.transform(request).watermark == request.prev_watermark


def test_files_are_read_by_their_hashes(session: EngineSession, tmp_path: Path) -> None:
    paths = [write_orders(tmp_path / f"{at}.parquet", [ROWS[at]]) for at in range(4)]
    hashes = tuple(Multihash.of_sha3_256(path.read_bytes()) for path in paths)
    source = orders_input(paths, (0, 3))
    named = TransformInput(
        **{name: getattr(source, name) for name in source.__slots__ if name != "hashes"}, hashes=hashes
    )
    rows = output_rows(session.transform(transform_request("SELECT op, event_time, id FROM orders", named)))
    by_hash = sorted(range(4), key=lambda at: str(hashes[at]))
    assert by_hash != [0, 1, 2, 3]
    assert [row[1] for row in rows] == by_hash


@pytest.mark.parametrize(
    "query",
    [
        "SELECT event_time, sum(amount) OVER (PARTITION BY status) AS a FROM orders",
        "SELECT max(event_time) AS event_time, approx_percentile_cont(amount, 0.3) AS a, avg(amount) AS b FROM orders",
        "SELECT max(event_time) AS event_time, status, sum(amount) AS a, avg(amount) AS b FROM orders GROUP BY status",
    ],
)
def test_row_groups_of_a_slice_change_no_bit_switch_5(session: EngineSession, tmp_path: Path, query: str) -> None:
    chance = Random(5)
    rows = [
        (at, 0, at, at, chance.choice("abc"), chance.random() * 10 ** chance.randrange(-5, 9)) for at in range(40_000)
    ]
    found = set()
    for group_rows in (100_000, 9_000, 5_000, 777):
        path = write_orders(tmp_path / f"{group_rows}.parquet", rows, group_rows=group_rows)
        response = session.transform(transform_request(query, orders_input([path], (0, len(rows) - 1))))
        assert response.logical_hash is not None
        found.add(response.logical_hash)
    assert len(found) == 1


def test_step_without_rows_states_its_columns(session: EngineSession) -> None:
    response = session.transform(transform_request("SELECT event_time, count(*) AS n FROM orders GROUP BY 1"))
    assert response.data_path is None
    assert response.schema.names == ["offset", "op", "system_time", "event_time", "n"]
    assert not response.schema.field("n").nullable


def test_failure_on_a_value_is_the_querys_fault_and_the_session_goes_on(
    session: EngineSession, orders: TransformInput
) -> None:
    for query in ("SELECT event_time, id / (id - id) AS x FROM orders", "SELECT event_time, nothing AS x FROM orders"):
        with pytest.raises(InvalidQueryError):
            session.transform(transform_request(query, orders))
    assert session.transform(transform_request("SELECT event_time FROM orders", orders)).statistics.rows_out == 10


def test_broken_file_is_not_the_querys_fault(session: EngineSession, tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 not parquet PAR1")
    with pytest.raises(EngineFailureError):
        session.transform(transform_request("SELECT event_time FROM orders", orders_input([broken], (0, 9))))


def test_more_rows_than_allowed_are_a_limit(session: EngineSession, orders: TransformInput) -> None:
    request = transform_request("SELECT event_time FROM orders", orders, limits=Limits(output_rows=9))
    with pytest.raises(LimitExceededError) as caught:
        session.transform(request)
    assert caught.value.limit == "output_rows"


def test_value_that_no_memory_can_hold_is_a_limit(session: EngineSession, orders: TransformInput) -> None:
    query = "SELECT event_time, array_length(array_repeat(1, 2000000000)) AS n FROM orders"
    with pytest.raises(LimitExceededError) as caught:
        session.transform(transform_request(query, orders))
    assert (caught.value.limit, caught.value.allowed) == ("memory_bytes", 1024 * MIB)


def test_what_outgrows_memory_is_a_limit(session: EngineSession, orders: TransformInput) -> None:
    joins = ", ".join(f"orders {name}" for name in "abcdefgh")
    query = f"SELECT a.event_time, array_agg(repeat(b.status, 1000) ORDER BY c.id) AS x FROM {joins} GROUP BY 1"
    with pytest.raises(LimitExceededError) as caught:
        session.transform(transform_request(query, orders))
    assert (caught.value.limit, caught.value.allowed) == ("memory_bytes", 1024 * MIB)


def test_grade_says_what_a_stateless_engine_does_not_promise(session: EngineSession) -> None:
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)
    transform = transform_request("SELECT event_time, sum(amount) AS s FROM orders GROUP BY 1").transform
    grade = session.check(transform, [table])
    assert grade.level is GradeLevel.PINNED
    assert "Aggregate" in {each.expression for each in grade.findings}
    assert grade.schema is not None
    assert grade.schema.names[-1] == "s"

    refused = session.check(transform_request("SELECT event_time, now() AS s FROM orders").transform, [table])
    assert refused.level is GradeLevel.REJECTED
    assert refused.schema is None


def test_recorded_derivative_of_another_implementation_is_re_executed(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    for name in ("countries.daily", "countries.deadliest"):
        (report,) = node.must("pull", (KAMU / name).as_uri(), "--policy", "unsigned", "-o", "json").json()
    assert report["replayedSteps"] == 1
    shown = node.must("trust", "countries.deadliest").out
    assert "re-executed with datafusion" in shown
    assert "unsigned" in shown


@pytest.mark.spark
def test_own_derivative_runs_and_is_re_executed_elsewhere(tmp_path: Path) -> None:
    # Spark, which ingests, is the one that all tests share.
    node, ingesting = RealNode(tmp_path / "home"), RealNode(tmp_path / "home", has_engine=True)
    for name, text in (("root.yaml", root_manifest()), ("derivative.yaml", DERIVATIVE)):
        (tmp_path / name).write_text(text)
    node.must("add", str(tmp_path / "root.yaml"), "--system-time", "2024-01-01T00:00:00Z")
    for day, people in (("02", (5, 20, 30)), ("03", (40, 1))):
        rows = "\n".join(f'{{"event_time": "2024-01-01T00:00:00Z", "city": "c", "people": {n}}}' for n in people)
        (tmp_path / "rows.ndjson").write_text(rows)
        ingesting.must("ingest", "cities", str(tmp_path / "rows.ndjson"), "--system-time", f"2024-01-{day}T00:00:00Z")
        if day == "02":
            added = node.must("add", str(tmp_path / "derivative.yaml"), "--system-time", "2024-01-02T01:00:00Z")
            assert "among the new rows of one step only" in added.out + added.err
        node.must("pull", "totals", "--system-time", f"2024-01-{day}T02:00:00Z")
    rows = node.must("tail", "totals", "-o", "json").json()
    assert [(row["people"], row["cities"]) for row in rows] == [(50, 2), (40, 1)]
    # FUSION-10: two rows where a reader might expect one, and wherever somebody looks it is said why.
    assert "totals: pinned, per step" in added.err
    for words in (["trust", "totals"], ["inspect", "trust", "totals"], ["inspect", "query", "totals"]):
        shown = node.must(*words).out
        assert "per step: each one by itself, over what its inputs gained" in shown, words
        assert "a dataset of the same query with 'engine: spark' is over all rows, and corrected" in shown, words
    assert "per step" not in node.must("trust", "cities").out

    other = RealNode(tmp_path / "other")
    node.must("export", "cities", "totals", "--to", str(tmp_path / "exported"))
    for name in ("cities", "totals"):
        (report,) = other.must("pull", (tmp_path / "exported" / name).as_uri(), "-o", "json").json()
    assert report["replayedSteps"] == 2
    path = tmp_path / "answer.parquet"
    other.must("sql", "--engine", "datafusion", "-c", "SELECT sum(people) AS s FROM totals", "-o", "parquet",
               "--output-path", str(path))  # fmt: skip
    assert pq.read_table(path).to_pylist() == [{"s": 90}]
