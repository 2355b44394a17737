"""Datasets read as Iceberg tables by DuckDB and by Spark with Iceberg's runtime (ICEBERG-2, ICEBERG-5, ICEBERG-7).

Neither works with the versions of the lock (decision 0362): they run in interpreters of their own. Without these
nothing is tested here, and pytest says so.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from odf_iceberg.versions import snapshot_id_of
from support.event_loop import in_loop
from support.iceberg_node import corrected_chain, create_node
from support.secretive_node import FRIEND_TOKEN, SecretiveNode

DUCKDB = os.environ.get("ODF_ICEBERG_DUCKDB", "")
SPARK = os.environ.get("ODF_ICEBERG_SPARK", "")
IN_MAVEN = Path.home() / ".m2/repository/org/apache/iceberg"
JARS = [
    IN_MAVEN / name / "1.12.0" / f"{name}-1.12.0.jar"
    for name in ("iceberg-spark-runtime-4.1_2.13", "iceberg-aws-bundle")
]

IN_DUCKDB = """
import json, pathlib, sys
import duckdb, duckdb_extension_avro, duckdb_extension_httpfs, duckdb_extension_iceberg
url, first, token = sys.argv[1:]
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
for module in (duckdb_extension_httpfs, duckdb_extension_avro, duckdb_extension_iceberg):
    (file,) = pathlib.Path(module.__file__).parent.rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{file}'")
settings = f"TYPE iceberg, ENDPOINT '{url}/_iceberg'"
connection.execute(f"ATTACH 'odf' AS node ({settings}, AUTHORIZATION_TYPE 'none')")
connection.execute(f"ATTACH 'odf' AS friend ({settings}, TOKEN '{token}')")
def read(question):
    return sorted(map(list, connection.execute(question).fetchall()), key=str)
print(json.dumps({
    "current": read('SELECT city, people FROM node.odf."shop.cities"'),
    "first": read(f'SELECT city, people FROM node.odf."shop.cities" AT (VERSION => {first})'),
    "changes": read('SELECT "offset", op, city FROM node.odf."shop.cities__changes"'),
    "hidden": read('SELECT count(*) FROM friend.odf."hidden.data"'),
}))
"""

IN_SPARK = """
import json, sys
from pyspark.sql import SparkSession
url, first, token, jars = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.jars", jars).config("spark.ui.enabled", "false")
for name, token in (("node", None), ("friend", token)):
    catalog = f"spark.sql.catalog.{name}"
    builder = builder.config(catalog, "org.apache.iceberg.spark.SparkCatalog")
    builder = builder.config(f"{catalog}.type", "rest").config(f"{catalog}.uri", f"{url}/_iceberg")
    builder = builder.config(f"{catalog}.token", token) if token else builder
spark = builder.getOrCreate()
def rows(frame):
    return sorted(map(list, frame.collect()), key=str)
def read(question):
    return rows(spark.sql(question))
changes = "node.odf.`shop.cities__changes`"
print(json.dumps({
    "current": read("SELECT city, people FROM node.odf.shop.cities"),
    "first": read(f"SELECT city, people FROM node.odf.`shop.cities` VERSION AS OF {first}"),
    "changes": read(f"SELECT `offset`, op, city FROM {changes}"),
    "hidden": read("SELECT count(*) FROM friend.odf.`hidden.data`"),
    "since": rows(spark.read.format("iceberg").option("start-snapshot-id", first).load(changes).select("offset")),
    "operations": [row[0] for row in spark.sql("SELECT operation FROM node.odf.`shop.cities`.snapshots").collect()],
}))
spark.stop()
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[SecretiveNode]:
    made = create_node(tmp_path)
    with closing(made.node):
        yield made


async def ask(interpreter: str, program: str, *words: str) -> dict[str, Any]:
    """Run a reader, and give what it printed last."""
    process = await asyncio.create_subprocess_exec(
        interpreter, "-c", program, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-4000:]
    found: dict[str, Any] = json.loads(said.decode().strip().splitlines()[-1])
    return found


def require_rows(found: dict[str, Any]) -> None:
    assert found["current"] == [["Oslo", 717_710], ["Rome", 3]]
    assert found["first"] == [["Oslo", 717_710], ["Rome", 2_800_000], ["Vaduz", 5_600]]
    assert [row[0] for row in found["changes"]] == list(range(8))
    assert found["hidden"] == [[6]]


@pytest.mark.skipif(not DUCKDB, reason="ODF_ICEBERG_DUCKDB names no Python with DuckDB 1.5.5 and its extensions")
@in_loop
async def test_duckdb_reads_current_rows_versions_and_changes_iceberg_14(made: SecretiveNode) -> None:
    chain = corrected_chain(made)
    async with made.served() as stranger:
        first = str(snapshot_id_of(chain.blocks[2].hash))
        require_rows(await ask(DUCKDB, IN_DUCKDB, stranger.url, first, FRIEND_TOKEN))


@pytest.mark.skipif(
    not SPARK or not all(each.is_file() for each in JARS),
    reason="ODF_ICEBERG_SPARK names no Python with PySpark 4.1, or Maven's folder has no runtime of Iceberg",
)
@in_loop
async def test_spark_reads_current_rows_versions_and_changes_iceberg_7(made: SecretiveNode) -> None:
    chain = corrected_chain(made)
    async with made.served() as stranger:
        first = str(snapshot_id_of(chain.blocks[2].hash))
        jars = ",".join(map(str, JARS))
        found = await ask(SPARK, IN_SPARK, stranger.url, first, FRIEND_TOKEN, jars)
        require_rows(found)
        assert found["since"] == [[3], [4], [5], [6], [7]]
        assert found["operations"] == ["append", "overwrite", "overwrite"]
