"""Clauses ING-7 and FUSION-11: one preprocess query, at another implementation and here: equal slices, to the bit."""

import asyncio
import json
import os
import re
from pathlib import Path

import pytest
import yaml

from support.kamu_workspace import PeerError, PeerWorkspace
from support.nodes import RealNode

pytestmark = [
    pytest.mark.peer,
    pytest.mark.spark,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs"),
]

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {read}
      preprocess:
        kind: Sql
        engine: datafusion
        queries: {queries}
      merge: {merge}
"""
ROWS = """\
at,day,id,n,city,f,b
2024-01-03T10:20:30Z,2024-01-03,1,10,Oslo,1.5,true
2024-01-01T00:00:00.123Z,2024-01-01,2,-7,Rome,-0.25,false
2024-02-29T12:00:00Z,2024-02-29,3,,"São Paulo, SP",1e10,
2024-01-02T23:59:59Z,2024-01-02,4,0,,0.1,true
2023-12-31T00:00:00Z,2023-12-31,5,2147483647,oslo,,false
"""
LINES = """\
{"at":"2024-01-03T10:20:30Z","id":1,"city":"Oslo","f":1.5}
{"at":"2024-01-01T00:00:00Z","id":2,"city":null,"f":-2}
{"at":"2024-01-04T00:00:00Z","id":3,"city":"x"}
"""
DATA = yaml.safe_load((Path(__file__).parents[1] / "data" / "preprocess_queries.yaml").read_text())
CASES = DATA["cases"]
EVENT_TIME = "2024-03-01T00:00:00Z"
ADDED = "2024-03-31T00:00:00Z"
SYSTEM_TIME = "2024-04-01T00:00:00Z"


def test_preprocess_queries_give_the_slices_that_another_implementation_writes(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    for name, case in CASES.items():
        read, merge = DATA["reads"][case["from"]], DATA["merges"][case.get("merge", "append")]
        listed = json.dumps(case["queries"])
        manifest = MANIFEST.format(name=name, read=read, merge=merge, queries=listed)
        (tmp_path / "manifests" / f"{name}.yaml").write_text(manifest)
    (tmp_path / "rows.csv").write_text(ROWS)
    (tmp_path / "rows.ndjson").write_text(LINES)
    theirs = asyncio.run(_ask_peer(tmp_path))
    node = RealNode(tmp_path / "home", has_engine=True)
    node.must("--system-time", ADDED, "add", *_manifests(tmp_path))
    ours = {}
    for name in CASES:
        ran = node.run(
            "--system-time", SYSTEM_TIME, "ingest", name, str(_source(tmp_path, name)), "--event-time", EVENT_TIME
        )
        ours[name] = _hashes(node.must("log", name, "-o", "yaml").out) if ran.code == 0 else ran.err
    assert ours == theirs


def _manifests(folder: Path) -> list[str]:
    return sorted(map(str, (folder / "manifests").iterdir()))


def _source(folder: Path, name: str) -> Path:
    return folder / ("rows.ndjson" if CASES[name]["from"] == "json" else "rows.csv")


async def _ask_peer(folder: Path) -> dict[str, list[str] | str]:
    peer = await PeerWorkspace.create(folder / "peer")
    await peer.run("--system-time", ADDED, "add", *_manifests(folder))
    found: dict[str, list[str] | str] = {}
    for name in CASES:
        try:
            source = str(_source(folder, name))
            await peer.run("--system-time", SYSTEM_TIME, "ingest", name, source, "--event-time", EVENT_TIME)
            found[name] = _hashes(await peer.run("log", name, "--output-format", "yaml"))
        except PeerError as error:
            found[name] = str(error)
    return found


def _hashes(log: str) -> list[str]:
    return re.findall(r"logicalHash: (\w+)", log)
