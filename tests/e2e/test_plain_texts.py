"""Texts converted without Spark have the values, and the errors beside them, that Spark's own conversion gives."""

import json
from random import Random

import pytest

from odf_engines.arrow.engine import ArrowEngine
from odf_engines.contract import Limits
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
    ReadStepNdJson,
    TimeUnit,
)
from support.ingests import Required, RootDataset, quarantined, rows_of, schema

pytestmark = pytest.mark.spark

TEXTS = 300  # of a column and a format
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
        "+nan",
        "-NaN",
        "+Infinity",
        "16777217.0000000000000000001",
        "3.4028235677973366e38",
        "-1e-46",
        "0.500e+0000000001",
        "\u0130nf",
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
        "+18:00",
        "-18:01",
        "+05:60",
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


@pytest.fixture(scope="module")
def arrow_session(tmp_path_factory):
    with ArrowEngine().open(tmp_path_factory.mktemp("arrow"), Limits()) as opened:
        yield opened


def dirty_rows(random: Random) -> list[dict[str, str]]:
    """Rows of which each says something of one column, or of some of them."""
    plain = ["1", "-20", "1.50", "true", "2020-02-29", "2020-02-29T10:11:12Z"]
    rows = [{name: random.choice([random_text(random), *plain])} for name in KINDS for _ in range(TEXTS)]
    rows += [{name: random_text(random) for name in KINDS} for _ in range(TEXTS // 10)]
    return [{"n": str(number), "needed": "1", **row} for number, row in enumerate(rows)]


def csv_of(names: list[str], rows: list[dict[str, str]]) -> str:
    return "".join(",".join(row.get(name, "") for name in names) + "\n" for row in rows)


def ndjson_of(_names: list[str], rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(("step", "write"), [(ReadStepCsv, csv_of), (ReadStepNdJson, ndjson_of)], ids=["csv", "json"])
def test_dirty_files_give_the_same_rows_and_errors_with_and_without_spark(arrow_session, step, write):
    rows = dirty_rows(Random(write.__name__))
    # A column of a type that nothing but Spark converts keeps the whole file for it.
    apart = DataTypeTime(unit=TimeUnit.MILLISECOND)
    found = []
    for read, session in (
        (schema(n=DataTypeInt64(), **KINDS), arrow_session),
        (schema(n=DataTypeInt64(), **KINDS), None),
        (schema(n=DataTypeInt64(), **KINDS, apart=apart), None),
    ):
        source = write([field.name for field in read.fields], rows)
        response = RootDataset(step(schema=read), MergeStrategyLedger(primary_key=("n",)), session=session).ingest(
            source
        )
        found.append((response.data_path, quarantined(response)))
        assert len(rows_of(response.data_path)) + response.quarantined_rows == len(rows)
    (arrow, bad), (spark, bad_there), (exact, bad_exactly) = found
    assert arrow.read_bytes() == spark.read_bytes()
    assert bad == bad_there
    assert repr(rows_of(arrow)) == repr([{k: v for k, v in row.items() if k != "apart"} for row in rows_of(exact)])
    assert [(row["record"], row["stage"], row["errors"]) for row in bad] == [
        (row["record"], row["stage"], row["errors"]) for row in bad_exactly
    ]
    good, stated = {row["n"] for row in rows_of(arrow)}, {error["column"] for row in bad for error in row["errors"]}
    assert stated == set(KINDS) - {"text"}, "some are bad in each column"
    assert all(any(row.get(name) and int(row["n"]) in good for row in rows) for name in KINDS), "and some are good"


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
