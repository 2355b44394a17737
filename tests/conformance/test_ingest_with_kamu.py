"""The same manifest and the same file, at another implementation and here: the same rows (ING-2, ING-3, ING-7)."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.kamu_workspace import PeerWorkspace
from support.nodes import RealNode
from unit.test_shapefiles import line_parts, shape_parts, zipped

pytestmark = [
    pytest.mark.peer,
    pytest.mark.spark,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs"),
]

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: same
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {read}
      {preprocess}
      merge: {merge}
"""
CSV = """event_time,n,f,b,d,t,s
2024-01-01,1,1.5,true,2024-01-01,2024-01-01T00:00:00Z,x
01/02/2024,2,2.5,false,2024-01-02,2024-01-02T00:00:00.123Z,y
,3,,,,,
2024-01-04T00:00:00Z,04,1,true,,,
"""
TIMES = "event_time,n\n2024-01-01T00:00:00+02:00,1\n2024-01-02 00:00:00,2\n2024-01-03,3\n"
JSON = """{"event_time":"2024-01-01","n":1,"f":1.5,"b":true,"d":"2024-01-01","s":"5","l":[1,2],"o":{"a":1,"b":"x"}}
{"event_time":"01/02/2024","n":2,"f":2,"b":false,"d":"x","s":"6","l":[],"o":{"a":2}}
{"n":null,"z":{"y":[1]}}
"""
RESERVED = "offset,op,system_time,x\n5,7,q,1\n"
CHANGES = "op,id,x\n0,1,a\n0,2,b\n1,1,a\n"
KEYED = "primaryKey: [id]"
AS_IT_IS = "preprocess: {kind: Sql, engine: datafusion, query: SELECT * FROM input}"
RENAMED = "preprocess: {kind: Sql, engine: datafusion, query: 'SELECT event_time AS said, n FROM input'}"
STEPS = """preprocess:
        kind: Sql
        engine: datafusion
        queries:
          - {alias: one, query: "SELECT event_time AS said, n FROM input WHERE n <> '2'"}
          - {query: "SELECT said, n FROM one WHERE said IS NOT NULL"}"""

CASES = {
    "csv-seen-by-a-query": ("{kind: Csv, header: true}", RENAMED, "{kind: Append}", CSV),
    "csv-seen-by-two-queries": ("{kind: Csv, header: true}", STEPS, "{kind: Append}", CSV),
    "csv-without-header-seen-by-a-query": ("{kind: Csv}", AS_IT_IS, "{kind: Append}", CSV),
    "csv-inferred-seen-by-a-query": (
        "{kind: Csv, header: true, inferSchema: true}",
        RENAMED.replace("event_time AS said, n", "event_time AS said, n, f, b, d, s"),
        "{kind: Append}",
        CSV,
    ),
    "csv-times-without-a-query": ("{kind: Csv, header: true}", "", "{kind: Append}", TIMES),
    "json-seen-by-a-query": (
        "{kind: NdJson}",
        RENAMED.replace("event_time AS said, n", "event_time AS said, n, f, b, d, s, l, o, z"),
        "{kind: Append}",
        JSON,
    ),
    "names-of-system-columns": ("{kind: Csv, header: true}", "", "{kind: Append}", RESERVED),
    "names-of-system-columns-in-ddl": (
        "{kind: Csv, header: true, ddlSchema: [offset BIGINT, op INT, system_time STRING, x INT]}",
        "",
        "{kind: Append}",
        RESERVED,
    ),
    "changelog-with-optional-operations": (
        "{kind: Csv, header: true, ddlSchema: [op INT, id INT, x STRING]}",
        "",
        f"{{kind: ChangelogStream, {KEYED}}}",
        CHANGES,
    ),
    "changelog-with-required-operations": (
        "{kind: Csv, header: true, ddlSchema: [op INT NOT NULL, id INT, x STRING]}",
        AS_IT_IS,
        f"{{kind: ChangelogStream, {KEYED}}}",
        CHANGES,
    ),
    "upserts-with-operations": (
        "{kind: Csv, header: true, ddlSchema: [op INT, id INT, x STRING]}",
        "",
        f"{{kind: UpsertStream, {KEYED}}}",
        CHANGES,
    ),
}
EVENT_TIME = "2024-03-01T00:00:00Z"


@pytest.mark.parametrize(("read", "preprocess", "merge", "text"), CASES.values(), ids=CASES.keys())
def test_same_manifest_and_file_give_the_same_rows(
    read: str, preprocess: str, merge: str, text: str, tmp_path: Path
) -> None:
    manifest, source = tmp_path / "same.yaml", tmp_path / "source"
    manifest.write_text(MANIFEST.format(read=read, preprocess=preprocess, merge=merge))
    source.write_text(text)
    node = RealNode(tmp_path / "home", has_engine=True)
    node.must("add", str(manifest))
    node.must("ingest", "same", str(source), "--event-time", EVENT_TIME)
    ours = _rows(node.must("tail", "same", "-n", "100", "-o", "ndjson").out)
    assert ours == asyncio.run(_ask_peer(tmp_path / "peer", manifest, source))


@pytest.mark.parametrize("parts", [shape_parts(has_null=False), line_parts()], ids=["areas", "lines"])
def test_same_shapefile_gives_the_same_rows(parts: dict[str, bytes], tmp_path: Path) -> None:
    manifest, source = tmp_path / "same.yaml", zipped(tmp_path / "source.zip", parts)
    read = '{kind: EsriShapefile, ddlSchema: ["name STRING", "people BIGINT", "share DOUBLE", "geometry STRING"]}'
    manifest.write_text(MANIFEST.format(read=read, preprocess="", merge="{kind: Append}"))
    node = RealNode(tmp_path / "home")
    node.must("add", str(manifest))
    node.must("ingest", "same", str(source), "--event-time", EVENT_TIME)
    ours = _rows(node.must("tail", "same", "-n", "100", "-o", "ndjson").out)
    theirs = asyncio.run(_ask_peer(tmp_path / "peer", manifest, source))
    assert list(map(_with_geometry, ours)) == list(map(_with_geometry, theirs))


def _with_geometry(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "geometry": row["geometry"] and json.loads(row["geometry"])}


async def _ask_peer(folder: Path, manifest: Path, source: Path) -> list[dict[str, Any]]:
    peer = await PeerWorkspace.create(folder)
    await peer.run("add", str(manifest))
    await peer.run("ingest", "same", str(source), "--event-time", EVENT_TIME)
    return _rows(await peer.run("tail", "same", "-n", "100", "-o", "ndjson"))


def _rows(lines: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    return [{name: value for name, value in row.items() if name != "system_time"} for row in rows]
