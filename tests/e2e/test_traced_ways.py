"""How many modules and processes four ways of the host go through: less is better, and none may get longer.

What each way took when the bounds were set, and where it shall get: ``spec/decisions/0340-measures-of-the-house.md``.
"""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.city_datasets import add_cities, derivative_manifest
from support.daemons import daemon
from support.nodes import RealNode

WAIT_S = 600  # guess: a machine that is slow and busy
MAX_MODULES = {"block": 29, "query": 92, "ingest": 138, "pull": 195}  # of them 1, 13, 8 and 8 record the access
MAX_PROCESSES = {"block": 0, "query": 4, "ingest": 4, "pull": 6}  # up to two are git: which code reads or writes

CSV_ROOT = """
kind: DatasetSnapshot
version: 1
content:
  name: towns
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: Csv
        header: true
        schema:
          fields:
            - {name: event_time, type: {kind: Option, inner: {kind: Timestamp}}}
            - {name: town, type: {kind: Option, inner: String}}
            - {name: people, type: {kind: Option, inner: Int64}}
      merge: {kind: Append}
"""


def trace(home: Path, *words: str, serving: str | None = None) -> tuple[list[str], list[str]]:
    """Run a command in a process of its own, and return the modules and the programs that it went through."""
    before = [] if serving is None else ["--serving", serving]
    ran = subprocess.run(
        [sys.executable, "-m", "support.traced_way", *before, "--home", str(home), *words],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    return found["modules"], found["processes"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def check(way: str, found: tuple[list[str], list[str]]) -> None:
    modules, processes = found
    assert len(modules) <= MAX_MODULES[way], modules
    assert len(processes) <= MAX_PROCESSES[way], processes


@pytest.fixture
def publisher(tmp_path: Path) -> RealNode:
    """A node with a root that is fed, and a derivative of DataFusion's."""
    node = RealNode(tmp_path / "publisher")
    add_cities(node, tmp_path)
    manifest = tmp_path / "all.yaml"
    query = "{kind: Sql, engine: datafusion, query: 'SELECT event_time, city, people FROM c'}"
    manifest.write_text(derivative_manifest("all.cities", query))
    node.must("add", str(manifest))
    node.must("pull", "all.cities")
    node.must("publish", "cities", "all.cities")
    return node


def test_one_block_is_served_straight(publisher: RealNode) -> None:
    port = free_port()
    found = trace(publisher.home, "serve", "--http-port", str(port), serving="/cities/refs/head")
    check("block", found)


def test_query_goes_straight(publisher: RealNode) -> None:
    check("query", trace(publisher.home, "sql", "-c", "SELECT count(*) FROM cities"))


def test_ingest_of_a_csv_file_goes_straight(publisher: RealNode, tmp_path: Path) -> None:
    manifest, rows = tmp_path / "towns.yaml", tmp_path / "towns.csv"
    manifest.write_text(CSV_ROOT)
    rows.write_text("event_time,town,people\n2024-03-01T00:00:00Z,Lima,11\n")
    publisher.must("add", str(manifest))
    check("ingest", trace(publisher.home, "ingest", "towns", str(rows)))


def test_pull_with_re_execution_goes_straight(publisher: RealNode, tmp_path: Path) -> None:
    with daemon(publisher.home) as served:
        RealNode(tmp_path / "home").must("pull", f"{served.url}/cities")
        check("pull", trace(tmp_path / "home", "pull", f"{served.url}/all.cities"))
