"""Texts that Arrow converts have the values, and the errors beside them, that Spark's exact conversion gives."""

from random import Random

import pytest

from odf_protocol.events import (
    DataType,
    DataTypeBool,
    DataTypeDate,
    DataTypeDecimal,
    DataTypeFloat32,
    DataTypeFloat64,
    DataTypeInt8,
    DataTypeInt64,
    DataTypeString,
    DataTypeTime,
    DataTypeTimestamp,
    DataTypeUInt32,
    MergeStrategyLedger,
    ReadStepCsv,
    TimeUnit,
)
from support.ingests import Required, RootDataset, quarantined, rows_of, schema

pytestmark = pytest.mark.spark

TEXTS = 300
PARTS = {
    "number": [
        "0",
        "1",
        "9",
        "00",
        "128",
        "4294967296",
        "99999999999999999999",
        "-",
        "+",
        ".",
        "e",
        "E",
        "x",
        "0x",
        " ",
    ],
    "words": [
        "NaN",
        "Infinity",
        "-inf",
        "true",
        "FALSE",
        "tRue",
        "null",
        "",
        "1e400",
        "1e-400",
        "1_0",
        "\uff11",
        "1.5f",
        "1d",
    ],
    "days": [
        "2020-02-29",
        "2019-02-29",
        "2020-2-9",
        "0000-01-01",
        "0001-01-01",
        "1582-10-10",
        "9999-12-31",
        "2020-13-01",
    ],
    "clocks": [
        "",
        "T",
        " ",
        "t",
        "23:59:59",
        "24:00:00",
        "00:00:60",
        ".5",
        ".123",
        ".1239",
        "Z",
        "z",
        "+02:00",
        "-00:30",
    ],
}
KINDS: dict[str, DataType | Required] = {
    "flag": DataTypeBool(),
    "small": DataTypeInt8(),
    "whole": DataTypeInt64(),
    "natural": DataTypeUInt32(),
    "single": DataTypeFloat32(),
    "double": DataTypeFloat64(),
    "money": DataTypeDecimal(precision=6, scale=2),
    "day": DataTypeDate(),
    "at": DataTypeTimestamp(unit=TimeUnit.MILLISECOND, timezone="UTC"),
    "text": DataTypeString(),
    "needed": Required(DataTypeInt64()),
}


def random_text(random: Random) -> str:
    kind = random.choice(["number", "number", "words", "times"])
    if kind == "words":
        return random.choice(PARTS["words"])
    if kind == "times":
        clock = "".join(random.choice(PARTS["clocks"]) for _ in range(random.randrange(4)))
        return random.choice(PARTS["days"]) + clock
    return "".join(random.choice(PARTS["number"]) for _ in range(random.randrange(1, 5)))


@pytest.mark.parametrize("name", KINDS)
def test_what_arrow_converts_is_what_spark_would(name):
    random = Random(name)
    plain = ["1", "-20", "1.50", "true", "2020-02-29", "2020-02-29T10:11:12Z"]
    texts = [random_text(random) for _ in range(TEXTS)] + plain * 3
    source = "".join(f"{number},{text}\n" for number, text in enumerate(texts))
    # A column of a type that Arrow converts none of keeps the whole file from it.
    exact = "".join(f"{number},{text},\n" for number, text in enumerate(texts))
    both = []
    for read, content in (
        (schema(n=DataTypeInt64(), v=KINDS[name]), source),
        (schema(n=DataTypeInt64(), v=KINDS[name], t=DataTypeTime(unit=TimeUnit.MILLISECOND)), exact),
    ):
        response = RootDataset(ReadStepCsv(schema=read), MergeStrategyLedger(primary_key=("n",))).ingest(content)
        rows = [(row["n"], repr(row["v"])) for row in rows_of(response.data_path)]
        both.append((sorted(rows), [(row["record"], row["errors"]) for row in quarantined(response)]))
    assert both[0] == both[1]
    assert both[0][0], "some are good"
    assert both[0][1] or name == "text", "some are bad"


def test_append_in_another_order_than_the_source_is_by_event_time(tmp_path):
    read = ReadStepCsv(schema=schema(event_time=DataTypeDate(), n=DataTypeInt64()))
    source = "2020-01-02,1\n,2\n2020-01-01,3\n2020-01-02,4\n,5\n2020-01-01,6\n"
    rows = rows_of(RootDataset(read).ingest(source).data_path)
    assert [row["n"] for row in rows] == [
        3,
        6,
        1,
        4,
        2,
        5,
    ]  # those without a time get that of the ingest, which is later
    bad = "2020-01-02,1\nnever,2\n2020-01-01,3\n"
    rows = rows_of(RootDataset(read).ingest(bad).data_path)
    assert [row["n"] for row in rows] == [3, 1]
