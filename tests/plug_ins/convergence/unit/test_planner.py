"""CONVERGE-6 to CONVERGE-9: which actions, in which order, and what is put off."""

import pytest

from odf_convergence.graph import ActionCost, Attempt
from odf_convergence.impact import find_impact
from odf_convergence.planner import ActionBudget, ActionKind, Goal, make_plan
from support.convergence_graphs import derived, graph_of, names_of, plan_all, pulled, root

CHAIN = (root("sales", 9), derived("totals", ("sales", 3)), derived("report", ("totals", 2)))


def test_each_dataset_has_one_action_inputs_first_however_many_blocks_are_new():
    plan = plan_all(graph_of(*CHAIN))
    assert names_of(plan) == ["totals", "report"]
    assert [each.is_certain for each in plan.actions] == [True, False]
    assert plan.actions[1].after == ("totals",)


def test_nothing_is_done_where_nothing_changed():
    assert plan_all(graph_of(root("sales", 3), derived("totals", ("sales", 3)))).is_done


def test_dataset_that_is_stale_twice_is_computed_once_after_both():
    plan = plan_all(
        graph_of(root("x", 5), derived("a", ("x", 3)), derived("b", ("x", 3)), derived("c", ("a", 1), ("b", 1)))
    )
    assert names_of(plan) == ["a", "b", "c"]
    assert plan.actions[2].after == ("a", "b")


def test_sources_are_asked_only_where_a_wish_says_so():
    graph = graph_of(root("sales", 3, place="https://source.example"), derived("totals", ("sales", 3)))
    assert plan_all(graph).is_done
    plan = plan_all(graph, asks=True)
    assert [(each.kind, each.name) for each in plan.actions] == [
        (ActionKind.INGEST, "sales"),
        (ActionKind.STEP, "totals"),
    ]


def test_only_what_a_wish_rests_on_is_done():
    graph = graph_of(*CHAIN, derived("other", ("sales", 3)))
    assert names_of(make_plan(graph, [Goal(key="report")], 0)) == ["totals", "report"]


def test_announced_blocks_are_pulled_before_what_reads_them():
    graph = graph_of(pulled(root("sales", 5), announced=7), derived("totals", ("sales", 5)))
    assert [(each.kind, each.name) for each in plan_all(graph).actions] == [
        (ActionKind.PULL, "sales"),
        (ActionKind.STEP, "totals"),
    ]


def test_what_reads_a_dataset_that_is_worked_on_waits_for_it():
    graph = graph_of(root("sales", 9, is_running=True), *CHAIN[1:])
    plan = plan_all(graph)
    assert plan.is_done
    assert [(each.name, each.why) for each in plan.put_off] == [
        ("sales", "it is being worked on"),
        ("totals", "its input sales is about to change"),
    ]


def test_failure_is_left_alone_until_its_time_and_stops_nothing_else():
    failed = Attempt(text="no", until_ms=1000, count=2)
    graph = graph_of(root("sales", 9), derived("a", ("sales", 3), failed=failed), derived("b", ("sales", 3)))
    plan = plan_all(graph, now_ms=999)
    assert names_of(plan) == ["b"]
    assert [(each.name, each.until_ms) for each in plan.put_off] == [("a", 1000)]
    assert names_of(plan_all(graph, now_ms=1000)) == ["a", "b"]


def test_deadline_pulls_inputs_in_time_and_before_other_work():
    """A report due at 07:00: its sources are asked as long before as everything took the last time."""
    graph = graph_of(
        root("prices", 3, place="https://source.example", cost=ActionCost(seconds=100)),
        derived("report", ("prices", 3), cost=ActionCost(seconds=200)),
        root("logs", 9),
        derived("daily", ("logs", 3), cost=ActionCost(seconds=1)),
    )
    goals = [Goal(key="report", asks=True, due_ms=1_000_000), Goal(key="daily")]
    early = make_plan(graph, goals, 1_000_000 - 60_000 - 450_000 - 1)
    assert names_of(early) == ["daily"]
    assert [(each.name, each.until_ms) for each in early.put_off] == [("report", 490_000)]
    assert names_of(make_plan(graph, goals, 490_000)) == ["prices", "report", "daily"]


def test_priority_decides_between_what_is_free():
    graph = graph_of(root("sales", 9), derived("a", ("sales", 3)), derived("b", ("sales", 3)))
    assert names_of(make_plan(graph, [Goal(key="a"), Goal(key="b", priority=1)], 0)) == ["b", "a"]


def test_node_that_offers_ever_new_versions_is_bounded_by_the_budget():
    graph = graph_of(pulled(root("sales", 5), announced=9**9, recent=60))
    plan = plan_all(graph, per_hour=60)
    assert plan.is_done
    assert "60 actions within an hour" in plan.put_off[0].why


def test_action_that_reads_more_than_its_budget_is_put_off_with_what_to_do():
    graph = graph_of(root("sales", 9), derived("totals", ("sales", 3), cost=ActionCost(size_bytes=11)))
    assert plan_all(graph, size_bytes=10).put_off[0].why == (
        "it reads 11 bytes, its budget allows 10; odf-node pull totals"
    )


def test_what_the_budget_of_a_round_leaves_out_is_not_computed_without_its_inputs():
    graph = graph_of(
        root("sales", 9),
        derived("a", ("sales", 3), cost=ActionCost(seconds=5)),
        derived("b", ("a", 1), cost=ActionCost(seconds=5)),
        derived("c", ("b", 1), cost=ActionCost(seconds=1)),
    )
    plan = plan_all(graph, seconds=6.0)
    assert names_of(plan) == ["a"]
    assert [each.name for each in plan.put_off] == ["b", "c"]
    assert names_of(plan_all(graph, seconds=1.0)) == ["a"]  # else nothing would ever be done


@pytest.mark.parametrize("budget", [ActionBudget(), ActionBudget(seconds=0.0)])
def test_datasets_in_a_circle_are_never_computed(budget: ActionBudget):
    graph = graph_of(root("x", 9), derived("a", ("b", 1), ("x", 3)), derived("b", ("a", 1)), derived("c", ("b", 1)))
    plan = make_plan(graph, [Goal(key=key) for key in graph.order], 0, budget)
    assert names_of(plan) == ["c"]  # what is there of b is read; the circle itself is named and left alone
    assert {each.name for each in plan.put_off} == {"a", "b"}


def test_derivative_whose_input_is_not_here_is_put_off():
    plan = plan_all(graph_of(root("x", 5), derived("a", ("gone", None), ("x", 1))))
    assert plan.is_done
    assert {each.name for each in plan.put_off} == {"a", "gone"}


def test_impact_is_what_rests_on_a_change_with_the_costs_of_before():
    """CONVERGE-5"""
    graph = graph_of(
        root("sales", 3),
        derived("totals", ("sales", 3), cost=ActionCost(seconds=2, rows=10)),
        derived("report", ("totals", 2)),
        pulled(derived("theirs", ("sales", 3))),
        derived("other"),
    )
    impact = find_impact(graph, ["sales"])
    assert [each.name for each in impact.own] == ["totals", "report"]
    assert [each.name for each in impact.others] == ["theirs"]
    assert (impact.seconds, impact.cost.rows, impact.unknown) == (2, 10, 1)
