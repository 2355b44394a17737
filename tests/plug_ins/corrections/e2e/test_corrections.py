"""Rows are retracted and corrected by hand: one block with the reason, which all else follows (ING-27 to ING-29)."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from odf_corrections.correcting import Correcting
from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.datasets.referencing import References
from odf_node.home_folder import HomeFolder
from odf_node.records.errors import HeadMovedError
from support.command_line import list_kept
from support.nodes import RealNode
from support.warm_engine import lent_engine, lent_to_untrusted

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800), pytest.mark.usefixtures("light_engines")]

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        schema:
          fields:
            - {{name: event_time, type: {{kind: Option, inner: {{kind: Timestamp}}}}}}
            - {{name: city, type: {{kind: Option, inner: String}}}}
            - {{name: people, type: {{kind: Option, inner: Int64}}}}
{more}
      merge: {merge}
{rules}
---
kind: DatasetSnapshot
version: 1
content:
  name: totals
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: cities, alias: c}}]
      transform:
        kind: Sql
        engine: spark
        query: SELECT max(event_time) AS event_time, sum(people) AS people, count(*) AS cities FROM c
"""
MORE = """\
            - {name: share, type: {kind: Option, inner: Float64}}
            - {name: tags, type: {kind: Option, inner: {kind: List, itemType: String}}}
            - {name: price, type: {kind: Option, inner: {kind: Decimal, precision: 9, scale: 2}}}
            - {name: count, type: {kind: Option, inner: UInt64}}
"""
APPEND, SNAPSHOT = "{kind: Append}", "{kind: Snapshot, primaryKey: [city]}"
LEDGER, UPSERT = "{kind: Ledger, primaryKey: [city]}", "{kind: UpsertStream, primaryKey: [city]}"
OSLO = {
    "event_time": "2024-01-01T00:00:00.123Z", "city": "Oslo", "people": 700, "share": 0.1, "tags": ["a", "b"],
    "price": "1.50", "count": "18446744073709551615",
}  # fmt: skip
ROME = {"event_time": "2024-01-01T00:00:00Z", "city": "Rome", "people": 2800, "share": "-0.0", "tags": None}
VADUZ = {"event_time": "2024-01-02T00:00:00Z", "city": "Vaduz", "people": None, "share": "NaN", "tags": []}
WHY = "the agency's letter of 3 May"


def make_node(folder: Path, merge: str = APPEND, more: str = "", rules: str = "") -> RealNode:
    node = RealNode(folder / "home", has_engine=True)
    (folder / "manifest.yaml").write_text(MANIFEST.format(merge=merge, more=more, rules=rules))
    node.must("add", str(folder / "manifest.yaml"))
    ingest(node, OSLO, ROME, VADUZ)
    return node


def ingest(node: RealNode, *rows: dict) -> None:
    path = node.home.with_name("rows.ndjson")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    node.must("ingest", "cities", str(path))


def rows_of(node: RealNode, name: str = "cities") -> list[dict]:
    return node.must("tail", name, "-n", "100", "-o", "json").json()


def operations(node: RealNode) -> list[tuple[int, str, int | None]]:
    return [(row["op"], row["city"], row["people"]) for row in rows_of(node)]


def standing(node: RealNode) -> dict[str, int | None]:
    rows = node.must("sql", "-c", "SELECT city, people FROM cities__state", "-o", "json").json()
    return {row["city"]: row["people"] for row in rows}


def correct(node: RealNode, *words: str):
    return node.must("correct", "cities", *words, "--reason", WHY, "--yes")


def test_retraction_is_one_block_with_the_reason_and_the_derivative_follows(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    node.must("pull", "totals")
    given = {row["city"]: row for row in rows_of(node)}
    before = node.must("log", "cities", "-o", "json", "--all").out.splitlines()

    dry = node.must("correct", "cities", "--retract", "--where", "city LIKE 'V%'", "--reason", WHY, "--dry-run")
    assert "would retract 1 row of cities" in dry.err
    assert node.must("log", "cities", "-o", "json", "--all").out.splitlines() == before
    done = correct(node, "--retract", "--where", "offset = 2")

    assert "retracted 1 row of cities" in done.err
    blocks = [json.loads(line) for line in node.must("log", "cities", "-o", "json", "--all").out.splitlines()]
    assert len(blocks) == len(before) + 1
    event = blocks[0]["content"]["event"]
    assert (event["kind"], event["newData"]["offsetInterval"]) == ("AddData", {"start": 3, "end": 3})
    assert event["extra"] == {"w3id.org/odf-node/correction": {"reason": WHY}}
    assert event["newWatermark"] == "2024-01-02T00:00:00Z"
    taken = rows_of(node)[-1]
    assert taken["op"] == 1
    assert {**taken, "op": 0, "offset": 2, "system_time": None} == {**given["Vaduz"], "system_time": None}
    assert standing(node) == {"Oslo": 700, "Rome": 2800}
    node.must("pull", "totals")
    assert [(row["op"], row["cities"]) for row in rows_of(node, "totals")] == [(0, 3), (2, 3), (3, 2)]
    with lent_to_untrusted():
        node.must("verify", "cities", "totals")
    assert f"correction: {WHY}" in node.must("log", "cities", "-o", "oneline").out


def test_correction_by_expression_keeps_event_time_and_all_other_values(tmp_path: Path) -> None:
    node = make_node(tmp_path, more=MORE)
    given = rows_of(node)
    correct(
        node, "--set", "people = people + 10", "--set", "price=CAST('2.25' AS DECIMAL(5,2))", "--where", "people > 1"
    )
    rows = rows_of(node)[3:]
    assert [row["op"] for row in rows] == [2, 3, 2, 3]
    names = {"people", "price"}
    for old, row, new in zip((g for g in given if g["people"]), rows[::2], rows[1::2], strict=True):
        kept = {name: value for name, value in old.items() if name not in {"offset", "op", "system_time"}}
        assert {name: row[name] for name in kept} == kept
        assert {name: new[name] for name in kept.keys() - names} == {name: kept[name] for name in kept.keys() - names}
        assert (new["people"], new["price"]) == (old["people"] + 10, "2.25")
    assert standing(node) == {"Oslo": 710, "Rome": 2810, "Vaduz": None}
    again = correct(node, "--set", "people=2810", "--where", "city = 'Rome'")
    assert "has these values already" in again.err
    assert len(rows_of(node)) == 7


@pytest.mark.parametrize(("form", "merge"), [("csv", APPEND), ("ndjson", SNAPSHOT)], ids=["csv", "ndjson"])
def test_correction_by_an_edited_answer_changes_what_was_edited(form: str, merge: str, tmp_path: Path) -> None:
    node = make_node(tmp_path, merge)
    path = tmp_path / f"edited.{form}"
    node.must("sql", "-c", "SELECT * FROM cities WHERE city <> 'Vaduz'", "-o", form, "--output-path", str(path))
    path.write_text(path.read_text().replace("700", "717"))
    correct(node, "--file", str(path))
    assert operations(node)[3:] == [(2, "Oslo", 700), (3, "Oslo", 717)]
    assert standing(node) == {"Oslo": 717, "Rome": 2800, "Vaduz": None}


AGAIN = [(0, "Oslo", 700), (1, "Vaduz", None), (2, "Rome", 1), (3, "Rome", 2800)]
LATER = {
    # A snapshot is the whole truth: what it still says, it says again.
    "snapshot": (SNAPSHOT, [OSLO, ROME], {"Oslo": 700, "Rome": 2800}, AGAIN),
    # A ledger has seen the key.
    "ledger": (LEDGER, [OSLO, ROME], {"Rome": 1, "Vaduz": None}, []),
    "upsert": (UPSERT, [OSLO], {"Oslo": 700, "Rome": 1, "Vaduz": None}, [(0, "Oslo", 700)]),
    "append": (APPEND, [OSLO], {"Oslo": 700, "Rome": 1, "Vaduz": None}, [(0, "Oslo", 700)]),
}  # fmt: skip


@pytest.mark.parametrize(("merge", "later", "stands", "added"), LATER.values(), ids=LATER.keys())
def test_later_ingest_merges_with_what_is_in_force_after_corrections(
    merge: str, later: list[dict], stands: dict, added: list, tmp_path: Path
) -> None:
    node = make_node(tmp_path, merge)
    correct(node, "--retract", "--where", "city = 'Oslo'")
    correct(node, "--set", "people=1", "--where", "city = 'Rome'")
    count = len(rows_of(node))
    ingest(node, *later)
    assert sorted(operations(node)[count:], key=str) == sorted(added, key=str)
    assert standing(node) == stands


REJECTED = {
    "nothing-meant": (["--retract", "--where", "offset = 77"], "none exists"),
    "taken-already": (["--retract", "--where", "offset = 0"], "were retracted since"),
    "key": (["--set", "city='Bergen'", "--where", "offset = 1"], "part of the key"),
    "system-column": (["--set", "offset=5", "--where", "offset = 1"], "the node's own"),
    "unknown-column": (["--set", "nobody=5", "--where", "offset = 1"], "has no column 'nobody'"),
    "lossy-value": (["--set", "people=1.5", "--where", "offset = 1"], "column 'people'"),
    "null-event-time": (["--set", "event_time=NULL", "--where", "offset = 1"], "requires a value"),
    "reaches-beyond": (["--retract", "--where", "1 = 0) OR (op = 1"], "no current row"),
    "no-condition": (["--retract", "--where", "city ="], ""),
}


def test_what_cannot_be_corrected_is_rejected_and_nothing_changes(tmp_path: Path) -> None:
    node = make_node(tmp_path, SNAPSHOT)
    correct(node, "--retract", "--where", "city = 'Oslo'")
    files = {"twice": "offset,people\n1,5\n1,6\n", "taken": "offset,people\n0,5\n", "moved": "offset,city\n1,Bergen\n",
             "words": "offset,people\n1,many\n", "nameless": "people\n5\n",
             "doubled": "offset,people,people\n1,5,6\n", "other": "offset,colour\n1,red\n"}  # fmt: skip
    for name, text in files.items():
        (tmp_path / f"{name}.csv").write_text(text)
    reported = {"twice": "there twice", "taken": "row 0 of 'cities' is not a current row", "moved": "part of the key",
            "words": "people", "nameless": "a column offset", "doubled": "'people' is there twice",
            "other": "no column 'colour'"}  # fmt: skip
    cases = [
        *REJECTED.values(),
        *((["--file", str(tmp_path / f"{name}.csv")], word) for name, word in reported.items()),
    ]
    kept = list_kept(node.home)
    for words, expected in cases:
        ran = node.run("correct", "cities", *words, "--reason", WHY, "--yes")
        assert ran.code not in {0, 1, 70}, (words, ran)
        assert expected in ran.err, (words, ran)
        assert ran.err.count("\n") <= 3
        assert "Traceback" not in ran.err
    everything = ("--retract", "--where", "true", "--yes")
    for reason in ("", " ", "x" * 1001, "two\nlines", "\x1b[31mred"):
        assert node.run("correct", "cities", *everything, "--reason", reason).code not in {0, 1, 70}
    asked = node.run("correct", "cities", "--retract", "--where", "offset = 1", "--reason", WHY)
    assert (asked.code, "say --yes" in asked.err) == (2, True)
    derived = node.run("correct", "totals", "--retract", "--where", "true", "--reason", WHY, "--yes")
    assert (derived.code, "is a derivative" in derived.err) == (2, True)
    assert list_kept(node.home) == kept


def test_equal_rows_are_taken_one_by_one_and_no_more_than_there_are(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    ingest(node, OSLO)
    correct(node, "--retract", "--where", "offset = 3")
    rest = node.must("sql", "-c", "SELECT city FROM cities__state", "-o", "json").json()
    assert sorted(row["city"] for row in rest) == ["Oslo", "Rome", "Vaduz"]
    assert "1 row of cities" in correct(node, "--retract", "--where", "city = 'Oslo'").err
    kept = list_kept(node.home)
    refused = node.run("correct", "cities", "--retract", "--where", "city = 'Oslo'", "--reason", WHY, "--yes")
    assert (refused.code, "were retracted since" in refused.err) == (2, True)
    assert list_kept(node.home) == kept


POLLED = """
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url}"}}
      read:
        kind: Csv
        header: true
        schema: {{fields: [{{name: city, type: String}}, {{name: people, type: Int64}}]}}
      merge: {{kind: Append}}
"""


def test_source_is_not_read_again_because_of_a_correction(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home", has_engine=True)
    source = tmp_path / "cities.csv"
    source.write_text("city,people\nOslo,700\n")
    (tmp_path / "polled.yaml").write_text(POLLED.format(url=source.as_uri()))
    node.must("add", str(tmp_path / "polled.yaml"))
    node.must("pull", "cities")
    correct(node, "--set", "people=717", "--where", "city = 'Oslo'")
    node.must("pull", "cities")
    assert operations(node) == [(0, "Oslo", 700), (2, "Oslo", 700), (3, "Oslo", 717)]


def test_correction_is_not_made_where_somebody_wrote_since_it_was_shown(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    with closing(Node(HomeFolder(node.home), SystemClock())) as opened:
        with lent_engine():
            (record,) = (each for each in opened.store.list_datasets() if each.name == "cities")
            references = References(opened.store, opened.objects, opened.queries.engines.rows)
            correcting = Correcting(opened.home, opened.queries, references)
            planned = correcting.plan_retraction(record, "city = 'Oslo'", WHY)
        ingest(node, OSLO)
        kept = list_kept(node.home)
        with pytest.raises(HeadMovedError):
            correcting.apply(planned, system_time=opened.now())
    node.must("gc")  # the file of rows that nothing names
    assert {**list_kept(node.home), "audit": kept["audit"]} == kept


def test_copy_of_another_node_takes_the_correction_and_is_not_corrected_here(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    correct(node, "--retract", "--where", "city = 'Oslo'")
    node.must("export", "cities", "--to", str(tmp_path / "files"))
    (folder,) = (tmp_path / "files").iterdir()
    other = RealNode(tmp_path / "other")
    other.must("import", str(folder))
    assert rows_of(other) == rows_of(node)
    kept = list_kept(other.home)
    refused = other.run("correct", "cities", "--retract", "--where", "true", "--reason", WHY, "--yes")
    assert (refused.code, "only its owner changes it" in refused.err) == (2, True)
    assert list_kept(other.home) == kept


RULES = """
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
              largestBadShare: 0
              validators:
                - {kind: Range, column: people, least: 0, most: 5000}
                - {kind: OneOf, column: "tags[]", values: [a, b]}
                - {kind: Range, column: share, most: 0.5, severity: Warning}
                - {kind: RowCount, least: 2}
                - {kind: Predicate, sql: "people IS NULL OR people <> 666", message: not that number}
"""


def test_correction_that_an_ingest_would_reject_is_rejected_with_all_errors_of_each_row(tmp_path: Path) -> None:
    node = make_node(tmp_path, more=MORE, rules=RULES)
    kept = list_kept(node.home)
    edited = tmp_path / "edited.ndjson"
    edited.write_text('{"offset": 0, "people": -1, "tags": ["a", "z"]}\n{"offset": 1, "people": 666, "tags": ["b"]}\n')
    cases = [
        (["--set", "people = people * 10", "--where", "true"], ["row 0: people (28000)", "row 1: people (7000)"]),
        (["--file", str(edited)], ["row 0: people (-1)", "tags[1] (z)", "row 1: not that number"]),
        (["--file", str(edited), "--dry-run"], ["row 0: people (-1)"]),
    ]
    for words, expected in cases:
        refused = node.run("correct", "cities", *words, "--reason", WHY, "--yes")
        assert (refused.code, [word for word in expected if word not in refused.err]) == (7, []), refused
        assert "'odf-node change'" in refused.err
    assert list_kept(node.home) == kept
    done = correct(node, "--set", "people = 4000", "--set", "share=0.75", "--where", "city = 'Rome'")
    assert "warnings of rows that may stand: 1 row: share" in done.err
    # What only takes rows away brings none in.
    correct(node, "--retract", "--where", "city = 'Oslo'")
    assert standing(node) == {"Rome": 4000, "Vaduz": None}


def test_rules_about_the_operation_hold_for_corrected_rows_of_streams(tmp_path: Path) -> None:
    by_operation = "{kind: OneOf, column: op, values: [0, 1]}"
    rules = RULES[: RULES.index("- {kind: OneOf")] + f"- {by_operation}\n"
    more = "            - {name: op, type: {kind: Option, inner: Int64}}\n"
    node = make_node(tmp_path, UPSERT, more=more, rules=rules)
    kept = list_kept(node.home)
    wrong = ("--set", "people=7000", "--where", "city='Oslo'")
    refused = node.run("correct", "cities", *wrong, "--reason", WHY, "--yes")
    assert (refused.code, "people (7000)" in refused.err, "op (" in refused.err) == (7, True, False)
    assert list_kept(node.home) == kept
    correct(node, "--set", "people=717", "--where", "city='Oslo'")
    assert standing(node)["Oslo"] == 717
