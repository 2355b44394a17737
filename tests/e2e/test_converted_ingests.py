"""Converters in ingests: a messy file goes through them by real commands, alike with both engines (CONV)."""

import json
from pathlib import Path

import pytest

from odf_engines.arrow.engine import ArrowEngine
from odf_engines.contract import ConverterCall, IngestResponse, Limits
from odf_engines.errors import EngineFailureError, InvalidSourceError, LimitExceededError
from odf_engines.plug_in_names import CONVERTERS
from odf_protocol.events import (
    DataTypeInt64,
    DataTypeString,
    DataTypeUInt64,
    MergeStrategySnapshot,
    ReadStepCsv,
    SqlQueryStep,
    TransformSql,
)
from support.command_line import list_kept
from support.ingests import RootDataset, quarantined, rows_of, schema
from support.nodes import RealNode
from support.plug_in_packages import installed_package

pytestmark = pytest.mark.usefixtures("light_engines")

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: sales
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: Csv
        header: true
        separator: ";"
        encoding: iso-8859-1
        ddlSchema: ["Datum STRING", "Ort STRING", "Kunde STRING", "Betrag STRING", "Menge STRING"]
      merge: {merge}
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
{rules}
"""
RULES = """\
converters:
  - {kind: Rename, columns: {Datum: event_time, Ort: city, Kunde: customer, Betrag: amount}}
  - {kind: Trim, columns: [event_time, city, customer, amount, Menge], nulls: ["-", k. A.]}
  - {kind: Cast, column: event_time, type: DATE, formats: ["%d.%m.%Y", rfc3339]}
  - {kind: Cast, column: amount, type: "DECIMAL(10,2)", decimal: ",", thousands: "."}
  - {kind: Split, column: Menge, separator: " ", into: [weight, unit]}
  - {kind: Cast, column: weight, type: DOUBLE, decimal: ","}
  - {kind: Units, column: weight, unit: unit, factors: {kg: 1, g: 0.001}}
  - {kind: Hash, column: customer, secret: people}
validators:
  - {kind: Range, column: amount, least: 0}
"""
MESSY = """\
Datum;Ort;Kunde;Betrag;Menge
2.9.2020;Zürich;ann;1.234,50;1,5 kg
2020-09-03;  Genève ;bob;12,00;500 g
09/04/2020;Bern;cid;1,5;1 kg
5.9.2020;-;ann;k. A.;
31.9.2020;Chur;dora;12.34;2 Pfund
6.9.2020;Basel;eve;-3,00;3
7.9.2020;Basel
8.9.2020;Thun;fay;-7,00;1 kg
"""
SECRET = {"ODF_NODE_SECRET_people": "correct horse battery staple"}
EXPECTED = [
    (3, "convert", [("Cast", "form", "event_time", "09/04/2020")]),
    (
        5,
        "convert",
        [
            ("Cast", "form", "event_time", "31.9.2020"),
            ("Cast", "form", "amount", "12.34"),
            ("Units", "unit", "unit", "Pfund"),
        ],
    ),
    (6, "convert", [("Split", "parts", "Menge", "3")]),
    (7, "read", [("Csv", "broken-record", None, None)]),
    (8, "validate", [("Range", "range", "amount", "-7.00")]),
]


def manifest(folder: Path, rules: str = RULES, merge: str = "{kind: Append}") -> str:
    path = folder / "sales.yaml"
    indented = "\n".join(f"              {line}" for line in rules.splitlines())
    path.write_text(MANIFEST.format(rules=indented, merge=merge))
    return str(path)


def test_messy_file_goes_in_with_its_errors_told_and_fixed(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    node.must("add", manifest(tmp_path, "largestBadShare: 0.7\n" + RULES))
    (tmp_path / "sales.csv").write_text(MESSY, encoding="iso-8859-1")
    before = list_kept(node.home)
    refused = node.run("ingest", "sales", str(tmp_path / "sales.csv"))
    assert refused.code == 2
    assert "needs the secret people, which is not set" in refused.err
    assert list_kept(node.home) == before
    node.must("ingest", "sales", str(tmp_path / "sales.csv"), environment=SECRET)
    rows = node.must("tail", "sales", "-o", "json").json()
    assert [(row["event_time"], row["city"], row["amount"], row["weight"]) for row in rows] == [
        ("2020-09-02", "Zürich", "1234.50", 1.5),
        ("2020-09-03", "Genève", "12.00", 0.5),
        ("2020-09-05", None, None, None),
    ]
    hashed = [row["customer"] for row in rows]
    assert hashed[0] == hashed[2] != hashed[1]
    assert len(hashed[0]) == 64
    shown = node.must("quarantine", "show", "sales", "-o", "json").json()
    found = [
        (row["record"], row["stage"], [(e["plug_in"], e["code"], e["column"], e["value"]) for e in row["errors"]])
        for row in shown
    ]
    assert found == EXPECTED
    assert shown[1]["columns"] == {
        "Datum": "31.9.2020", "Ort": "Chur", "Kunde": "dora", "Betrag": "12.34", "Menge": "2 Pfund"
    }  # fmt: skip
    held = b"".join(path.read_bytes() for path in node.home.rglob("*") if path.is_file())
    assert SECRET["ODF_NODE_SECRET_people"].encode() not in held
    # Fixed as they were sent, they go through the converters again.
    node.must("quarantine", "fix", "sales", shown[0]["row"], "--set", "Datum='4.9.2020'")
    ran = node.must("quarantine", "resend", "sales", shown[0]["row"], environment=SECRET)
    assert "1 row" in ran.out
    newest = node.must("tail", "sales", "-n", "1", "-o", "json").json()[0]
    assert (newest["event_time"], newest["city"], newest["amount"]) == ("2020-09-04", "Bern", "1.50")


WRONG = [
    ("converters:\n  - {kind: Kast, column: Ort}", "converters[0].kind", "did you mean 'Cast'?"),
    ("converters:\n  - {kind: Trim, column: Ort}", "converters[0].column", "did you mean 'columns'?"),
    ("converters:\n  - {kind: Trim, columns: [Ord]}", "converters[0].columns", "did you mean 'Ort'?"),
    ("converters:\n  - {kind: Cast, column: Ort, type: INTT}", "converters[0].type", "did you mean 'INT'?"),
    ("converters:\n  - {kind: Rename, columns: {Ort: x}}\n  - {kind: Trim, columns: [Ort]}",
     "converters[1].columns", "found Ort"),
    ("converters:\n  - {kind: Rename, columns: {Ort: city}}\nvalidators:\n  - {kind: Required, columns: [Ort]}",
     "validators[0].columns", "found Ort"),
    ("converters:\n  - {kind: Compute, columns: {x: upper(Ord)}}", "converters[0].columns", "did you mean 'Ort'?"),
    ("converters:\n  - {kind: Compute, columns: {x: now()}}", "converters[0].columns", "it reads the clock"),
    ("converters: {kind: Trim}", "converters", "a list of converters"),
    ("convertors: []", "convertors", "did you mean 'converters'?"),
    ("converters:\n  - {kind: Pivot, columns: [Ort]}", "converters[0].kind", "a converter that is installed here"),
    ("converters:\n  - {kind: Deduplicate, columns: [Ord]}", "converters[0].columns", "did you mean 'Ort'?"),
    ("converters:\n  - {kind: Deduplicate, columns: [Ort], keep: last}", "converters[0].keep", "did you mean 'Last'?"),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "place", "stated"), WRONG)
def test_converter_that_cannot_be_followed_is_rejected_by_add(
    tmp_path: Path, rules: str, place: str, stated: str
) -> None:
    node = RealNode(tmp_path / "home")
    ran = node.run("add", manifest(tmp_path, rules))
    assert ran.code == 7, ran.out
    assert place in ran.err
    assert stated in ran.err
    assert list_kept(node.home)["datasets"] == ()


def test_key_is_looked_for_among_the_columns_that_converters_give(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    rename = "converters:\n  - {kind: Rename, columns: {Ort: city}}"
    ran = node.run("add", manifest(tmp_path, rename, "{kind: Snapshot, primaryKey: [Ort]}"))
    assert (ran.code, "primaryKey" in ran.err) == (7, True)
    assert list_kept(node.home)["datasets"] == ()
    node.must("add", manifest(tmp_path, rename, "{kind: Snapshot, primaryKey: [city]}"))


def test_query_of_another_engine_sees_what_converters_gave_and_its_rows_skip_them(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home", has_engine=True)
    once = "  - {kind: Deduplicate, columns: [city], keep: First}\n"
    rules = "largestBadShare: 0.9\n" + RULES.replace("  - {kind: Hash, column: customer, secret: people}\n", once)
    query = "SELECT event_time, city, amount, weight * 2 AS doubled FROM input"
    preprocess = f'preprocess: {{kind: Sql, engine: datafusion, query: "{query}"}}\n      merge: {{kind: Append}}'
    path = Path(manifest(tmp_path, rules))
    path.write_text(path.read_text().replace("merge: {kind: Append}", preprocess))
    node.must("add", str(path))
    (tmp_path / "sales.csv").write_text(f"{MESSY}9.9.2020;Zürich;ann;1,00;1 kg\n", encoding="iso-8859-1")
    (report,) = node.must("ingest", "sales", str(tmp_path / "sales.csv"), "-o", "json").json()
    rows = node.must("tail", "sales", "-o", "json").json()
    assert [(row["city"], row["amount"], row["doubled"]) for row in rows] == [
        ("Zürich", "1234.50", 3.0),
        ("Genève", "12.00", 1.0),
        (None, None, None),
    ]
    assert (report["newRows"], report["quarantinedRows"], report["leftOutRows"]) == (3, 5, 1)
    shown = node.must("quarantine", "show", "sales", "-o", "json").json()
    assert [(row["record"], row["stage"], row["errors"][0]["plug_in"]) for row in shown] == [
        (3, "convert", "Cast"), (5, "convert", "Cast"), (6, "convert", "Split"), (7, "read", "Csv"),
        (None, "validate", "Range"),
    ]  # fmt: skip
    node.must("quarantine", "fix", "sales", shown[-1]["row"], "--set", "amount='7.00'")
    node.must("quarantine", "resend", "sales", shown[-1]["row"])
    newest = node.must("tail", "sales", "-n", "1", "-o", "json").json()[0]
    assert (newest["city"], newest["amount"], newest["doubled"]) == ("Thun", "7.00", 2.0)


READ = ReadStepCsv(schema=schema(a=DataTypeString(), n=DataTypeInt64()), header=True)
BY_SPARK = ReadStepCsv(schema=schema(a=DataTypeString(), n=DataTypeUInt64()), header=True)
ROWS = 'a,n\n"1,5",1\nx,2\n,3\n2,zwei\n4\n"2,25",5\n'


def call(kind: str, **parameters: object) -> ConverterCall:
    place = CONVERTERS.find_place(kind)
    assert place is not None
    return ConverterCall(name=kind, module=place[0], attribute=place[1], parameters=json.dumps(parameters))


CALLS = (
    call("Cast", column="a", type="DOUBLE", decimal=","),
    call("Rename", columns={"a": "price"}),
)
STATED = [
    (2, "convert", "Cast", "form", "a"),
    (4, "convert", "types", "form", "n"),
    (5, "read", "Csv", "broken-record", None),
]


def reported(response: IngestResponse) -> list[tuple]:
    return [
        (row["record"], row["stage"], e["plug_in"], e["code"], e["column"])
        for row in quarantined(response)
        for e in row["errors"]
    ]


@pytest.mark.spark
def test_both_engines_convert_alike_around_every_merge_and_query(tmp_path: Path) -> None:
    with ArrowEngine().open(tmp_path, Limits()) as arrow:
        ours = RootDataset(READ, session=arrow).ingest(ROWS, converters=CALLS)
        assert ours.data_path is not None
        slice_bytes, set_aside = ours.data_path.read_bytes(), quarantined(ours)
    theirs = RootDataset(READ).ingest(ROWS, converters=CALLS)
    assert theirs.data_path is not None
    assert theirs.data_path.read_bytes() == slice_bytes
    assert quarantined(theirs) == set_aside
    assert reported(theirs) == STATED
    # What SQL computes is computed by the same library in both sandboxes.
    computed = (*CALLS, call("Compute", columns={"share": "6 / (n - 3)", "when": "to_timestamp(n)"}))
    with ArrowEngine().open(tmp_path, Limits()) as arrow:
        answers = [RootDataset(READ, session=each).ingest(ROWS, converters=computed) for each in (arrow, None)]
        slices = [each.data_path.read_bytes() for each in answers if each.data_path is not None]
        stated = [quarantined(each) for each in answers]
    assert slices[0] == slices[1]
    assert stated[0] == stated[1]
    assert ("Compute", "expression", "share", None) in [
        (each["plug_in"], each["code"], each["column"], each["value"]) for row in stated[0] for each in row["errors"]
    ]
    # Texts of a type that nothing but Spark converts: it does so first.
    odd = RootDataset(BY_SPARK).ingest(ROWS, converters=CALLS)
    assert [(row["price"], row["n"]) for row in rows_of(odd.data_path)] == [(1.5, 1), (None, 3), (2.25, 5)]
    assert reported(odd) == STATED
    assert odd.statistics.rows_in == odd.statistics.rows_out + odd.quarantined_rows == 6
    keyed = RootDataset(BY_SPARK, MergeStrategySnapshot(primary_key=("n",))).ingest(ROWS, converters=CALLS)
    assert sorted((row["price"] or 0, row["n"]) for row in rows_of(keyed.data_path)) == [(0, 3), (1.5, 1), (2.25, 5)]
    assert reported(keyed) == STATED
    # Of two rows with one price the newest stays, whichever engine looks; the one that fails is not compared.
    again, once = ROWS + '"1,5",9\n"1,5",x\n', (*CALLS, call("Deduplicate", columns=["price"], by="n", keep="Last"))
    for left in (
        RootDataset(BY_SPARK).ingest(again, converters=once),
        RootDataset(BY_SPARK, MergeStrategySnapshot(primary_key=("n",))).ingest(again, converters=once),
    ):
        assert sorted((row["price"] or 0, row["n"]) for row in rows_of(left.data_path)) == [(0, 3), (1.5, 9), (2.25, 5)]
        counts = left.statistics.rows_out, left.quarantined_rows, left.left_out_rows
        assert (counts, left.statistics.rows_in) == ((3, 4, 1), 8)
    query = TransformSql(engine="spark", query="SELECT price * 2 AS twice, n FROM input")
    asked = RootDataset(BY_SPARK, preprocess=query).ingest(ROWS, converters=CALLS)
    assert [row["twice"] for row in rows_of(asked.data_path)] == [3.0, None, 4.5]
    assert reported(asked) == STATED


PLUG_INS = """
import os, time
from dataclasses import dataclass
from odf_engines.conversion.contract import Converted, Converter


class Dies(Converter):
    @dataclass(frozen=True)
    class Parameters:
        pass

    def __init__(self, parameters, context):
        super().__init__(parameters, context)
        self._schema = context.schema

    @property
    def schema(self):
        return self._schema

    def convert(self, rows):
        os._exit(3)


class Hangs(Dies):
    def convert(self, rows):
        time.sleep(600)


class Eats(Dies):
    def convert(self, rows):
        held = []
        while True:
            held.append(bytearray(b"x") * 10_000_000)


class Looks(Dies):
    def convert(self, rows):
        open("/etc/shadow")
"""


@pytest.fixture
def plug_ins(tmp_path_factory: pytest.TempPathFactory):
    """A package of somebody else's, as an installer leaves it."""
    folder = tmp_path_factory.mktemp("site")
    points = {name: name for name in ("Dies", "Hangs", "Eats", "Looks", "Cast")}
    with installed_package(folder, "odd_converters", PLUG_INS, "odf_converters", points):
        yield folder


def test_converter_of_another_package_is_blamed_by_its_name_for_what_it_does(plug_ins, tmp_path: Path) -> None:
    limits = Limits(wall_s=6.0, memory_bytes=600 * 1024 * 1024)
    with ArrowEngine().open(tmp_path, limits) as arrow:
        dataset = RootDataset(READ, session=arrow)
        with pytest.raises(EngineFailureError, match="converter Dies"):
            dataset.ingest("a,n\nx,1\n", converters=(call("Dies"),))
        for kind in ("Hangs", "Eats"):
            with pytest.raises(LimitExceededError, match=f"converter {kind}"):
                dataset.ingest("a,n\nx,1\n", converters=(call(kind),), limits=limits)
        much = call("Compute", columns={"x": "repeat(a, 2000000000)"})
        with pytest.raises(LimitExceededError, match="converter Compute"):
            dataset.ingest("a,n\nx,1\n", converters=(much,), limits=limits)
        looked = dataset.ingest("a,n\nx,1\n", converters=(call("Looks"),))
        assert [each[3] for each in reported(looked)] == ["failed"]
        with pytest.raises(InvalidSourceError, match="converter Trim: columns: expected a column of the rows"):
            dataset.ingest("a,n\nx,1\n", converters=(call("Trim", columns=["b"]),))
    # A name of ours stays ours.
    assert call("Cast").module == "odf_quality.value_converters"


def test_first_rows_behind_each_stage_are_given_by_spark_too() -> None:
    """ING-25, with a type that nothing but Spark converts."""
    rows = "a,n\n x,1\ny,bad\nz,3\n"
    query = TransformSql(engine="spark", queries=(SqlQueryStep(query="SELECT n, upper(a) AS b FROM input"),))
    trimmed = RootDataset(BY_SPARK).ingest(rows, converters=(call("Trim", columns=["a"]),), has_samples=True)
    queried = RootDataset(BY_SPARK, preprocess=query).ingest(rows, has_samples=True)
    found = [{stage.value: rows.to_pylist() for stage, rows in each.samples.items()} for each in (trimmed, queried)]
    read = [{"a": " x", "n": 1}, {"a": "z", "n": 3}]
    assert found == [
        {"read": read, "converted": [{"a": "x", "n": 1}, {"a": "z", "n": 3}]},
        {"read": read, "queried": [{"n": 1, "b": " X"}, {"n": 3, "b": "Z"}]},
    ]
