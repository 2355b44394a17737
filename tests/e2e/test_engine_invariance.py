"""Clauses ENGINE-9, ENGINE-17, ENGINE-18: nothing about a machine changes a result, down to the last bit.

There are three real engines: one with two cores; one with a single core, less memory and Java's second compiler, which
has nothing of our code but what its digest covers; and one with four cores, other splits and partitions, under another
user, home, locale, time zone and clock. Inputs are cut into other files and row groups each time.

A history and what computes most go to all three. Of the other requests each kind goes to both others, one of that kind
to each: grouping, windows, joins, orders and ingests meet every difference.
"""

import os
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from odf_engines.contract import IngestRequest, Limits, QueryRequest, QueryTable
from odf_engines.errors import LimitExceededError
from odf_engines.host.session import HostSession
from odf_engines.reading.slices import logical_hash_of
from odf_engines.records.source_records import ROW_GROUP_ROWS
from odf_engines.sandbox.profile import Mount, Profile
from odf_engines.sandbox.resources import usage_of
from odf_protocol.events import (
    DatasetKind,
    MergeStrategyAppend,
    MergeStrategySnapshot,
    ReadStepCsv,
    Seed,
    SqlQueryStep,
    TransformSql,
)
from odf_protocol.schema_ddl import parse_ddl
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from odf_spark.class_data import find_class_data
from odf_spark.handover import _SMALL_BYTES
from odf_spark.launch import SHORT_LIVED
from odf_spark.runtime import find_runtime, iter_engine_files, spark_guest
from support.offers import NOON, Judge, PublisherHome, root_chain, select
from support.offers import PeerChain as Chain
from support.shifted_clock import write_shifted_clock
from support.signing import NEW_KEY
from support.transforms import ORDERS, SYSTEM_TIME, orders_input, transform_request, write_orders
from support.warm_engine import warm_session

pytestmark = pytest.mark.spark

ROWS = 4_000
ONE, TWO, FOUR = "one-core", "two-cores", "four-cores"
OTHER_MACHINE = {
    "HOME": "/nowhere", "LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu", "USER": "somebody",
    "LOGNAME": "somebody", "SPARK_CONF_DIR": "/nowhere", "JAVA_TOOL_OPTIONS": "-Duser.timezone=Asia/Tokyo",
    "SPARK_LOCAL_DIRS": "/nowhere", "PYTHONPATH": "/nowhere", "PYTHONHASHSEED": "7",
}  # fmt: skip
# Java's second compiler would spend more on planning than all queries on rows: what it compiles, and at once, is what
# computes their values. What rows may take of the heap is so little that a sort of some thousand wide ones outgrows it.
OF_ONE_CORE = (
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=CompileThresholdScaling,*GeneratedClass*::*,0.001",
    "-XX:CompileCommand=CompileThresholdScaling,*FdLibm*::*,0.001",
    "-XX:Tier4InvocationThreshold=1000000",
    "-XX:Tier4MinInvocationThreshold=1000000",
    "-XX:Tier4CompileThreshold=1000000",
    "-XX:Tier4BackEdgeThreshold=1000000",
    "-Dspark.memory.fraction=0.1",
)
OTHER_SETTINGS = (
    *SHORT_LIVED,
    "-Dspark.sql.files.maxPartitionBytes=8192",
    "-Dspark.sql.files.minPartitionNum=7",
    "-Dspark.sql.shuffle.partitions=3",
    "-Dspark.default.parallelism=5",
)


class OtherClockSession(HostSession):
    """A session whose programs see another year."""

    library: Path | None = None  # None where none can be made: then it is the same year

    def profile(self) -> Profile:
        found = super().profile()
        if self.library is None:
            return found
        return replace(
            found,
            mounts=(*found.mounts, Mount(self.library, "/runtime/clock.so")),
            environment={**found.environment, "LD_PRELOAD": "/runtime/clock.so"},
        )


@dataclass(frozen=True)
class Machine:
    """An engine somewhere, and how slices are cut there: files, and rows in a row group."""

    session: Any
    files: int
    group_rows: int


@contextmanager
def files_for_the_owner_alone() -> Iterator[None]:
    previous = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(previous)


@pytest.fixture(scope="module")
def machines(
    spark_session: Any, spark_engine: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Machine]]:
    runtime = find_runtime()
    known = {
        "class_data": find_class_data(runtime, spark_engine.cache),
    }
    folder = tmp_path_factory.mktemp("machines")
    for place, path in iter_engine_files(runtime):
        if place.startswith("odf/"):
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / place)
    bare = replace(runtime, ours=tuple((name, folder / "odf" / name) for name, _ in runtime.ours))
    small = Limits(memory_bytes=1792 * 1024**2, wall_s=600.0)
    if write_shifted_clock(folder / "clock.so"):
        OtherClockSession.library = folder / "clock.so"
    limits = Limits(wall_s=600.0)
    with files_for_the_owner_alone():
        other = OtherClockSession(spark_guest(runtime, cores=4, java_options=OTHER_SETTINGS, **known), folder, limits)
    less = HostSession(spark_guest(bare, cores=1, java_options=OF_ONE_CORE, **known), folder, small)
    with less as one_core, other as four_cores:
        with pytest.MonkeyPatch.context() as patch, files_for_the_owner_alone():
            for name, value in OTHER_MACHINE.items():
                patch.setenv(name, value)
            time.tzset()
            four_cores.start()
        time.tzset()
        yield {
            TWO: Machine(spark_session, 1, ROWS),
            ONE: Machine(one_core, 2, 200),
            FOUR: Machine(four_cores, 3, 77),
        }
        started = [session._process.process_id for session in (less, other) if session._process is not None]
        assert all(usage_of(each).processes > 10 for each in started)
    # Closing leaves nothing of an engine.
    assert all(usage_of(each).processes == 0 for each in started)
    assert not list(folder.glob("spark-*"))


@pytest.fixture(scope="module")
def slices(machines: dict[str, Machine], tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, ...]]:
    """The same rows for every machine, in its own files: magnitudes far apart, ties, nulls, zeros of both signs."""
    chance = random.Random(5)
    amounts = [
        chance.choice([None, 0.0, -0.0, chance.gauss(0, 1) * 10.0 ** chance.randint(-12, 12)]) for _ in range(ROWS)
    ]
    rows = [
        (n, 0, 86_400_000 * chance.randint(0, 9), chance.randint(0, 99), chance.choice(["a", "b", "c", None]), amount)
        for n, amount in enumerate(amounts)
    ]
    found = {}
    for name, machine in machines.items():
        folder = tmp_path_factory.mktemp(name)
        whole = pq.read_table(write_orders(folder / "whole", rows))
        cuts = sorted(random.Random(machine.files).sample(range(1, ROWS), machine.files - 1))
        paths = []
        for start, end in zip([0, *cuts], [*cuts, ROWS], strict=True):
            paths.append(folder / f"{start}.parquet")
            compression = "zstd" if machine.files > 1 else "none"
            pq.write_table(
                whole.slice(start, end - start), paths[-1], row_group_size=machine.group_rows, compression=compression
            )
        found[name] = tuple(paths)
    return found


QUERY_SERVICE = {
    "float-aggregates": "SELECT status, sum(amount) AS s, avg(amount) AS a, stddev(amount) AS d, corr(amount, id) AS c,"
    " max(amount) AS m, percentile_approx(amount, 0.3) AS p FROM orders GROUP BY status",
    "sums-of-all-and-average-of-averages": "SELECT avg(a) AS a, (SELECT sum(amount) FROM orders) AS s,"
    " (SELECT sum(amount) FROM orders__state) AS t FROM (SELECT avg(amount) AS a FROM orders GROUP BY id, status)",
    "lists": "SELECT id, concat_ws(',', collect_list(status)) AS l, first(amount) AS f, last(offset) AS o,"
    " concat_ws(',', collect_set(status)) AS s FROM orders GROUP BY id",
    "ties": "SELECT offset, row_number() OVER (PARTITION BY id ORDER BY status) AS n,"
    " lag(offset) OVER (ORDER BY event_time) AS before FROM orders",
    "running-float-sum": "SELECT offset, sum(amount) OVER (PARTITION BY status ORDER BY event_time, id) AS s"
    " FROM orders",
    "join-under-limit": "SELECT a.offset AS x, b.offset AS y FROM orders a JOIN orders b ON a.id = b.id AND a.status ="
    " b.status LIMIT 1000",
    "join-without-equality": "SELECT a.offset AS x, b.offset AS y FROM orders a JOIN orders b ON a.offset < b.offset"
    " AND b.offset < 90 WHERE a.offset < 80",
    "semi-join": "SELECT offset, amount FROM orders WHERE id IN (SELECT max(id) FROM orders GROUP BY status)",
    "distinct": "SELECT DISTINCT status, id FROM orders",
    "union": "SELECT id, amount FROM orders WHERE id < 9 UNION ALL SELECT id, -amount FROM orders WHERE id > 90",
    "order-with-ties": "SELECT status, amount FROM orders ORDER BY status DESC",
    "order-with-ties-cut": "SELECT event_time, offset FROM orders ORDER BY event_time LIMIT 777",
    "limit": "SELECT offset, amount FROM orders LIMIT 777",
    "map-of-numbers-text-and-time": "SELECT offset, amount * 1.1 AS x, ln(abs(amount) + 1) AS l, upper(status) AS u,"
    " date_format(event_time, 'EEEE d MMMM y HH:mm') AS t, upper('istanbul') AS v, lower('I') AS i,"
    " CAST(amount AS STRING) AS f, from_unixtime(0) AS z FROM orders WHERE id > 50",
    "state-rows": "SELECT id, status, amount FROM orders__state",
}  # fmt: skip

ASKED_OF = dict.fromkeys(QUERY_SERVICE, (FOUR,)) | {
    "float-aggregates": (ONE, FOUR),
    "map-of-numbers-text-and-time": (ONE, FOUR),
    "running-float-sum": (ONE,),
    "semi-join": (ONE,),
    "order-with-ties-cut": (ONE,),
}

# Where the turn that threads happen to take would show: these are asked twice of the machine with most of them.
RACES = ("float-aggregates", "lists", "ties", "join-under-limit", "limit")


def ask(machine: Machine, paths: tuple[Path, ...], sql: str, **more: Any) -> Path:
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS, slices=paths)
    response = machine.session.query(QueryRequest(tables=(table,), sql=sql, **more))
    return response.result_path


@cache
def answer(machine: Machine, paths: tuple[Path, ...], sql: str) -> Path:
    """What was answered when this was asked first."""
    return ask(machine, paths, sql)


@pytest.mark.parametrize("query_text", QUERY_SERVICE)
def test_question_has_the_same_bits_everywhere(
    machines: dict[str, Machine], slices: dict[str, tuple[Path, ...]], query_text: str
) -> None:
    sql, names = QUERY_SERVICE[query_text], (TWO, *ASKED_OF[query_text])
    hashes = {name: logical_hash_of(answer(machines[name], slices[name], sql)) for name in names}
    assert len(set(hashes.values())) == 1, hashes
    if query_text in RACES:
        assert logical_hash_of(ask(machines[FOUR], slices[FOUR], sql)) == hashes[FOUR]


def test_question_over_plain_files_has_the_same_bits_everywhere(
    machines: dict[str, Machine], slices: dict[str, tuple[Path, ...]]
) -> None:
    """As ODF's gRPC contract asks (GRPC-9): files without meaning for any column."""
    sql = "SELECT status, sum(amount) AS s, first(amount) AS f FROM input GROUP BY status"
    hashes = set()
    for name in (TWO, FOUR):
        table = QueryTable(
            name="input", vocabulary=Vocabulary(), schema=ORDERS, slices=slices[name], is_changelog=False
        )
        response = machines[name].session.query(QueryRequest(tables=(table,), sql=sql))
        hashes.add(logical_hash_of(response.result_path))
    assert len(hashes) == 1


def test_other_machine_is_another_one(machines: dict[str, Machine], slices: dict[str, tuple[Path, ...]]) -> None:
    """The control: its clock is years off, and its settings are not ours."""
    if OtherClockSession.library is None:
        pytest.skip("the clock can be shifted on x86-64 with glibc only: the other machine has this one's")
    here, there = (
        pq.read_table(ask(machines[name], slices[name], "SELECT year(current_date()) AS y")).column("y")[0].as_py()
        for name in (TWO, FOUR)
    )
    assert there <= here - 19


def test_rows_of_a_question_without_order_are_sorted(
    machines: dict[str, Machine], slices: dict[str, tuple[Path, ...]]
) -> None:
    machine, paths = machines[FOUR], slices[FOUR]
    rows = pq.read_table(answer(machine, paths, QUERY_SERVICE["distinct"])).to_pylist()
    assert rows == sorted(rows, key=lambda row: (row["status"] is not None, row["status"] or "", row["id"]))
    cut = pq.read_table(answer(machines[ONE], slices[ONE], QUERY_SERVICE["order-with-ties-cut"])).to_pylist()
    assert cut == sorted(cut, key=lambda row: (row["event_time"], row["offset"]))
    kept = (
        pq.read_table(answer(machine, paths, QUERY_SERVICE["map-of-numbers-text-and-time"]))
        .column("offset")
        .to_pylist()
    )
    assert kept == sorted(kept)
    first = pq.read_table(ask(machine, paths, QUERY_SERVICE["distinct"], max_rows=2)).to_pylist()
    assert first == rows[:2]


def test_step_has_the_same_rows_everywhere(machines: dict[str, Machine], slices: dict[str, tuple[Path, ...]]) -> None:
    query = """
        SELECT event_time, id, amount / 3 AS third, ln(abs(amount)) AS l, sin(amount) AS s, exp(amount / 7) AS e,
               date_format(event_time, 'EEEE MMMM HH') AS d, format_number(amount, 2) AS f,
               upper(concat(status, 'iß')) AS u, hour(event_time) AS h,
               to_timestamp('2020-03-29 02:30', 'yyyy-MM-dd HH:mm') AS gap, xxhash64(status) AS hash
        FROM orders WHERE id > 7
    """
    found = {}
    for name, machine in machines.items():
        request = transform_request(query, orders_input(slices[name], (10, ROWS - 10)))
        with files_for_the_owner_alone() if name == FOUR else nullcontext():
            response = machine.session.transform(request)
        found[name] = (logical_hash_of(response.data_path), response.schema)
    assert found[ONE] == found[TWO] == found[FOUR]


NUMBERED = "SELECT *, row_number() OVER (PARTITION BY kind ORDER BY event_time) AS n FROM input"
PREPROCESS = {
    "aggregate": (
        "SELECT event_time, kind, sum(value) AS total, avg(value) AS mean, first(value) AS f FROM input GROUP BY 1, 2",
        MergeStrategyAppend(),
    ),
    "union": (
        "SELECT event_time, kind, value FROM input UNION ALL SELECT event_time, upper(kind), value FROM input",
        MergeStrategyAppend(),
    ),
    "ties": (
        f"SELECT event_time, concat(kind, n) AS kind, value FROM ({NUMBERED})",
        MergeStrategySnapshot(primary_key=("kind",)),
    ),
}


@pytest.mark.parametrize(
    ("other", "rows", "query", "merge"),
    [
        pytest.param(ONE, 2_000, *PREPROCESS["aggregate"], id="aggregate-in-memory"),
        pytest.param(FOUR, 2_000, *PREPROCESS["union"], id="union-in-memory"),
        pytest.param(FOUR, 2_000, *PREPROCESS["ties"], id="ties-in-memory"),
        pytest.param(FOUR, ROW_GROUP_ROWS + 10_000, *PREPROCESS["aggregate"], id="aggregate-through-files"),
    ],
)
def test_ingest_has_the_same_rows_everywhere(
    machines: dict[str, Machine], tmp_path: Path, other: str, rows: int, query: str, merge: Any
) -> None:
    chance = random.Random(7)
    source = tmp_path / "source.csv"
    with source.open("w") as file:
        file.write("event_time,kind,value\n")
        for _ in range(rows):
            value = chance.gauss(0, 1) * 10.0 ** chance.randint(-9, 9)
            file.write(f"2024-01-{chance.randint(1, 9):02}T00:00:00Z,k{chance.randint(0, 20):019},{value!r}\n")
    assert (source.stat().st_size > _SMALL_BYTES) == (rows > 2_000)
    hashes = {}
    for name in (TWO, other):
        request = IngestRequest(
            dataset_id="did:odf:x",
            read=ReadStepCsv(header=True, schema=parse_ddl(["event_time TIMESTAMP", "kind STRING", "value DOUBLE"])),
            preprocess=TransformSql(engine="spark", queries=(SqlQueryStep(query=query),)),
            merge=merge,
            vocabulary=Vocabulary(),
            source_path=source,
            source_name="source.csv",
            known_schema=None,
            state_path=None,
            system_time=SYSTEM_TIME,
            fallback_event_time=SYSTEM_TIME,
            next_offset=0,
        )
        read = warm_session("arrow").convert(request)
        made = machines[name].session.preprocess(request.preprocess, read.rows)
        prepared = replace(request, prepared=replace(read, rows=made.result_path))
        hashes[name] = logical_hash_of(warm_session("arrow").ingest(prepared).data_path)
    assert len(set(hashes.values())) == 1, hashes


def test_history_is_reproduced_on_every_machine(machines: dict[str, Machine], tmp_path: Path) -> None:
    """Three steps, the query changed in between: written on one machine, re-executed step by step on the others."""
    home = PublisherHome(Judge.create(tmp_path / "publisher", machines[TWO].session))
    root = root_chain(tmp_path, slices=0).add_rows([("Oslo", 1), ("", 2), (None, 3)])
    home.keep(root)
    chain = Chain(tmp_path, key=NEW_KEY, name="derived")
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE))
    chain.add(select("SELECT event_time, city, ln(people) AS x FROM in0", root.id))
    home.keep(chain)
    home.run(chain, at=Timestamp(NOON.seconds + 100))
    changed = select("SELECT event_time, upper(city) AS city, people / 3 AS x FROM in0 WHERE people > 5", root.id)
    home.keep(chain.add(changed, at=Timestamp(NOON.seconds + 200)))
    for n, rows in enumerate(([("Rome", 5), ("Bari", 6)], [("Turin", 7)])):
        home.keep(root.add_rows(rows))
        home.run(chain, at=Timestamp(NOON.seconds + 300 + n))
    for name in (ONE, FOUR):
        judge = Judge.create(tmp_path / name, machines[name].session)
        judge.accept(root)
        assert judge.accept(chain).replayed_steps == 3


def test_order_that_outgrows_memory_has_a_limit_and_no_result(
    machines: dict[str, Machine], slices: dict[str, tuple[Path, ...]]
) -> None:
    """What is spilled is merged in another order; the same sorting, where no order is asked of ties, may spill."""
    # 120 MB, where there are 60.
    wide = "SELECT offset, repeat(coalesce(status, 'd'), 1000) AS w FROM orders JOIN (SELECT explode(sequence(1, 30)))"
    tied = f"SELECT max(offset * n) AS s FROM (SELECT offset, row_number() OVER (ORDER BY w) AS n FROM ({wide}))"
    machine, paths = machines[ONE], slices[ONE]
    with pytest.raises(LimitExceededError, match="memory_bytes reached at a query whose result depends on the order"):
        ask(machine, paths, tied)
    fine = f"SELECT max(r) AS s FROM (SELECT rank() OVER (ORDER BY w) AS r FROM ({wide}))"
    assert pq.read_table(ask(machine, paths, fine)).num_rows == 1
