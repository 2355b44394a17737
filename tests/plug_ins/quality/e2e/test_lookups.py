"""Values looked up in another dataset by real ingests, with both engines, and what is noted of it (CONV-8)."""

from dataclasses import replace
from pathlib import Path

import pytest

from odf_engines.arrow.engine import ArrowEngine
from odf_engines.contract import Limits
from odf_engines.records.referenced_rows import ReferencedRows
from odf_protocol.events import DataTypeInt64, DataTypeString, MergeStrategySnapshot, ReadStepCsv
from plug_ins.quality.unit.test_lookup import lookup
from plug_ins.quality.unit.test_validators import call as valid
from support.command_line import list_kept
from support.ingests import RootDataset, quarantined, rows_of, schema
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

ROOT = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: Csv, header: true, ddlSchema: [{columns}]}}
      merge: {{kind: Append}}
"""
RULES = """\
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
              largestBadShare: 0.5
              converters:
                - {{kind: Lookup, dataset: countries, on: {{code: code}}, take: {{{take}: name}}, missing: Refuse}}
                - {{kind: Trim, columns: [name]}}
"""
SALES = "event_time,code,n\n2020-01-01T00:00:00Z,CH,1\n2020-01-02T00:00:00Z,XX,2\n2020-01-03T00:00:00Z,,3\n"


def manifest(folder: Path, name: str, columns: list[str], rules: str = "") -> str:
    return file(folder, f"{name}.yaml", ROOT.format(name=name, columns=", ".join(columns)) + rules)


def sales(folder: Path, take: str = "name") -> str:
    return manifest(folder, "sales", ["event_time TIMESTAMP", "code STRING", "n INT"], RULES.format(take=take))


def countries(folder: Path) -> str:
    return manifest(folder, "countries", ["event_time TIMESTAMP", "code STRING", "name STRING"])


def file(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def names(node: RealNode) -> list:
    return [(row["code"], row["name"]) for row in node.must("tail", "sales", "-o", "json").json()]


def test_ingest_takes_values_of_another_dataset_and_its_block_says_of_which_head(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    sold = file(tmp_path, "sales.csv", SALES)
    before = list_kept(node.home)
    unknown = node.run("add", sales(tmp_path))
    assert (unknown.code, "converters[0].dataset: a dataset, found countries (this node" in unknown.err) == (
        7, True), unknown  # fmt: skip
    assert list_kept(node.home)["datasets"] == before["datasets"] == ()
    node.must("add", sales(tmp_path), countries(tmp_path))  # whichever comes first
    node.must("delete", "countries", "--yes")
    before = list_kept(node.home)
    gone = node.run("ingest", "sales", sold)
    assert (gone.code, "this node has no dataset 'countries'" in gone.err) == (3, True)
    assert list_kept(node.home) == before
    node.must("add", countries(tmp_path))
    before = list_kept(node.home)
    empty = node.run("ingest", "sales", sold)
    assert (empty.code, "'countries' has no rows to look into yet" in empty.err) == (2, True)
    assert list_kept(node.home) == before
    known = "event_time,code,name\n2020-01-01T00:00:00Z,CH,Swiss\n2020-01-01T00:00:00Z,CH, Switzerland \n"
    (report,) = node.must("ingest", "countries", file(tmp_path, "first.csv", known), "-o", "json").json()
    node.must("ingest", "sales", sold)
    assert names(node) == [("CH", "Switzerland"), (None, None)]
    (waiting,) = node.must("quarantine", "show", "sales", "-o", "json").json()
    stated = [(each["plug_in"], each["code"], each["column"], each["value"]) for each in waiting["errors"]]
    assert stated == [("Lookup", "missing", "code", "XX")]
    assert waiting["errors"][0]["message"] == "countries has no row with this code"
    (noted,) = [line for line in node.must("log", "sales", "-o", "oneline").out.splitlines() if "looked up in" in line]
    assert report["id"] in noted
    assert report["head"][-8:] in noted
    # What is known later is looked up when the row is sent again.
    more = file(tmp_path, "more.csv", "event_time,code,name\n2020-01-01T00:00:00Z,XX,Kosovo\n")
    node.must("ingest", "countries", more)
    node.must("quarantine", "resend", "sales", waiting["row"])
    assert names(node) == [("CH", "Switzerland"), (None, None), ("XX", "Kosovo")]


@pytest.mark.parametrize(
    "rule",
    [
        "converters:\n                - {kind: Lookup, take: {n: n}, missing: Keep, ",
        "validators:\n                - {kind: Reference, ",
    ],
)
def test_dataset_does_not_look_into_itself_before_it_has_rows(tmp_path: Path, rule: str) -> None:
    node = RealNode(tmp_path / "home")
    head, _, _ = RULES.partition("              largestBadShare")
    columns = ["event_time TIMESTAMP", "code STRING", "n INT"]
    plain = manifest(tmp_path, "sales", columns)
    rules = f"{head}              {rule}dataset: Sales, on: {{code: code}}}}\n"
    asking = file(tmp_path, "asking.yaml", Path(plain).read_text() + rules)
    before = list_kept(node.home)
    for words in (["add"], ["add", countries(tmp_path)]):
        refused = node.run(*words, asking)
        stated = "[0].dataset: a dataset, found Sales (the dataset itself, whose first ingest would look for rows"
        assert (refused.code, stated in refused.err) == (7, True), refused
    assert list_kept(node.home) == before
    node.must("add", plain)
    assert node.run("change", "sales", asking).code == 7
    node.must("ingest", "sales", file(tmp_path, "sales.csv", SALES))
    node.must("change", "sales", asking)
    node.must("ingest", "sales", file(tmp_path, "more.csv", "event_time,code,n\n2020-01-04T00:00:00Z,CH,4\n"))


def looking_into(folder: Path, name: str, dataset: str) -> str:
    columns = ["event_time TIMESTAMP", "code STRING", "n INT"]
    return manifest(folder, name, columns, REFERENCE.format(dataset=dataset, column="code"))


def test_datasets_without_rows_that_look_into_each_other_are_rejected_with_the_names_on_the_circle(
    tmp_path: Path,
) -> None:
    """CONV-8: none of them could ever take its first rows; with rows in one of them they may."""
    node = RealNode(tmp_path / "home")
    stated = "found b (a circle of which no dataset has rows to look into: a, b, c, a)"
    pair = [looking_into(tmp_path, "a", "B"), looking_into(tmp_path, "b", "a")]
    before = list_kept(node.home)
    refused = node.run("add", *pair)
    assert (refused.code, "to look into: a, b, a)" in refused.err) == (7, True), refused
    ring = [looking_into(tmp_path, one, other) for one, other in ("ab", "bc", "ca")]
    refused = node.run("add", *ring)
    assert (refused.code, stated in refused.err) == (7, True), refused
    assert list_kept(node.home) == before
    # What is here counts as what is added beside it.
    plain = manifest(tmp_path, "a", ["event_time TIMESTAMP", "code STRING", "n INT"])
    node.must("add", plain, *ring[1:])
    looking = looking_into(tmp_path, "a", "b")
    before = list_kept(node.home)
    for words in (["change", "a"], ["add", "--replace"]):
        refused = node.run(*words, looking)
        assert (refused.code, stated in refused.err) == (7, True), refused
    assert list_kept(node.home) == before
    rows = file(tmp_path, "rows.csv", "event_time,code,n\n2020-01-01T00:00:00Z,CH,1\n")
    node.must("ingest", "a", rows)
    node.must("change", "a", looking)
    for name in "cba":
        node.must("ingest", name, rows)


def test_columns_of_a_dataset_that_is_here_are_checked_by_add(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    node.must("add", countries(tmp_path))
    known = "event_time,code,name\n2020-01-01T00:00:00Z,CH,Swiss\n"
    node.must("ingest", "countries", file(tmp_path, "countries.csv", known))
    before = list_kept(node.home)
    ran = node.run("add", sales(tmp_path, take="nome"))
    assert ran.code == 7
    assert "converters[0].take" in ran.err
    assert "did you mean 'name'?" in ran.err
    assert list_kept(node.home) == before


REFERENCE = """\
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
              largestBadShare: 0.5
              validators:
                - {{kind: Reference, dataset: {dataset}, on: {{code: {column}}}}}
"""


def test_reference_parts_rows_and_blocks_of_ingests_and_corrections_say_which_head_was_asked(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    node.must("add", countries(tmp_path))
    known = "event_time,code,name\n2020-01-01T00:00:00Z,CH,Swiss\n"
    (report,) = node.must("ingest", "countries", file(tmp_path, "countries.csv", known), "-o", "json").json()
    columns, before = ["event_time TIMESTAMP", "code STRING", "n INT"], list_kept(node.home)
    for dataset, column, stated in (
        ("contries", "code", "validators[0].dataset: a dataset, found contries"),
        ("countries", "cade", "did you mean 'code'?"),
    ):
        ran = node.run("add", manifest(tmp_path, "sales", columns, REFERENCE.format(dataset=dataset, column=column)))
        assert (ran.code, stated in ran.err) == (7, True), ran.err
    assert list_kept(node.home) == before
    node.must("add", manifest(tmp_path, "sales", columns, REFERENCE.format(dataset="countries", column="code")))
    node.must("ingest", "sales", file(tmp_path, "sales.csv", SALES))
    assert [row["code"] for row in node.must("tail", "sales", "-o", "json").json()] == ["CH", None]
    (waiting,) = node.must("quarantine", "show", "sales", "-o", "json").json()
    stated = [(each["plug_in"], each["code"], each["column"], each["value"]) for each in waiting["errors"]]
    assert stated == [("Reference", "reference", "code", "XX")]
    before = list_kept(node.home)
    refused = node.run(
        "correct", "sales", "--where", "n = 1", "--set", "code='YY'", "--reason", "typing error", "--yes"
    )
    assert "countries has no row with this code" in refused.err, refused
    assert list_kept(node.home) == before
    node.must("correct", "sales", "--where", "n = 3", "--set", "code='CH'", "--reason", "typing error", "--yes")
    noted = [line for line in node.must("log", "sales", "-o", "oneline").out.splitlines() if "looked up in" in line]
    assert len(noted) == 2
    assert all(report["id"] in line and report["head"][-8:] in line for line in noted)
    assert "typing error" in noted[0]


READ = ReadStepCsv(schema=schema(code=DataTypeString(), n=DataTypeInt64()), header=True)
THEIRS = "code,people\nCH,8\nFR,60\nFR,67\n"
OURS = "code,n\nFR,1\nCH,2\nXX,3\n"


@pytest.mark.spark
def test_both_engines_look_up_alike(tmp_path: Path) -> None:
    theirs = ReadStepCsv(schema=schema(code=DataTypeString(), people=DataTypeInt64()), header=True)
    with ArrowEngine().open(tmp_path, Limits()) as arrow:
        known = RootDataset(theirs, session=arrow)
        known.ingest(THEIRS)
        assert known.known is not None
        rows = ReferencedRows(vocabulary=known.vocabulary, schema=known.known, slices=tuple(known.slices))
        ours = RootDataset(READ, session=arrow).ingest(OURS, converters=(lookup(rows),))
        assert ours.data_path is not None
        slice_bytes = ours.data_path.read_bytes()
        spark = RootDataset(READ).ingest(OURS, converters=(lookup(rows),))
        assert spark.data_path is not None
        assert spark.data_path.read_bytes() == slice_bytes
        keyed = RootDataset(READ, MergeStrategySnapshot(primary_key=("code",)))
        rows_keyed = rows_of(keyed.ingest(OURS, converters=(lookup(rows),)).data_path)
        # ... and refer alike.
        asked = replace(valid("Reference", dataset="countries", on={"code": "code"}), rows=rows)
        typed = valid("Type", column="n", type="INT")
        answers = [
            RootDataset(READ, session=each).ingest(f"{OURS}CH,2147483648\n", validators=(asked, typed))
            for each in (arrow, None)
        ]
        slices = [each.data_path.read_bytes() for each in answers if each.data_path is not None]
        assert slices[0] == slices[1]
        wrong = [[(row["record"], row["errors"]) for row in quarantined(each)] for each in answers]
        assert wrong[0] == wrong[1]
        assert [number for number, _ in wrong[0]] == [3, 4]
    assert {(row["code"], row["people"]) for row in rows_keyed} == {("FR", 67), ("CH", 8), ("XX", None)}
