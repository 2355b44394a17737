"""Two worlds that differ in hidden datasets alone answer every request of a stranger alike (EX-3, EX-80 to EX-86,
PAGES-2).

In one of them a node holds a dataset that is hidden, and one derived from it that is hidden too; in the other it does
not. Both hold the same published datasets, one of which is derived from the hidden one. Both are asked the same things
over real sockets, on every route with every method: status, headers and bodies are compared.
"""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from odf_node.http.route_tables import add_plug_in_routes
from odf_node.http.server import create_app
from support import hidden_worlds as worlds
from support.hidden_worlds import Universe, open_universe
from support.secretive_node import THIEF_TOKEN

EXAMPLES = 40
APP = create_app(SimpleNamespace(clock=worlds.SharedClock()))  # type: ignore[arg-type]
add_plug_in_routes(APP, None)  # type: ignore[arg-type]
ROUTES = sorted({route.resource.canonical for route in APP.router.routes() if route.resource})
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
TOKENS = (None, THIEF_TOKEN, "odf_unknown_0123456789")


@pytest.fixture(scope="module")
def universe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Universe]]:
    with asyncio.Runner() as runner:
        opened = open_universe(tmp_path_factory.mktemp("worlds"))
        try:
            yield runner, runner.run(opened.__aenter__())
        finally:
            runner.run(opened.__aexit__(None, None, None))


def any_request() -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(
        st.just(worlds.ask),
        st.sampled_from(ROUTES),
        st.sampled_from(METHODS),
        st.sampled_from(worlds.NAMES),
        st.sampled_from(worlds.HASHES),
        st.sampled_from(TOKENS),
        st.sampled_from(worlds.BODIES),
        st.sampled_from(worlds.HEADERS),
    )


def reading() -> st.SearchStrategy[tuple[Any, ...]]:
    """Requests that most often find something, where what is hidden would show."""
    return st.tuples(
        st.just(worlds.ask),
        st.sampled_from([route for route in ROUTES if "{dataset}" in route]),
        st.sampled_from(["GET", "HEAD"]),
        st.sampled_from(worlds.NAMES),
        st.sampled_from(worlds.HASHES),
        st.sampled_from(TOKENS),
        st.just("none"),
        st.sampled_from(worlds.HEADERS),
    )


VARIANTS = st.sampled_from(worlds.VARIANTS)
STEPS = st.one_of(
    any_request(),
    reading(),
    st.tuples(
        st.just(worlds.push),
        VARIANTS,
        st.sampled_from(["thief", "hidden", "secret", "absent", "shown"]),
        st.sampled_from(["nothing", "wrong", "all"]),
        st.booleans(),
    ),
    st.tuples(
        st.just(worlds.smart),
        st.sampled_from(["pull", "push"]),
        st.sampled_from(worlds.NAMES),
        st.sampled_from(TOKENS),
        VARIANTS,
        st.booleans(),
    ),
    st.tuples(st.just(worlds.gossip), st.sampled_from(worlds.GOSSIP)),
)


@given(st.lists(STEPS, min_size=1, max_size=4))
@example([(worlds.push, "slices", "hidden", "all", True), (worlds.push, "slices", "thief", "nothing", True)])
@example([(worlds.push, "slices", "thief", "nothing", True), (worlds.push, "checkpoint", "thief", "nothing", True)])
@example([(worlds.push, "other size", "thief", "all", True)])
@example([(worlds.push, "derivative", "thief", "all", True)])
@example(
    [
        (worlds.smart, "push", name, THIEF_TOKEN, "slices", sends)
        for name in ("hidden", "thief")
        for sends in (False, True)
    ]
)
@example([(worlds.gossip, kind) for kind in worlds.GOSSIP])
@settings(max_examples=EXAMPLES)
def test_stranger_sees_the_same_in_both_worlds(
    universe: tuple[asyncio.Runner, Universe], steps: list[tuple[Any, ...]]
) -> None:
    runner, both = universe
    runner.run(both.compare([make(both, *rest) for make, *rest in steps]))


def test_every_route_answers_alike_about_hidden_and_absent_datasets(universe: tuple[asyncio.Runner, Universe]) -> None:
    """All routes that name a dataset, with all methods: what chance might leave out."""
    runner, both = universe
    steps = [
        worlds.ask(both, route, method, name, "hidden-slice", token, "none", {})
        for route in ROUTES
        for method in ("GET", "POST", "PUT", "DELETE")
        for name in (("hidden", "hidden-id", "derived") if "{dataset}" in route else ("hidden",))
        for token in (None, THIEF_TOKEN)
    ]
    seen = runner.run(both.compare(steps))
    assert {status for status, _, _ in seen} >= {200, 401, 404, 405}


def test_what_a_stranger_may_do_is_done_in_both_worlds(universe: tuple[asyncio.Runner, Universe]) -> None:
    """The comparison is of answers that say something."""
    runner, both = universe
    (pushed,) = runner.run(both.compare([worlds.push(both, "slices", "hidden", "all", True)]))
    *_, state, named, identified, listed, searched, found = pushed
    assert b'"status":"accepted"' in state[2]
    assert named[0] == identified[0] == 200
    assert all(b'"Hidden.data"' in each[2] for each in (listed, searched, found))
    (spoken,) = runner.run(both.compare([worlds.smart(both, "push", "hidden", THIEF_TOKEN, "slices", False)]))
    assert [b"Ok" in stated[2] for _, stated in spoken] == [True, True, True, False]
    assert b"HttpUpload" in spoken[2][1][2]
    assert b"all-objects" in spoken[3][1][2]
    *_, refused = runner.run(both.compare([worlds.push(both, "derivative", "thief", "nothing", True)]))[0][:-5]
    assert b'"status":"refused"' in refused[2]
    answers = runner.run(both.compare([worlds.gossip(both, kind) for kind in worlds.GOSSIP]))
    assert [status for status, _, _ in answers] == [429 if kind == "compare badly" else 200 for kind in worlds.GOSSIP]
    assert b'"items":[{"kind":"head"' in answers[worlds.GOSSIP.index("want")][2]
