import io
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from odf_protocol.hashing.v1 import column_array
from odf_protocol.hashing.v1_difference import DifferenceSearch, answer_query
from odf_protocol.hashing.v1_leaf import leaf_parts, normalized
from odf_protocol.hashing.v1_types import decode_schema, encode_schema
from odf_protocol.multihash import Multihash
from support.arrow_data import batchings, random_array, seeds, split, tables
from support.arrow_layouts import relaid_schema
from support.leaf_reader import read_leaf
from support.logical_hash import hash_table, header_of


def root_of(table: pa.Table) -> Multihash:
    return hash_table(table.schema, table.to_batches()).root


@given(st.data(), tables())
def test_any_batching_gives_one_root(data: st.DataObject, table: pa.Table) -> None:
    batches = split(table, data.draw(batchings(table.num_rows)))
    assert hash_table(table.schema, batches).root == root_of(table)


@given(tables(), st.booleans())
def test_layout_does_not_change_the_root(table: pa.Table, large: bool) -> None:
    text, binary = (pa.large_string(), pa.large_binary()) if large else (pa.string(), pa.binary())
    assert root_of(table.cast(relaid_schema(table.schema, text, binary))) == root_of(table)


@settings(deadline=None)
@given(tables(), st.booleans())
def test_parquet_round_trip_keeps_the_root(table: pa.Table, stored: bool) -> None:
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=stored)
    read = pq.read_table(sink)
    # Parquet knows no seconds and no other time zone than UTC: those columns come back with other types.
    assume(encode_schema(read.schema) == encode_schema(table.schema))
    assert root_of(read) == root_of(table)


@given(st.data(), tables(min_rows=1), seeds())
def test_any_changed_cell_changes_the_root_and_is_located(data: st.DataObject, table: pa.Table, seed: int) -> None:
    column = data.draw(st.integers(0, table.num_columns - 1))
    row = data.draw(st.integers(0, table.num_rows - 1))
    field = table.schema.field(column)
    other = random_array(np.random.default_rng(seed), field.type, 1, 0.2 if field.nullable else 0.0)
    old = table.column(column).combine_chunks()
    assume(not other.equals(old.slice(row, 1)))
    chunks = [old.slice(0, row), other, old.slice(row + 1)]
    changed = table.set_column(column, field, pa.concat_arrays(chunks))
    mine, theirs = hash_table(table.schema, table.to_batches()), hash_table(table.schema, changed.to_batches())
    assert mine.root != theirs.root
    search = DifferenceSearch(mine, theirs.root, header_of(theirs))
    while search.query_service:
        for query_text in search.query_service:
            search.answer(query_text, answer_query(theirs, query_text))
    assert {mine.columns[found.column_index].path[0] for found in search.differences} == {column}


@given(tables(min_rows=2), seeds())
def test_exchanged_rows_change_the_root(table: pa.Table, seed: int) -> None:
    order = list(range(table.num_rows))
    random.Random(seed).shuffle(order)
    batch = table.combine_chunks().to_batches()[0]
    rows = [batch.slice(i, 1) for i in order]
    shuffled = pa.Table.from_batches(rows)
    assert (root_of(shuffled) == root_of(table)) == shuffled.equals(table)


@given(tables(min_rows=1))
def test_removed_row_changes_the_root(table: pa.Table) -> None:
    assert root_of(table.slice(1)) != root_of(table)


@given(tables())
def test_every_column_is_read_back_from_its_leaf(table: pa.Table) -> None:
    batch = table.combine_chunks().to_batches()
    assume(bool(batch))
    for column in hash_table(table.schema, batch).columns:
        array = column_array(batch[0], column)
        raw = b"".join(leaf_parts(array, is_column=False))
        again = read_leaf(raw, column.type, is_column=False)
        assert b"".join(leaf_parts(normalized(again), is_column=False)) == raw
        assert again.is_valid().equals(array.is_valid())


@given(tables())
def test_schema_is_read_back(table: pa.Table) -> None:
    raw = encode_schema(table.schema)
    assert encode_schema(decode_schema(raw)) == raw
