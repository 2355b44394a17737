"""The engine without Java: takes plain appends, leaves the rest to the other, and gives the same slices."""

import hashlib
import json
import re
import threading
from contextlib import closing

import pytest

from odf_engines.arrow.engine import ArrowEngine
from odf_engines.contract import IngestRequest, Limits
from odf_engines.errors import InvalidSourceError, UnsuitableSourceError
from odf_node.adapters.keeper_place import KeeperPlace
from odf_node.adapters.kept_session import find_warm_session
from odf_node.adapters.sqlite_store import SqliteMetadataStore
from odf_node.adapters.warm_engines import Keeper
from odf_node.daemon.stage_gauges import add_stage_figures
from odf_node.engine_workspace import EngineWorkspace
from odf_node.home import Home
from odf_node.metrics import Metrics
from odf_node.program_files import build_of_program
from odf_protocol.events import (
    DataTypeDate,
    DataTypeInt64,
    DataTypeString,
    MergeStrategyAppend,
    MergeStrategyLedger,
    ReadStepCsv,
    ReadStepNdJson,
)
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.command_line import run_command, wait_until
from support.ingests import FALLBACK, SYSTEM_TIME, RootDataset, schema
from support.nodes import RealNode
from support.terminal import terminal

SCHEMA = schema(event_time=DataTypeDate(), n=DataTypeInt64(), text=DataTypeString())
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


@pytest.mark.spark
@pytest.mark.parametrize(
    ("read", "text"),
    [
        (ReadStepCsv(schema=SCHEMA), PLAIN),
        (ReadStepCsv(schema=SCHEMA), PLAIN + "2020-01-01\n"),
        (ReadStepNdJson(schema=SCHEMA), '{"event_time": "2020-01-01", "n": 1, "text": "a"}\n{"n": 2}\n'),
        (ReadStepNdJson(), '{"event_time": "2020-01-01T10:00:00Z", "n": 1}\n'),
    ],
    ids=["csv", "csv-with-a-broken-record", "ndjson", "ndjson-without-schema"],
)
def test_slice_is_the_same_to_the_byte_whoever_takes_the_source(session, tmp_path, read, text):
    ours = session.ingest(request(written(tmp_path, text), read=read))
    theirs = RootDataset(read).ingest(text)
    digests = [hashlib.sha256(each.data_path.read_bytes()).hexdigest() for each in (ours, theirs)]
    assert digests[0] == digests[1]
    assert (ours.schema, ours.watermark, ours.quarantined_rows) == (
        theirs.schema,
        theirs.watermark,
        theirs.quarantined_rows,
    )


@pytest.mark.parametrize("text", ["2020-01-01,one,a\n", "2020-01-01T25:00:00,1,a\n"], ids=["no-number", "no-day"])
def test_record_that_is_not_plain_is_for_another_engine(session, tmp_path, text):
    with pytest.raises(UnsuitableSourceError):
        session.ingest(request(written(tmp_path, PLAIN + text)))
    assert session.ingest(request(written(tmp_path, PLAIN))).statistics.rows_out == 3


def test_merge_is_for_another_engine(session, tmp_path):
    with pytest.raises(UnsuitableSourceError):
        session.ingest(request(written(tmp_path, PLAIN), merge=MergeStrategyLedger(primary_key=("n",))))


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
    # From now on nobody is there who could take what the first engine does not.
    (node.home / "odf-node.toml").write_text('[engines]\ningest = "nobody"\n')
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"n": 1}\n{"n": 2}\n')
    assert "2 rows" in node.must("ingest", "rows", str(rows)).out
    _check_that_stages_are_shown(node)
    rows.write_text('{"n": "many"}\n')
    refused = node.run("ingest", "rows", str(rows))
    assert refused.code == 8
    assert "nobody" in refused.err


# How far it is (ENGINE-29)

MANY = 250_000
LONG = schema(event_time=DataTypeDate(), n=DataTypeInt64())


@pytest.fixture(scope="module")
def long_source(tmp_path_factory):
    """A file that is read for some seconds."""
    path = tmp_path_factory.mktemp("long") / "long.ndjson"
    path.write_text("".join(f'{{"event_time": "2020-01-01", "n": {n}}}\n' for n in range(MANY)))
    return path


def test_long_source_says_through_a_keeper_how_many_records_are_read(long_source, tmp_path):
    place = KeeperPlace(tmp_path / "engines", "arrow")
    keeper = Keeper(place, EngineWorkspace(place.folder), build_of_program(), 600, ends_when_idle=False)
    thread = threading.Thread(target=keeper.run)
    thread.start()
    wait_until(place.socket.exists, "a keeper", 60)
    try:
        with find_warm_session(place, build_of_program(), 600) as kept:
            heard = []
            kept.on_progress = heard.append
            kept.ingest(request(long_source, read=ReadStepNdJson(schema=LONG)))
        assert heard
        assert heard == sorted(heard)
        assert 0 < heard[-1] <= MANY
    finally:
        keeper.end()
        thread.join()


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
    assert re.search(r"AddData  \+2 rows  read 2, [0-9.]+ s", node.must("log", "rows", "-o", "oneline").out)
    (newest,) = json.loads(node.must("inspect", "plan", "rows", "-o", "json").out)
    names = [(each["stage"], each.get("plugIn")) for each in newest["stages"]]
    stages = ("engine", "read", "merge", "quarantine", "persist")
    assert [name for name, plug_in in names if plug_in is None] == [*stages]
    assert {("read", "NdJson"), ("merge", "Append")} <= set(names)
    logged = json.loads(node.must("log", "rows", "-o", "json", "-n", "1").out)
    assert logged["stages"] == newest["stages"]
    assert "NdJson" in node.must("inspect", "plan", "rows").out
    with closing(SqliteMetadataStore(Home(node.home))) as store:
        metrics = Metrics()
        add_stage_figures(metrics, store)
    lines = metrics.render().splitlines()
    assert 'odf_node_ingest_plug_in_rows_total{stage="read",plug_in="NdJson",rows="in"} 2' in lines
    assert 'odf_node_ingest_stage_batches_total{stage="persist"} 1' in lines
    assert "# TYPE odf_node_ingest_stage_seconds_total counter" in lines
    assert any(line.startswith('odf_node_ingest_stage_seconds_total{stage="engine"} ') for line in lines)
