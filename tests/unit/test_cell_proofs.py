import msgspec
import numpy as np
import pyarrow as pa
import pytest

from odf_protocol.errors import MalformedError, OdfError, RejectedError
from odf_protocol.hashing.v1 import TableSummary, column_array, hash_table
from odf_protocol.hashing.v1_leaf import LEAF_ROWS
from odf_protocol.hashing.v1_proof import leaf_rows, prove_cell, verify_cell
from odf_protocol.multihash import Multihash

ROWS = 20 * LEAF_ROWS + 7
FIELDS = 20


@pytest.fixture(scope="module")
def batch() -> pa.RecordBatch:
    rng = np.random.default_rng(5)
    numbers = [pa.array(rng.integers(0, 1000, ROWS), mask=rng.random(ROWS) < 0.1) for _ in range(FIELDS)]
    struct = pa.StructArray.from_arrays([numbers[0]], names=["x"], mask=pa.array(rng.random(ROWS) < 0.2))
    text = pa.array([f"row {i}" for i in range(ROWS)])
    names = [f"c{i}" for i in range(FIELDS)]
    return pa.record_batch([*numbers, struct, text], names=[*names, "s", "t"])


@pytest.fixture(scope="module")
def summary(batch: pa.RecordBatch) -> TableSummary:
    return hash_table(batch.schema, [batch])


def prove(batch: pa.RecordBatch, summary: TableSummary, column: int, row: int) -> bytes:
    rows = leaf_rows(row, batch.num_rows)
    values = column_array(batch.slice(rows.start, len(rows)), summary.columns[column])
    return prove_cell(summary, column, row, values)


@pytest.mark.parametrize("row", [0, 1, LEAF_ROWS - 1, LEAF_ROWS, 16 * LEAF_ROWS, ROWS - 1])
@pytest.mark.parametrize("column", [0, 15, 16, FIELDS, FIELDS + 1, FIELDS + 2])
def test_cell_is_proved_against_the_root_alone(
    batch: pa.RecordBatch, summary: TableSummary, column: int, row: int
) -> None:
    cell = verify_cell(summary.root, prove(batch, summary, column, row))
    expected = column_array(batch, summary.columns[column])[row]
    assert (cell.column, cell.row) == (summary.columns[column].name, row)
    if cell.column == "s":
        assert cell.value.as_py() == expected.is_valid
    else:
        assert cell.value.as_py() == expected.as_py()


def test_proof_says_nothing_under_another_root(batch: pa.RecordBatch, summary: TableSummary) -> None:
    raw = prove(batch, summary, 0, 0)
    with pytest.raises(RejectedError, match="LH1-15 proof-leads-to-the-root"):
        verify_cell(Multihash(summary.root.code, bytes(32)), raw)
    with pytest.raises(RejectedError, match="LH1-15 root-is-v1"):
        verify_cell(Multihash(0x16, summary.root.digest), raw)


@pytest.mark.parametrize(
    "changes",
    [
        {"row": 5},
        {"row": LEAF_ROWS},
        {"row": ROWS},
        {"column": 4},
        {"column": 99},
        {"rowCount": ROWS + 1},
        {"rowCount": LEAF_ROWS},
        {"rowPath": []},
        {"columnPath": []},
        {"schema": b""},
        {"leaf": b""},
    ],
    ids=str,
)
def test_changed_claim_is_refused_or_is_true(
    batch: pa.RecordBatch, summary: TableSummary, changes: dict[str, object]
) -> None:
    parsed = msgspec.json.decode(prove(batch, summary, 3, 4)) | changes
    raw = msgspec.json.encode(parsed, order="sorted")
    try:
        cell = verify_cell(summary.root, raw)
    except OdfError:
        return
    # A proof shows the whole leaf, so it also proves the neighbours.
    assert cell.value == batch.column(3)[cell.row]


def test_every_flipped_byte_is_refused_or_proves_something_true(batch: pa.RecordBatch, summary: TableSummary) -> None:
    raw = prove(batch, summary, 3, ROWS - 3)
    for position in range(len(raw)):
        broken = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        try:
            cell = verify_cell(summary.root, broken)
        except OdfError:
            continue
        assert cell.value == batch.column(int(cell.column[1:]))[cell.row]


def test_rows_that_were_not_hashed_are_our_mistake(batch: pa.RecordBatch, summary: TableSummary) -> None:
    with pytest.raises(ValueError, match="not the rows"):
        prove_cell(summary, 0, 0, batch.column(0).slice(1, LEAF_ROWS))
    with pytest.raises(ValueError, match="no cell"):
        prove_cell(summary, 0, ROWS, batch.column(0).slice(0, 1))


def test_proof_of_a_small_table_needs_no_path() -> None:
    small = pa.record_batch({"a": [1, 2]})
    found = hash_table(small.schema, [small])
    assert verify_cell(found.root, prove(small, found, 0, 1)).value.as_py() == 2


def test_oversized_or_unreadable_proof_is_malformed(summary: TableSummary) -> None:
    for raw in (b"", b"{}", b'{"version":1}'):
        with pytest.raises(MalformedError):
            verify_cell(summary.root, raw)
