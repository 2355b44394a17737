"""Clauses PYTHON-1 to PYTHON-6: what a program or a notebook does with a node."""

import asyncio
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import odf_node
from odf_engines.errors import InvalidQueryError
from odf_node.errors import ProposalRejectedError, UnknownDatasetError, UsageError
from odf_node.front import OpenNode
from odf_node.records.ingests import KeyReusedError
from support.daemons import daemon
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: Csv
        header: true
        ddlSchema: ["event_time TIMESTAMP", "city STRING", "people BIGINT"]
      merge: {{ kind: Append }}
"""
DERIVED = """
kind: DatasetSnapshot
version: 1
content:
  name: large
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: cities, alias: cities}]
      transform: {kind: Sql, engine: datafusion, query: "SELECT event_time, city, people FROM cities WHERE people > 1"}
"""
FIRST = "event_time,city,people\n2024-01-01T00:00:00Z,Bern,1\n2024-01-02T00:00:00Z,Rome,3\n"
SECOND = "event_time,city,people\n2024-01-03T00:00:00Z,Oslo,2\n"
DAYS = ("2024-02-01T00:00:00Z", "2024-02-02T00:00:00Z")
SETTINGS = '[engines]\ningest_first = "arrow"\nquery = "datafusion"\n'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("python")
    made = RealNode(folder / "home")
    manifests = {"cities": MANIFEST.format(name="cities"), "empty": MANIFEST.format(name="empty"), "large": DERIVED}
    for name, text in manifests.items():
        (folder / name).write_text(text)
        made.must("add", str(folder / name), "--system-time", "2024-01-31T00:00:00Z")
    (folder / "home" / "odf-node.toml").write_text(SETTINGS)
    for day, text in zip(DAYS, (FIRST, SECOND), strict=True):
        (folder / "rows.csv").write_text(text)
        made.must("ingest", "cities", str(folder / "rows.csv"), "--system-time", day)
    return folder / "home"


@pytest.fixture
def node(home: Path) -> Iterator[OpenNode]:
    with odf_node.open(home) as opened:
        yield opened


def test_datasets_are_listed_with_what_they_rest_on_python_2(node: OpenNode) -> None:
    cities, empty = node.datasets("cities", "empty")
    assert (cities.name, cities.kind, cities.rows, empty.rows) == ("cities", "Root", 3, 0)
    assert cities.id.startswith("did:odf:")
    assert cities.watermark == datetime(2024, 1, 3, tzinfo=UTC)
    assert [each.name for each in node.datasets()] == ["cities", "empty", "large"]
    with pytest.raises(UnknownDatasetError, match="did you mean 'cities'"):
        node.datasets("citeis")


def test_table_is_the_changelog_in_every_format_python_3_python_4(node: OpenNode) -> None:
    table = node.table("cities")
    assert table.schema.names == ["offset", "op", "system_time", "event_time", "city", "people"]
    arrow = table.to_arrow()
    assert arrow.schema.equals(table.schema)
    assert arrow.select(["offset", "city"]).to_pylist() == [
        {"offset": 0, "city": "Bern"}, {"offset": 1, "city": "Rome"}, {"offset": 2, "city": "Oslo"}]  # fmt: skip
    assert table.to_pandas()["people"].sum() == 6
    assert table.to_polars()["city"].to_list() == ["Bern", "Rome", "Oslo"]
    nothing = node.table("empty").to_arrow()
    assert (nothing.num_rows, nothing.num_columns) == (0, 0)


def test_what_was_known_and_what_is_new_python_3(node: OpenNode) -> None:
    for moment in ("2024-02-01", "2024-02-01T00:00:00Z", datetime(2024, 2, 1, 12, tzinfo=UTC)):
        assert node.table("cities", as_of=moment).to_polars()["city"].to_list() == ["Bern", "Rome"]
        assert len(node.sql("SELECT * FROM cities", as_of=moment)) == 2
    assert node.table("cities").changes(after=0).to_polars()["city"].to_list() == ["Rome", "Oslo"]
    assert node.table("cities").changes(after=2).to_arrow().num_rows == 0
    assert sorted(node.table("cities").state().to_polars()["city"]) == ["Bern", "Oslo", "Rome"]
    assert repr(node.table("cities")) == "<table cities>"
    shown = repr(node.table("cities", as_of="2024-02-01").changes(after=0))
    assert shown == "<table cities as of 2024-02-01T00:00:00Z, after offset 0>"
    for wrong in ("yesterday", datetime(2024, 2, 1)):  # noqa: DTZ001 - the mistake
        with pytest.raises(UsageError, match=r"2024|yesterday"):
            node.table("cities", as_of=wrong)
    with pytest.raises(UsageError, match="of all events"):
        node.table("cities").changes(after=0).state()


def test_questions_pulls_and_verifications_also_where_a_loop_runs_python_5_python_6(node: OpenNode) -> None:
    async def as_in_a_notebook() -> None:
        (report,) = node.pull("large")
        assert report.record.name == "large"
        rows = node.sql("SELECT city FROM large ORDER BY people")
        assert rows.to_arrow().equals(pa.table({"city": ["Oslo", "Rome"]}).cast(rows.arrow.schema))
        assert "Oslo" in rows._repr_html_()
        findings = node.verify("cities", "large")
        assert [(each.name, each.is_valid) for each in findings] == [("cities", True), ("large", True)]

    asyncio.run(as_in_a_notebook())


def test_datasets_of_another_node_are_verified_before_they_are_seen_python_1(home: Path, tmp_path: Path) -> None:
    home = shutil.copytree(home, tmp_path / "home")
    with daemon(home, settings=SETTINGS) as served:
        with odf_node.open(served.url) as far:
            (proposed,) = far.datasets("cit%")
            assert (proposed.name, proposed.kind, proposed.rows) == ("cities", "Root", None)
            with pytest.raises(UnknownDatasetError, match="offers this node no dataset 'nowhere'"):
                far.datasets("nowhere")
            with pytest.raises(InvalidQueryError):
                far.sql("SELECT * FROM nowhere")
            # A name that is a part of some word is none that is asked for.
            assert len(far.sql("SELECT city AS enlarged FROM cities")) == 3
            assert [each.name for each in far.inner.store.list_datasets()] == ["cities"]
            assert far.table("cities").to_polars()["people"].to_list() == [1, 3, 2]
            kept = far.inner.home.folder.path
            assert kept.is_dir()
        assert not kept.exists()
    with daemon(home, settings=SETTINGS) as served, odf_node.open(served.url) as far:
        for path in [each for each in (home / "objects").rglob("*") if each.is_file()]:
            path.chmod(0o600)
            path.write_bytes(path.read_bytes()[:-9] + b"\0" * 9)
        with pytest.raises(ProposalRejectedError, match="EX-12"):
            far.table("cities").to_arrow()


@pytest.mark.spark
def test_spark_session_of_the_callers_reads_the_files_python_4(node: OpenNode) -> None:
    from pyspark.sql import SparkSession

    reported = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # it lives for seconds
    }
    session = SparkSession.builder.master("local[1]").config(map=reported).getOrCreate()
    try:
        frame = node.table("cities").to_spark(session)
        assert [row.city for row in frame.orderBy("offset").collect()] == ["Bern", "Rome", "Oslo"]
        assert node.table("cities").changes(after=1).to_spark(session).count() == 1
    finally:
        session.stop()


def test_rows_of_a_program_are_taken_once_under_a_key(tmp_path: Path) -> None:
    """Clauses PYTHON-6 and FEED-2."""
    (tmp_path / "cities").write_text(MANIFEST.format(name="cities"))
    RealNode(tmp_path / "home").must("add", str(tmp_path / "cities"))
    with odf_node.open(tmp_path / "home") as node:
        first = node.ingest("cities", FIRST.encode(), key="monday")
        again = node.ingest("cities", FIRST.encode(), key="monday")
        assert (first.new_rows, first.is_repeated, again.new_rows, again.is_repeated) == (2, False, 2, True)
        assert again.record.head == first.record.head
        with pytest.raises(KeyReusedError):
            node.ingest("cities", SECOND.encode(), key="monday")
        assert node.datasets()[0].rows == 2
    with odf_node.open("http://127.0.0.1:1") as other, pytest.raises(UsageError, match="POST"):
        other.ingest("cities", b"")


def test_tables_of_a_program_are_taken_where_the_source_reads_typed_columns(tmp_path: Path) -> None:
    """Clauses PYTHON-6, ING-3 and FEED-2: whatever the columns are cut into, the same table is the same rows."""
    typed = MANIFEST.format(name="cities").replace("kind: Csv", "kind: Parquet").replace("        header: true\n", "")
    for name, text in (
        ("cities", typed),
        ("texts", MANIFEST.format(name="texts").replace("kind: Csv", "kind: Csv\n        encoding: windows-1252")),
    ):
        (tmp_path / name).write_text(text)
        RealNode(tmp_path / "home").must("add", str(tmp_path / name))
    times = pa.array([datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)])
    table = pa.table({"event_time": times, "city": ["Bern", "Rome"], "people": [1, 3]})
    with odf_node.open(tmp_path / "home") as node:
        assert node.ingest("cities", table, key="monday").new_rows == 2
        cut = pa.concat_tables([table.slice(0, 1), table.slice(1)])
        for again in (cut, cut.to_reader()):
            assert node.ingest("cities", again, key="monday").is_repeated
        assert node.ingest("cities", pl.from_arrow(table.slice(0, 1))).new_rows == 1
        assert node.table("cities").to_arrow().column("city").to_pylist() == ["Bern", "Rome", "Bern"]
        with pytest.raises(UsageError, match="'texts' reads Csv as it is declared; tables go into"):
            node.ingest("texts", table)
        assert len(node.table("texts").to_arrow()) == 0
