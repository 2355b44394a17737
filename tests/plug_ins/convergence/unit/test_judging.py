"""CONVERGE-2 to CONVERGE-4: the state of each dataset follows from what chains say."""

from dataclasses import replace

from odf_convergence.graph import Attempt, GraphDataset, InputLimit, ReadInput
from odf_convergence.judging import DatasetState, judge_all
from support.convergence_graphs import derived, graph_of, pulled, root


def states(*datasets: GraphDataset) -> dict[str, str]:
    return {key: f"{each.state}: {each.why}".removesuffix(": ") for key, each in judge_all(graph_of(*datasets)).items()}


def test_derivative_is_stale_since_the_first_block_that_it_has_not_read():
    found = judge_all(graph_of(root("sales", 5), derived("totals", ("sales", 3))))
    assert found["totals"].state is DatasetState.STALE
    assert found["totals"].why == "blocks 4 to 5 of sales"
    assert found["totals"].since == (("sales", 4),)
    assert found["sales"].state is DatasetState.UP_TO_DATE


def test_blocks_without_rows_make_nothing_stale():
    """A licence that changes is a block, and no reader has anything to do for it."""
    assert states(root("sales", 3, head=9), derived("totals", ("sales", 3)))["totals"] == "up to date"


def test_what_rests_on_a_stale_dataset_is_stale_and_not_due():
    graph = graph_of(root("sales", 5), derived("totals", ("sales", 3)), derived("report", ("totals", 2)))
    report = judge_all(graph)["report"]
    assert (report.state, report.why, report.is_due) == (DatasetState.STALE, "its input totals is stale", False)


def test_derivative_of_inputs_that_have_no_rows_waits():
    assert states(root("sales", None), derived("totals", ("sales", None), has_columns=False))["totals"] == (
        "waiting: its input sales has had no rows yet"
    )


def test_derivative_that_made_no_step_is_due_once_its_inputs_have_columns():
    graph = graph_of(root("sales", None, has_columns=True), derived("totals", ("sales", None), has_columns=False))
    assert judge_all(graph)["totals"].is_due


def test_step_that_gave_nothing_at_these_versions_is_not_tried_again():
    graph = graph_of(root("sales", 5), derived("totals", ("sales", 3), is_settled=True))
    assert judge_all(graph)["totals"].state is DatasetState.UP_TO_DATE


def test_input_that_is_held_back_is_read_up_to_its_limit():
    limit = InputLimit(upto=4, why="its contract is broken")
    held = ReadInput(key="sales", taken=3, limit=limit)
    graph = graph_of(root("sales", 6), derived("totals", ("sales", 3), inputs=(held,)))
    assert judge_all(graph)["totals"].why == "block 4 of sales"
    graph = graph_of(root("sales", 6), derived("totals", inputs=(replace(held, taken=4),)))
    assert (judge_all(graph)["totals"].state, judge_all(graph)["totals"].why) == (
        DatasetState.HELD,
        "sales: its contract is broken",
    )


def test_derivative_of_another_node_waits_for_its_owner():
    found = states(root("sales", 5), pulled(derived("totals", ("sales", 3))))
    assert found["totals"] == "waiting: https://peer.example has not read blocks 4 to 5 of sales"


def test_dataset_of_another_node_with_announced_blocks_is_stale():
    found = states(pulled(root("sales", 5), announced=7))
    assert found["sales"] == "stale: https://peer.example has block 7, this node block 5"


def test_input_that_is_not_here_is_named():
    found = states(derived("totals", ("did:odf:gone", None)))
    assert found["totals"].startswith("waiting: its input did:odf:gone is not in this node")


def test_failure_holds_for_the_versions_at_which_it_was_tried():
    failed = Attempt(text="the engine failed", until_ms=10)
    assert states(root("sales", 5), derived("totals", ("sales", 3), failed=failed))["totals"] == (
        "failed: the engine failed"
    )


def test_circle_is_named_with_its_edges_and_what_follows_it_waits():
    """CONVERGE-3: also over nodes, as chains of others name their inputs."""
    found = states(
        pulled(derived("a", ("b", 1))),
        derived("b", ("c", 1), ("x", 0)),
        derived("c", ("a", 1)),
        derived("d", ("c", 2)),
        root("x"),
    )
    assert found["a"] == found["b"] == found["c"] == "held: datasets read each other in a circle: a → c → b → a"
    assert found["d"] == "waiting: its input c is held"
    assert found["x"] == "up to date"


def test_dataset_that_reads_itself_is_a_circle():
    assert states(derived("a", ("a", 1)))["a"] == "held: datasets read each other in a circle: a → a"


def test_long_circle_is_shortened():
    names = [f"d{number:03}" for number in range(200)]
    datasets = [derived(name, (names[number - 1], 1)) for number, name in enumerate(names)]
    graph = graph_of(*datasets)
    assert graph.describe_circle(0).endswith(" → 188 others → d000")
