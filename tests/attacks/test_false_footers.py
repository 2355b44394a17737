"""Slices whose rows and hashes are right, and whose footers say something else of them: what a footer says is a claim.

Whoever checks a slice reads its rows. An engine that passes over rows by what a footer says of them would give, and
re-execute, another result than the query has.
"""

from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from odf_engines.contract import QueryRequest, QueryTable
from odf_engines.errors import InvalidQueryError
from odf_protocol.events import DataSchema, DatasetKind, ExecuteTransform, ExecuteTransformInput, Seed, SetDataSchema
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support import view_histories
from support.false_footers import (
    saying_all_are_appends,
    saying_days_are_julian,
    saying_offsets_are_others,
    saying_rows_are_elsewhere,
)
from support.offers import CITIES, CITY_SCHEMA, NOON, Judge, PeerChain, parquet_bytes, root_chain, select, slice_table
from support.signing import NEW_KEY
from support.view_histories import APPEND, RETRACT, SCHEMAS, WITH_FLOATS, Change, View

pytestmark = pytest.mark.spark

T0 = 1_600_000_000_000
YEAR_702 = -40_000_000_000_000
ROWS = [
    Change(APPEND, (T0, 1, "x", 1)),
    Change(APPEND, (T0, 2, "x", 1)),
    Change(RETRACT, (T0, 2, "x", 1)),
    Change(APPEND, (YEAR_702, 9, "x", 1)),
]
QUERIES = {
    "view": "SELECT max(event_time) AS event_time, k, count(*) AS n FROM orders GROUP BY k",
    "map": "SELECT event_time, k FROM orders",
}
TRUE = {
    "view": [Change(APPEND, (T0, 1, 1)), Change(APPEND, (YEAR_702, 9, 1))],
    "map": [Change(each.op, each.row[:2]) for each in ROWS],
}
PASSED_OVER = {
    "operations": saying_all_are_appends,
    "offsets": partial(saying_offsets_are_others, last=len(ROWS) - 1),
}
REJECTED = {
    "places": (saying_rows_are_elsewhere, "states other places of its rows"),
    "calendar": (saying_days_are_julian, "another calendar"),
}


def changes_over(session, folder: Path, query: str, lie, schemas=SCHEMAS) -> list[Change]:
    honest = view_histories.write_changes

    def write(path, *args):
        honest(path, *args)
        path.write_bytes(lie(path.read_bytes()))
        assert pq.read_table(path).num_rows == len(ROWS)  # whoever checks its rows finds all of them

    view = View.over(session, query, folder, {"orders": schemas["orders"]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_histories, "write_changes", write)
        view.step({"orders": ROWS})
    return view.changes


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("lie", PASSED_OVER)
def test_extremes_that_are_not_true_change_no_result(spark_session, tmp_path, lie, kind):
    assert changes_over(spark_session, tmp_path, QUERIES[kind], PASSED_OVER[lie]) == TRUE[kind]


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("lie", REJECTED)
def test_footer_by_which_spark_reads_other_rows_is_rejected(spark_session, tmp_path, lie, kind):
    make, text = REJECTED[lie]

    with pytest.raises(InvalidQueryError, match=text):
        changes_over(spark_session, tmp_path, QUERIES[kind], make, WITH_FLOATS)


@pytest.mark.parametrize("lie", REJECTED)
def test_small_input_that_spark_does_not_read_has_the_rows_that_were_checked(spark_session, tmp_path, lie):
    assert changes_over(spark_session, tmp_path, QUERIES["view"], REJECTED[lie][0]) == TRUE["view"]


def test_question_over_rows_that_are_said_to_be_elsewhere_is_rejected(spark_session, tmp_path):
    path = tmp_path / "slice.parquet"
    path.write_bytes(saying_rows_are_elsewhere(parquet_bytes(slice_table(CITIES, first_offset=0, at=NOON))))
    table = QueryTable(name="cities", vocabulary=Vocabulary(), schema=CITY_SCHEMA, slices=(path,))

    with pytest.raises(InvalidQueryError, match="states other places of its rows"):
        spark_session.query(QueryRequest(tables=(table,), sql="SELECT count(*) FROM cities"))


def test_derivative_that_leaves_out_what_a_footer_hides_is_rejected(spark_session, tmp_path):
    """Its step says, with a watermark and without rows, what Spark would read of such a file: nothing."""
    folder = tmp_path / "peer"
    folder.mkdir()
    root = root_chain(folder, slices=0)
    honest = parquet_bytes(slice_table(CITIES, first_offset=0, at=Timestamp(NOON.seconds + 2)))
    root.add_slice(saying_rows_are_elsewhere(honest), rows=len(CITIES))
    chain = PeerChain(folder, key=NEW_KEY, name="names")
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.DERIVATIVE))
    chain.add(select("SELECT event_time, city FROM in0", root.id))
    columns = tuple(each for each in CITY_SCHEMA.fields if each.name != "people")
    chain.add(SetDataSchema(schema=DataSchema(fields=columns)))
    read = ExecuteTransformInput(dataset_id=root.id, new_block_hash=root.head.hash, new_offset=len(CITIES) - 1)
    chain.add(ExecuteTransform(query_inputs=(read,), new_watermark=NOON))
    judge = Judge.create(tmp_path / "judge", spark_session)
    judge.accept(root)  # its rows are what its blocks say

    # Engines get the rows, and not the file that hides them.
    judge.reject(chain.proposal(), chain.files, rule="PLAN-7 step-is-reproduced")
