"""Nasty values before both converters of an ingest: Arrow's, which is fast, and Spark's, which has the last word.

``ODF_NASTY_RECORDS=20000`` makes as many records instead of a few, ``ODF_NASTY_RECORDS_SEED`` others.

Source: ING-4 in ``spec/ingest.md``.
"""

import json
import os
from random import Random
from typing import Any

import pytest

from odf_protocol.events import (
    DataType,
    DataTypeBool,
    DataTypeDate,
    DataTypeDecimal,
    DataTypeFloat32,
    DataTypeFloat64,
    DataTypeInt8,
    DataTypeInt16,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeString,
    DataTypeTime,
    DataTypeTimestamp,
    DataTypeUInt8,
    DataTypeUInt16,
    DataTypeUInt32,
    MergeStrategyLedger,
    ReadStepNdJson,
    TimeUnit,
)
from support.ingests import RootDataset, quarantined, rows_of, schema

pytestmark = pytest.mark.spark

RECORDS = int(os.environ.get("ODF_NASTY_RECORDS", "800"))
SEED = os.environ.get("ODF_NASTY_RECORDS_SEED", "1")
KINDS: dict[str, DataType] = {
    "flag": DataTypeBool(), "i8": DataTypeInt8(), "i16": DataTypeInt16(), "i32": DataTypeInt32(),
    "i64": DataTypeInt64(), "u8": DataTypeUInt8(), "u16": DataTypeUInt16(), "u32": DataTypeUInt32(),
    "single": DataTypeFloat32(), "double": DataTypeFloat64(), "money": DataTypeDecimal(precision=6, scale=2),
    "whole": DataTypeDecimal(precision=38, scale=0), "part": DataTypeDecimal(precision=10, scale=10),
    "day": DataTypeDate(), "at": DataTypeTimestamp(), "text": DataTypeString(),
}  # fmt: skip
EDGES = [str(sign * 2**bits + more) for bits in (7, 8, 15, 16, 31, 32, 63) for sign in (1, -1) for more in (-1, 0, 1)]
NUMBERS = [
    *EDGES, "0", "-0", "-0.0", "1.0", "1e5", "1E+5", "1e308", "1e309", "1e-400", "5e-324", "2e-324", "3.4028236e38",
    "7.0064923216240854e-46", "16777217", "9007199254740993", "1.505", "9999.99", "10000", "9999.999", "0.0000000001",
    "1" + "0" * 38, "true", "false", "null", "[]", '{"a":1}',
]  # fmt: skip
WORDS = [
    "", " 1", "+1", "--1", "1_0", "\uff11", "\u0663", "1.", ".5",
    ".", "1e", "0x10", "1d", "1f", "1L", "NaN", "nan", "inf",
    "-Infinity", "TRUE", "tRUE", "fal\u017fe", "false ", "yes", "2020-02-29", "2019-02-29", "2020-2-9", "0001-01-01",
    "0000-01-01", "1582-10-10", "9999-12-31", "10000-01-01", "1500-02-29", "1900-02-29", "2020-01-01t00:00:00z",
    "2020-01-01T00:00:00+14:00", "2020-01-01T23:59:60Z", "2020-01-01T24:00:00Z", "2020-01-01T00:00Z",
    "1969-12-31T23:59:59.9999Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2020-01-01T00:00:00,5",
    "2020-01-01\n", "1\n", "\n1", "1\0", "\u00a01", "1\u2028", "e\u0301", "\U0001f600", "0" * 19 + "1", "0" * 400 + "1",
    "1" + "0" * 301, "0." + "0" * 301 + "1", "1e0000005", "9" * 39, "today", "NULL", "\\",
]  # fmt: skip


def nasty_records(random: Random) -> list[str]:
    """Records with one value, so that many are good; some with all, or with a key twice."""
    found = []
    for number in range(RECORDS):
        names = [random.choice([*KINDS])] if random.random() < 0.85 else random.choices([*KINDS], k=8)
        values = [random.choice([random.choice(NUMBERS), json.dumps(random.choice(WORDS))]) for _ in names]
        members = ",".join(f'"{name}":{value}' for name, value in zip(names, values, strict=True))
        found.append(f'{{"n":{number},{members}}}')
    return found


def judged(source: str, **more: DataType) -> tuple[dict[int, str], dict[int, Any]]:
    """Rows by the number of their record, and what is wrong with the others."""
    read = ReadStepNdJson(schema=schema(n=DataTypeInt64(), **KINDS, **more))
    found = RootDataset(read, MergeStrategyLedger(primary_key=("n",))).ingest(source)
    rows = {row["n"]: repr([row[name] for name in KINDS]) for row in rows_of(found.data_path)}
    return rows, {row["record"] - 1: row["errors"] for row in quarantined(found)}


def test_nasty_record_has_the_same_values_or_errors_whoever_converts_it() -> None:
    source = "\n".join(nasty_records(Random(SEED)))

    rows, errors = judged(source)
    # A column of a type that Arrow converts none of keeps the whole file from it.
    exact_rows, exact_errors = judged(source, never=DataTypeTime(unit=TimeUnit.MILLISECOND))

    assert rows == exact_rows
    assert errors == exact_errors
    assert rows.keys() | errors.keys() == set(range(RECORDS))
    assert len(rows) > RECORDS // 20
