"""A row of a snapshot that cannot be taken is not missing: what the dataset has of it stays (ING-48)."""

import json
from dataclasses import replace

import pytest

from odf_engines.arrow.engine import ArrowEngine
from odf_engines.contract import IngestResponse, Limits
from odf_engines.ingest_parts import ConverterCall, ValidatorCall
from odf_engines.plug_in_names import CONVERTERS, VALIDATORS
from odf_protocol.events import DataTypeDate, DataTypeInt64, DataTypeString, MergeStrategySnapshot, ReadStepCsv
from support.command_line import run_command
from support.ingests import RootDataset, quarantined, rows_of, schema

pytestmark = pytest.mark.usefixtures("light_engines")

READ = ReadStepCsv(schema=schema(event_time=DataTypeDate(), k=DataTypeString(), n=DataTypeInt64()), header=True)
TEXTS = replace(READ, schema=schema(event_time=DataTypeDate(), k=DataTypeString(), n=DataTypeString()))
HEADER = "event_time,k,n\n"
COUNT = 20_000
FIRST = HEADER + "".join(f"2025-03-01,k{n:05},{n}\n" for n in range(COUNT))
WITH_DAYS = MergeStrategySnapshot(primary_key=("event_time", "k"))


@pytest.fixture(scope="module", params=["arrow", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    if request.param == "spark":
        yield None
        return
    with ArrowEngine().open(tmp_path_factory.mktemp("arrow"), Limits()) as opened:
        yield opened


def call(kind: str, group: type, names: object, **parameters: object):
    place = names.find_place(kind)
    return group(name=kind, module=place[0], attribute=place[1], parameters=json.dumps(parameters))


def retracted(response: IngestResponse) -> set[str]:
    return {row["k"] for row in rows_of(response.data_path) if row["op"] == 1}


def second(*lines: str, without: int = 3) -> str:
    """The first file without its last rows, and other lines in their place."""
    left = FIRST.splitlines(keepends=True)[: COUNT + 1 - without]
    return "".join(left) + "".join(f"{line}\n" for line in lines)


LAST = [f"k{n:05}" for n in range(COUNT - 3, COUNT)]


@pytest.mark.parametrize("days", [None, "%Y-%m-%d"], ids=["plain", "with-a-form"])
def test_row_with_an_unreadable_cell_keeps_its_values_and_those_that_are_missing_go(session, days) -> None:
    dataset = RootDataset(replace(READ, date_format=days), WITH_DAYS, session=None if days else session)
    dataset.ingest(FIRST)
    done = dataset.ingest(second(f"2025-03-01,{LAST[0]},n/a", f"2025-03-01,{LAST[0]},x"))
    assert retracted(done) == set(LAST[1:])
    assert (done.kept_rows, done.quarantined_rows) == (1, 2)
    # The state has it: the next file retracts it, or changes it.
    assert retracted(dataset.ingest(second())) == {LAST[0]}


@pytest.mark.parametrize(
    "line", ["x,k99999,1", f"2025-03-01,{LAST[0]}", f",{LAST[0]},1"], ids=["unreadable-key", "broken-record", "no-time"]
)
def test_row_whose_key_cannot_be_read_holds_all_retractions(session, line) -> None:
    dataset = RootDataset(READ, WITH_DAYS, session=session)
    dataset.ingest(FIRST)
    done = dataset.ingest(second("2025-03-02,new,1", line))
    assert retracted(done) == set()
    assert [row["k"] for row in rows_of(done.data_path)] == ["new"]
    assert (done.kept_rows, done.quarantined_rows) == (3, 1)
    assert retracted(dataset.ingest(second())) == {"new", *LAST}


def test_row_that_a_validator_or_a_converter_keeps_out_is_not_missing(session) -> None:
    limit = call("Range", ValidatorCall, VALIDATORS, column="n", most=str(COUNT))
    dataset = RootDataset(READ, MergeStrategySnapshot(primary_key=("k",)), session=session)
    dataset.ingest(FIRST)
    done = dataset.ingest(second(f"2025-03-01,{LAST[0]},1000000"), validators=(limit,))
    assert (retracted(done), done.kept_rows) == (set(LAST[1:]), 1)
    cast = call("Cast", ConverterCall, CONVERTERS, column="n", type="BIGINT")
    dataset = RootDataset(TEXTS, MergeStrategySnapshot(primary_key=("k",)), session=session)
    dataset.ingest(FIRST, converters=(cast,))
    done = dataset.ingest(second(f"2025-03-01,{LAST[0]},n/a"), converters=(cast,))
    assert (retracted(done), done.kept_rows, len(quarantined(done))) == (set(LAST[1:]), 1, 1)


def test_report_says_which_rows_stay(tmp_path) -> None:
    manifest = (
        "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: cases\n  kind: Root\n  metadata:\n"
        "    - {kind: AddPushSource, sourceName: default, read: {kind: Csv, header: true, ddlSchema: [day DATE, land "
        "STRING, cases BIGINT]}, merge: {kind: Snapshot, primaryKey: [day, land]}}\n"
        "    - {kind: SetVocab, eventTimeColumn: day}\n"
    )
    (tmp_path / "m.yaml").write_text(manifest)
    home, path = tmp_path / "home", tmp_path / "cases.csv"
    assert run_command(home, "add", tmp_path / "m.yaml").returncode == 0
    lands = "".join(f"2025-03-02,{land},{place}\n" for place, land in enumerate("ABCDEF"))
    path.write_text(f"day,land,cases\n{lands}")
    run_command(home, "ingest", "cases", path)
    path.write_text(f"day,land,cases\n{lands.replace('E,4', 'E,n/a')}")
    for words, stay in ((["--dry-run"], "would not be"), ([], "not")):
        done = run_command(home, "ingest", "cases", path, *words)
        assert "cases: up to date (5 rows unchanged)" in done.stdout
        assert f"cases: {stay} retracted: 1 current row that rows in quarantine may stand for" in done.stdout
    rows = run_command(home, "sql", "-c", "SELECT cases FROM cases__state WHERE land = 'E'", "-o", "csv").stdout
    assert rows.split() == ['"cases"', "4"]
