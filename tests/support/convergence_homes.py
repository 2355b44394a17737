"""Homes whose datasets converge, for tests: manifests, rows, states, and settings of their daemons."""

import json
from pathlib import Path
from typing import Final

from support.nodes import RealNode

DERIVATIVE: Final = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: {source}, alias: c}}]
      transform: {{kind: Sql, engine: datafusion, query: "SELECT event_time, city, people FROM c{where}"}}
"""
SETTINGS: Final = """
[gossip]
allow_private = true
round_milliseconds = 200
{more}

[converge]
datasets = "%"
"""


def add(node: RealNode, folder: Path, text: str) -> None:
    """Add what a manifest defines."""
    (folder / "manifest.yaml").write_text(text)
    node.must("add", str(folder / "manifest.yaml"))


def ingest(node: RealNode, folder: Path, *cities: str, people: int = 1) -> None:
    """Add a row for each city."""
    row = '{{"event_time": "2024-01-01T00:00:00Z", "city": "{}", "people": {}}}\n'
    (folder / "rows.ndjson").write_text("".join(row.format(city, people) for city in cities))
    node.must("ingest", "cities", str(folder / "rows.ndjson"))


def states(node: RealNode, *names: str) -> dict[str, tuple[str, str | None]]:
    """Return the state of each dataset, and why."""
    found = node.must("graph", *names, "-o", "json").json()["datasets"]
    return {each["dataset"]: (each["state"], each["why"]) for each in found}


def cities_of(node: RealNode, name: str) -> list[str]:
    """Return the cities of the rows of a dataset, sorted."""
    if name not in {each["name"] for each in node.must("list", "-o", "json").json()}:
        return []
    return sorted(row["city"] for row in node.must("tail", name, "-n", "1000", "-o", "json").json())


def blocks_of(node: RealNode, name: str) -> list[str]:
    """Return the kinds of a dataset's blocks, oldest first."""
    lines = node.must("log", name, "-o", "json").out.splitlines()
    return [json.loads(line)["content"]["event"]["kind"] for line in reversed(lines)]
