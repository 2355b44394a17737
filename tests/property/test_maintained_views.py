"""Folded, the output of a maintained view is the query over the folded inputs, after every step, however they are cut.

The oracle is a database of another make over the folded inputs. Of the first hundred pairs of a query and a history
those are tried whose query has a word that less than two before it had: each construct is tried twice at least.
``VIEW_EXAMPLES`` says how many are tried one after the other instead, ``VIEW_SEED`` which is the first; ``make proof``
tries many.
"""

import os
import re
from collections import Counter
from random import Random

import pytest

from odf_engines.errors import NotReplayableError
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

SEED = int(os.environ.get("VIEW_SEED", "0"))
PER_TEST = 20


def seeds_of_all_words(most: int, times: int) -> list[int]:
    """The first seeds below ``most`` whose queries have each word of all these queries so many times, if they do."""
    met: Counter[str] = Counter()
    found = []
    for seed in range(most):
        words = set(re.findall(r"[A-Za-z_]+", random_query(Random(seed))))
        if any(met[word] < times for word in words):
            found.append(seed)
            met.update(words)
    return found


SEEDS = (
    [*range(SEED, SEED + int(os.environ["VIEW_EXAMPLES"]))]
    if "VIEW_EXAMPLES" in os.environ
    else seeds_of_all_words(100, times=2)
)


def check_view(session, tmp_path, seed: int) -> None:
    random = Random(seed)
    query = random_query(random)
    logs = {name: random_changelog(random, name, random.randrange(3, 16)) for name in SCHEMAS}
    number = random.choice([1, 2, 3])
    portions = {name: cut(random, log, number) for name, log in logs.items()}
    folder = tmp_path / str(seed)
    folder.mkdir()
    view = View.over(session, query, folder, WITH_FLOATS if seed % 5 == 0 else SCHEMAS)
    seen: dict[str, list[Change]] = {name: [] for name in SCHEMAS}
    for step in range(number):
        given = {name: portions[name][step] for name in SCHEMAS}
        for name in SCHEMAS:
            seen[name] += given[name]
        try:
            view.step(given)
        except NotReplayableError:
            assert "FULL OUTER JOIN" in query  # without an equality it has no order (GATE-12)
            return
        expected = expected_rows(query, {name: fold(log) for name, log in seen.items()})
        assert fold(view.changes) == expected, f"seed {seed}, step {step}: {query}"


@pytest.mark.parametrize("first", range(0, len(SEEDS), PER_TEST))
def test_folded_output_is_the_query_over_the_folded_inputs(spark_session, tmp_path, first):
    for seed in SEEDS[first : first + PER_TEST]:
        check_view(spark_session, tmp_path, seed)
