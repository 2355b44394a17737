"""Contracts that are learned, on the real files of a publisher who once swapped day and month (CONTRACT-13).

The files of examples/contracts/data and, cut to the same countries, those of examples/covid/data.
"""

import gzip
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from odf_contracts.reading import parse_contract
from support.nodes import RealNode

EXAMPLES = Path(__file__).parents[4] / "examples"
MANIFEST = EXAMPLES / "contracts" / "countries.yaml"
DERIVATIVE = """\
kind: DatasetSnapshot
version: 1
content:
  name: countries.severe
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: countries.daily, alias: c}]
      transform: {kind: Sql, engine: datafusion, query: 'SELECT event_time, country, deaths FROM c WHERE deaths > 100'}
"""
LEARNED_DAYS = [f"2020-09-{day:02}" for day in range(3, 9)]
LATER_DAYS = ["2020-10-01", "2020-10-02", "2020-10-03", "2020-10-08", "2020-11-01"]
Lines = list[str]


def read_day(day: str) -> Lines:
    name = f"countries-aggregated-{day}.csv.gz"
    (path,) = EXAMPLES.glob(f"co*/data/{name}")
    with gzip.open(path, "rt") as file:
        lines = file.read().splitlines()
    return [lines[0], *(line for line in lines[1:] if line.split(",")[1] in COUNTRIES)]


with gzip.open(EXAMPLES / "contracts" / "data" / "countries-aggregated-2020-09-03.csv.gz", "rt") as _file:
    COUNTRIES = {line.split(",")[1] for line in _file.read().splitlines()[1:]}


def swap_days(lines: Lines) -> Lines:
    """Write dates as the publisher did on the first days of September 2020."""
    return [re.sub(r"^(\d{4})-(\d\d)-(\d\d),", r"\1-\3-\2,", line) for line in lines]


def shift_columns(lines: Lines) -> Lines:
    """Write the figures one column to the right."""
    return [
        lines[0],
        *(",".join([*(cells := line.split(","))[:2], cells[4], cells[2], cells[3]]) for line in lines[1:]),
    ]


def thin_out(lines: Lines) -> Lines:
    """Leave every third day out."""
    days = sorted({line.split(",")[0] for line in lines[1:]})[::3]
    return [line for line in lines if line.split(",")[0] not in days]


def use_other_unit(lines: Lines) -> Lines:
    """Give the newest month in thousands."""
    cells = [line.split(",") for line in lines[1:]]
    return [
        lines[0],
        *(
            ",".join([*each[:2], *(str(int(n) // 1000) for n in each[2:])])
            if each[0] >= "2020-08-09"
            else ",".join(each)
            for each in cells
        ),
    ]


@dataclass
class Stage:
    node: RealNode
    folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        return {"COVID_SOURCE": f"file://{self.folder}/in.csv.gz"}

    def publish(self, day: str, change: Callable[[Lines], Lines] = list) -> None:
        with gzip.open(self.folder / "in.csv.gz", "wt") as file:
            file.write("\n".join(change(read_day(day))) + "\n")
        words = "pull", "countries.daily", "--system-time", f"{day}T12:00:00Z"
        self.node.must(*words, environment=self.environment)

    def derive(self, day: str) -> str:
        return self.node.must("pull", "countries.severe", "--system-time", f"{day}T13:00:00Z").out

    def judge(self) -> list[str]:
        ran = self.node.run("contract", "check", "learned", "-o", "json")
        return [each["standing"] for each in ran.json()]


def make_stage(folder: Path, days: Iterable[str]) -> Stage:
    stage = Stage(RealNode(folder / "home", has_engine=True), folder)
    stage.node.must("add", str(MANIFEST), "--system-time", "2020-09-01T00:00:00Z")
    for day in days:
        stage.publish(day)
    return stage


def learn(stage: Stage) -> str:
    file = stage.folder / "learned.odcs.yaml"
    said = stage.node.must("contract", "suggest", "countries.daily", "--output", str(file)).err
    stage.node.must("contract", "add", str(file))
    return said


def test_swapped_days_are_held_and_no_honest_version_is(tmp_path: Path) -> None:
    """CONTRACT-8 to CONTRACT-10, CONTRACT-13: learned from six days; nothing is written by hand."""
    stage = make_stage(tmp_path, LEARNED_DAYS)
    assert "it would have held none" in learn(stage)
    (tmp_path / "severe.yaml").write_text(DERIVATIVE)
    stage.node.must("add", str(tmp_path / "severe.yaml"), "--system-time", "2020-09-08T12:30:00Z")
    stage.derive("2020-09-08")
    kept = stage.node.must("sql", "-c", "SELECT count(*) AS n FROM countries.severe", "-o", "json").json()

    stage.publish("2020-09-09", swap_days)
    said = stage.derive("2020-09-09")
    assert "keeps to block 9 of countries.daily: block 10 breaks contract learned" in said
    found = stage.node.must("contract", "explain", "learned", "-o", "json").json()["broken"]
    reasons = " ".join(each["says"] for each in found)
    assert "event times in the future of their publication" in reasons
    assert "days of the calendar missing" in reasons
    assert "cumulative deaths falls against the row before within country" in reasons
    assert all(each["rows"] for each in found if "rows against" not in each["says"])
    assert stage.node.must("sql", "-c", "SELECT count(*) AS n FROM countries.severe", "-o", "json").json() == kept

    for day in ("2020-09-10", "2020-09-11", *LATER_DAYS):
        stage.publish(day)
        assert "keeps to" not in stage.derive(day)
    assert stage.judge() == ["good"] * 6 + ["broken"] + ["good"] * 7


@pytest.mark.parametrize("change", [shift_columns, thin_out, use_other_unit])
def test_other_breaks_are_held(tmp_path: Path, change: Callable[[Lines], Lines]) -> None:
    """CONTRACT-13: a column shifted, days left out, a unit changed; the next honest file heals each."""
    stage = make_stage(tmp_path, LEARNED_DAYS)
    learn(stage)
    stage.publish("2020-09-09", change)
    stage.publish("2020-09-10")
    assert stage.judge() == ["good"] * 6 + ["broken", "good"]


def test_history_that_begins_with_the_dirty_file_is_called_suspicious(tmp_path: Path) -> None:
    """CONTRACT-13: event times are later than their publication."""
    stage = make_stage(tmp_path, ["2020-09-02"])
    alone = stage.node.run("contract", "suggest", "countries.daily")
    assert alone.code == 2
    assert "all of them are suspicious" in alone.err
    stage.publish("2020-09-03")
    stage.publish("2020-09-04")
    learned = stage.node.must("contract", "suggest", "countries.daily")
    assert "version 4 of 2020-09-02T12:00:00Z is suspicious" in learned.err
    assert "event times are later than its publication" in learned.err
    assert "learned from 2 versions; of all 3 versions it would have held 4" in learned.err
    (table,) = parse_contract(learned.out.encode(), "shown").objects
    assert table.rules


def test_change_is_shown_against_the_history(tmp_path: Path) -> None:
    """CONTRACT-14."""
    stage = make_stage(tmp_path, LEARNED_DAYS[:3])
    learn(stage)
    file = tmp_path / "learned.odcs.yaml"
    stricter = tmp_path / "stricter.odcs.yaml"
    stricter.write_text(re.sub(r"mustBeLessOrEqualTo: 150.0", "mustBeLessOrEqualTo: 100.01", file.read_text()))
    proposed = stage.node.run("contract", "propose", "learned", str(stricter), "-o", "json")
    assert proposed.code == 4
    assert [(each["now"], each["proposed"]) for each in proposed.json()] == [
        ("good", "good"),
        ("good", "broken"),
        ("good", "broken"),
    ]
    assert stage.judge() == ["good"] * 3
