"""Derivatives with a published answer: what the publisher of the countries' table made of it on the same days.

``tests/data/covid-derived`` has its sums per day and its pivot, as they were served. See examples/covid/data/README.md.
"""

import csv
import gzip
import json
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import pytest

from support.nodes import RealNode
from support.warm_engine import lent_to_strangers

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "covid"
ANSWERS = Path(__file__).parents[1] / "data" / "covid-derived"
DAYS = ("2020-10-01", "2020-10-08", "2020-11-01")


def published(name: str, day: str) -> list[list[str]]:
    with gzip.open(ANSWERS / f"{name}-{day}.csv.gz", "rt") as file:
        return list(csv.reader(file))[1:]


def rows_in_force(node: RealNode, dataset: str) -> list[list[str]]:
    query = f"SELECT * FROM {dataset}__state ORDER BY event_time"
    found = json.loads(node.must("sql", "-c", query, "-o", "json").out)
    return [[str(value) if value is not None else "" for value in row.values()] for row in found]


def check_totals(node: RealNode, day: str) -> None:
    ours = rows_in_force(node, "worldwide.daily")
    theirs = published("worldwide-aggregate", day)
    assert [[row[0][:10], *row[1:4]] for row in ours] == [row[:4] for row in theirs]
    for mine, answer in zip(ours, theirs, strict=True):
        assert (mine[4] == "") == (answer[4] == "")
        assert not answer[4] or abs(float(mine[4]) - float(answer[4])) < 1e-9


def check_pivot(node: RealNode, day: str) -> None:
    ours = [[row[0][:10], *row[1:]] for row in rows_in_force(node, "key.countries")]
    assert ours == published("key-countries-pivoted", day)


def test_totals_and_pivot_are_those_of_the_publisher_after_every_correction(tmp_path):
    node, auditor = (RealNode(tmp_path / name, has_engine=True) for name in ("agency", "auditor"))
    node.must(
        "add", *(str(EXAMPLE / f"{name}.yaml") for name in ("countries.daily", "worldwide.daily", "key.countries"))
    )
    for day in DAYS:
        source = (EXAMPLE / "data" / f"countries-aggregated-{day}.csv.gz").as_uri()
        node.must("pull", "countries.daily", environment={"COVID_SOURCE": source})
        node.must("pull", "worldwide.daily", "key.countries")
        check_totals(node, day)
        check_pivot(node, day)
    with node.serving() as address, lent_to_strangers():
        for name in ("countries.daily", "worldwide.daily", "key.countries"):
            auditor.must("pull", f"{address}/{name}")
    trust = {each["name"]: each["trust"] for each in json.loads(auditor.must("list", "-o", "json").out)}
    assert trust == {"countries.daily": "signed", "worldwide.daily": "re-executed", "key.countries": "re-executed"}
    check_totals(auditor, DAYS[-1])


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


def test_weeks_are_given_once_as_they_were_known_at_their_ends(tmp_path):
    node = RealNode(tmp_path / "agency", has_engine=True)
    node.must("add", *(str(EXAMPLE / f"{name}.yaml") for name in ("countries.daily", "countries.weekly")))
    late = 0
    for position, day in enumerate(DAYS, 1):
        source = (EXAMPLE / "data" / f"countries-aggregated-{day}.csv.gz").as_uri()
        node.must("pull", "countries.daily", environment={"COVID_SOURCE": source})
        (report,) = node.must("pull", "countries.weekly", "-o", "json").json()
        late += report["lateRows"]
        query = "SELECT event_time, country, confirmed, deaths, days, op FROM countries.weekly"
        found = json.loads(node.must("sql", "-c", query, "-o", "json").out)
        assert {row["op"] for row in found} == {0}
        ours = {
            (row["event_time"][:10], row["country"]): (row["confirmed"], row["deaths"], row["days"]) for row in found
        }
        assert len(ours) == len(found)
        assert ours == weeks(DAYS[:position])
    assert late > 0  # what the publisher rewrote of weeks that were over
