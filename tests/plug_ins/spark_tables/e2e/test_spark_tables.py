"""Clauses SPARKTABLE-1 to SPARKTABLE-13: datasets of a home in a real Spark session of a user's."""

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import odf_node
from odf_node.errors import ObjectsAbsentError, UnknownDatasetError, UsageError
from odf_node.front.spark_sessions import SessionTables
from support.nodes import RealNode
from support.spark_home import APPEND, MADE, MANIFEST, SNAPSHOT, add, ingest, user_session

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("light_engines"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

FIRST = "2024-01-01T00:00:00Z,Bern,1\n2024-01-02T00:00:00Z,Rome,3\n"
SECOND = "2024-01-02T00:00:00Z,Rome,4\n2024-01-03T00:00:00Z,Oslo,2\n"
DAYS = ("2024-02-01T00:00:00Z", "2024-02-02T00:00:00Z")
NAMES = {"countries.daily": APPEND, "cities": SNAPSHOT, "org.example-x.cities": APPEND, "empty": APPEND}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> RealNode:
    folder = tmp_path_factory.mktemp("spark-tables")
    made = RealNode(folder / "home")
    for name, merge in NAMES.items():
        add(made, folder, name, merge)
    for day, rows in zip(DAYS, (FIRST, SECOND), strict=True):
        for name in ("countries.daily", "cities", "org.example-x.cities"):
            ingest(made, folder, name, rows, day)
    return made


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with user_session(tmp_path_factory.mktemp("session")) as session:
        yield session


@pytest.fixture(scope="module")
def tables(node: RealNode, spark: Any) -> Iterator[SessionTables]:
    made = odf_node.spark_tables(spark, home=node.home)
    assert made.problems == {}
    yield made
    made.close()
    left = {each.name for each in spark.catalog.listTables()} - {"arrived"}  # a stream's, of the guide
    assert left == set()
    assert [*(node.home / "cache" / "spark-tables").iterdir()] == []


@pytest.fixture(autouse=True)
def _tables(tables: SessionTables) -> None:
    """Every test has the tables."""


def cities(frame: Any) -> list[tuple[str, int]]:
    return sorted((row.city, row.people) for row in frame.collect())


def count_blocks(node: RealNode, name: str) -> int:
    with odf_node.open(node.home) as opened:
        return opened.datasets(name)[0].blocks


def failure(action: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of Spark, with ours inside
        action()
    return str(caught.value)


def test_datasets_are_tables_under_their_names_and_show_current_rows(spark: Any) -> None:
    """Clauses SPARKTABLE-1, SPARKTABLE-2, SPARKTABLE-3 and SPARKTABLE-5."""
    both = [("Bern", 1), ("Oslo", 2), ("Rome", 3), ("Rome", 4)]
    assert cities(spark.table("countries.daily")) == both
    assert cities(spark.sql("SELECT * FROM `org.example-x.cities`")) == both
    # Rome was corrected, and Bern taken back.
    assert cities(spark.table("cities")) == [("Oslo", 2), ("Rome", 4)]
    assert spark.table("cities").columns == ["event_time", "city", "people"]
    assert spark.table("empty").columns == ["event_time", "city", "people"]
    assert spark.table("empty").count() == 0
    changes = spark.table("cities__changes")
    assert changes.columns == ["offset", "op", "system_time", "event_time", "city", "people"]
    assert [row.op for row in changes.orderBy("offset").collect()] == [0, 0, 1, 0, 2, 3]


def test_conditions_and_columns_are_pushed_down_to_parquet(spark: Any) -> None:
    """Clause SPARKTABLE-4."""
    for name in ("countries.daily", "cities"):
        frame = spark.table(name).where("people > 2").select("city")
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert "FileScan parquet" in plan
        assert "GreaterThan(people,2)" in plan.partition("PushedFilters")[2]
        assert "ReadSchema: struct<city:string,people:bigint>" in plan
        assert "Python" not in plan


def test_what_was_known_at_a_time(spark: Any, tables: SessionTables) -> None:
    """Clause SPARKTABLE-7: by a function in SQL, by an option of the format, by a frame."""
    for name in ("cities", "countries.daily"):
        at_first = [("Bern", 1), ("Rome", 3)]
        assert cities(spark.sql(f"SELECT * FROM {name}__as_of('2024-02-01 12:00:00')")) == at_first
        assert cities(tables.table(name, as_of="2024-02-01")) == at_first
        read = spark.read.format("odf").option("timestampAsOf", "2024-02-01")
        assert cities(read.load(name)) == at_first
        assert cities(spark.sql(f"SELECT * FROM {name}__as_of(now())")) == cities(spark.table(name))
    assert cities(spark.sql("SELECT * FROM `org.example-x.cities__as_of`('2024-02-01')")) == [("Bern", 1), ("Rome", 3)]
    assert tables.table("cities", as_of="2023-01-01").count() == 0
    with pytest.raises(UsageError, match="is not a time"):
        tables.table("cities", as_of="yesterday")


def test_format_reads_current_rows_and_the_changelog(spark: Any) -> None:
    """Clause SPARKTABLE-7."""
    assert cities(spark.read.format("odf").load("cities")) == cities(spark.table("cities"))
    changes = spark.read.format("odf").option("changes", "true").load("cities")
    assert changes.orderBy("offset").collect() == spark.table("cities__changes").orderBy("offset").collect()
    assert "no dataset" in failure(lambda: spark.read.format("odf").load("nowhere").count())
    assert "no option 'as-of'" in failure(lambda: spark.read.format("odf").option("as-of", "x").load("cities"))


def test_insert_is_one_commit_that_is_seen_at_once(spark: Any, node: RealNode) -> None:
    """Clause SPARKTABLE-8."""
    before, rows = count_blocks(node, "countries.daily"), spark.table("countries.daily").count()
    spark.sql("INSERT INTO countries.daily__insert VALUES (TIMESTAMP '2024-03-01 00:00:00', 'Graz', 7L)")
    assert count_blocks(node, "countries.daily") == before + 1
    assert ("Graz", 7) in cities(spark.table("countries.daily"))
    many = spark.range(0, 900, 1, 7).selectExpr(
        "TIMESTAMP '2024-03-02' AS event_time", "'Wien' AS city", "id AS people"
    )
    many.write.format("odf").mode("append").save("countries.daily")
    assert count_blocks(node, "countries.daily") == before + 2
    assert spark.table("countries.daily").count() == rows + 901
    many.where("people < 2").write.insertInto("countries.daily__insert")
    many.where("people < 0").write.insertInto("countries.daily__insert")
    assert count_blocks(node, "countries.daily") == before + 3
    with odf_node.open(node.home) as opened:
        assert all(each.is_valid for each in opened.verify("countries.daily"))


def test_names_that_fit_no_catalogue_take_rows_too(spark: Any) -> None:
    """Clauses SPARKTABLE-2 and SPARKTABLE-8; and a dataset that had no rows yet."""
    spark.sql("INSERT INTO `org.example-x.cities__insert` VALUES (TIMESTAMP '2024-03-01 00:00:00', 'Graz', 7L)")
    assert ("Graz", 7) in cities(spark.table("`org.example-x.cities`"))
    spark.sql("INSERT INTO empty__insert (city, event_time) VALUES ('Graz', TIMESTAMP '2024-03-01 00:00:00')")
    assert [(row.city, row.people) for row in spark.table("empty").collect()] == [("Graz", None)]


def test_write_into_a_merging_dataset_corrects_it(spark: Any) -> None:
    """Clauses SPARKTABLE-5 and SPARKTABLE-8: what its merge strategy makes of the rows is one version."""
    rows = spark.createDataFrame([("Rome", 9), ("Lima", 5)], "city STRING, people BIGINT")
    frame = rows.selectExpr("TIMESTAMP '2024-03-01' AS event_time", "city", "people")
    frame.write.format("odf").mode("append").save("cities")
    assert cities(spark.table("cities")) == [("Lima", 5), ("Rome", 9)]
    assert cities(spark.sql("SELECT * FROM cities__as_of(TIMESTAMP '2024-02-02 12:00:00')")) == [
        ("Oslo", 2),
        ("Rome", 4),
    ]


def test_columns_that_do_not_fit_are_rejected_with_their_difference(spark: Any, node: RealNode) -> None:
    """Clause SPARKTABLE-9: before a row is computed, and nothing is written."""
    before = count_blocks(node, "countries.daily")
    frame = spark.range(3).selectExpr("raise_error('computed') AS city", "CAST(id AS INT) AS people", "id AS more")
    said = failure(lambda: frame.write.format("odf").mode("append").save("countries.daily"))
    assert "- `people` BIGINT, + `people` INT, + `more` BIGINT" in said
    assert "computed" not in said
    said = failure(lambda: frame.select("more").write.format("odf").mode("append").save("countries.daily"))
    assert "- `city` STRING" in said
    assert "INSERT_COLUMN_ARITY_MISMATCH" in failure(
        lambda: spark.sql("INSERT INTO countries.daily__insert VALUES ('Graz')")
    )
    nothing = spark.sql("SELECT TIMESTAMP '2024-03-01' AS event_time, CAST(NULL AS STRING) AS city, 1L AS people")
    said = failure(lambda: nothing.write.format("odf").mode("append").save("countries.daily"))
    assert "column city may not be null" in said
    assert "'people': 1" in said
    fine = spark.sql("SELECT TIMESTAMP '2024-03-01 00:00:00.000001' AS event_time, 'Graz' AS city, 1L AS people")
    assert "column event_time" in failure(lambda: fine.write.format("odf").mode("append").save("countries.daily"))
    assert "keeps what was written" in failure(
        lambda: fine.write.format("odf").mode("overwrite").save("countries.daily")
    )
    assert "keeps what was written" in failure(
        lambda: spark.sql("INSERT OVERWRITE countries.daily__insert VALUES (now(), 'Graz', 1L)")
    )
    assert count_blocks(node, "countries.daily") == before


def test_files_of_the_node_cannot_be_written_through_a_view(spark: Any, node: RealNode) -> None:
    """Clause SPARKTABLE-4: Spark may not insert into files of which the node knows nothing."""
    before = {path: path.read_bytes() for path in (node.home / "objects").rglob("*") if path.is_file()}
    for how in ("INTO", "OVERWRITE"):
        for name in ("countries.daily", "`org.example-x.cities`", "cities__changes"):
            assert "VIEW" in failure(lambda: spark.sql(f"INSERT {how} {name} SELECT * FROM {name}")).upper()  # noqa: B023
    assert {path: path.read_bytes() for path in before} == before


def test_tasks_that_fail_and_run_again_make_one_commit_of_each_row_once(
    spark: Any, node: RealNode, tmp_path: Path
) -> None:
    """Clause SPARKTABLE-10."""
    from pyspark.sql.functions import udf

    before = count_blocks(node, "countries.daily")

    # Without types in their signatures, which Spark would take for functions of pandas.
    @udf("string")
    def flaky(number):  # type: ignore[no-untyped-def]
        from pyspark import TaskContext

        # After rows were written, in the first attempt of every task.
        if TaskContext.get().attemptNumber() == 0 and number % 500 == 499:
            raise ValueError("lost")
        return "Bonn"

    @udf("string")
    def broken(number):  # type: ignore[no-untyped-def]
        if number == 999:
            raise ValueError("for ever")
        return "Kiel"

    rows = spark.range(0, 1000, 1, 2)
    for city in (flaky, broken):
        frame = rows.select(rows.id.alias("people"), city(rows.id).alias("city"))
        frame = frame.selectExpr("TIMESTAMP '2024-03-03' AS event_time", "city", "people")
        if city is broken:
            assert "for ever" in failure(lambda: frame.write.format("odf").mode("append").save("countries.daily"))  # noqa: B023
        else:
            frame.write.format("odf").mode("append").save("countries.daily")
    assert count_blocks(node, "countries.daily") == before + 1
    written = spark.table("countries.daily").where("city IN ('Bonn', 'Kiel')")
    assert [row.people for row in written.orderBy("people").collect()] == [*range(1000)]
    assert [*node.home.glob("cache/spark-tables/*/write-*")] == []


def test_stream_reads_each_new_row_once(spark: Any, node: RealNode, tmp_path: Path) -> None:
    """Clause SPARKTABLE-11: also where it goes on from a checkpoint."""
    with odf_node.open(node.home) as opened:
        rows = opened.table("countries.daily").to_arrow().num_rows

    def run() -> None:
        stream = spark.readStream.format("odf").option("changes", "true").load("countries.daily")
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.option("path", str(tmp_path / "seen")).trigger(availableNow=True).start()
        query.awaitTermination()

    run()
    seen = spark.read.parquet(str(tmp_path / "seen"))
    assert [row.offset for row in seen.orderBy("offset").collect()] == [*range(rows)]
    spark.sql("INSERT INTO countries.daily__insert VALUES (TIMESTAMP '2024-04-01 00:00:00', 'Linz', 7L)")
    run()
    seen = spark.read.parquet(str(tmp_path / "seen"))
    assert [row.offset for row in seen.orderBy("offset").collect()] == [*range(rows + 1)]
    assert seen.orderBy("offset").collect()[-1].city == "Linz"
    plain = spark.readStream.format("odf").load("cities")
    assert "changes" in failure(lambda: plain.writeStream.format("noop").start().processAllAvailable())


def test_what_others_write_is_seen_and_new_datasets_after_refresh(
    spark: Any, node: RealNode, tables: SessionTables, tmp_path: Path
) -> None:
    """Clause SPARKTABLE-6."""
    ingest(node, tmp_path, "countries.daily", "2024-05-01T00:00:00Z,Nice,1\n", "2034-01-01T00:00:00Z")
    deadline = time.monotonic() + 60
    while spark.table("countries.daily").where("city = 'Nice'").count() == 0:
        assert time.monotonic() < deadline
    add(node, tmp_path, "later.cities")
    ingest(node, tmp_path, "later.cities", FIRST, DAYS[0])
    tables.refresh()
    assert cities(spark.table("later.cities")) == [("Bern", 1), ("Rome", 3)]
    node.must("delete", "later.cities", "--yes")
    tables.refresh()
    assert "TABLE_OR_VIEW_NOT_FOUND" in failure(lambda: spark.table("later.cities"))


def test_frame_that_was_made_before_a_write_keeps_its_version(spark: Any) -> None:
    """Clause SPARKTABLE-6: what was analysed is what is read."""
    frame = spark.table("countries.daily")
    count = frame.count()
    spark.sql("INSERT INTO countries.daily__insert VALUES (TIMESTAMP '2024-04-02 00:00:00', 'Linz', 8L)")
    assert frame.count() == count
    assert spark.table("countries.daily").count() == count + 1


def test_dataset_at_an_address_is_verified_and_brought_once(
    spark: Any, node: RealNode, tables: SessionTables, tmp_path: Path
) -> None:
    """Clause SPARKTABLE-12."""
    there = RealNode(tmp_path / "there")
    for name in ("far.cities", "far.damaged"):
        add(there, tmp_path, name, SNAPSHOT)
        for day, rows in zip(DAYS, (FIRST, SECOND), strict=True):
            ingest(there, tmp_path, name, rows, day)
        there.must("publish", name)
    before = sorted(node.home.glob("objects/*/*"))
    with there.serving() as url:
        assert cities(tables.table(f"{url}/far.cities")) == [("Oslo", 2), ("Rome", 4)]
    # It answers no more: what was brought is there for the session.
    assert cities(spark.read.format("odf").load(f"{url}/far.cities")) == [("Oslo", 2), ("Rome", 4)]
    assert cities(tables.table(f"{url}/far.cities", as_of="2024-02-01")) == [("Bern", 1), ("Rome", 3)]
    assert sorted(node.home.glob("objects/*/*")) == before
    frame = spark.table("countries.daily")
    assert "leave the address" in failure(lambda: frame.write.format("odf").mode("append").save(f"{url}/far.cities"))
    for path in [each for each in there.home.glob("objects/*/*") if each.is_file()]:
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-9] + b"\0" * 9)
    with there.serving() as url, pytest.raises(ObjectsAbsentError, match="breaks EX-12"):
        tables.table(f"{url}/far.damaged")


def test_damaged_and_unknown_datasets_are_named_and_the_others_are_tables(
    spark: Any, node: RealNode, tmp_path: Path
) -> None:
    """Clauses SPARKTABLE-1 and SPARKTABLE-4: what is read is what the chain states, or is not read."""
    from odf_node.composition import open_node

    home = shutil.copytree(node.home, tmp_path / "damaged")
    shutil.rmtree(home / "rows")
    damaged = open_node(home)
    record = next(each for each in damaged.store.list_datasets() if each.name == "cities")
    damaged.close()
    with odf_node.open(home) as opened:
        from odf_node.datasets.chains import iter_slices

        path = opened.inner.objects.get_path(next(iter_slices(opened.inner.store, record.id)).physical_hash)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-9] + b"\0" * 9)
    spark.sql("CREATE DATABASE IF NOT EXISTS damaged")
    with pytest.raises(UnknownDatasetError):
        odf_node.spark_tables(spark, "nowhere", home=home)
    other = odf_node.spark_tables(spark.newSession(), "cities", "empty", home=home)
    try:
        assert "cities" in other.problems
        assert other.problems["cities"]
    finally:
        other.close()


def test_session_of_something_else_is_told_in_one_line(node: RealNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clause SPARKTABLE-1."""
    from odf_node import plug_ins
    from odf_spark_tables import plug_in

    with pytest.raises(UsageError, match="expected a SparkSession, found int"):
        odf_node.spark_tables(5, home=node.home)
    monkeypatch.setattr(plug_in, "version", lambda _name: "3.5.1")
    with pytest.raises(UsageError, match=r"need pyspark 4.3 or later, found 3.5.1: pip install 'odf-node\[spark\]'"):
        odf_node.spark_tables(5, home=node.home)
    monkeypatch.setattr(plug_ins, "list_lacking_extras", lambda _point: ["spark"])
    with pytest.raises(UsageError, match=r"spark_tables\(\) needs the plug-in 'spark_tables'.*spark"):
        odf_node.spark_tables(5, home=node.home)


def test_folders_of_sessions_that_were_killed_are_removed(node: RealNode, tmp_path: Path) -> None:
    """Clause SPARKTABLE-13."""
    from odf_node.home_folder import HomeFolder
    from odf_spark_tables.folders import SessionFolder

    home = HomeFolder(tmp_path / "home")
    left, held = home.path / "cache" / "spark-tables" / "left", SessionFolder(home)
    left.mkdir()
    (left / "lock").touch()
    (left / "rows.parquet").touch()
    other = SessionFolder(home)
    assert not left.exists()
    assert held.path.exists()
    assert held.path.stat().st_mode & 0o077 == 0
    other.close()
    held.close()
    assert [*(home.cache / "spark-tables").iterdir()] == []


GUIDE = Path(__file__).parents[4] / "spec" / "guides" / "spark-tables.md"


def test_guide_says_what_happens(  # the last one: the format means the home of the last call
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = RealNode(tmp_path / "home")
    for name, merge in (("weather.daily", APPEND), ("stations", SNAPSHOT.replace("city", "station"))):
        path = tmp_path / f"{name}.yaml"
        columns = MANIFEST.format(name=name, merge=merge).replace("people BIGINT", "degrees DOUBLE")
        path.write_text(columns if name == "weather.daily" else columns.replace("city STRING", "station STRING"))
        home.must("add", str(path), "--system-time", MADE)
    for day, rows in zip(DAYS, (FIRST, SECOND), strict=True):
        for name, column in (("weather.daily", "city"), ("stations", "station")):
            path = tmp_path / "rows.csv"
            path.write_text(f"event_time,{column},degrees\n{rows}")
            home.must("ingest", name, str(path), "--system-time", day)
    monkeypatch.setenv("ODF_NODE_HOME", str(home.home))
    program = "".join(re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL))
    exec(compile(program, str(GUIDE), "exec"), {"spark": spark})
    said = capsys.readouterr().out
    assert "- `degrees` DOUBLE, + `kelvin` DOUBLE" in said
    assert said.count("Linz") == 1  # in what the stream saw
    assert "{}" in said
    with odf_node.open(home.home) as opened:
        assert opened.datasets("weather.daily")[0].rows == 6
