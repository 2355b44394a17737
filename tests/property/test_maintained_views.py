"""Folded, the output of a maintained view is the query over the folded inputs, after every step, however they are cut.

The oracle is a database of another make over the folded inputs. Three of four histories of two steps begin after a
first one that gave what the oracle says: the second computes that result again. ``VIEW_EXAMPLES`` says how many pairs
of a query and a history are tried, ``VIEW_SEED`` which is the first; ``make proof`` tries many.
"""

import os
from random import Random

import pytest

from odf_engines.errors import NotReproducibleError
from support.view_histories import (
    SCHEMAS,
    WITH_FLOATS,
    Change,
    View,
    cut,
    expected_rows,
    fold,
    random_changelog,
    random_query,
)

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("VIEW_EXAMPLES", "100"))
SEED = int(os.environ.get("VIEW_SEED", "0"))
PER_TEST = 20


def check_view(session, tmp_path, seed: int) -> None:
    random = Random(seed)
    query = random_query(random)
    logs = {name: random_changelog(random, name, random.randrange(3, 16)) for name in SCHEMAS}
    begins_later = seed % 4 != 0
    number = random.choice([1, 2, 2] if begins_later else [1, 2, 3])
    subsets = {name: cut(random, log, number) for name, log in logs.items()}
    folder = tmp_path / str(seed)
    folder.mkdir()
    view = View.over(session, query, folder, WITH_FLOATS if seed % 5 == 0 else SCHEMAS)
    seen: dict[str, list[Change]] = {name: [] for name in SCHEMAS}
    for step in range(number):
        given = {name: subsets[name][step] for name in SCHEMAS}
        for name in SCHEMAS:
            seen[name] += given[name]
        expected = expected_rows(query, {name: fold(log) for name, log in seen.items()})
        if begins_later and step < number - 1:
            view.begin_after({name: [(given[name], None)] for name in SCHEMAS}, expected)
            continue
        try:
            view.step(given)
        except NotReproducibleError:
            assert "FULL OUTER JOIN" in query  # without an equality it has no order (GATE-12)
            return
        assert fold(view.changes) == expected, f"seed {seed}, step {step}: {query}"


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, PER_TEST))
def test_folded_output_is_the_query_over_the_folded_inputs(spark_session, tmp_path, first):
    for seed in range(first, min(first + PER_TEST, SEED + EXAMPLES)):
        check_view(spark_session, tmp_path, seed)
