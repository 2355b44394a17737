"""Clauses CLUSTER-1 to CLUSTER-7: a standalone cluster computes what one machine does, to the byte.

A master and two workers of stock Spark run on the loopback. Two nodes are copies of each other; one of them publishes
on the cluster, the other with its embedded engine, and an auditor without a cluster re-executes the first one's steps.
"""

import json
import shutil
import time
from pathlib import Path

import pytest

from support.nodes import RealNode
from support.spark_cluster import LoopbackCluster, loopback_cluster
from support.warm_engine import lent_to_untrusted

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

ROOT = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "file://{path}"}}
      read:
        kind: Csv
        header: true
        schema:
          fields:
            - {{name: event_time, type: {{kind: Timestamp}}}}
            - {{name: number, type: {{kind: Int64}}}}
            - {{name: city, type: {{kind: String}}}}
            - {{name: weight, type: {{kind: Float64}}}}
      merge: {{kind: Snapshot, primaryKey: [number]}}
"""
DERIVATIVE = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: trips, alias: t}}]
      transform: {{kind: Sql, engine: spark, query: "{query}"}}
"""
QUERIES = {
    "a.map": "SELECT event_time, number, upper(city) AS city, exp(weight) AS grown FROM t WHERE number % 7 < 5",
    "a.view": "SELECT max(a.event_time) AS event_time, a.city, count(1) AS n, sum(a.weight * b.weight) AS total"
    " FROM t a JOIN t b ON a.number = b.number + 1 GROUP BY a.city",
    "a.window": "SELECT window(event_time, '1 day').start AS event_time, city, avg(weight) AS mean FROM t"
    " GROUP BY window(event_time, '1 day'), city",
}
DATASETS = ("trips", *QUERIES)
ROWS = 40_000  # some megabytes: each executor gets a part of the ingest
FIRST, SECOND = "2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z"


def _write_source(path: Path, *, changed: bool) -> None:
    lines = ["event_time,number,city,weight"]
    for number in range(ROWS):
        weight = (number * 7919 % 1000) / 7 + (changed and number % 10 == 0)
        day = 1 + number * 28 // ROWS
        lines.append(f"2024-01-{day:02}T00:00:00Z,{number},city {number % 23:<20},{weight!r}")
    path.write_text("\n".join(lines) + "\n")


def _cluster_settings(cluster: LoopbackCluster, shared: Path) -> dict[str, str]:
    return {
        "ODF_NODE_ENGINES_INGEST_FIRST": "",  # plain records are taken here otherwise, without Spark
        "ODF_NODE_ENGINES_SPARK_MASTER": cluster.master,
        "ODF_NODE_ENGINES_SPARK_SHARED_FOLDER": str(shared),
        "ODF_NODE_ENGINES_SPARK_SECRET": str(cluster.secret),
        "ODF_NODE_ENGINES_SPARK_CORES": "2",
        "ODF_NODE_ENGINES_SPARK_EXECUTOR_MEMORY_BYTES": str(600 << 20),
    }


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[RealNode, Path]:
    """A node whose root was ingested once, and whose derivatives have no rows yet; and its source."""
    folder = tmp_path_factory.mktemp("published")
    node = RealNode(folder / "node", has_engine=True)
    source = folder / "trips.csv"
    _write_source(source, changed=False)
    (folder / "trips.yaml").write_text(ROOT.format(name="trips", path=source))
    for name, query in QUERIES.items():
        (folder / f"{name}.yaml").write_text(DERIVATIVE.format(name=name, query=query))
    node.must("add", *(str(folder / f"{name}.yaml") for name in DATASETS), "--system-time", FIRST)
    node.must("pull", "trips", "--system-time", FIRST)
    _write_source(source, changed=True)
    return node, source


def _copy(node: RealNode, folder: Path) -> RealNode:
    shutil.copytree(node.home, folder, ignore=shutil.ignore_patterns("engines"))
    return RealNode(folder, has_engine=True)


def _blocks(node: RealNode) -> dict[str, list[str]]:
    """Hashes of all blocks, which cover those of slices and checkpoints."""
    logs = {name: node.must("log", name, "-o", "json").out.splitlines() for name in DATASETS}
    return {name: [json.loads(line)["blockHash"] for line in lines] for name, lines in logs.items()}


def _files(node: RealNode, kind: str) -> set[tuple[str, bytes]]:
    return {(path.name, path.read_bytes()) for path in (node.home / kind).rglob("*") if path.is_file()}


def test_a_cluster_publishes_the_same_bytes_as_one_machine(published: tuple[RealNode, Path], tmp_path: Path) -> None:
    node, _source = published
    here, there = _copy(node, tmp_path / "here"), _copy(node, tmp_path / "there")
    in_steps = {"ODF_NODE_ENGINES_STEP_ROWS": "1"}
    here.must("pull", *DATASETS, "--system-time", SECOND, environment=in_steps)
    shared, logs = tmp_path / "shared", tmp_path / "cluster"
    shared.mkdir()
    logs.mkdir()
    with loopback_cluster(logs) as cluster:
        settings = _cluster_settings(cluster, shared)
        there.must("pull", *DATASETS, "--system-time", SECOND, environment={**in_steps, **settings})
        tasks = cluster.finished_tasks()
        reported = there.must("doctor", "-o", "json", environment=settings)
        assert {row["what"]: row["ok"] for row in reported.json()}[f"cluster {cluster.master}"]
        stranger = _copy(node, tmp_path / "stranger")
        false_secret = tmp_path / "false-secret"
        false_secret.write_text("0" * 64)
        false_secret.chmod(0o600)
        began_s = time.monotonic()
        refused = stranger.run(
            "pull", "trips", environment={**settings, "ODF_NODE_ENGINES_SPARK_SECRET": str(false_secret)}
        )
        rejected_s = time.monotonic() - began_s

    assert (refused.code, "its secret" in refused.err) == (5, True)
    assert rejected_s < 55  # Spark itself gives up after 60
    assert _blocks(stranger) == _blocks(node)
    assert len(tasks) == 2
    # Steps over so little have one task after the other, so both executors worked in stages of the ingest alone; and in
    # the one in which they were tried.
    stages = [{task.partition(" in ")[2] for task in of_executor} for of_executor in tasks]
    assert len(stages[0] & stages[1]) > 3, stages
    assert _blocks(there) == _blocks(here)
    assert {name: len(blocks) for name, blocks in _blocks(there).items()} == {
        "trips": 5, "a.map": 5, "a.view": 5, "a.window": 4
    }  # fmt: skip
    assert _files(there, "objects") == _files(here, "objects")
    assert list(shared.iterdir()) == []
    secret = cluster.secret.read_bytes()
    assert not [path for path in there.home.rglob("*") if path.is_file() and secret in path.read_bytes()]
    auditor = RealNode(tmp_path / "auditor", has_engine=True)
    # Its settings name a cluster, which is gone: what others published asks for none.
    with lent_to_untrusted():
        for name in DATASETS:
            there.must("push", name, "--to", f"file://{tmp_path}/offered/{name}")
            taken = auditor.must("pull", f"file://{tmp_path}/offered/{name}", "-o", "json", environment=settings).json()
    assert taken[0]["trust"] == "re-executed"


def _files_of(node: RealNode) -> dict[str, bytes]:
    """Its files but for the database, which keeps what stages of failed ingests took (STAGE-5)."""
    return {name: content for name, content in node.snapshot().items() if name != "odf-node.sqlite"}


def test_a_cluster_that_cannot_be_used_is_rejected_and_leaves_nothing(
    published: tuple[RealNode, Path], tmp_path: Path
) -> None:
    node, _source = published
    there = _copy(node, tmp_path / "there")
    before, log = _files_of(there), there.must("log", "trips", "-o", "json").out
    shared, secret = tmp_path / "shared", tmp_path / "secret"
    shared.mkdir()
    secret.write_text("0" * 64)
    secret.chmod(0o600)
    cluster = LoopbackCluster("spark://127.0.0.1:1", secret, tmp_path)
    settings = _cluster_settings(cluster, shared)

    unreachable = there.run("pull", "trips", environment=settings)
    secret.chmod(0o644)
    readable = there.run("pull", "trips", environment=settings)
    shared.rmdir()
    folderless = there.run("pull", "trips", environment=settings)
    reported = there.run("doctor", "-o", "json", environment=settings)

    assert (unreachable.code, readable.code, folderless.code) == (5, 5, 5)
    assert "no master takes a connection (127.0.0.1:1: Connection refused)" in unreachable.err
    assert "must be a file that only its owner can read" in readable.err
    assert f"there is no folder {shared}" in folderless.err
    (tried,) = [row for row in reported.json() if row["what"] == f"cluster {cluster.master}"]
    assert (reported.code, tried["ok"], f"there is no folder {shared}" in tried["found"]) == (1, False, True)
    assert _files_of(there) == before
    assert there.must("log", "trips", "-o", "json").out == log
    assert {path.name for path in tmp_path.iterdir()} == {"there", "secret"}
