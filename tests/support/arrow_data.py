"""Random Arrow schemas and rows: large ones from a seed, small ones as hypothesis strategies."""

import decimal
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from hypothesis import strategies as st

FIXED_WIDTH_TYPES = (
    [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    + [pa.float16(), pa.float32(), pa.float64(), pa.bool_()]
    + [pa.decimal32(7, 2), pa.decimal64(15, 3), pa.decimal128(9, 2), pa.decimal128(38, 10), pa.decimal256(50, 5)]
    + [pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
    + [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")]
    + [pa.timestamp("ms", "Europe/Oslo"), pa.binary(3), pa.binary(16)]
)
TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
LEAF_TYPES = [*FIXED_WIDTH_TYPES, *TEXT_TYPES]


def is_any_text(data_type: pa.DataType) -> bool:
    return pat.is_string(data_type) or pat.is_large_string(data_type) or pat.is_string_view(data_type)


def is_any_bytes(data_type: pa.DataType) -> bool:
    return pat.is_binary(data_type) or pat.is_large_binary(data_type) or pat.is_binary_view(data_type)


def random_type(rng: random.Random, *, depth: int = 0, in_list: bool = False) -> pa.DataType:
    """A leaf, a struct or a list; no struct inside a list, which arrow0 cannot hash."""
    choice = rng.random()
    if depth < 3 and not in_list and choice < 0.4:
        return pa.struct([_random_field(rng, f"k{i}", depth=depth + 1) for i in range(rng.randint(1, 3))])
    if depth < 3 and choice < 0.6:
        item = _random_field(rng, "element", depth=depth + 1, in_list=True)
        return rng.choice([pa.list_, pa.large_list])(item)
    return rng.choice(LEAF_TYPES)


def _random_field(rng: random.Random, name: str, *, depth: int, in_list: bool = False) -> pa.Field:
    return pa.field(name, random_type(rng, depth=depth, in_list=in_list), rng.random() < 0.7)


def random_schema(seed: int) -> pa.Schema:
    rng = random.Random(seed)
    return pa.schema([_random_field(rng, f"c{i}", depth=0) for i in range(rng.randint(1, 4))])


def random_table(seed: int, schema: pa.Schema, rows: int, null_share: float) -> pa.Table:
    rng = np.random.default_rng(seed)
    arrays = [random_array(rng, field.type, rows, null_share if field.nullable else 0.0) for field in schema]
    return pa.table(arrays, schema=schema)


def random_array(rng: np.random.Generator, data_type: pa.DataType, rows: int, null_share: float) -> pa.Array:
    mask = rng.random(rows) < null_share
    if pat.is_struct(data_type):
        children = [random_array(rng, f.type, rows, null_share * f.nullable) for f in data_type]
        return pa.StructArray.from_arrays(children, fields=list(data_type), mask=pa.array(mask) if mask.any() else None)
    if pat.is_list(data_type) or pat.is_large_list(data_type):
        counts = rng.integers(0, 4, rows)
        counts[mask] = 0
        item = data_type.value_field
        items = random_array(rng, item.type, int(counts.sum()), null_share * item.nullable)
        made, width = (pa.ListArray, pa.int32()) if pat.is_list(data_type) else (pa.LargeListArray, pa.int64())
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), width)
        return made.from_arrays(offsets, items, type=data_type, mask=pa.array(mask) if mask.any() else None)
    if pat.is_boolean(data_type):
        return pa.array(rng.random(rows) < 0.5, mask=mask)
    if is_any_text(data_type):
        return _from_list(["aé日x\0"[: k % 6] * int(k) for k in rng.integers(0, 7, rows)], mask, data_type)
    if is_any_bytes(data_type):
        return _from_list([rng.bytes(int(k)) for k in rng.integers(0, 20, rows)], mask, data_type)
    if pat.is_decimal(data_type):
        limit = 10 ** min(data_type.precision, 18) - 1
        digits = rng.integers(-limit, limit, rows)
        return _from_list([decimal.Decimal(int(n)).scaleb(-data_type.scale) for n in digits], mask, data_type)
    if pat.is_fixed_size_binary(data_type):
        return _from_list([rng.bytes(data_type.byte_width) for _ in range(rows)], mask, data_type)
    if pat.is_floating(data_type):
        return pa.array(rng.standard_normal(rows).astype(data_type.to_pandas_dtype()), mask=mask)
    return _integers(rng, data_type, rows, mask)


def _integers(rng: np.random.Generator, data_type: pa.DataType, rows: int, mask: Any) -> pa.Array:
    if pat.is_integer(data_type):
        return pa.array(rng.integers(0, 128, rows), mask=mask).cast(data_type)
    if pat.is_date64(data_type):
        return pa.array(rng.integers(-10_000, 10_000, rows) * 86_400_000, mask=mask).cast(data_type)
    if pat.is_date32(data_type) or pat.is_time32(data_type):
        return pa.array(rng.integers(0, 86_400, rows).astype(np.int32), mask=mask).cast(data_type)
    if pat.is_time64(data_type):
        return pa.array(rng.integers(0, 86_400_000_000, rows), mask=mask).cast(data_type)
    return pa.array(rng.integers(-(10**9), 2 * 10**9, rows), mask=mask).cast(data_type)


def _from_list(values: list[Any], mask: Any, data_type: pa.DataType) -> pa.Array:
    return pa.array([None if hole else value for value, hole in zip(values, mask, strict=True)], data_type)


# Strategies ---------------------------------------------------------------------------------------------------------


def leaf_types() -> st.SearchStrategy[pa.DataType]:
    return st.sampled_from(LEAF_TYPES)


def seeds() -> st.SearchStrategy[int]:
    return st.integers(0, 2**32 - 1)


@st.composite
def tables(draw: st.DrawFn, *, max_rows: int = 40, min_rows: int = 0) -> pa.Table:
    """A small table of any schema; the shape shrinks, the values follow from a seed."""
    schema = random_schema(draw(seeds()))
    rows = draw(st.integers(min_rows, max_rows))
    return random_table(draw(seeds()), schema, rows, draw(st.sampled_from([0.0, 0.2, 0.6])))


@st.composite
def batchings(draw: st.DrawFn, rows: int) -> list[int]:
    """Sizes of batches that sum up to ``rows``; empty batches occur."""
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=5)))
    return [end - start for start, end in zip([0, *cuts], [*cuts, rows], strict=True)]


def split(table: pa.Table, sizes: list[int]) -> list[pa.RecordBatch]:
    """Cut one table into batches of the sizes; each is a slice of a larger array, offsets included."""
    whole = table.combine_chunks().to_batches()
    batch = whole[0] if whole else pa.RecordBatch.from_pylist([], schema=table.schema)
    batches, start = [], 0
    for size in sizes:
        batches.append(batch.slice(start, size))
        start += size
    return batches
