"""``change``: what a manifest says otherwise becomes new blocks, shown first, all or none (ING-20)."""

import json
from pathlib import Path

import pytest

from odf_node.cli.main import main
from odf_node.composition import Node, open_node
from odf_node.datasets.chains import iter_decoded, load_view
from odf_protocol.events import DatasetKind, ExecuteTransform, ExecuteTransformInput, Seed, SetDataSchema
from support.offers import CITY_SCHEMA, NOON, Judge, PeerChain, PublisherHome, root_chain, select
from support.stores import find_named

ROOT = """kind: DatasetSnapshot
version: 1
content:
  name: sales
  kind: Root
  metadata:
    - kind: SetInfo
      description: {description}
      keywords: [a, b]
    - kind: AddPushSource
      sourceName: default
      read: {{kind: Csv, header: true, ddlSchema: [day DATE, n BIGINT]}}
      merge: {merge}
{more}"""
LICENCE = """    - kind: SetLicense
      shortName: X
      name: An X licence
      websiteUrl: https://example.org
"""
POLLED = """kind: DatasetSnapshot
version: 1
content:
  name: sales
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: Url, url: "https://example.org/a.csv"}
      read: {kind: Csv}
      merge: {kind: Append}
"""

SECOND = """kind: MetadataEvent
version: 1
content:
  kind: SetPollingSource
  fetch: {kind: Url, url: 'https://example.org/a.csv'}
  read: {kind: Csv}
  merge: {kind: Append}
"""


class Home:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys

    def run(self, *words: str) -> tuple[int, str, str]:
        code = main(["--home", str(self.folder / "home"), *words])
        out, err = self.capsys.readouterr()
        return code, out, err

    def write(self, text: str) -> str:
        path = self.folder / "manifest.yaml"
        path.write_text(text)
        return str(path)

    def change(self, text: str, *words: str) -> tuple[int, str, str]:
        return self.run("change", "sales", self.write(text), *words)

    def open(self) -> Node:
        return open_node(self.folder / "home")

    def blocks(self) -> list[str]:
        node = self.open()
        record = find_named(node.store, "sales")
        assert record is not None
        found = [type(block.event).__name__ for block in iter_decoded(node.store, record.id)]
        node.close()
        return found


def manifest(description: str = "One", merge: str = "{kind: Append}", more: str = "") -> str:
    return ROOT.format(description=description, merge=merge, more=more)


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Home:
    made = Home(tmp_path, capsys)
    assert made.run("add", made.write(manifest()))[0] == 0
    return made


BEFORE = ["Seed", "SetInfo", "AddPushSource"]


def test_difference_in_the_middle_is_shown_with_what_it_stands_in(home: Home) -> None:
    text = manifest().replace("n BIGINT", "n BIGINT, o BIGINT, p BIGINT, q BIGINT, r BIGINT, s BIGINT")
    assert home.change(text)[0] == 0
    code, out, _ = home.change(text.replace("r BIGINT", "t BIGINT"))
    assert code == 0
    assert out.splitlines()[:13] == [
        "AddPushSource changes:",
        "    sourceName: default",
        "    read:",
        "      kind: Csv",
        "      ddlSchema:",
        "    ...",
        "      - o BIGINT",
        "      - p BIGINT",
        "      - q BIGINT",
        "  -   - r BIGINT",
        "  +   - t BIGINT",
        "      - s BIGINT",
        "      header: true",
    ]


def test_difference_is_shown_and_written_in_one_commit(home: Home) -> None:
    code, out, _ = home.change(manifest("Two", "{kind: Ledger, primaryKey: [n]}", LICENCE))
    assert code == 0
    assert out == (
        "SetInfo changes:\n"
        "  - description: One\n"
        "  + description: Two\n"
        "    keywords:\n"
        "    - a\n"
        "    - b\n"
        "AddPushSource changes:\n"
        "    ...\n"
        "      - n BIGINT\n"
        "      header: true\n"
        "    merge:\n"
        "  -   kind: Append\n"
        "  +   kind: Ledger\n"
        "  +   primaryKey:\n"
        "  +   - n\n"
        "SetLicense is new:\n"
        "  + shortName: X\n"
        "  + name: An X licence\n"
        "  + websiteUrl: https://example.org\n"
        "sales: changed by 3 new blocks\n"
    )
    assert home.blocks() == [*BEFORE, "SetInfo", "AddPushSource", "SetLicense"]
    node = home.open()
    assert next(entry.command for entry in node.store.iter_audit(limit=5)) == "change"
    node.close()


def test_dry_run_shows_the_same_and_writes_nothing(home: Home) -> None:
    shown = home.change(manifest("Two"), "--dry-run")[1]
    assert shown.endswith("sales: would be changed by 1 new block\n")
    assert home.blocks() == BEFORE
    assert home.change(manifest("Two"))[1] == shown.replace("would be changed", "changed")


def test_same_manifest_again_changes_nothing(home: Home) -> None:
    assert home.change(manifest())[1] == "sales: unchanged\n"
    assert home.blocks() == BEFORE


def test_single_change_leaves_the_rest(home: Home) -> None:
    event = "kind: MetadataEvent\nversion: 1\ncontent:\n  kind: SetVocab\n  eventTimeColumn: day\n"
    code, out, _ = home.change(event, "-o", "json")
    assert code == 0
    assert json.loads(out) == [
        {"event": "SetVocab", "before": None, "after": {"kind": "SetVocab", "eventTimeColumn": "day"}}
    ]
    node = home.open()
    record = find_named(node.store, "sales")
    assert record is not None
    view = load_view(node.store, record.id)
    assert view.vocabulary.event_time == "day"
    assert view.push_sources
    node.close()


def test_several_changes_are_made_together_or_not_at_all(home: Home) -> None:
    events = (
        "kind: MetadataEvent\nversion: 1\ncontent: {kind: SetInfo, description: Two}\n---\n"
        "kind: MetadataEvent\nversion: 1\ncontent: {kind: SetVocab, offsetColumn: op}\n"
    )
    code, _, err = home.change(events)
    assert code == 2
    assert "'sales' cannot be changed this way" in err
    assert "CHAIN-48" in err
    assert home.blocks() == BEFORE


@pytest.mark.parametrize(
    ("text", "code", "stated"),
    [
        (POLLED, 2, "has the push source 'default', which can be changed and not be taken away (CHAIN-12)"),
        (manifest(merge="{kind: Ledger, primaryKey: [x]}"), 7, "x"),
        (manifest().replace("kind: Root", "kind: Derivative").replace("AddPushSource", "SetVocab"), 7, ""),
        ("kind: MetadataEvent\nversion: 1\ncontent: {kind: DisablePollingSource}\n", 7, "a node writes by itself"),
        (SECOND, 2, "CHAIN-33"),
        ("", 7, "one DatasetSnapshot, or MetadataEvents"),
        (manifest() + "---\n" + manifest(), 7, "one DatasetSnapshot, or MetadataEvents"),
    ],
    ids=["source-gone", "key", "kind", "disable", "second-source", "nothing", "two"],
)
def test_what_may_not_be_is_rejected_with_the_rule_and_nothing_changes(
    home: Home, text: str, code: int, stated: str
) -> None:
    for words in ([], ["--dry-run"]):
        ended, _, err = home.change(text, *words)
        assert (ended, stated in err) == (code, True), err
        assert home.blocks() == BEFORE


DERIVED = """kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: sales, alias: s}}]
      transform: {{kind: Sql, engine: spark, query: "{query}"}}
"""


def test_query_without_rows_is_changed(home: Home) -> None:
    home.run("add", home.write(DERIVED.format(name="top", query="SELECT day AS event_time, n FROM s")))
    other = home.write(DERIVED.format(name="top", query="SELECT day AS event_time, n + 1 AS n FROM s"))
    code, out, err = home.run("change", "top", other)
    assert code == 0
    assert "SELECT day AS event_time, n + 1 AS n FROM s" in out
    assert out.endswith("top: changed by 1 new block\n")
    assert "whether others can repeat its query shows at its first step" in err


def test_dataset_of_another_node_is_not_changed(home: Home, tmp_path: Path) -> None:
    assert home.run("export", "sales", "--to", str(tmp_path / "files"))[0] == 0
    reader = Home(tmp_path / "reader", home.capsys)
    reader.folder.mkdir()
    assert reader.run("import", str(tmp_path / "files/sales"))[0] == 0
    code, _, err = reader.change(manifest("Two"))
    assert (code, "another node's; only its owner changes it" in err) == (2, True)
    assert reader.blocks() == BEFORE


def test_query_and_names_that_rows_rest_on_stay(judge: Judge, tmp_path: Path, home: Home) -> None:
    """VIEW-11, CHAIN-49."""
    base = root_chain(tmp_path)
    view = PeerChain(tmp_path, key=b"v" * 32, name="top")
    view.add(Seed(dataset_id=view.id, dataset_kind=DatasetKind.DERIVATIVE))
    view.add(select("SELECT 1", base.id)).add(SetDataSchema(schema=CITY_SCHEMA))
    took = ExecuteTransformInput(dataset_id=base.id, new_block_hash=base.blocks[-1].hash, new_offset=3)
    view.add(ExecuteTransform(query_inputs=(took,), new_watermark=NOON))
    for chain in (base, view):
        PublisherHome(judge).keep(chain)
    inputs = f"[{{datasetRef: '{base.id}', alias: in0}}]"
    query = f"inputs: {inputs}, transform: {{kind: Sql, engine: spark, query: SELECT 2}}"
    for name, event, rule in (
        ("top", f"{{kind: SetTransform, {query}}}", "of one query (ING-20, VIEW-11)"),
        ("cities", "{kind: SetVocab, eventTimeColumn: when}", "their names cannot be changed (CHAIN-49)"),
    ):
        text = home.write(f"kind: MetadataEvent\nversion: 1\ncontent: {event}\n")
        assert main(["--home", str(judge.home.path), "change", name, text]) == 2
        assert rule in home.capsys.readouterr().err
    with judge.opened() as store:
        heads = {each.id: each.head for each in store.list_datasets()}
    assert (heads[base.id], heads[view.id]) == (base.head, view.head)


@pytest.fixture
def empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Home:
    return Home(tmp_path, capsys)


FITTED = """kind: DatasetSnapshot
version: 1
content:
  name: sales
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: Csv, header: {header}, ddlSchema: [{columns}]}}
      merge: {{kind: Append}}
    - kind: SetDataSchema
      schema:
        fields:
          - {{name: offset, type: Int64}}
          - {{name: op, type: Int32}}
          - {{name: system_time, type: {{kind: Timestamp, unit: Millisecond, timezone: UTC}}}}
          - {{name: event_time, type: {{kind: Timestamp, unit: Millisecond, timezone: UTC}}}}
          - {{name: n, type: Int64}}
          - {{name: city, type: {{kind: Option, inner: String}}}}
"""
FITS = "n BIGINT NOT NULL, city STRING"
EVENT = """kind: MetadataEvent
version: 1
content:
  kind: AddPushSource
  sourceName: {name}
  read: {{kind: Csv, header: true, ddlSchema: [{columns}]}}
  merge: {{kind: Append}}
"""


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ("n BIGINT, city STRING", "the column n may be null, and that of the dataset may not"),
        ("n STRING NOT NULL, city STRING", "column n: expected int64 as in the dataset, found string"),
        ("n BIGINT NOT NULL", "missing: city"),
        ("n BIGINT NOT NULL, city STRING, more INT", "new: more"),
        ("city STRING, n BIGINT NOT NULL", "another order"),
        ("event_time DATE, n BIGINT NOT NULL, city STRING", "column event_time: expected timestamp"),
    ],
)
def test_source_whose_rows_the_dataset_cannot_hold_is_rejected_ing_20(empty: Home, columns: str, why: str) -> None:
    """ING-20: at once, whichever way it comes, and not by the first file with a null."""
    text = FITTED.format(header="true", columns=FITS)
    assert empty.run("add", empty.write(text))[0] == 0
    before = empty.blocks()
    other = FITTED.format(header="true", columns=columns)
    for code, _, err in (
        empty.change(other),
        empty.change(other, "--dry-run"),
        empty.change(EVENT.format(name="default", columns=columns)),
        empty.change(EVENT.format(name="second", columns=columns)),
        empty.run("add", "--replace", empty.write(other)),
    ):
        assert (code, why in err, "(ING-20)" in err) == (2, True, True), err
    assert empty.blocks() == before


def test_source_whose_rows_fit_is_changed_ing_20(empty: Home) -> None:
    assert empty.run("add", empty.write(FITTED.format(header="true", columns=FITS)))[0] == 0
    before = empty.blocks()
    for text in (
        FITTED.format(header="false", columns=FITS),
        FITTED.format(header="true", columns="event_time TIMESTAMP, n BIGINT NOT NULL, city STRING NOT NULL"),
        EVENT.format(name="second", columns=FITS),
    ):
        code, _, err = empty.change(text)
        assert (code, err) == (0, "")
    assert empty.blocks() == [*before, *["AddPushSource"] * 3]


def test_change_beside_a_source_that_did_not_fit_before_is_free_ing_20(empty: Home) -> None:
    """What was so from the beginning is not what is changed."""
    text = FITTED.format(header="true", columns="n BIGINT, city STRING")
    assert empty.run("add", empty.write(text))[0] == 0
    licence = LICENCE.replace("    - kind", "    - kind", 1)
    assert empty.change(text + licence)[0] == 0
    assert empty.blocks()[-1] == "SetLicense"
