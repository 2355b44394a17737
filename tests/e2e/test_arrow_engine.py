"""The engine without Java: takes plain appends, leaves the rest to the other, and gives the same slices."""

import json
import os
import re
from contextlib import closing

import pyarrow.parquet as pq
import pytest

from odf_engines.arrow.engine import ArrowEngine
from odf_engines.contract import IngestRequest, Limits
from odf_engines.errors import EngineFailureError, InvalidSourceError
from odf_node.daemon.gauges import add_stage_metrics
from odf_node.engine_workspace import EngineWorkspace
from odf_node.engines.warm_sessions import WarmEngines
from odf_node.home_folder import HomeFolder
from odf_node.metrics import Metrics
from odf_node.store import MetadataStore
from odf_protocol.events import (
    DataTypeBool,
    DataTypeDate,
    DataTypeDecimal,
    DataTypeFloat64,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeString,
    DataTypeTimestamp,
    DataTypeUInt32,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepCsv,
    ReadStepNdJson,
)
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.command_line import run_command, wait_until
from support.ingests import FALLBACK, SYSTEM_TIME, RootDataset, engine_session, quarantined, schema
from support.nodes import RealNode
from support.process_figures import list_family, peak_bytes, resident_bytes
from support.terminal import terminal

SCHEMA = schema(event_time=DataTypeDate(), n=DataTypeInt64(), text=DataTypeString())
MIB = 1024**2
PLAIN = "2020-01-02,1,a\n2020-01-01,2,\n,3,b\n"


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with ArrowEngine().open(tmp_path_factory.mktemp("arrow"), Limits()) as opened:
        yield opened


def request(path, **changes):
    values = {
        "dataset_id": "did:odf:test",
        "read": ReadStepCsv(schema=SCHEMA),
        "preprocess": None,
        "merge": MergeStrategyAppend(),
        "vocabulary": Vocabulary(),
        "source_path": path,
        "source_name": "the source",
        "known_schema": None,
        "state_path": None,
        "system_time": Timestamp.parse(SYSTEM_TIME),
        "fallback_event_time": Timestamp.parse(FALLBACK),
        "next_offset": 0,
    }
    return IngestRequest(**{**values, **changes})


def written(tmp_path, text):
    path = tmp_path / "source"
    path.write_text(text)
    return path


# Merges by key (ING-9 to ING-12)

KEYED = schema(
    event_time=DataTypeTimestamp(), k=DataTypeInt64(), j=DataTypeString(), op=DataTypeInt32(), x=DataTypeFloat64(),
    d=DataTypeDecimal(precision=9, scale=2), day=DataTypeDate(), b=DataTypeBool(), u=DataTypeUInt32(),
)  # fmt: skip
KEY = ("k", "j")
BATCHES = [
    """2020-01-01T00:00:00Z,2,b,0,1.5,1.20,2020-01-01,true,7
2020-01-01T00:00:00Z,1,a,1,-0.0,0.00,2020-01-01,false,4000000000
,2,,0,4e3,,,,
2020-01-02T00:00:00Z,1,a,0,2,3,2020-01-02,,1
,,,0,,,,,
,3,c,5,NaN,1,2020-01-01,true,0
""",
    """2020-01-01T00:00:00Z,2,b,0,1.5,1.20,2020-01-01,true,7
2020-01-05T00:00:00.5Z,2,,0,4e3,,,,
,1,a,1,0.0,0.00,2020-01-01,false,4000000000
,9,é,2,NaN,1,2020-01-01,true,0
,,,3,,,2020-01-01,,
,2,b,0,1.5,1.21,2020-01-01,true,7
""",
    "",
    """,2,b,1,1.5,1.20,2020-01-01,true,7
2020-01-01T00:00:00Z,1,a,,1.5,1.20,2020-01-01,true,7
,1,a,0,1.5,1.20,2020-01-01,true,7
""",
]
MERGES = {
    "ledger": MergeStrategyLedger(primary_key=KEY),
    "snapshot": MergeStrategySnapshot(primary_key=KEY),
    "snapshot-of-a-few-columns": MergeStrategySnapshot(primary_key=KEY, compare_columns=("x", "event_time")),
    "snapshot-by-time": MergeStrategySnapshot(primary_key=("event_time", "d", "b", "day")),
    "snapshot-by-float": MergeStrategySnapshot(primary_key=("x", "u")),
    "upsert": MergeStrategyUpsertStream(primary_key=KEY),
    "upsert-by-time": MergeStrategyUpsertStream(primary_key=("k", "event_time")),
    "changelog": MergeStrategyChangelogStream(primary_key=KEY),
}


@pytest.mark.spark
@pytest.mark.parametrize("merge", MERGES.values(), ids=MERGES)
def test_merge_by_key_is_the_same_here_and_on_a_cluster(session, merge):
    """A cluster's session merges with Spark wherever its tasks run."""
    takes_op = isinstance(merge, MergeStrategyUpsertStream | MergeStrategyChangelogStream)
    vocabulary = Vocabulary() if takes_op else Vocabulary(op="operation")
    ours, theirs = (
        RootDataset(ReadStepCsv(schema=KEYED), merge, vocabulary=vocabulary, session=each)
        for each in (session, engine_session())
    )
    assert ours.session is session
    for batch in BATCHES:
        answers = [each.ingest(batch) for each in (ours, theirs)]
        assert facts_of(answers[0]) == facts_of(answers[1])


def large_batch(*, changed):
    """More than what is handed over in memory, in several parts of Spark's; keys come in no order, some twice."""
    lines = []
    for number in range(120_000):
        key = number * 7919 % 100_003
        weight = (
            ["NaN", "-0.0", "0.0", ""][key % 4] if key % 9 == 0 else repr(key % 1000 / 7 + (changed and key % 10 == 0))
        )
        text = "" if key % 11 == 0 else f"text of the row {key % 50_000:<40}"
        lines.append(
            f"2020-01-{1 + key % 28:02}T00:00:00Z,{key % 50_000},{text},0,{weight},{key % 100}.25,2020-01-01,true,{key}"
        )
    return "\n".join(lines[: -30_000 if changed else None]) + "\n"


@pytest.mark.spark
@pytest.mark.parametrize("name", ["ledger", "snapshot", "snapshot-by-float", "upsert", "changelog"])
def test_merge_of_more_than_memory_hands_over_is_the_same_here_and_on_a_cluster(session, name):
    """CLUSTER-1: rows that Spark orders in several parts come to the same bytes."""
    takes_op = name in {"upsert", "changelog"}
    vocabulary = Vocabulary() if takes_op else Vocabulary(op="operation")
    batches = [large_batch(changed=changed) for changed in (False, True)]
    assert min(map(len, batches)) > 8 * MIB
    ours, theirs = (
        RootDataset(ReadStepCsv(schema=KEYED), MERGES[name], vocabulary=vocabulary, session=each)
        for each in (session, engine_session())
    )
    for batch in batches:
        assert facts_of(ours.ingest(batch)) == facts_of(theirs.ingest(batch))


def facts_of(response):
    data = None if response.data_path is None else response.data_path.read_bytes()
    state = None if response.state_path is None else pq.read_table(response.state_path)
    marks = None if state is None else (state.schema.metadata, repr(state.to_pylist()))
    stated = response.schema, response.watermark, response.quarantine_reasons, dict(response.quarantine_codes)
    return data, marks, quarantined(response), stated


def test_state_of_another_key_is_not_merged_with(session):
    dataset = RootDataset(ReadStepCsv(schema=SCHEMA), MergeStrategySnapshot(primary_key=("n",)), session=session)
    dataset.ingest(PLAIN)
    dataset.merge = MergeStrategySnapshot(primary_key=("text",))
    with pytest.raises(EngineFailureError, match="rebuild it from the slices"):
        dataset.ingest(PLAIN)
    dataset.state = None
    with pytest.raises(EngineFailureError, match="without its projected state"):
        dataset.ingest(PLAIN)


def test_memory_of_a_large_request_is_given_back_before_the_next(tmp_path):
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_text(PLAIN)
    large.write_text("".join(f"2020-01-{31 - n % 31:02},{n},text {n}\n" for n in range(1_000_000)))
    others = {*list_family(os.getpid())}
    with ArrowEngine().open(tmp_path, Limits()) as session:
        session.ingest(request(small))
        engine = max({*list_family(os.getpid())} - others, key=resident_bytes)
        before = resident_bytes(engine)
        session.ingest(request(large))
        assert peak_bytes(engine) > before + 96 * MIB
        wait_until(lambda: resident_bytes(engine) < before + 32 * MIB, "memory that is given back", 20)


def test_unusable_file_is_the_sources_fault(session, tmp_path):
    read = ReadStepCsv(schema=SCHEMA, header=True)
    with pytest.raises(InvalidSourceError, match="nobody"):
        session.ingest(request(written(tmp_path, "event_time,n,nobody\n2020-01-01,1,a\n"), read=read))


def test_plain_push_needs_no_other_engine(tmp_path):
    node = RealNode(tmp_path / "home")
    manifest = tmp_path / "rows.yaml"
    manifest.write_text(
        """
kind: DatasetSnapshot
version: 1
content:
  name: rows
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, schema: {fields: [{name: n, type: {kind: Option, inner: Int64}}]}}
      merge: {kind: Append}
"""
    )
    node.must("add", str(manifest))
    events = tmp_path / "events.ndjson"
    (node.home / "odf-node.toml").write_text(f'[engines]\ningest = "spark"\n[lineage]\nfile = "{events}"\n')
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"n": 1}\n{"n": 2}\n')
    assert "2 rows" in node.must("ingest", "rows", str(rows)).out
    _check_that_stages_are_shown(node)
    reported = [json.loads(line) for line in events.read_text().splitlines()]
    assert [(each["eventType"], each["job"]["name"]) for each in reported] == [("START", "rows"), ("COMPLETE", "rows")]
    assert reported[1]["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 2
    rows.write_text('{"n": "+3"}\n{"n": "many"}\n')
    taken = node.must("ingest", "rows", str(rows))
    assert "1 row" in taken.out
    assert "1 row could not be taken" in taken.out
    _check_that_a_failure_leaves_figures(node, manifest, rows)
    manifest.write_text(
        manifest.read_text().replace("name: rows", "name: times").replace("Int64", "{kind: Time, unit: Second}")
    )
    node.must("add", str(manifest))
    rows.write_text('{"n": "1"}\n{"n": "23:59:59"}\n')
    assert "1 row could not be taken" in node.must("ingest", "times", str(rows)).out


# How far it is (ENGINE-29)

MANY = 1_000_000
LONG = schema(event_time=DataTypeDate(), n=DataTypeInt64())


@pytest.fixture(scope="module")
def long_source(tmp_path_factory):
    """A file that is read for some seconds."""
    path = tmp_path_factory.mktemp("long") / "long.ndjson"
    path.write_text("".join(f'{{"event_time": "2020-01-01", "n": {n}}}\n' for n in range(MANY)))
    return path


def test_long_source_says_through_a_shared_session_how_many_records_are_read(long_source, tmp_path):
    """ENGINE-29, WARM-8."""
    warm, own = WarmEngines(tmp_path / "engines"), EngineWorkspace(tmp_path / "engines")
    with warm.lend("arrow", own.path, pytest.fail) as lent:
        heard = []
        lent.on_progress = heard.append
        lent.ingest(request(long_source, read=ReadStepNdJson(schema=LONG)))
    assert heard
    assert heard == sorted(heard)
    assert 0 < heard[-1] <= MANY
    assert warm.end()
    own.close()


def test_long_ingest_moves_a_line_on_a_terminal_and_writes_lines_to_a_log(long_source, tmp_path):
    node = RealNode(tmp_path / "home")
    manifest = tmp_path / "rows.yaml"
    manifest.write_text(
        """
kind: DatasetSnapshot
version: 1
content:
  name: counted
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, schema: {fields: [{name: event_time, type: {kind: Date}}, {name: n, type: {kind: Int64}}]}}
      merge: {kind: Append}
"""
    )
    node.must("add", str(manifest))
    with terminal(node.home, "ingest", "--dry-run", "counted", str(long_source)) as line:
        line.wait_for("taking in")
        assert re.search(r"[0-9,]+ rows", line.wait_for(" rows"))
        assert line.wait_for_end() == 0
    each_s = {"ODF_NODE_PROGRESS_S": "0.2"}
    log = run_command(node.home, "ingest", "--dry-run", "counted", long_source, environment=each_s).stderr
    assert re.search(r"taking in .*, [0-9,]+ rows", log)
    assert "\r" not in log


def _check_that_stages_are_shown(node: RealNode) -> None:
    """STAGE-4, STAGE-5: beside the block, of the newest ingest, and summed."""
    assert re.search(
        r"AddData  \+2 rows  2 rows added; read 2, [0-9.]+ s", node.must("log", "rows", "-o", "oneline").out
    )
    (newest,) = json.loads(node.must("inspect", "plan", "rows", "-o", "json").out)
    names = [(each["stage"], each.get("plugIn")) for each in newest["stages"]]
    stages = ("engine", "read", "merge", "quarantine", "persist")
    assert [name for name, plug_in in names if plug_in is None] == [*stages]
    assert {("read", "NdJson"), ("merge", "Append")} <= set(names)
    logged = json.loads(node.must("log", "rows", "-o", "json", "-n", "1").out)
    assert logged["stages"] == newest["stages"]
    assert "NdJson" in node.must("inspect", "plan", "rows").out
    with closing(MetadataStore(HomeFolder(node.home))) as store:
        metrics = Metrics()
        add_stage_metrics(metrics, store)
    lines = metrics.render().splitlines()
    assert 'odf_node_ingest_plug_in_rows_total{plug_in="NdJson",rows="in",stage="read"} 2.0' in lines
    assert 'odf_node_ingest_stage_batches_total{stage="persist"} 1.0' in lines
    assert "# TYPE odf_node_ingest_stage_seconds_total counter" in lines
    assert any(line.startswith('odf_node_ingest_stage_seconds_total{stage="engine"} ') for line in lines)


def _check_that_a_failure_leaves_figures(node: RealNode, manifest, rows) -> None:
    """STAGE-5: also of an ingest that no engine could read, and nothing of a rehearsal."""
    text = manifest.read_text().replace("name: rows", "name: named")
    named = manifest.with_name("named.yaml")
    named.write_text(re.sub("read: .*", "read: {kind: Csv, header: true, ddlSchema: [n BIGINT]}", text))
    node.must("add", str(named))
    before = _batches_of_stages(node)
    rows.write_text("m\n1\n")
    for words in (("--dry-run",), ()):
        assert _batches_of_stages(node) == before
        assert node.run("ingest", *words, "named", str(rows)).code == 7
    assert _batches_of_stages(node) == before | {("engine", ""): before["engine", ""] + 1}


def _batches_of_stages(node: RealNode) -> dict[tuple[str, str], int]:
    with closing(MetadataStore(HomeFolder(node.home))) as store:
        return {(each.stage, each.plug_in): each.batches for each in store.list_stage_totals()}
