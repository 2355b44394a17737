"""CONVERGE-9: what is reached is a function of sources and definitions, whatever came when, failed or was cut off."""

import random

from hypothesis import given
from hypothesis import strategies as st

from odf_convergence.graph import make_graph
from odf_convergence.planner import Goal, make_plan
from support.convergence_graphs import derived, make_random_graph, root
from support.convergence_world import PaperWorld


def disturb(world: PaperWorld, rows: list[tuple[str, int]], rounds: int) -> None:
    """Let rows come in some order while nodes work, fail, are killed and are cut off from each other."""
    chance = random.Random(world.seed + 1)
    chance.shuffle(rows)
    for number in range(rounds):
        for key, row in rows[number::rounds]:
            world.add_row(key, row)
        world.cut = {each for each in range(world.node_count) if chance.random() < world.fault_rate}
        world.gossip()
        for node in chance.sample(range(world.node_count), k=max(1, world.node_count // 2)):
            world.run_node(node)
        world.now_ms += chance.choice((0, 500, 5_000))


def values_of(world: PaperWorld) -> dict[str, object]:
    return {key: chain[-1].value for key, chain in world.chains.items()}


@given(
    graph=st.integers(0, 10_000),
    count=st.integers(2, 40),
    nodes=st.integers(1, 6),
    orders=st.lists(st.integers(0, 10_000), min_size=2, max_size=3, unique=True),
    fault_rate=st.sampled_from([0.0, 0.1, 0.5]),
)
def test_state_follows_from_sources_and_definitions(
    graph: int, count: int, nodes: int, orders: list[int], fault_rate: float
) -> None:
    inputs = make_random_graph(graph, count)
    rows = [(key, number) for number, key in enumerate(each for each in inputs if not inputs[each])] * 2
    reached = []
    for seed in orders:
        world = PaperWorld(inputs, nodes, seed, fault_rate)
        disturb(world, [(key, number * 100 + row) for number, (key, row) in enumerate(rows)], rounds=5)
        world.heal_and_settle(max_rounds=2 * count + 10)
        reached.append(values_of(world))
        assert reached[-1] == world.expect()
        for number, node in enumerate(world.nodes):
            for key, head in node.heads.items():
                assert head == len(world.chains[key]) - 1, (number, key)
    assert all(each == reached[0] for each in reached)


@given(graph=st.integers(0, 10_000), count=st.integers(2, 60), late=st.integers(0, 1000))
def test_a_thousand_late_rows_are_one_recomputation_of_each_dataset_below(graph: int, count: int, late: int) -> None:
    inputs = make_random_graph(graph, count)
    world = PaperWorld(inputs, 1, graph)
    roots = sorted(key for key in inputs if not inputs[key])
    for key in roots:
        world.add_row(key, -1)
    world.heal_and_settle(max_rounds=3)
    world.steps.clear()
    changed = random.Random(late).choice(roots)
    for row in range(late):
        world.add_row(changed, row)
    world.run_node(0)
    below = make_graph(
        [derived(key, *((source, 0) for source in read)) if read else root(key) for key, read in inputs.items()]
    ).list_below([changed]) - {changed}
    assert set(world.steps) <= below
    assert all(count == 1 for count in world.steps.values())
    assert world.run_node(0) == 0


@given(graph=st.integers(0, 10_000), count=st.integers(1, 60), seed=st.integers(0, 1000))
def test_plan_has_each_dataset_once_after_its_inputs_in_whatever_order_datasets_are_listed(
    graph: int, count: int, seed: int
) -> None:
    inputs = make_random_graph(graph, count)
    chance = random.Random(seed)
    datasets = [
        derived(key, *((source, chance.choice((None, 0, 2))) for source in read)) if read else root(key, 2)
        for key, read in inputs.items()
    ]
    made = make_graph(datasets)
    plan = make_plan(made, [Goal(key=key, priority=chance.randrange(3)) for key in inputs], 0)
    place = {each.key: number for number, each in enumerate(plan.actions)}
    assert len(place) == len(plan.actions)
    assert all(place[source] < place[key] for key in place for source in inputs[key] if source in place)
    chance.shuffle(datasets)
    assert make_graph(datasets).order == made.order


def test_five_hundred_nodes_with_ten_thousand_datasets_settle() -> None:
    """On paper: every node plans for what it has by the real planner; a tenth of news, actions and nodes fails."""
    inputs = make_random_graph(7, 10_000)
    world = PaperWorld(inputs, 500, seed=7, fault_rate=0.1)
    roots = [key for key in inputs if not inputs[key]]
    disturb(world, [(key, number) for number, key in enumerate(roots)], rounds=2)
    world.heal_and_settle(max_rounds=100)
    assert values_of(world) == world.expect()
