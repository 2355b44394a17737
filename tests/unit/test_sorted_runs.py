"""Parts of a result are put in the order that Spark would give them (VIEW-7)."""

from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from odf_spark.sorted_runs import sort_rows

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [False, True]),
    "int": (pa.int32(), [-(2**31), -1, 0, 7]),
    "bigint": (pa.int64(), [-(2**63), -1, 0, 2**63 - 1]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29)]),
    "timestamp": (pa.timestamp("us", "UTC"), [-1, 0, 1]),
    "string": (pa.string(), ["", "Z", "a", "a\0", "aa", "é", "\uffff", "\U00010000"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    "decimal(10,2)": (pa.decimal128(10, 2), [Decimal("-1.10"), Decimal("0.00"), Decimal("0.01"), Decimal("10.00")]),
}


def place(value: Any) -> tuple[Any, ...]:
    """Nulls first, texts by their bytes."""
    return (value is not None, value.encode() if isinstance(value, str) else value)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_put_in_order_whatever_their_type(kind: str, seed: int) -> None:
    random, (arrow, values) = Random(seed), VALUES[kind]
    rows = sorted(
        ((random.choice([None, *values]), random.choice([None, 1, 2])) for _ in range(30)),
        key=lambda row: (place(row[0]), place(row[1])),
    )
    schema = pa.schema([("a", arrow), ("b", pa.int64())])
    expected = pa.table(
        [pa.array(column, each.type) for column, each in zip(zip(*rows, strict=True), schema, strict=True)],
        schema=schema,
    )
    # As it is, with two rows in each other's place, and in no order; in chunks as they come from Spark.
    swapped = [*range(30)]
    at = random.choice([n for n in range(29) if rows[n] != rows[n + 1]])
    swapped[at : at + 2] = at + 1, at
    for places in ([*range(30)], swapped, random.sample(range(30), 30)):
        given = expected.take(places)
        given = pa.concat_tables([given.slice(0, 11), given.slice(11, 0), given.slice(11)])
        assert sort_rows(given, ["a", "b"]).equals(expected), places


def test_one_row_and_none_are_in_order() -> None:
    for rows in (pa.table({"a": pa.array([None], pa.int64())}), pa.table({"a": pa.array([], pa.int64())})):
        assert sort_rows(rows, ["a"]).equals(rows)
