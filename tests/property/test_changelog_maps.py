"""Clauses MAP-3 to MAP-6: a map's output folds to what the map of the folded input gives."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odf_spark.changelog import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT, fix_operations, fix_tables

GIVES = {APPEND, CORRECT_TO}


@st.composite
def changelogs(draw):
    """A sound changelog of one row per key: appends, corrections, retractions, corrections of nothing."""
    state, rows = {}, []
    for _ in range(draw(st.integers(0, 25))):
        key = draw(st.integers(0, 3))
        value = draw(st.one_of(st.none(), st.integers(0, 3)))
        if key not in state:
            rows.append((APPEND, key, value))
            state[key] = value
        elif draw(st.booleans()):
            rows += [(CORRECT_FROM, key, state[key]), (CORRECT_TO, key, value)]
            state[key] = value
        else:
            rows.append((RETRACT, key, state.pop(key)))
    start = draw(st.integers(0, 10))
    return [(start + i, *row) for i, row in enumerate(rows)]


@st.composite
def cut_changelogs(draw):
    """A part of a sound changelog: it may begin with a correct-to and end with a correct-from."""
    rows = draw(changelogs())
    begin = draw(st.integers(0, len(rows)))
    return rows[begin : draw(st.integers(begin, len(rows)))]


any_rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.one_of(st.none(), st.integers(0, 2)))).map(
    lambda rows: [(offset, *row) for offset, row in enumerate(rows)]
)


def apply_map(rows, keeps, forgets):
    """What Spark does with a map: drop rows by their content, compute columns from their content."""
    return [
        (offset, op, key, None if forgets else value)
        for offset, op, key, value in rows
        if value is not None and (keeps >> value) & 1
    ]


def run(rows, cuts=()):
    table = pa.table(
        {
            "key": pa.array([row[2] for row in rows], pa.int64()),
            "value": pa.array([row[3] for row in rows], pa.int64()),
            "offset": pa.array([row[0] for row in rows], pa.int64()),
            "op": pa.array([row[1] for row in rows], pa.int32()),
        }
    )
    edges = sorted({0, *(cut % (len(rows) + 1) for cut in cuts), len(rows)})
    chunks = [table.slice(begin, end - begin) for begin, end in pairwise(edges)]
    return [
        (int(op), *values)
        for fixed, operations in fix_tables(chunks)
        for op, *values in zip(operations, *(column.to_pylist() for column in fixed.columns), strict=True)
    ]


def fold(rows):
    bag = Counter()
    for op, *values in rows:
        bag[tuple(values)] += 1 if op in GIVES else -1
    return Counter({row: count for row, count in bag.items() if count})


@given(any_rows, st.integers(0, 15), st.booleans())
def test_output_folds_to_the_map_of_the_folded_input(rows, keeps, forgets):
    mapped = apply_map(rows, keeps, forgets)
    assert fold(run(mapped)) == fold([row[1:] for row in mapped])


@given(changelogs(), st.integers(0, 15), st.booleans())
def test_sound_input_gives_output_that_never_takes_what_was_not_given(rows, keeps, forgets):
    bag = Counter()
    for op, *values in run(apply_map(rows, keeps, forgets)):
        bag[tuple(values)] += 1 if op in GIVES else -1
        assert bag[tuple(values)] >= 0


@given(changelogs(), st.integers(0, 15))
def test_folding_by_key_gives_the_state_that_the_map_of_the_state_has(rows, keeps):
    state, expected = {}, {}
    for op, key, value in run(apply_map(rows, keeps, forgets=False)):
        if op in GIVES:
            state[key] = value
        else:
            del state[key]
    for _, op, key, value in rows:
        expected[key] = value
        if op == RETRACT:
            del expected[key]
    assert state == {k: v for k, v in expected.items() if v is not None and (keeps >> v) & 1}


@given(any_rows, st.integers(0, 15), st.booleans())
def test_corrections_always_come_as_pairs(rows, keeps, forgets):
    operations = [row[0] for row in run(apply_map(rows, keeps, forgets))]
    for position, op in enumerate(operations):
        if op == CORRECT_FROM:
            assert operations[position + 1] == CORRECT_TO
        if op == CORRECT_TO:
            assert operations[position - 1] == CORRECT_FROM


@given(cut_changelogs(), st.integers(0, 15), st.booleans(), st.lists(st.integers(0, 60), max_size=6))
@example([(0, CORRECT_FROM, 1, 1), (1, CORRECT_TO, 1, 2)], 15, False, [1])
@example([(0, CORRECT_FROM, 1, 1)], 15, False, [])
@example([(7, CORRECT_TO, 1, 1)], 15, False, [])
def test_pieces_do_not_matter(rows, keeps, forgets, cuts):
    mapped = apply_map(rows, keeps, forgets)
    assert run(mapped, cuts) == run(mapped)


@given(changelogs(), st.integers(0, 40), st.integers(0, 15))
def test_steps_that_cut_a_pair_fold_to_the_same(rows, cut, keeps):
    mapped = apply_map(rows, keeps, forgets=False)
    first = [row for row in mapped if row[0] < cut]
    second = [row for row in mapped if row[0] >= cut]
    assert fold(run(first) + run(second)) == fold(run(mapped))


def test_correction_out_of_the_filter_becomes_a_retraction():
    rows = [(0, APPEND, 1, 1), (1, CORRECT_FROM, 1, 1)]
    assert run(rows) == [(APPEND, 1, 1), (RETRACT, 1, 1)]


def test_correction_into_the_filter_becomes_an_append():
    assert run([(5, CORRECT_TO, 1, 2)]) == [(APPEND, 1, 2)]


def test_correction_between_rows_of_other_pairs_is_not_a_pair():
    rows = [(0, CORRECT_FROM, 1, 1), (3, CORRECT_TO, 2, 2)]
    assert run(rows) == [(RETRACT, 1, 1), (APPEND, 2, 2)]


def test_correction_of_nothing_is_dropped():
    assert run([(0, CORRECT_FROM, 1, 1), (1, CORRECT_TO, 1, 1)]) == []


@pytest.mark.parametrize(
    ("left", "right", "dropped"),
    [
        pytest.param(0.0, -0.0, False, id="zeros-of-two-signs-differ"),
        pytest.param(float("nan"), float("nan"), True, id="nan-equals-itself"),
        pytest.param(None, None, True, id="null-equals-null"),
        pytest.param(None, 0.0, False, id="null-is-not-zero"),
        pytest.param([0.0], [-0.0], False, id="zeros-in-lists-differ"),
        pytest.param([None], [None], True, id="lists-of-null-are-equal"),
        pytest.param(b"a", b"b", False, id="bytes"),
    ],
)
def test_only_identical_rows_count_as_a_correction_of_nothing(left, right, dropped):
    values = pa.array([left, right], pa.int64() if left is None and right is None else None)
    table = pa.table({"x": values, "offset": [0, 1], "op": [CORRECT_FROM, CORRECT_TO]})
    assert (not list(fix_tables([table]))) is dropped


def test_rows_out_of_order_are_rejected():
    table = pa.table({"offset": [1, 0], "op": [0, 0]})
    with pytest.raises(ValueError, match="order of the input"):
        list(fix_tables([table]))


def test_unknown_operation_is_rejected():
    with pytest.raises(ValueError, match="0 to 3"):
        fix_operations(np.array([0]), np.array([4]))
