"""CONVERGE-15: what a manifest says of when its dataset is to be up to date."""

from dataclasses import replace

import pytest

from odf_convergence.background import list_goals
from odf_convergence.declared import DeclaredGoal, parse_goal
from odf_convergence.planner import Goal, make_plan
from odf_node.configuration.declaration import ConvergenceSettings
from odf_protocol.manifest.errors import ManifestError
from support.convergence_graphs import derived, graph_of, names_of, root

MIDNIGHT_MS = 1_704_067_200_000  # 2024-01-01T00:00:00Z
SEVEN_MS = MIDNIGHT_MS + 7 * 3_600_000


def test_deadline_zone_and_priority_are_read():
    found = parse_goal("by: 0 7 * * *\ntimeZone: UTC\npriority: high\n")
    assert found.by is not None
    assert found.priority == 1
    assert parse_goal("priority: low") == DeclaredGoal(None, -1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- by", "a map with by"),
        ("bye: 0 7 * * *", "one of by, timeZone, priority"),
        ("by: seven", "minute, hour"),
        ("by: 0 7 30 2 *", "a cron expression"),
        ("timeZone: UTC", "a timeZone only with by"),
        ("by: 0 7 * * *\ntimeZone: Mars/Olympus", "a zone that this machine knows"),
        ("priority: urgent", "one of high, normal, low"),
        ("by: [1]", "a text"),
    ],
)
def test_what_cannot_be_followed_is_rejected_with_what_is_expected(text: str, expected: str):
    with pytest.raises(ManifestError) as caught:
        parse_goal(text)
    assert expected in caught.value.expected


def test_goals_of_manifests_count_where_the_settings_let_them():
    report = derived("report", ("prices", 3), declared=parse_goal("by: 0 7 * * *"))
    graph = graph_of(root("prices", 3, place="https://source.example"), report)
    assert list_goals(graph, ConvergenceSettings(), MIDNIGHT_MS) == []
    goals = list_goals(graph, ConvergenceSettings(manifests=True), MIDNIGHT_MS)
    assert goals == [Goal(key="report"), Goal(key="report", asks=True, due_ms=SEVEN_MS)]
    assert names_of(make_plan(graph, goals, MIDNIGHT_MS)) == []
    assert names_of(make_plan(graph, goals, SEVEN_MS - 60_000)) == ["prices", "report"]


def test_source_is_asked_once_for_a_deadline():
    report = derived("report", ("prices", 3), declared=parse_goal("by: 0 7 * * *"))
    prices = root("prices", 3, place="https://source.example", asked_for_ms=SEVEN_MS)
    goals = list_goals(graph_of(prices, report), ConvergenceSettings(manifests=True), SEVEN_MS - 30_000)
    assert make_plan(graph_of(prices, report), goals, SEVEN_MS - 30_000).is_done
    assert names_of(make_plan(graph_of(replace(prices, asked_for_ms=0), report), goals, SEVEN_MS - 30_000)) == [
        "prices",
        "report",
    ]
