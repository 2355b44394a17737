"""Derivatives with a published answer: what the publisher of the countries' table made of it on the same days.

``tests/data/covid-derived`` has its sums per day and its pivot, as they were served. See examples/covid/data/README.md.
"""

import csv
import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.nodes import RealNode
from support.warm_engine import lent_to_untrusted

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "covid"
ANSWERS = Path(__file__).parents[1] / "data" / "covid-derived"
DAYS = ("2020-10-01", "2020-10-08", "2020-11-01")
# Spark takes the file in the demo; it is only the input here.
PREPROCESS = """\
        engine: datafusion
        query: |
          SELECT CAST("Date" AS TIMESTAMP) AS event_time,
                 "Country" AS country, "Confirmed" AS confirmed, "Recovered" AS recovered, "Deaths" AS deaths
          FROM input
"""
DERIVED = ("worldwide.daily", "key.countries", "countries.weekly")


def published(name: str, day: str) -> list[list[str]]:
    with gzip.open(ANSWERS / f"{name}-{day}.csv.gz", "rt") as file:
        return list(csv.reader(file))[1:]


@dataclass(frozen=True)
class Day:
    """What a node had of the datasets after it took a version of the countries' table.

    Attributes:
        totals: Rows in force of the sums per day.
        pivot: Rows in force of the pivot.
        weeks: All rows of the weeks.
        late_rows: How many rows came too late for their week.
    """

    totals: list[list[str]]
    pivot: list[list[str]]
    weeks: list[dict[str, Any]]
    late_rows: int


@pytest.fixture(scope="module")
def agency(tmp_path_factory: pytest.TempPathFactory) -> tuple[RealNode, dict[str, Day]]:
    """A node that took one version of the table after the other, and what came of each."""
    folder = tmp_path_factory.mktemp("agency")
    node = RealNode(folder / "home", has_engine=True)
    before, preprocess, rest = re.split(
        r"(        engine: spark\n.*?)(?=      merge:)", (EXAMPLE / "countries.daily.yaml").read_text(), flags=re.DOTALL
    )
    assert "FROM input" in preprocess
    (folder / "countries.daily.yaml").write_text(before + PREPROCESS + rest)
    node.must("add", str(folder / "countries.daily.yaml"), *(str(EXAMPLE / f"{name}.yaml") for name in DERIVED))
    days = {}
    for day in DAYS:
        source = (EXAMPLE / "data" / f"countries-aggregated-{day}.csv.gz").as_uri()
        node.must("pull", "countries.daily", environment={"COVID_SOURCE": source})
        reports = {each["dataset"]: each for each in node.must("pull", *DERIVED, "-o", "json").json()}
        query = "SELECT event_time, country, confirmed, deaths, days, op FROM countries.weekly"
        given = json.loads(node.must("sql", "-c", query, "-o", "json").out)
        totals, pivot = current_rows(node, "worldwide.daily"), current_rows(node, "key.countries")
        days[day] = Day(totals, pivot, given, reports["countries.weekly"]["lateRows"])
    return node, days


def current_rows(node: RealNode, dataset: str) -> list[list[str]]:
    query = f"SELECT * FROM {dataset}__state ORDER BY event_time"
    found = json.loads(node.must("sql", "-c", query, "-o", "json").out)
    return [[str(value) if value is not None else "" for value in row.values()] for row in found]


def check_totals(ours: list[list[str]], day: str) -> None:
    theirs = published("worldwide-aggregate", day)
    assert [[row[0][:10], *row[1:4]] for row in ours] == [row[:4] for row in theirs]
    for mine, answer in zip(ours, theirs, strict=True):
        assert (mine[4] == "") == (answer[4] == "")
        assert not answer[4] or abs(float(mine[4]) - float(answer[4])) < 1e-9


def test_totals_and_pivot_are_those_of_the_publisher_after_every_correction(agency, tmp_path):
    node, days = agency
    for day, found in days.items():
        check_totals(found.totals, day)
        assert [[row[0][:10], *row[1:]] for row in found.pivot] == published("key-countries-pivoted", day)
    auditor = RealNode(tmp_path / "auditor", has_engine=True)
    with node.serving() as address, lent_to_untrusted():
        for name in ("countries.daily", "worldwide.daily", "key.countries"):
            auditor.must("pull", f"{address}/{name}")
    trust = {each["name"]: each["trust"] for each in json.loads(auditor.must("list", "-o", "json").out)}
    assert trust == {"countries.daily": "signed", "worldwide.daily": "re-executed", "key.countries": "re-executed"}
    check_totals(current_rows(auditor, "worldwide.daily"), DAYS[-1])


def weeks(days: Sequence[str]) -> dict[tuple[str, str], tuple[int, int, int]]:
    """What each week of a country came to, in the first version of the file that has a day at or after its end."""
    found: dict[tuple[str, str], tuple[int, int, int]] = {}
    closed = date.min
    for day in days:
        with gzip.open(EXAMPLE / "data" / f"countries-aggregated-{day}.csv.gz", "rt") as file:
            rows = [(date.fromisoformat(row["Date"]), row) for row in csv.DictReader(file)]
        newest = max(at for at, _ in rows)
        for at, row in rows:
            end = at - timedelta(days=at.weekday()) + timedelta(days=7)
            if closed < end <= newest:
                confirmed, deaths, count = found.get((str(end), row["Country"]), (0, 0, 0))
                figures = max(confirmed, int(row["Confirmed"])), max(deaths, int(row["Deaths"])), count + 1
                found[str(end), row["Country"]] = figures
        closed = newest
    return found


def test_weeks_are_given_once_as_they_were_known_at_their_ends(agency):
    _, days = agency
    for position, found in enumerate(days.values(), 1):
        assert {row["op"] for row in found.weeks} == {0}
        ours = {
            (row["event_time"][:10], row["country"]): (row["confirmed"], row["deaths"], row["days"])
            for row in found.weeks
        }
        assert len(ours) == len(found.weeks)
        assert ours == weeks(DAYS[:position])
    assert sum(each.late_rows for each in days.values()) > 0  # what the publisher rewrote of weeks that were over
