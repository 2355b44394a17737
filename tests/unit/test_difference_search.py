import numpy as np
import pyarrow as pa
import pytest

from odf_protocol.errors import RejectedError
from odf_protocol.hashing.v1 import TableSummary
from odf_protocol.hashing.v1_difference import Difference, DifferenceSearch, NodeName, TableHeader, answer_query
from odf_protocol.hashing.v1_leaf import LEAF_ROWS
from support.logical_hash import hash_table, header_of

LEAVES = 40


def values(rows: int = LEAVES * LEAF_ROWS, columns: int = 20) -> list[np.ndarray]:
    return [np.arange(rows) * (i + 1) for i in range(columns)]


def summary_of(columns: list[np.ndarray]) -> TableSummary:
    batch = pa.record_batch([pa.array(column) for column in columns], names=[f"c{i}" for i in range(len(columns))])
    return hash_table(batch.schema, [batch])


def search(mine: TableSummary, theirs: TableSummary) -> tuple[DifferenceSearch, int, int]:
    """Run a search; also return rounds and questions."""
    found = DifferenceSearch(mine, theirs.root, header_of(theirs))
    rounds = query_service = 0
    while found.query_service:
        rounds += 1
        for query_text in found.query_service:
            query_service += 1
            found.answer(query_text, answer_query(theirs, query_text))
    return found, rounds, query_service


def test_equal_tables_need_no_question() -> None:
    found, rounds, _ = search(summary_of(values()), summary_of(values()))
    assert (found.differences, rounds, found.is_complete) == ([], 0, True)


def test_one_cell_among_millions_is_found_with_a_few_questions() -> None:
    other = values()
    other[17][25 * LEAF_ROWS + 9] += 1
    found, rounds, query_service = search(summary_of(values()), summary_of(other))
    assert found.differences == [Difference(17, "c17", 25 * LEAF_ROWS, 26 * LEAF_ROWS)]
    assert (rounds, query_service) == (4, 4)


def test_several_differences_are_found_in_order() -> None:
    other = values()
    for column, row in ((3, 0), (3, 39 * LEAF_ROWS), (0, 7 * LEAF_ROWS)):
        other[column][row] += 1
    found, _, _ = search(summary_of(values()), summary_of(other))
    assert [(d.column, d.start // LEAF_ROWS) for d in found.differences] == [("c0", 7), ("c3", 0), ("c3", 39)]


@pytest.mark.parametrize("rows", [0, 1, LEAF_ROWS, 5 * LEAF_ROWS + 1, 16 * LEAF_ROWS, 39 * LEAF_ROWS + 5])
def test_tables_of_different_length_differ_from_where_one_ends(rows: int) -> None:
    long, short = summary_of(values()), summary_of(values(rows))
    border = rows - rows % LEAF_ROWS if rows else 0
    for mine, theirs in ((long, short), (short, long)):
        found, _, _ = search(mine, theirs)
        assert {d.column for d in found.differences} == {f"c{i}" for i in range(20)}
        assert min(d.start for d in found.differences) == border
        assert max(d.stop for d in found.differences) == LEAVES * LEAF_ROWS


def test_other_columns_are_said_to_be_the_difference() -> None:
    with pytest.raises(RejectedError, match=r"LH1-18 same-columns: expected c0 int64, found c0 int64, c1 int64"):
        search(summary_of(values(9, 1)), summary_of(values(9, 2)))


def test_header_of_another_table_is_rejected() -> None:
    mine, theirs = summary_of(values(9, 1)), summary_of(values(8, 1))
    header = header_of(theirs)
    for wrong in (
        header_of(mine),
        TableHeader(7, header.schema, header.columns_top),
        TableHeader(8, header.schema + b"x", header.columns_top),
        TableHeader(8, header.schema, bytes(32)),
    ):
        with pytest.raises(RejectedError, match="LH1-18"):
            DifferenceSearch(mine, theirs.root, wrong)


def test_answer_that_does_not_fit_its_node_is_rejected() -> None:
    other = values()
    other[0][0] += 1
    theirs = summary_of(other)
    found = DifferenceSearch(summary_of(values()), theirs.root, header_of(theirs))
    (query_text,) = found.query_service
    honest = answer_query(theirs, query_text)
    for lie in (honest[:-1], (*honest, bytes(32)), (bytes(32), *honest[1:]), (b"short",), (b"".join(honest),), ()):
        with pytest.raises(RejectedError, match="LH1-19"):
            found.answer(query_text, lie)
    assert found.query_service == (query_text,)
    found.answer(query_text, honest)


@pytest.mark.parametrize(
    "query_text", [NodeName(None, 0, 0), NodeName(None, 9, 0), NodeName(99, 1, 0), NodeName(0, 1, 9)]
)
def test_question_about_nothing_is_rejected(query_text: NodeName) -> None:
    with pytest.raises(RejectedError, match="LH1-19"):
        answer_query(summary_of(values()), query_text)


def test_search_among_very_many_differences_ends_and_says_so() -> None:
    rows = 1100 * LEAF_ROWS
    mine, theirs = summary_of([np.zeros(rows, np.int8)]), summary_of([np.ones(rows, np.int8)])
    found, _, _ = search(mine, theirs)
    assert not found.is_complete
    assert len(found.differences) == 1000
