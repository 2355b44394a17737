"""Many forms of manifests and queries, at another implementation and here: taken or rejected, and the same rows.

What differs has a line in the guide on manifests of the existing network, with the reason and the way.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.engine_workspace import Workspace
from support.manifest_forms import FORMS as MANIFESTS
from support.manifest_forms import ManifestForm, pushed
from support.nodes import RealNode
from support.query_forms import QUERIES

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs"),
    pytest.mark.usefixtures("light_engines"),
]

FORMS = {**MANIFESTS, **{f"sql-{name}": form for name, form in QUERIES.items()}}
EVENT_TIME = "2024-03-01T00:00:00Z"
Outcome = str | list[dict[str, Any]]


def write_form(name: str, form: ManifestForm, folder: Path) -> Path:
    folder.mkdir()
    for file, content in form.files.items():
        (folder / file).write_bytes(content)
    (folder / "manifest.yaml").write_text(form.text.replace("FOLDER", str(folder)).replace("NAME", name))
    return folder


def rows_of(lines: str) -> list[dict[str, Any]]:
    """Read rows; without the times that follow from when they were read."""
    rows = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    return [{name: value for name, value in row.items() if not str(value).startswith(_NOW)} for row in rows]


_NOW = tuple(f"{year}-" for year in range(2025, 2100))


def take_here(node: RealNode, name: str, form: ManifestForm, folder: Path) -> Outcome:
    ran = node.run("add", str(folder / "manifest.yaml"))
    if ran.code:
        return "add: " + ran.err
    if form.brings == "ingest":
        ran = node.run("ingest", name, str(folder / "rows"), "--event-time", EVENT_TIME)
    elif form.brings == "pull":
        ran = node.run("pull", name)
    if ran.code:
        return "rows: " + ran.err + ran.out
    if not form.brings:
        return []
    return rows_of(node.must("tail", name, "-n", "100", "-o", "ndjson").out)


def take_there(peer: Workspace, name: str, form: ManifestForm, folder: Path) -> Outcome:
    try:
        peer.run("add", str(folder / "manifest.yaml"))
    except AssertionError as error:
        return f"add: {error}"
    try:
        if form.brings == "ingest":
            peer.run_with_engine("ingest", name, str(folder / "rows"), "--event-time", EVENT_TIME)
        elif form.brings == "pull":
            peer.run_with_engine("pull", name)
    except AssertionError as error:
        return f"rows: {error}"
    if not form.brings:
        return []
    try:
        return rows_of(peer.run("tail", name, "-n", "100", "-o", "ndjson"))
    except AssertionError:
        return []


PAGE = Path(__file__).parents[2] / "spec" / "guides" / "existing-manifests.md"
DIFFERENT = {
    "read-csv-fewer-cells": "a record of CSV with fewer or more cells than columns",
    "read-csv-more-cells": "a record of CSV with fewer or more cells than columns",
    "read-csv-unreadable-number": "a value that is none of its column's type",
    "read-csv-other-header": "a header of CSV with other names than the schema's",
    "set-vocabulary-after-the-source": "a header of CSV with other names than the schema's",
    "read-csv-empty": "a file of CSV with `header: true` and not a byte in it",
    "read-ndjson-texts-of-numbers": "JSON: a number in a column of texts",
    "read-geojson": "the text of a geometry",
    "read-ndgeojson": "the text of a geometry",
    "read-geojson-without-schema": "GeoJSON without a schema",
    "read-parquet-fewer-columns": "a Parquet file with further columns",
    "merge-snapshot-with-a-key-twice": "*Snapshot*: a key that is in a file twice",
    "merge-no-key": "`primaryKey: []`",
    "source-pipe": "`prepare: [{kind: Pipe}]`",
    "source-ethereum": "`fetch: {kind: EthereumLogs}`",
    "set-vocabulary-of-empty-names": "`SetVocab` with an empty name",
    "set-name-with-account": "`name: account/dataset`",
    "set-anchors": "YAML anchors and aliases",
    "sql-union": "`UNION ALL` (datafusion): the order of rows",
    "sql-temporal-tables": "`temporalTables` (datafusion)",
    "sql-engine-in-capitals": "`engine: DataFusion`",
}
"""The line of the guide for each form with another outcome here."""


@dataclass(frozen=True)
class Both:
    """A home and a workspace, each with the dataset ``rows``."""

    node: RealNode
    peer: Workspace
    folder: Path


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("forms")
    (folder / "peer").mkdir()
    node, peer = RealNode(folder / "home"), Workspace(folder / "peer")
    rows = pushed()
    written = write_form("rows", rows, folder / "rows")
    assert take_here(node, "rows", rows, written) == take_there(peer, "rows", rows, written) != []
    return Both(node, peer, folder)


@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_taken_as_by_the_peer_or_its_difference_is_in_the_guide(name: str, both: Both) -> None:
    form = FORMS[name]
    folder = write_form(name, form, both.folder / name)
    here, there = take_here(both.node, name, form, folder), take_there(both.peer, name, form, folder)
    is_same = here == there or (isinstance(here, str) and isinstance(there, str))
    assert is_same != (name in DIFFERENT), f"{here}\n{there}"


def test_each_difference_has_a_line_in_the_guide() -> None:
    first_cells = {line.strip("|").split(" | ")[0].strip() for line in PAGE.read_text().splitlines()}
    assert set(DIFFERENT.values()) <= first_cells
    assert DIFFERENT.keys() <= FORMS.keys()
