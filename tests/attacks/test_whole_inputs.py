"""Queries over whole inputs whose steps would give something else than the query does over the folded inputs.

What an attacker turns: the order in which rows arrive, the cut of steps, watermarks that fall, times that a window does
not cut, schemas and vocabularies of inputs that change, and the query itself.
"""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_node.errors import UsageError
from odf_protocol.errors import RejectedError
from odf_protocol.events import (
    AddData,
    DataField,
    DataSchema,
    DatasetKind,
    DataSlice,
    DataTypeInt64,
    DataTypeOption,
    ExecuteTransform,
    ExecuteTransformInput,
    OffsetInterval,
    Seed,
    SetDataSchema,
    SetVocab,
    SqlQueryStep,
    TemporalTable,
    TransformSql,
)
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.offers import (
    CITIES,
    CITY_SCHEMA,
    MORE_CITIES,
    NOON,
    Judge,
    PeerChain,
    PublisherHome,
    hash_of_rows,
    parquet_bytes,
    root_chain,
    select,
)
from support.signing import NEW_KEY
from support.view_histories import APPEND, CORRECT_FROM, CORRECT_TO, SCHEMAS, Change, View, fold

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000
DAY_0 = 1_600_000_000_000 // DAY_MS * DAY_MS
ORDERS = {"orders": SCHEMAS["orders"]}
LARGEST = 2**63 - 1


def row(day: int, k: int = 1, s: str = "x", a: int = 1) -> Change:
    return Change(APPEND, (day_ms(day), k, s, a))


def day_ms(day: int) -> int:
    return DAY_0 + day * DAY_MS


def run(session, folder: Path, query: str, *steps) -> View:
    """Run steps, each over blocks of ``orders``: rows, and the watermark stated."""
    folder.mkdir()
    view = View.over(session, query, folder, ORDERS)
    for blocks in steps:
        view.blocks({"orders": blocks})
    return view


# Windows

HISTORY = [([row(1)], day_ms(2)), ([row(0), row(2)], day_ms(3)), ([row(5)], day_ms(7))]


def windows(time: str = "event_time", size: str = "1 day") -> str:
    return f"SELECT window.end AS event_time, count(*) AS n FROM orders GROUP BY window({time}, '{size}')"


@pytest.mark.parametrize(
    "time",
    ["event_time + INTERVAL 3 DAY", "greatest(event_time, event_time + INTERVAL 3 DAY)", "CAST(event_time AS DATE)"],
)
def test_window_that_cuts_another_time_than_the_event_time_is_a_maintained_view(spark_session, tmp_path, time):
    at_once = run(spark_session, tmp_path / "once", windows(time), HISTORY)
    cut = run(spark_session, tmp_path / "cut", windows(time), *([each] for each in HISTORY))

    assert fold(at_once.changes) == fold(cut.changes)
    assert sum(count * each[1] for each, count in fold(cut.changes).items()) == 4  # every row is in its window


FALSE_WINDOWS = {
    "struct-with-such-fields": (
        "SELECT s.end AS event_time, count(*) AS n FROM (SELECT event_time, named_struct('end', "
        "event_time - INTERVAL 3 DAY) AS s FROM orders) GROUP BY s, window(event_time, '1 day')"
    ),
    "other-time-under-the-same-name": (
        "SELECT window.end AS event_time, count(*) AS n FROM (SELECT window(event_time, '1 day') AS w, "
        "timestamp_millis(a) AS event_time FROM orders) GROUP BY window(event_time, '1 day')"
    ),
}


@pytest.mark.parametrize("name", FALSE_WINDOWS)
def test_window_whose_end_does_not_say_when_it_closes_is_rejected(spark_session, tmp_path, name):
    with pytest.raises(NotReproducibleError):
        run(spark_session, tmp_path / "view", FALSE_WINDOWS[name], HISTORY)


def test_watermarks_that_fall_within_a_step_close_no_window_twice_and_let_no_late_row_in(spark_session, tmp_path):
    history = [([row(1)], day_ms(10)), ([row(11)], day_ms(5)), ([row(8), row(12)], day_ms(20))]
    at_once = run(spark_session, tmp_path / "once", windows(), history)
    cut = run(spark_session, tmp_path / "cut", windows(), *([each] for each in history))

    assert at_once.changes == cut.changes
    assert [each.row for each in cut.changes] == [(day_ms(day), 1) for day in (2, 12, 13)]


def test_watermark_before_the_first_row_leaves_late_rows_out_however_steps_are_cut(spark_session, tmp_path):
    history = [([], day_ms(5)), ([row(1), row(6)], day_ms(10))]
    at_once = run(spark_session, tmp_path / "once", windows(), history)
    cut = run(spark_session, tmp_path / "cut", windows(), *([each] for each in history))

    assert at_once.changes == cut.changes == [Change(APPEND, (day_ms(7), 1))]


# Order


@pytest.mark.parametrize(
    "amount", ["try_sum(a)", "try_avg(CAST(a AS DECIMAL(38, 0)))", "try_sum(a) OVER (PARTITION BY k)"]
)
def test_sum_whose_overflow_depends_on_how_rows_arrive_is_rejected(spark_session, tmp_path, amount):
    """Of the largest number twice and its opposite once, two make nothing of it and one order makes a sum."""
    query = f"SELECT event_time, k, {amount} AS a FROM orders" + ("" if "OVER" in amount else " GROUP BY event_time, k")

    with pytest.raises(NotReproducibleError, match="overflows on the way"):
        run(spark_session, tmp_path / "view", query, [([row(0, a=LARGEST)], None)])


@pytest.mark.parametrize("text", ["s COLLATE UTF8_LCASE", "CAST(s AS STRING COLLATE UNICODE_CI)"])
def test_groups_of_texts_that_differ_and_compare_as_equal_are_rejected(spark_session, tmp_path, text):
    with pytest.raises(NotReproducibleError, match="collation"):
        run(
            spark_session,
            tmp_path / "view",
            f"SELECT max(event_time) AS event_time, {text} AS s FROM orders GROUP BY {text}",
            [([row(0, s="X"), row(1, s="x")], None)],
        )


# Schemas of inputs

OLD = SCHEMAS["orders"].fields
REORDERED = DataSchema(fields=(*OLD[:4], OLD[6], OLD[5], OLD[4]))
WIDER = DataSchema(fields=(*OLD, DataField(name="b", type=DataTypeOption(inner=DataTypeInt64()))))


def evolve(view: View, schema: DataSchema) -> None:
    view.inputs["orders"] = replace(view.inputs["orders"], schema=schema, prev_schema=view.inputs["orders"].schema)


def test_columns_that_change_places_take_no_row_that_was_not_given(spark_session, tmp_path):
    """In the order of all columns another row is first now, so another one was before, if asked with these columns."""
    query = "SELECT max(event_time) AS event_time, first(k) AS k FROM orders"
    view = run(spark_session, tmp_path / "view", query, [([row(0, 1, "x", 2), row(0, 2, "a", 1)], None)])
    evolve(view, REORDERED)
    view.blocks({"orders": [([Change(APPEND, (day_ms(0), 5, "z", 3))], None)]})

    assert [(each.op, each.row[1]) for each in view.changes] == [(APPEND, 1), (CORRECT_FROM, 1), (CORRECT_TO, 2)]
    fold(view.changes)


def test_column_that_comes_takes_no_row_that_was_not_given(spark_session, tmp_path):
    query = "SELECT max(event_time) AS event_time, k, max(typeof(struct(*))) AS t FROM orders GROUP BY k"
    view = run(spark_session, tmp_path / "view", query, [([row(0, 1), row(0, 2)], None)])
    evolve(view, WIDER)
    view.blocks({"orders": [([Change(APPEND, (day_ms(1), 1, "z", 3, 7))], None)]})

    folded = fold(view.changes)
    assert sorted(each[1] for each in folded) == [1, 2]
    assert all("b:bigint" in each[2] for each in folded)


def test_result_with_other_columns_than_before_is_rejected(spark_session, tmp_path):
    view = run(spark_session, tmp_path / "view", "SELECT DISTINCT * FROM orders", [([row(0)], None)])
    evolve(view, WIDER)

    with pytest.raises(InvalidQueryError, match="name the columns"):
        view.blocks({"orders": [([Change(APPEND, (day_ms(1), 1, "z", 3, 7))], None)]})


PRICED = """
    SELECT o.event_time, o.a, p.r FROM orders o LEFT JOIN people FOR SYSTEM_TIME AS OF o.event_time AS p ON o.k = p.k
"""
OVER_A_CHANGE = {
    "windows": ("SELECT window.end AS event_time, sum(a) AS a FROM orders GROUP BY window(event_time, '2 days')", 5),
    "windows-of-several": (
        """
        SELECT window.end AS event_time, sum(a) AS a FROM (
            SELECT event_time, a FROM orders UNION ALL SELECT event_time, k FROM people
        ) GROUP BY window(event_time, '2 days')
        """,
        6,
    ),
    "sessions": (
        "SELECT session_window.end AS event_time, sum(a) AS a FROM orders GROUP BY session_window(event_time, '1 day')",
        5,
    ),
    "windows-of-answers": (
        f"SELECT window.end AS event_time, sum(a) AS a FROM ({PRICED}) GROUP BY window(event_time, '2 days')",
        5,
    ),
    "groups-of-answers": (f"SELECT max(event_time) AS event_time, r, sum(a) AS a FROM ({PRICED}) GROUP BY r", 5),
    "groups": ("SELECT max(event_time) AS event_time, sum(a) AS a FROM orders", 5),
}


@pytest.mark.parametrize("name", OVER_A_CHANGE)
def test_rows_before_and_after_a_change_of_an_inputs_schema_count_alike(spark_session, tmp_path, name):
    query, expected = OVER_A_CHANGE[name]
    tables = (TemporalTable(name="people", primary_key=("k",)),) if "SYSTEM_TIME" in query else None
    transform = TransformSql(engine="spark", queries=(SqlQueryStep(query=query),), temporal_tables=tables)
    view = View.over(
        spark_session, transform, tmp_path, SCHEMAS if "people" in query else {"orders": SCHEMAS["orders"]}
    )
    even = day_ms(0) - day_ms(0) % (2 * (day_ms(1) - day_ms(0)))  # where a window of two days begins
    rows = {"orders": [([Change(APPEND, (even, 1, "x", 2))], even)]}
    if "people" in query:
        rows["people"] = [([Change(APPEND, (even - 1 + (name == "windows-of-several"), 1, "north"))], day_ms(9))]
    view.blocks(rows)
    evolve(view, WIDER)
    view.blocks({"orders": [([Change(APPEND, (even + 1000, 1, "z", 3, 7))], day_ms(9))]})

    ((*_, total),) = fold(view.changes)
    assert total == expected


# Nodes

COUNT = "SELECT max(event_time) AS event_time, city, count(*) AS n FROM in0 GROUP BY city"


def publisher(tmp_path: Path, session) -> tuple[PublisherHome, PeerChain, PeerChain]:
    folder = tmp_path / "peer"
    folder.mkdir()
    home = PublisherHome(Judge.create(folder / "home", session))
    root = root_chain(folder, slices=0)
    chain = PeerChain(folder, key=NEW_KEY, name="view")
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE))
    return home, root, chain


def later(seconds: int) -> Timestamp:
    return Timestamp(NOON.seconds + 1000 + seconds)


def hours(number: int) -> Timestamp:
    return Timestamp(NOON.seconds + 3600 * number)


def test_watermarks_of_an_input_that_fall_between_steps_close_no_window_twice(spark_session, tmp_path):
    home, root, chain = publisher(tmp_path, spark_session)
    query = "SELECT window.end AS event_time, count(*) AS n FROM in0 GROUP BY window(event_time, '1 hour')"
    chain.add(select(query, root.id))
    home.keep(root.add_rows(CITIES).add(AddData(prev_offset=2, new_watermark=hours(9))))
    home.keep(chain)
    home.run(chain, at=later(1))
    for number, mark in enumerate((hours(0), hours(12))):
        root.add(AddData(prev_offset=2, new_watermark=mark))
        home.keep(root.copy(files={}))
        home.run(chain, at=later(2 + number))

    steps = [block.event for block in chain.blocks if isinstance(block.event, ExecuteTransform)]
    assert [None if each.new_data is None else each.new_data.offset_interval.row_count for each in steps] == [1, None]
    judge = Judge.create(tmp_path / "judge", spark_session)
    judge.accept(root)
    assert judge.accept(chain).replayed_steps == 2


def test_input_whose_vocabulary_changes_after_its_rows_is_rejected(spark_session, tmp_path):
    """The new operation is a column that says of old rows nothing, so they would be neither given nor taken."""
    home, root, chain = publisher(tmp_path, spark_session)
    chain.add(select(COUNT, root.id))
    root.add_rows(CITIES)
    root.add(SetVocab(operation_type_column="people"))
    home.keep(root)
    home.keep(chain)
    before = home.judge.snapshot()

    with pytest.raises(RejectedError, match="VIEW-12"):
        home.run(chain, at=later(1))

    assert home.judge.snapshot() == before


def test_maintained_view_whose_query_is_replaced_is_rejected(spark_session, tmp_path):
    """Its differences would be those of the new query, and take rows that nobody gave."""
    home, root, chain = publisher(tmp_path, spark_session)
    chain.add(select(COUNT, root.id))
    home.keep(root.add_rows(CITIES))
    home.keep(chain)
    home.run(chain, at=later(1))
    judge = Judge.create(tmp_path / "judge", spark_session)
    judge.accept(root)
    judge.accept(chain)
    honest = chain.head
    root.add_rows(MORE_CITIES)
    taken = judge.accept(root, base=judge.record("cities").head)
    assert taken is not None
    chain.add(select(COUNT.replace("count(*)", "count(*) + 1"), root.id), at=later(2))
    read = ExecuteTransformInput(
        dataset_id=root.id,
        prev_block_hash=root.blocks[2].hash,
        new_block_hash=root.head.hash,
        prev_offset=2,
        new_offset=5,
    )
    content = moved_rows(chain, 3, later(3))
    data = DataSlice(
        physical_hash=Multihash.of_sha3_256(content),
        logical_hash=hash_of_rows(content, chain.folder),
        offset_interval=OffsetInterval(start=3, end=5),
        size=len(content),
    )
    chain.files[data.physical_hash] = content
    chain.add(ExecuteTransform(query_inputs=(read,), prev_offset=2, new_data=data), at=later(3))

    judge.reject(chain.proposal(honest), chain.files, rule="VIEW-11 maintained-view-is-declared-once")


def test_view_whose_query_is_replaced_before_its_first_step_is_made_and_accepted(spark_session, tmp_path):
    """VIEW-11: no step was made by the first query, so no difference is one to its rows, whatever follows."""
    home, root, chain = publisher(tmp_path, spark_session)
    chain.add(select(COUNT, root.id)).add(select(COUNT.replace("count(*)", "count(*) + 1"), root.id))
    judge = Judge.create(tmp_path / "judge", spark_session)
    home.keep(root.add_rows(CITIES))
    home.keep(chain)
    home.run(chain, at=later(1))
    home.keep(root.add_rows(MORE_CITIES))

    home.run(chain, at=later(2))

    judge.accept(root)
    assert judge.accept(chain).replayed_steps == 2


def test_own_view_whose_query_is_replaced_after_a_step_makes_no_step(spark_session, tmp_path):
    home, root, chain = publisher(tmp_path, spark_session)
    chain.add(select(COUNT, root.id))
    home.keep(root.add_rows(CITIES))
    home.keep(chain)
    home.run(chain, at=later(1))
    home.keep(root.add_rows(MORE_CITIES))
    chain.add(select(COUNT.replace("count(*)", "count(*) + 1"), root.id), at=later(2))
    home.keep(chain)
    before = home.judge.snapshot()

    with pytest.raises(RejectedError, match="VIEW-11"):
        home.run(chain, at=later(3))

    assert home.judge.snapshot() == before


def test_own_join_as_of_a_time_whose_query_is_replaced_makes_no_step(spark_session, tmp_path):
    """A probe that is corrected would take back an answer that the earlier query never gave (ASOF-7)."""
    home, root, chain = publisher(tmp_path, spark_session)
    (tmp_path / "reference").mkdir()
    reference = root_chain(tmp_path / "reference", slices=0, key=b"\x07" * 32, name="reference")
    join = "in0 a JOIN in1 FOR SYSTEM_TIME AS OF a.event_time b ON a.city = b.city"
    query = f"SELECT a.event_time, a.city, {{}} AS n FROM {join}"
    home.keep(root.add_rows(CITIES).add(AddData(prev_offset=2, new_watermark=hours(9))))
    home.keep(reference.add_rows(CITIES).add(AddData(prev_offset=2, new_watermark=hours(9))))
    for at, column in ((1, "b.people"), (2, "b.people + 1")):
        declared = select(query.format(column), root.id, reference.id)
        tables = (TemporalTable(name="in1", primary_key=("city",)),)
        chain.add(replace(declared, transform=replace(declared.transform, temporal_tables=tables)), at=later(at))
        home.keep(chain)
        if at == 1:
            home.run(chain, at=later(1))
    home.keep(root.add_rows(MORE_CITIES))
    before = home.judge.snapshot()

    with pytest.raises(RejectedError, match="VIEW-11"):
        home.run(chain, at=later(3))

    assert home.judge.snapshot() == before


def test_column_that_an_input_gets_is_not_written_into_a_derivative_that_selects_all(spark_session, tmp_path):
    """A slice with another column than the dataset's would be signed by this node, and rejected by all others."""
    home, root, chain = publisher(tmp_path, spark_session)
    chain.add(select("SELECT * EXCEPT (offset, op, system_time) FROM in0", root.id))
    home.keep(root.add_rows(CITIES))
    home.keep(chain)
    home.run(chain, at=later(1))
    wider = DataSchema(fields=(*CITY_SCHEMA.fields, DataField(name="b", type=DataTypeOption(inner=DataTypeInt64()))))
    root.add(SetDataSchema(schema=wider))
    content = root.folder / "wide.parquet"
    table = pq.read_table(_newest_slice(root))
    table = table.set_column(0, table.schema.field(0), [[3, 4, 5]]).append_column("b", [[1, 2, 3]])
    now = pa.array([(NOON.seconds + len(root.blocks)) * 1000] * 3).cast(table.schema.field("system_time").type)
    pq.write_table(table.set_column(2, table.schema.field(2), now), content)
    root.add_slice(content.read_bytes(), rows=3)
    home.keep(root)
    before = home.judge.snapshot()

    with pytest.raises(UsageError, match="other columns"):
        home.run(chain, at=later(2))

    assert home.judge.snapshot() == before


def test_step_over_an_input_without_columns_is_rejected(spark_session, tmp_path):
    """Nobody can say what a query gives over it; the publisher of the step is at fault, not whoever re-executes."""
    _home, _root, chain = publisher(tmp_path, spark_session)
    bare = PeerChain(chain.folder)
    bare.add(Seed(dataset_id=bare.id, dataset_kind=DatasetKind.ROOT))
    chain.add(select(COUNT, bare.id)).add(SetDataSchema(schema=CITY_SCHEMA))
    read = ExecuteTransformInput(dataset_id=bare.id, new_block_hash=bare.head.hash)
    chain.add(ExecuteTransform(query_inputs=(read,), new_watermark=NOON))
    judge = Judge.create(tmp_path / "judge", spark_session)
    judge.accept(bare)

    judge.reject(chain.proposal(), chain.files, rule="PLAN-5 recorded-blocks-say")


def moved_rows(chain: PeerChain, first: int, at: Timestamp) -> bytes:
    """The first rows of a derivative once more, as a slice that follows."""
    data = next(block.event.new_data for block in chain.blocks if isinstance(block.event, ExecuteTransform))
    path = chain.folder / "moved.parquet"
    path.write_bytes(chain.files[data.physical_hash])
    table = pq.read_table(path)
    count = table.num_rows
    offsets = pa.array(range(first, first + count), pa.int64())
    times = pa.array([at.unix_ms] * count, pa.int64()).cast(table.schema.field(2).type)
    return parquet_bytes(pa.Table.from_arrays([offsets, table[1], times, *table.columns[3:]], schema=table.schema))


def _newest_slice(chain: PeerChain) -> Path:
    path = chain.folder / "newest.parquet"
    path.write_bytes(chain.files[chain.blocks[-2].event.new_data.physical_hash])
    return path
