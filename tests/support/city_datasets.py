"""Manifests of a root with cities and of derivatives over it, and rows for it, for tests that need just any dataset."""

from pathlib import Path
from typing import Final

from support.nodes import RealNode

COLUMNS: Final = """\
            - {name: event_time, type: {kind: Option, inner: {kind: Timestamp}}}
            - {name: city, type: {kind: Option, inner: String}}
            - {name: people, type: {kind: Option, inner: Int64}}
"""
SUBSETS: Final = (
    """\
{"event_time": "2024-01-01T00:00:00Z", "city": "Oslo", "people": 700000}
{"event_time": "2024-01-02T00:00:00Z", "city": "Rome", "people": 2800000}
""",
    """\
{"event_time": "2024-01-03T00:00:00Z", "city": "Turin", "people": 841600}
""",
)
"""Lines for the first ingest and the second."""


def root_manifest(
    name: str = "cities",
    *,
    read: str = "kind: NdJson",
    columns: str = COLUMNS,
    preprocess: str = "",
    merge: str = "{kind: Append}",
) -> str:
    """Write the manifest of a root that takes what is pushed.

    Args:
        name: Of the dataset.
        read: Kind and options of the read step.
        columns: Fields of its schema.
        preprocess: A transform as flow YAML; empty: none.
        merge: A merge strategy as flow YAML.
    """
    query = f"      preprocess: {preprocess}\n" if preprocess else ""
    options = "".join(f"        {option.strip()}\n" for option in read.split(","))
    return f"""
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
{options}        schema:
          fields:
{columns}{query}      merge: {merge}
"""


def derivative_manifest(name: str, transform: str, *, source: str = "cities", alias: str = "c") -> str:
    """Write the manifest of a derivative; ``transform`` is flow YAML."""
    return f"""
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: {source}, alias: {alias}}}]
      transform: {transform}
"""


def add_cities(node: RealNode, folder: Path) -> None:
    """Make the root, with its first rows."""
    manifest = folder / "root.yaml"
    manifest.write_text(root_manifest())
    node.must("add", str(manifest))
    ingest_cities(node, folder, 1)


def ingest_cities(node: RealNode, folder: Path, number: int) -> None:
    """Push the rows of one subset, the first of which is number 1."""
    subset = folder / f"{number}.ndjson"
    subset.write_text(SUBSETS[number - 1])
    node.must("ingest", "cities", str(subset))


def write_derivative(folder: Path, engine: str = "other-one", query: str = "ALL", *, version: str = "") -> str:
    """Write the manifest of a derivative ``all.cities`` for an engine; return its path."""
    path = folder / f"{engine}.yaml"
    stated = f", version: '{version}'" if version else ""
    path.write_text(derivative_manifest("all.cities", f"{{kind: Sql, engine: {engine}{stated}, query: '{query}'}}"))
    return str(path)
