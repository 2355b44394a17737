from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.hashing.v1 import LOGICAL_V1_SHA2_256, LogicalHasher, leaf_hash, node_hash, root_hash
from odf_protocol.hashing.v1_leaf import LEAF_ROWS, leaf_parts
from odf_protocol.hashing.v1_types import decode_schema, encode_schema, iter_columns, logical_type
from odf_protocol.multihash import Multihash
from support.leaf_reader import read_leaf
from support.logical_hash import hash_table


def root_of(*arrays: pa.Array) -> Multihash:
    batch = pa.record_batch(list(arrays), names=[f"c{i}" for i in range(len(arrays))])
    return hash_table(batch.schema, [batch]).root


def test_hash_is_built_as_the_specification_says() -> None:
    batch = pa.record_batch({"a": pa.array([1, None, 3], pa.int16()), "b": ["x", "", "yz"]})
    schema = (
        bytes.fromhex("02000000")
        + bytes.fromhex("01000000")
        + b"a"
        + bytes([2, 16, 1])
        + bytes.fromhex("01000000")
        + b"b"
        + bytes([4])
    )
    a = bytes.fromhex("03000000") + b"\x01" + bytes([0b101]) + bytes.fromhex("010000000300")
    b = bytes.fromhex("03000000") + b"\x00" + b"\x04" + bytes.fromhex("010000000100000003000000") + b"xyz"
    top = node_hash([leaf_hash([a]), leaf_hash([b])], of_columns=True)
    assert encode_schema(batch.schema) == schema
    assert hash_table(batch.schema, [batch]).root == Multihash(LOGICAL_V1_SHA2_256, root_hash(3, schema, top))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(pa.array(["", None]), pa.array([None, ""]), id="empty-text-and-null"),
        pytest.param(pa.array([None, 0], pa.int16()), pa.array([0, None], pa.int16()), id="zero-and-null"),
        pytest.param(pa.array([None, False]), pa.array([False, None]), id="false-and-null"),
        pytest.param(pa.array([[], None], pa.list_(pa.int8())), pa.array([None, []], pa.list_(pa.int8())), id="list"),
        pytest.param(pa.array(["ab", "c"]), pa.array(["a", "bc"]), id="moved-character"),
        pytest.param(pa.array([[1], [2, 3]]), pa.array([[1, 2], [3]]), id="moved-item"),
        pytest.param(
            pa.array([[None], []], pa.list_(pa.int8())), pa.array([[], [None]], pa.list_(pa.int8())), id="null-item"
        ),
        pytest.param(pa.array([1, 2]), pa.array([2, 1]), id="order"),
        pytest.param(pa.array([1, 2]), pa.array([1, 2], pa.int32()), id="width"),
        pytest.param(pa.array([1], pa.uint8()), pa.array([1], pa.int8()), id="sign"),
        pytest.param(pa.array(["a"]), pa.array([b"a"]), id="text-and-binary"),
        pytest.param(pa.array([0], pa.timestamp("ms")), pa.array([0], pa.timestamp("ms", "UTC")), id="zone"),
        pytest.param(pa.array([0], pa.timestamp("s")), pa.array([0], pa.timestamp("ms")), id="unit"),
        pytest.param(pa.array([0], pa.int64()), pa.array([0], pa.duration("s")), id="duration"),
        pytest.param(
            pa.array([None], pa.struct([("x", pa.int8())])),
            pa.array([{"x": None}], pa.struct([("x", pa.int8())])),
            id="null-struct-and-struct-of-null",
        ),
        pytest.param(pa.array([None] * 8, pa.null()), pa.array([None] * 9, pa.null()), id="count-of-nulls"),
    ],
)
def test_different_columns_have_different_roots(one: pa.Array, other: pa.Array) -> None:
    assert root_of(one) != root_of(other)


def test_values_do_not_move_between_columns_or_names() -> None:
    a, b = pa.array([1, 2]), pa.array([3, 4])
    assert len({root_of(a, b), root_of(b, a), root_of(a), root_of(pa.concat_arrays([a, b]))}) == 4
    named = [pa.record_batch([a], names=[name]) for name in ("x", "y", "")]
    assert len({hash_table(batch.schema, [batch]).root for batch in named}) == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(pa.array(["a", None]), pa.array(["a", None], pa.large_string()), id="large"),
        pytest.param(pa.array(["a", None]), pa.array(["a", None], pa.string_view()), id="view"),
        pytest.param(pa.array(["a", None]), pa.array(["a", None]).dictionary_encode(), id="dictionary"),
        pytest.param(pa.array([b"ab"]), pa.array([b"ab"], pa.binary(2)), id="fixed-size-binary"),
        pytest.param(pa.array([[1, 2], None]), pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), id="fixed-size-list"),
        pytest.param(pa.array([[1, 2], None]), pa.array([[1, 2], None], pa.large_list(pa.int64())), id="large-list"),
        pytest.param(pa.array([1], pa.decimal128(7, 2)), pa.array([1], pa.decimal32(7, 2)), id="decimal-width"),
        pytest.param(pa.array([1], pa.decimal128(7, 2)), pa.array([1], pa.decimal256(7, 2)), id="decimal-wider"),
        pytest.param(pa.array([date(2020, 1, 1)]), pa.array([date(2020, 1, 1)], pa.date64()), id="date"),
        pytest.param(pa.array([0.0, float("nan")]), pa.array([-0.0, -float("nan")]), id="float"),
        pytest.param(
            pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            pa.array([[{"key": "k", "value": 1}], None]),
            id="map",
        ),
    ],
)
def test_layout_does_not_change_the_root(one: pa.Array, other: pa.Array) -> None:
    assert root_of(one) == root_of(other)


def test_values_that_nulls_hide_do_not_count() -> None:
    mask = pa.array([False, True, False])
    for array in (
        pa.array([1, 9, 3]),
        pa.array([1.0, 9.0, 3.0]),
        pa.array([True, True, False]),
        pa.array(["a", "zz", "b"]),
    ):
        buffers = array.buffers()
        buffers[0] = pa.py_buffer(bytes([0b101]))
        hidden = pa.Array.from_buffers(array.type, 3, buffers)
        shown = pa.array(
            [None if hole else value for value, hole in zip(array.to_pylist(), mask.to_pylist(), strict=True)]
        )
        assert hidden.equals(shown)
        assert root_of(hidden) == root_of(shown)
    items = pa.ListArray.from_arrays(pa.array([0, 2, 4, 5], pa.int32()), pa.array([1, 2, 9, 9, 3]), mask=mask)
    assert root_of(items) == root_of(pa.array([[1, 2], None, [3]]))


def test_maps_are_read_from_slices_of_larger_ones() -> None:
    whole = pa.array([[("a", 1)], [("b", 2), ("c", None)], None, [("d", 4)]], pa.map_(pa.string(), pa.int64()))
    assert root_of(whole.slice(1)) == root_of(pa.array(whole.to_pylist()[1:], whole.type))


def test_batches_do_not_change_the_root_across_leaf_borders() -> None:
    rng = np.random.default_rng(3)
    rows = 2 * LEAF_ROWS + 100
    numbers = pa.array(rng.integers(0, 99, rows), mask=rng.random(rows) < 0.1)
    table = pa.table({"n": numbers, "t": numbers.cast(pa.string())})
    whole = hash_table(table.schema, table.combine_chunks().to_batches()).root
    for size in (1000, LEAF_ROWS - 1, LEAF_ROWS, LEAF_ROWS + 1, 3 * LEAF_ROWS):
        assert hash_table(table.schema, table.to_batches(max_chunksize=size)).root == whole


def test_root_may_be_asked_for_between_batches() -> None:
    batch = pa.record_batch({"a": list(range(10_000))})
    hasher = LogicalHasher(batch.schema)
    for part in (batch.slice(0, 5000), batch.slice(5000)):
        hasher.update(part)
        hasher.digest()
    assert hasher.digest() == hash_table(batch.schema, [batch]).root


def test_table_without_rows_or_columns_has_a_root() -> None:
    empty = pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.string())]))])
    roots = {hash_table(schema, []).root for schema in (empty, pa.schema([]), pa.schema([("a", pa.int64())]))}
    assert len(roots) == 3
    assert hash_table(empty, [pa.RecordBatch.from_pylist([], schema=empty)]).root in roots


@pytest.mark.parametrize(
    "data_type",
    [pa.month_day_nano_interval(), pa.list_view(pa.int8()), pa.list_(pa.run_end_encoded(pa.int32(), pa.int64()))],
    ids=str,
)
def test_type_that_cannot_be_hashed_is_rejected_with_the_column_named(data_type: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="column 'bad"):
        LogicalHasher(pa.schema([("good", pa.int8()), ("bad", data_type)]))


def test_moment_within_a_day_is_no_date() -> None:
    array = pa.Array.from_buffers(pa.date64(), 1, [None, pa.py_buffer((5).to_bytes(8, "little"))])
    with pytest.raises(UnsupportedError, match="value"):
        root_of(array)


def test_absurdly_deep_schema_is_rejected() -> None:
    data_type = pa.int8()
    for _ in range(100):
        data_type = pa.list_(data_type)
    with pytest.raises(UnsupportedError, match="nesting"):
        LogicalHasher(pa.schema([("deep", data_type)]))
    raw = bytes([1, 0, 0, 0, 0, 0, 0, 0]) + bytes([11] * 5000) + bytes([1])
    with pytest.raises(MalformedError, match="levels"):
        decode_schema(raw)


def test_batch_of_another_schema_is_rejected() -> None:
    hasher = LogicalHasher(pa.schema([("a", pa.int64())]))
    with pytest.raises(MalformedError, match="expected a int64, found b int64"):
        hasher.update(pa.record_batch({"b": [1]}))


LEAVES = [
    pa.array([1, None, 3]),
    pa.array([1.5, None]),
    pa.array([None, True, False]),
    pa.array(["a", None, "bc"], pa.large_string()),
    pa.array([["a"], [], None, [None]], pa.large_list(pa.large_string())),
    pa.array(
        [{"x": 1, "y": [True]}, None, {"x": None, "y": None}],
        pa.struct([("x", pa.int8()), ("y", pa.large_list(pa.bool_()))]),
    ),
    pa.nulls(9),
]


@pytest.mark.parametrize("array", LEAVES, ids=lambda array: str(array.type))
def test_leaf_is_read_back_and_no_other_bytes_are(array: pa.Array) -> None:
    raw = b"".join(leaf_parts(array, is_column=False))
    assert read_leaf(raw, array.type, is_column=False).equals(array)
    for broken in (raw[:-1], raw + b"\0", b""):
        with pytest.raises(MalformedError):
            read_leaf(broken, array.type, is_column=False)
    for bit in range(8 * len(raw)):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            other = read_leaf(bytes(flipped), array.type, is_column=False)
        except MalformedError:
            continue
        assert not other.equals(array)


def test_struct_as_a_column_is_read_back_as_presence() -> None:
    array = pa.array([{"x": 1}, None], pa.struct([("x", pa.int8())]))
    raw = b"".join(leaf_parts(array, is_column=True))
    assert read_leaf(raw, array.type, is_column=True).to_pylist() == [True, False]
    with pytest.raises(MalformedError):
        read_leaf(raw[:-1] + b"\x03", array.type, is_column=True)


@pytest.mark.parametrize(
    ("raw", "data_type"),
    [
        (bytes.fromhex("02000000 01 03 0100 0200"), pa.int16()),
        (bytes.fromhex("02000000 01 05 0100 0000"), pa.int16()),
        (bytes.fromhex("02000000 01 01 0100 0200"), pa.int16()),
        (bytes.fromhex("01000000 00 00000080"), pa.float32()),
        (bytes.fromhex("01000000 00 0100c07f"), pa.float32()),
        (bytes.fromhex("01000000 00 04 01000000 ff"), pa.large_string()),
        (bytes.fromhex("01000000 00 08 0100000000000000 61"), pa.large_string()),
        (bytes.fromhex("02000000 00 04 02000000 01000000 61"), pa.large_string()),
        (bytes.fromhex("02000000 01 02 04 01000000 02000000 6161"), pa.large_string()),
        (bytes.fromhex("01000000 00 04 ffffffff"), pa.large_string()),
        (bytes.fromhex("ffffffff 00"), pa.null()),
    ],
)
def test_second_encoding_of_rows_is_rejected(raw: bytes, data_type: pa.DataType) -> None:
    with pytest.raises(MalformedError):
        read_leaf(raw, data_type, is_column=False)


def test_schema_survives_its_bytes() -> None:
    types = [
        pa.null(),
        pa.bool_(),
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.float64(),
        pa.large_string(),
        pa.large_binary(),
        pa.decimal128(38, -3),
        pa.decimal256(76, 9),
        pa.date32(),
        pa.time32("ms"),
        pa.time64("ns"),
        pa.timestamp("us"),
        pa.timestamp("ns", "Europe/Oslo"),
        pa.duration("s"),
        pa.large_list(pa.struct([("x", pa.int8())])),
        pa.struct([("a", pa.struct([("b", pa.bool_())])), ("é", pa.null())]),
    ]
    schema = pa.schema([(f"c{i}", data_type) for i, data_type in enumerate(types)])
    raw = encode_schema(schema)
    assert decode_schema(raw).equals(pa.schema([(f.name, logical_type(f.type, "")) for f in schema]))
    assert encode_schema(decode_schema(raw)) == raw
    for size in range(len(raw)):
        with pytest.raises(MalformedError):
            decode_schema(raw[:size])


def test_columns_are_walked_depth_first_structs_included() -> None:
    schema = pa.schema([("a", pa.int8()), ("s", pa.struct([("x", pa.int8()), ("t", pa.struct([("y", pa.int8())]))]))])
    assert [(c.name, c.path) for c in iter_columns(schema)] == [
        ("a", (0,)),
        ("s", (1,)),
        ("s.x", (1, 0)),
        ("s.t", (1, 1)),
        ("s.t.y", (1, 1, 0)),
    ]
