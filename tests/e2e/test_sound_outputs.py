"""What this node writes itself is held to ROWS-12 before it is written (ROWS-14)."""

import json
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.home_folder import HomeFolder
from support.city_datasets import derivative_manifest, root_manifest
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

SNAPSHOT = "{kind: Snapshot, primaryKey: [city]}"
UPSERT = "{kind: UpsertStream, primaryKey: [city]}"


def rows(*values: tuple[str, int]) -> str:
    return "\n".join(
        json.dumps({"event_time": "2024-01-01T00:00:00Z", "city": city, "people": people}) for city, people in values
    )


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    return RealNode(tmp_path / "home")


def add(node: RealNode, folder: Path, *manifests: str) -> None:
    for number, text in enumerate(manifests):
        path = folder / f"manifest-{number}.yaml"
        path.write_text(text)
        node.must("add", str(path))


def ingest(node: RealNode, folder: Path, text: str):  # type: ignore[no-untyped-def]
    path = folder / "rows.ndjson"
    path.write_text(text)
    return node.run("ingest", "cities", str(path))


def damage_merge_state(node: RealNode, name: str) -> None:
    """Let the state before the next ingest have another value of Oslo than the chain has."""
    with closing(Node(HomeFolder(node.home), SystemClock())) as opened:
        (record,) = [each for each in opened.store.list_datasets() if each.name == name]
        path = opened.objects.get_path(opened.store.find_newest_merge_state(record.id))
    with pq.ParquetFile(path) as file:
        table = file.read()
    place = table.schema.get_field_index("people")
    wrong = pc.if_else(pc.equal(table.column("city"), "Oslo"), pa.scalar(99, pa.int64()), table.column("people"))
    path.chmod(0o600)
    pq.write_table(table.set_column(place, table.schema.field(place), wrong.cast(table.schema.field(place).type)), path)


@pytest.mark.parametrize("merge", [SNAPSHOT, UPSERT])
def test_merge_that_takes_back_what_was_never_given_writes_nothing(node: RealNode, tmp_path: Path, merge: str) -> None:
    add(node, tmp_path, root_manifest(merge=merge))
    assert ingest(node, tmp_path, rows(("Oslo", 1), ("Rome", 2))).code == 0
    damage_merge_state(node, "cities")
    before = node.must("log", "cities", "-o", "json").out

    refused = ingest(node, tmp_path, rows(("Oslo", 3), ("Rome", 2)))

    assert refused.code != 0
    assert (
        "'cities': nothing was written, as a row is taken back that is not there: offset 2, which takes back"
        in refused.err
    )
    assert "city 'Oslo', people '99'" in refused.err
    assert "please report it; 'odf-node verify --all cities'" in refused.err
    assert node.must("log", "cities", "-o", "json").out == before
    assert node.must("verify", "cities").code == 0


@pytest.mark.parametrize("merge", [SNAPSHOT, UPSERT])
def test_sound_merges_and_corrections_are_written_and_pulled(node: RealNode, tmp_path: Path, merge: str) -> None:
    add(node, tmp_path, root_manifest(merge=merge))
    for values in ([("Oslo", 1), ("Rome", 2)], [("Oslo", 3), ("Rome", 2)], [("Oslo", 1)], [("Rome", 5), ("Oslo", 1)]):
        assert ingest(node, tmp_path, rows(*values)).code == 0
    node.must("correct", "cities", "--retract", "--where", "city = 'Oslo'", "--reason", "entered twice", "--yes")

    assert "valid" in node.must("verify", "cities").out
    node.must("export", "cities", "--to", str(tmp_path / "out"))
    other = RealNode(tmp_path / "other")
    other.must("pull", (tmp_path / "out" / "cities").as_uri())


def test_query_that_makes_operations_up_writes_nothing(node: RealNode, tmp_path: Path) -> None:
    query = "SELECT CAST(CASE WHEN people > 1 THEN 1 ELSE 0 END AS INT) AS op, event_time, city FROM c"
    add(
        node,
        tmp_path,
        root_manifest(),
        derivative_manifest("made.up", f"{{kind: Sql, engine: datafusion, query: '{query}'}}"),
    )
    assert ingest(node, tmp_path, rows(("Oslo", 1), ("Rome", 2))).code == 0

    refused = node.run("pull", "made.up")

    assert refused.code != 0
    assert "offset 1, which takes back (event_time '2024-01-01T00:00:00Z', city 'Rome')" in refused.err
    assert "leave its column 'op' out, or give all columns of the input" in refused.err
    assert node.must("tail", "made.up", "-o", "json").json() == []


def test_what_is_derived_from_a_stream_of_changes_may_hand_on_its_operations(node: RealNode, tmp_path: Path) -> None:
    query = "SELECT CAST(coalesce(op, 0) AS INT) AS op, event_time, city FROM c WHERE people > 1"
    add(
        node,
        tmp_path,
        root_manifest(
            columns=(
                "            - {name: op, type: {kind: Option, inner: Int32}}\n"
                "            - {name: event_time, type: {kind: Option, inner: {kind: Timestamp}}}\n"
                "            - {name: city, type: {kind: Option, inner: String}}\n"
                "            - {name: people, type: {kind: Option, inner: Int64}}\n"
            ),
            merge="{kind: ChangelogStream, primaryKey: [city]}",
        ),
        derivative_manifest("handed.on", f"{{kind: Sql, engine: datafusion, query: '{query}'}}"),
    )
    changes = [{"op": 0, "city": "Rome", "people": 2}, {"op": 1, "city": "Oslo", "people": 3}]
    text = "\n".join(json.dumps({"event_time": "2024-01-01T00:00:00Z", **each}) for each in changes)
    assert ingest(node, tmp_path, text).code == 0

    node.must("pull", "handed.on")

    for name in ("cities", "handed.on"):
        stated = node.must("verify", name, "--all").out
        assert f"{name}: note: takes back 1 row too many, from block" in stated
