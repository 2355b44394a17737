import hashlib
import random
import struct
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.hashing.arrow0 import Arrow0Hasher
from odf_protocol.hashing.arrow0_rows import encode_rows, row_bytes
from odf_protocol.hashing.arrow0_types import fixed_width_bytes, type_bytes
from odf_protocol.hashing.reader_schema import reader_schema
from support.logical_hash import hash_batches

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)


def array_digest(array: pa.Array) -> str:
    """One column's own hash, which the reference implementation can print as well."""
    return hashlib.sha3_256(type_bytes(array.type, "c") + row_bytes(array)).hexdigest()


def table_digest(table: pa.Table | pa.RecordBatch) -> str:
    batches = [table] if isinstance(table, pa.RecordBatch) else table.to_batches()
    return hash_batches(table.schema, batches).digest.hex()


ARRAYS = [
    (pa.array([1, 2, 3], pa.int32()), "95d11399ecaed3721501c76f154c3430744d178831b53896cb8f54fed36fb321"),
    (pa.array([1, 2, 3], pa.uint32()), "e831c2bdebc5fde2cdf84c8d0d71d4fdbb78b2e5f015aa112af03129474b4926"),
    (pa.array([1, 2, None, 3], pa.int32()), "20b4574d7526ce57fcdf90a4544eebfb94d9b65bc14d4dd8d2ac24d2b6adaf1f"),
    (pa.array([-1, 0, 1], pa.int8()), "4b5ee9dfd7af88fc5853209d13b0bb7c400d087043db83d8035217fe8ed397df"),
    (pa.array([], pa.int64()), "35f34f98d31c3bbcb25464a0df005b646d00a4425e8c9be1bf481e06a89092fc"),
    (pa.array([0.0, -0.0, 1.5, None]), "087003cdfb539619ca031458edca0b65faa317183ca31e68976c0f38ed288006"),
    (pa.array([1.5], pa.float16()), "9dc4de44d1e6373c94dbfc97882208351fb21b65c9d678f2dd6d7372363d39b2"),
    (
        pa.array([True, False, True, False, True, True]),
        "09a41b44a6f9d7171ae5199b17383e835f6e4f156d907847bd6a430699f7dd36",
    ),
    (
        pa.array([None, False, True, False, None, True]),
        "6d539a8460608b9677a8d9f9ebcee0553d525c625ddb88352a32be71cbec5308",
    ),
    (pa.array(["foo", "bar", "baz"]), "c09fe3b0cabaef56d03b408feb328d0f0e523d130f1af88799669c88317bab85"),
    (pa.array(["foo", "bar", "", "baz"]), "f98ac02853a15ca241070307b152c53b2224116878bdc73405591de6f8ccab78"),
    (pa.array(["foo", "bar", None, "baz"]), "f884cd124a1acea39dce2477090f60db86d837ffb7e987992337d5ee71f3d6d0"),
    (pa.array([b"one", b"two", b"", b"three"]), "16d5271300f8c442e0ad73aebd592942a12d9a3ac1db0f936d22ac16dfe60b7a"),
    (pa.array([b"one", b"two"]), "8c4eef937e340507c5681472f8909b286c61c9a74b4bf51e5e824cd4258c371a"),
    (pa.array([b"one", b"two"], pa.binary(3)), "8c4eef937e340507c5681472f8909b286c61c9a74b4bf51e5e824cd4258c371a"),
    (
        pa.array([[0, 1, 2], None, [3, None, 4, 5], [6, 7], []], pa.list_(pa.int32())),
        "c4e7c3c4c3a4b88193b781f93c5e98740b0b1954e160fc9058ad6c138fa01fc4",
    ),
    (pa.array([[["a"], []], [None]]), "bceca1f4b1882d90e2bf4afb238793113e99bd533aa1186c27c8a5576fae7bd6"),
    (pa.array([date(2020, 1, 1)]), "e57694af9b3c695609948a6af07e41ab998b5ea5d7bb3e120249101f4f21404f"),
    (
        pa.array([NOON], pa.timestamp("ms", "UTC")),
        "dc2cab7ee1aee2d3779a3ac4fd5fe57f1abc5a7c04929492ab9e16554b92ddf2",
    ),
    (pa.array([NOON], pa.timestamp("ms")), "78d1b6f81438d88e52d635a26c2233ccfded04bff7bca22a38496174e25c17ac"),
    (
        pa.array([NOON], pa.timestamp("us", "UTC")),
        "764cdd46956a2a2df2eb0a307f17c89f2ebbaacc020d34fb6a98a67664d1a2c6",
    ),
    (pa.array([1], pa.time64("us")), "6a97582935d65fc656917bc31fa1a183fb8d1f7511296f2456a000f7ae168b7c"),
    (
        pa.array([Decimal("1.23"), Decimal("-1.23")], pa.decimal128(10, 2)),
        "c29a5688d21f56fabb1cd9f1e6b3a09a73cd1c56385dea48d84101bd61d1600b",
    ),
    (pa.array([Decimal(1)], pa.decimal256(40, 0)), "e938d673ec55fa6f313fabcdcecf9cd05f61b5b6c2dda75f6bb5553c3f6eedcc"),
]


@pytest.mark.parametrize(("array", "digest"), ARRAYS, ids=[f"{a.type}-{i}" for i, (a, _) in enumerate(ARRAYS)])
def test_single_column_has_the_digest_of_the_reference(array: pa.Array, digest: str) -> None:
    """HASH-2."""
    assert array_digest(array) == digest


def test_query_result_of_a_foreign_node_has_the_hash_it_published() -> None:
    batch = pa.record_batch(
        {"offset": pa.array([1, 0]), "city": ["B", "A"], "population": pa.array([200, 100], pa.uint64())}
    )
    text = "f9680c001200b3483eecc3d5c6b50ee6b8cba11b51c08f89ea1f53d3a334c743199f5fe656e"
    assert str(hash_batches(batch.schema, [batch])) == text


def test_tables_have_the_digests_of_the_reference() -> None:
    """HASH-1."""
    numbers, letters = pa.array([1, 2, 3], pa.int32()), pa.array(["a", "b", "c"])
    children = [letters, pa.array([3, 2, 1], pa.int32())]
    plain = pa.StructArray.from_arrays(children, names=["c", "d"])
    holed = pa.StructArray.from_arrays(children, names=["c", "d"], mask=pa.array([False, True, False]))
    found = [table_digest(pa.record_batch({"a": numbers, "b": column})) for column in (letters, plain, holed)]
    assert found == [
        "5684f7bfdcaf4ff7d1f9bf0fd766c98d8ded335e933fb4eec245054f3206b61a",
        "fad2f505cc7d67eb2a3c24e137831723ce886e31e34b80bddac5f8757616aa0b",
        "e398355e9b8c179f3f1bf0569fccc1e9a9a922c6691a61ae251295a5686178a4",
    ]


def odf_shaped() -> pa.RecordBatch:
    return pa.record_batch(
        {
            "offset": pa.array([0, 1]),
            "op": pa.array([0, 0], pa.int32()),
            "system_time": pa.array([2524651200000] * 2, pa.timestamp("ms", "UTC")),
            "event_time": pa.array([1577836800000] * 2, pa.timestamp("ms", "UTC")),
            "city": ["A", "B"],
            "population": pa.array([1000, 2000]),
        }
    )


def test_slice_of_a_dataset_has_the_digest_of_the_reference() -> None:
    batch = odf_shaped()
    assert table_digest(batch) == "0d345fb60a74b86a8b93f6eb5adda6e8ff95341b4ec786bca0ae28554f263dc0"
    assert table_digest(batch.slice(0, 0)) == "be9268c4374210566b428a4f6d7c066bfed378c28925dde8b11a41123e481a46"
    assert hash_batches(batch.schema, []).digest.hex() == table_digest(batch.slice(0, 0))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(pa.array(["", None]), pa.array([None, ""]), id="empty-text-and-null"),
        pytest.param(pa.array([None, 0], pa.int16()), pa.array([0, None], pa.int16()), id="zero-and-null"),
    ],
)
def test_known_ambiguities_of_the_format_are_kept(one: pa.Array, other: pa.Array) -> None:
    assert array_digest(one) == array_digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1]), pa.array([1], pa.int32())),
        (pa.array([1, None]), pa.array([1])),
        (pa.array([""]), pa.array([None], pa.string())),
        (pa.array([[1, 2], [3]]), pa.array([[1], [2, 3]])),
        (pa.array(["ab", "c"]), pa.array(["a", "bc"])),
    ],
)
def test_different_columns_have_different_digests(one: pa.Array, other: pa.Array) -> None:
    assert array_digest(one) != array_digest(other)


def test_names_change_the_hash_and_nullability_does_not() -> None:
    """HASH-3."""
    a, b = pa.record_batch({"a": [1]}), pa.record_batch({"b": [1]})
    required = pa.record_batch([pa.array([1])], pa.schema([pa.field("a", pa.int64(), nullable=False)]))
    assert table_digest(a) != table_digest(b)
    assert table_digest(a) == table_digest(required)


def test_values_longer_than_the_header_table_are_framed_alike() -> None:
    texts = ["x" * 5000, "", None, "y" * 4096, "z" * 4095]
    expected = b"".join(b"\0" if t is None else len(t).to_bytes(8, "little") + t.encode() for t in texts)
    for data_type in (pa.string(), pa.large_string(), pa.string_view()):
        assert bytes(row_bytes(pa.array(texts, data_type))) == expected


def test_lists_whose_null_rows_hide_items_are_hashed_without_them() -> None:
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 5], pa.int32()), pa.array([1, 2, 9, 9, 3]), mask=pa.array([False, True, False])
    )
    assert array_digest(hidden) == array_digest(pa.array([[1, 2], None, [3]]))


def test_fixed_size_lists_hash_like_lists() -> None:
    rows = [[1, None], None, [3, 4]]
    fixed = pa.array(rows, pa.list_(pa.int64(), 2))
    assert array_digest(fixed) == array_digest(pa.array(rows))
    assert bytes(row_bytes(fixed.slice(1))) == bytes(row_bytes(pa.array(rows).slice(1)))


def test_extension_types_hash_as_what_they_store() -> None:
    stored = pa.array([b"0123456789abcdef"], pa.binary(16))
    labelled = pa.ExtensionArray.from_storage(pa.uuid(), stored)
    assert table_digest(pa.record_batch({"id": labelled})) == table_digest(pa.record_batch({"id": stored}))


@pytest.mark.parametrize(
    ("data_type", "where"),
    [
        (pa.null(), "'bad'"),
        (pa.duration("ms"), "'bad'"),
        (pa.month_day_nano_interval(), "'bad'"),
        (pa.dictionary(pa.int32(), pa.string()), "'bad'"),
        (pa.map_(pa.string(), pa.int32()), "'bad'"),
        (pa.list_view(pa.int32()), "'bad'"),
        (pa.run_end_encoded(pa.int32(), pa.int64()), "'bad'"),
        (pa.list_(pa.struct([("x", pa.int32())])), "'bad[]'"),
        (pa.struct([("deep", pa.list_(pa.duration("s")))]), "'bad.deep[]'"),
    ],
    ids=str,
)
def test_type_without_encoding_is_rejected_with_the_column_named(data_type: pa.DataType, where: str) -> None:
    """HASH-6."""
    with pytest.raises(UnsupportedError, match="column " + where.replace("[", r"\[").replace("]", r"\]")):
        Arrow0Hasher(pa.schema([("good", pa.int32()), ("bad", data_type)]))


def test_absurdly_deep_schema_is_rejected() -> None:
    data_type = pa.int32()
    for _ in range(100):
        data_type = pa.list_(data_type)
    with pytest.raises(UnsupportedError, match="nesting"):
        Arrow0Hasher(pa.schema([("deep", data_type)]))
    for _ in range(100):
        data_type = pa.struct([("x", data_type)])
    with pytest.raises(UnsupportedError, match="nesting"):
        Arrow0Hasher(pa.schema([("deep", data_type)]))


def test_batch_of_another_schema_is_rejected_and_changes_nothing() -> None:
    hasher = Arrow0Hasher(pa.schema([("a", pa.int64())]))
    before = hasher.digest()
    for wrong in ({"b": [1]}, {"a": ["x"]}, {"a": [1], "b": [2]}):
        with pytest.raises(MalformedError, match="expected a int64"):
            hasher.update(pa.record_batch(wrong))
    assert hasher.digest() == before


def test_digest_may_be_asked_for_between_batches() -> None:
    batch = odf_shaped()
    hasher = Arrow0Hasher(batch.schema)
    hasher.update(batch.slice(0, 1))
    hasher.digest()
    hasher.update(batch.slice(1))
    assert hasher.digest().digest.hex() == table_digest(batch)


def test_columns_hashed_in_parallel_give_the_same_hash() -> None:
    batch = odf_shaped()
    with ThreadPoolExecutor(2) as executor:
        parallel = hash_batches(batch.schema, [batch, batch], executor=executor)
    assert parallel == hash_batches(batch.schema, [batch, batch])


def test_null_inside_a_struct_with_nulls_hashes_as_the_reader_left_its_slot() -> None:
    """HASH-4."""
    # Rows: struct null, leaf null, 7, 8. The struct has nulls, so its validity rules; the decoded values are 7, 8, so
    # the slot of the second row holds 8.
    leaf = pa.array([None, None, 7, 8], pa.int64())
    column = pa.StructArray.from_arrays([leaf], names=["x"], mask=pa.array([True, False, False, False]))
    shown = pa.StructArray.from_arrays(
        [pa.array([None, 8, 7, 8], pa.int64())], names=["x"], mask=pa.array([True, False, False, False])
    )
    assert table_digest(pa.record_batch({"s": column})) == table_digest(pa.record_batch({"s": shown}))


def test_hash_of_nulls_in_structs_does_not_depend_on_batching() -> None:
    rng = random.Random(4)
    rows = [None if rng.random() < 0.2 else {"x": None if rng.random() < 0.3 else i} for i in range(25_000)]
    table = pa.table({"s": pa.array(rows, pa.struct([("x", pa.int64())]))})
    whole = table_digest(table)
    for size in (1, 999, 10_000, 10_001):
        part = table if size > 1 else table.slice(0, 300)
        expected = whole if size > 1 else table_digest(table.slice(0, 300))
        assert hash_batches(part.schema, part.to_batches(max_chunksize=size)).digest.hex() == expected


def test_time_types_differ_by_unit_and_zone() -> None:
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    types = [pa.timestamp("s"), pa.timestamp("s", "UTC"), pa.timestamp("s", "Etc/UTC"), pa.timestamp("ms", "UTC")]
    digests = {array_digest(pa.array([moment], data_type)) for data_type in types}
    digests |= {array_digest(pa.array([time(1)], data_type)) for data_type in (pa.time32("s"), pa.time32("ms"))}
    assert len(digests) == 6


@pytest.mark.parametrize(
    "data_type",
    [pa.int8(), pa.uint16(), pa.float32(), pa.int64(), pa.decimal128(38, 2), pa.decimal256(76, 2), pa.bool_()],
    ids=str,
)
def test_nulls_are_left_out_alike_from_columns_and_from_lists_wherever_a_slice_begins(data_type: pa.DataType) -> None:
    numbers = pa.array([None if n % 5 == 2 or n % 11 < 2 else n % 2 for n in range(1, 80)], pa.int64())
    width = fixed_width_bytes(data_type)
    column = numbers.cast(data_type)
    if width:  # a null's slot may hold anything
        noise = pa.py_buffer(bytes(range(1, 256)) * width)
        column = pa.Array.from_buffers(data_type, len(column), [column.buffers()[0], noise])
    for start in range(17):
        for length in (0, 1, 7, 8, 9, 60):
            part = column.slice(start, length)
            valid = part.is_valid().to_pylist()
            rows = encode_rows(part).to_pylist()
            assert bytes(row_bytes(part)) == b"".join(rows)
            assert all(row == b"\0" for row, is_valid in zip(rows, valid, strict=True) if not is_valid)
            assert all(len(row) == (width or 1) for row, is_valid in zip(rows, valid, strict=True) if is_valid)


def test_file_is_hashed_under_the_type_that_its_writer_embedded(tmp_path: Path) -> None:
    """HASH-5."""
    table = pa.table({"day": pa.array([date(2020, 1, 1)], pa.date64())})
    pq.write_table(table, tmp_path / "day.parquet")
    file = pq.ParquetFile(tmp_path / "day.parquet")
    assert file.schema_arrow.field("day").type == pa.date32()
    schema = reader_schema(file.schema_arrow, file.metadata.metadata)
    assert schema.field("day").type == pa.date64()
    assert hash_batches(schema, file.iter_batches()) == hash_batches(table.schema, table.to_batches())


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("text", ["", "a", "abc", "x" * 128])
def test_texts_of_one_length_are_laid_out_like_any_others(kind: pa.DataType, text: str) -> None:
    texts = [text.replace("a", chr(97 + number % 26)) for number in range(1000)]
    framed = b"".join(struct.pack("<Q", len(each)) + each.encode() for each in texts)
    array = pa.array(texts, kind)
    width = 8 + len(text)
    assert bytes(row_bytes(array)) == framed
    assert bytes(row_bytes(array.slice(13, 700))) == framed[13 * width : 713 * width]
    uneven = pa.array([*texts, "longer than the others" * 9, *texts], kind)
    assert bytes(row_bytes(uneven)) == framed + struct.pack("<Q", 198) + b"longer than the others" * 9 + framed
    with_null = pa.array([*texts, None], kind)
    assert bytes(row_bytes(with_null)) == framed + b"\0"
