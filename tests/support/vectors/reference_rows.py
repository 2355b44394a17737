"""Logical hashes of the reference collection: rows that it states, or describes in words."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

from support.vectors.check import Check, Checks, VectorFailedError, expect

__all__ = ["iter_logical_hashes"]

_TYPES = {"Int64": "int64", "Utf8": "string", "UInt64": "uint64"}


def iter_logical_hashes(section: Any) -> Checks:
    """Yield checks for rows that are given (``golden``) and described (``derived``); the rest cannot be reproduced."""
    for case in section["golden"]:
        yield Check(f"rows of {case['text']}", partial(_check_rows, case))
    for case in section["derived"]:
        yield Check(case["what"], partial(_check_described, case))


def _check_rows(case: Mapping[str, Any]) -> None:
    import pyarrow as pa

    from support.logical_hash import hash_batches

    schema = pa.schema([(name, pa.type_for_alias(_TYPES[type_])) for name, type_ in case["schema"]])
    rows = [dict(zip(schema.names, row, strict=True)) for row in case["rows"]]
    expect(str(hash_batches(schema, [pa.RecordBatch.from_pylist(rows, schema)])), case["text"])


def _check_described(case: Mapping[str, Any]) -> None:
    make = _described().get(case["what"])
    if make is None:
        raise VectorFailedError("a description that this program does not know")
    expect(make().hex(), case["sha3_256"])


def _array_digest(values: list[Any], data_type: Any) -> bytes:
    import pyarrow as pa

    from odf_protocol.hashing.arrow0_rows import row_bytes, storage_array
    from odf_protocol.hashing.arrow0_types import type_bytes

    state = hashlib.sha3_256(type_bytes(data_type, "a"))
    state.update(row_bytes(storage_array(pa.array(values, data_type))))
    return state.digest()


def _record_digest(columns: Mapping[str, Any]) -> bytes:
    import pyarrow as pa

    from support.logical_hash import hash_batches

    batch = pa.record_batch(dict(columns))
    return hash_batches(batch.schema, [batch]).digest


def _described() -> dict[str, Callable[[], bytes]]:
    import numpy as np
    import pyarrow as pa

    noon = datetime(2020, 1, 1, 12)  # noqa: DTZ001  # naive on purpose: one vector is about that
    arrays: dict[str, tuple[list[Any], Any]] = {
        "i32 [1,2,3]": ([1, 2, 3], pa.int32()),
        "u32 [1,2,3]": ([1, 2, 3], pa.uint32()),
        "i32 [1,2,null,3]": ([1, 2, None, 3], pa.int32()),
        "i8 [-1,0,1]": ([-1, 0, 1], pa.int8()),
        "i64 []": ([], pa.int64()),
        "f64 [0.0,-0.0,1.5,null]": ([0.0, -0.0, 1.5, None], pa.float64()),
        "f16 [1.5]": ([np.float16(1.5)], pa.float16()),
        "bool [t,f,t,f,t,t]": ([True, False, True, False, True, True], pa.bool_()),
        "bool [null,f,t,f,null,t]": ([None, False, True, False, None, True], pa.bool_()),
        "utf8 [foo,bar,baz]": (["foo", "bar", "baz"], pa.string()),
        "utf8 [foo,bar,'',baz]": (["foo", "bar", "", "baz"], pa.string()),
        "utf8 [foo,bar,null,baz]": (["foo", "bar", None, "baz"], pa.string()),
        "binary [one,two,'',three]": ([b"one", b"two", b"", b"three"], pa.binary()),
        "binary [one,two]": ([b"one", b"two"], pa.binary()),
        "fsb(3) [one,two]": ([b"one", b"two"], pa.binary(3)),
        "list<i32> [[0,1,2],null,[3,null,4,5],[6,7],[]]": (
            [[0, 1, 2], None, [3, None, 4, 5], [6, 7], []],
            pa.list_(pa.int32()),
        ),
        "list<list<utf8>> [[[a],[]],[null]]": ([[["a"], []], [None]], pa.list_(pa.list_(pa.string()))),
        "date32 [2020-01-01]": ([date(2020, 1, 1)], pa.date32()),
        "ts(ms,UTC) [2020-01-01T12:00:00Z]": ([noon], pa.timestamp("ms", "UTC")),
        "ts(ms,None) [2020-01-01T12:00:00]": ([noon], pa.timestamp("ms")),
        "ts(us,UTC) [2020-01-01T12:00:00Z]": ([noon], pa.timestamp("us", "UTC")),
        "time64(us) [1]": ([1], pa.time64("us")),
        "decimal128(10,2) [1.23,-1.23]": ([Decimal("1.23"), Decimal("-1.23")], pa.decimal128(10, 2)),
        "decimal256(40,0) [1]": ([Decimal(1)], pa.decimal256(40, 0)),
    }
    c, d = pa.array(["a", "b", "c"]), pa.array([3, 2, 1], pa.int32())
    a = pa.array([1, 2, 3], pa.int32())
    struct = pa.StructArray.from_arrays([c, d], names=["c", "d"])
    with_null = pa.StructArray.from_arrays([c, d], names=["c", "d"], mask=pa.array([False, True, False]))
    records: dict[str, dict[str, Any]] = {
        "a:i32[1,2,3] b:utf8[a,b,c]": {"a": a, "b": c},
        "a:i32[1,2,3] b:struct{c:utf8[a,b,c] d:i32[3,2,1]}": {"a": a, "b": struct},
        "same, b valid=101 (children not null)": {"a": a, "b": with_null},
        "ODF-shaped batch": _odf_columns(2),
        "ODF-shaped batch, empty": _odf_columns(0),
    }
    return {
        **{f"array: {what}": partial(_array_digest, *array) for what, array in arrays.items()},
        **{f"record: {what}": partial(_record_digest, columns) for what, columns in records.items()},
    }


def _odf_columns(count: int) -> dict[str, Any]:
    import pyarrow as pa

    time = pa.timestamp("ms", "UTC")
    return {
        "offset": pa.array([0, 1][:count], pa.int64()),
        "op": pa.array([0, 0][:count], pa.int32()),
        "system_time": pa.array([2524651200000] * count, time),
        "event_time": pa.array([1577836800000] * count, time),
        "city": pa.array(["A", "B"][:count], pa.string()),
        "population": pa.array([1000, 2000][:count], pa.int64()),
    }
