"""Lists, structs, times of day, floats in keys and days in other forms: the rows, errors and states that Spark gave.

What is expected was recorded from the ingest in Spark's SQL, as it was until one library of Arrow functions took its
place: the digest of each slice, and of all that was said beside it.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from odf_engines.contract import IngestResponse
from odf_protocol.events import (
    DataField,
    DataTypeDate,
    DataTypeDecimal,
    DataTypeFloat32,
    DataTypeFloat64,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeList,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
    DataTypeTime,
    DataTypeTimestamp,
    DataTypeUInt16,
    DataTypeUInt64,
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStep,
    ReadStepCsv,
    ReadStepNdJson,
    TimeUnit,
)
from odf_protocol.vocabulary import Vocabulary
from support.ingests import Required, RootDataset, quarantined, rows_of, schema

EXPECTED = json.loads((Path(__file__).parents[1] / "data" / "nested_ingests.json").read_text())


def opt(kind):
    return DataTypeOption(inner=kind)


def list_of(kind):
    return DataTypeList(item_type=opt(kind))


BOX = DataTypeStruct(
    fields=(
        DataField(name="price", type=opt(DataTypeDecimal(precision=9, scale=2))),
        DataField(name="sold_at", type=opt(DataTypeTime(unit=TimeUnit.MILLISECOND))),
        DataField(name="days", type=opt(list_of(DataTypeDate()))),
        DataField(name="n", type=opt(DataTypeUInt16())),
    )
)
NESTED = schema(
    event_time=DataTypeTimestamp(), k=DataTypeInt64(), tags=list_of(DataTypeString()), box=BOX,
    pair=list_of(DataTypeFloat64()), grid=list_of(list_of(DataTypeUInt64())),
    at=DataTypeTime(unit=TimeUnit.NANOSECOND), s=DataTypeTime(unit=TimeUnit.MICROSECOND), u=DataTypeUInt64(),
    op=DataTypeInt32(),
)  # fmt: skip
FIRST: list[dict[str, Any]] = [
    {
        "event_time": "2020-01-02T00:00:00Z", "k": 2, "tags": ["a", None, "5", 5, True, {"x": 1}],
        "box": {"price": 1.20, "sold_at": "23:59:59.5", "days": ["2020-02-29"], "n": 3}, "pair": [1, 2.5],
        "grid": [[1, 2], None, []], "at": "01:02:03.000000001", "s": "00:00:00", "u": 18446744073709551615, "op": 0,
    },
    {
        "event_time": "2020-01-01T00:00:00Z", "k": 1, "tags": [], "box": {"n": "7"}, "pair": ["NaN", "-0"],
        "grid": [], "at": "23:59:59", "s": "23:59:59", "u": 0, "op": 0,
    },
    {"k": 3, "tags": None, "box": None, "pair": None, "grid": None, "at": None, "s": None, "u": None, "op": 0},
    {"k": 4, "tags": '["x"]', "box": '{"n": 2}', "pair": "[1,2]", "grid": "[[1],[2]]", "op": 1},
    {"k": 4, "tags": {}, "box": [], "pair": [1], "grid": [1], "at": "1:00:00", "s": "00:00:00.1", "u": -1, "op": 0},
    {
        "k": 5, "box": {"price": 1.234, "sold_at": "24:00:00", "days": ["2020-02-30", "x", None], "n": 70000},
        "pair": [1, None], "grid": [[None, -1], ["a"]], "u": 18446744073709551616, "op": 7,
    },
    {"k": 6, "box": {"price": "1", "days": []}, "pair": [1, 2, 3], "tags": "nothing", "op": 0},
    {"k": 2, "event_time": "2020-01-03T00:00:00Z", "tags": ["b"], "box": {"n": 1}, "pair": [0, 1], "op": 0},
]  # fmt: skip
SECOND = [
    FIRST[0] | {"event_time": None},
    FIRST[1] | {"pair": ["NaN", "0"], "box": {"n": 7}},
    FIRST[2] | {"tags": []},
    {"k": 9, "box": {"n": 1}, "grid": [[1]], "op": 0},
    {"k": 1, "op": 1},
]
THIRD = [
    FIRST[0] | {"box": {"price": 1.2, "sold_at": "23:59:59.500", "days": ["2020-02-29"], "n": 3}},
    FIRST[1] | {"grid": [[]]},
    {"k": "bad"},
    {"k": 3, "box": {"n": -1}},
]
FOURTH = [{"k": 2, "box": {"n": "x"}}, {"k": 9, "grid": [[1], [2]], "box": {"n": 1}}]
FLOATS = schema(
    event_time=DataTypeTimestamp(), k=DataTypeInt64(), f=DataTypeFloat64(), x=DataTypeFloat32(), op=DataTypeInt32(),
    text=DataTypeString(),
)  # fmt: skip
FLOAT_ROWS = [
    [("1.5", "1", 0), ("-0.0", "NaN", 0), ("NaN", "-0", 0), ("0.0", "inf", 0), ("-inf", "", 0), ("inf", "1", 0),
     ("", "2", 0), ("1e300", "2", 0), ("-5", "3", 0)],
    [("0", "NaN", 0), ("nan", "0", 0), ("-0", "inf", 0), ("inf", "1", 1), ("", "2", 0), ("1.5", "1", 0),
     ("7", "7", 0)],
    [("-0.0", "5", 0), ("NaN", "-0", 1)],
]  # fmt: skip
TIMES = schema(
    event_time=DataTypeTimestamp(), day=DataTypeDate(), days=DataTypeList(item_type=opt(DataTypeDate())),
    text=DataTypeString(),
)  # fmt: skip
TIME_TEXTS = """\
31/12/2020 9:05,1.2.2020,"[""1.2.2020"",""3.4.1969""]",x
20200229235959123456789,29.2.2021,,
2/9/69 1:02:03.5 +0530,01.02.0001,[],y
12/31/68 23:59:59.999999999 Z,1.1.20,"[1]",
1.2.2020,31.12.9999,"[""x""]",
,,,
00/00/0000 00:00,0.0.2020,,
31/12/2020 24:05,1.2.2020
,,
1/1/2020 1:1,\u0661.1.2020,,
"""
FORMS = ["%d/%m/%Y %H:%M", "%Y%m%d%H%M%S%f", "%m/%d/%y %H:%M:%S.%f %z", "%d.%m.%Y"]
GUESSED = [
    {"a": [1, 2], "b": {"c": None, "d": [{"e": 1}]}, "t": "2020-01-01"},
    {"a": [1.5], "b": {"c": "x"}, "t": "2021-01-01"},
    {"a": "no"},
    {"a": [None], "b": None},
    {"b": {"d": 5}},
]
MERGES: dict[str, MergeStrategy] = {
    "append": MergeStrategyAppend(),
    "ledger": MergeStrategyLedger(primary_key=("k",)),
    "snapshot": MergeStrategySnapshot(primary_key=("k",)),
    "snapshot-some": MergeStrategySnapshot(primary_key=("k",), compare_columns=("box", "pair")),
    "upsert": MergeStrategyUpsertStream(primary_key=("k",)),
    "changelog": MergeStrategyChangelogStream(primary_key=("k",)),
    "snapshot-float-key": MergeStrategySnapshot(primary_key=("f", "k")),
    "upsert-float-key": MergeStrategyUpsertStream(primary_key=("f",)),
    "changelog-float-key": MergeStrategyChangelogStream(primary_key=("f",)),
    "snapshot-list-key": MergeStrategySnapshot(primary_key=("tags",)),
    "snapshot-struct-key": MergeStrategySnapshot(primary_key=("box", "k")),
    "ledger-list-key": MergeStrategyLedger(primary_key=("tags",)),
    "upsert-struct-key": MergeStrategyUpsertStream(primary_key=("box",)),
    "snapshot-time-key": MergeStrategySnapshot(primary_key=("at", "u")),
}


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def float_lines(rows: list[tuple[str, str, int]]) -> str:
    return "".join(
        f"2020-01-0{1 + number % 5}T00:00:00Z,{number % 3},{f},{x},{op},t{number}\n"
        for number, (f, x, op) in enumerate(rows)
    )


def cases() -> Iterator[tuple[str, ReadStep, MergeStrategy, list[str]]]:
    nested = [lines(FIRST), lines(SECOND), lines(THIRD), lines(FOURTH), ""]
    for name, merge in MERGES.items():
        if "float" in name:
            yield name, ReadStepCsv(schema=FLOATS), merge, [float_lines(rows) for rows in FLOAT_ROWS]
        else:
            yield name, ReadStepNdJson(schema=NESTED), merge, nested
    for form in FORMS:
        read = ReadStepCsv(schema=TIMES, date_format="%d.%m.%Y", timestamp_format=form)
        yield f"times {form}", read, MergeStrategyAppend(), [TIME_TEXTS]
    yield "guessed", ReadStepNdJson(), MergeStrategyAppend(), [lines(GUESSED)]
    merge = MergeStrategyChangelogStream(primary_key=("at", "s"))
    yield "times-of-day-key changelog", ReadStepNdJson(schema=NESTED), merge, [lines(FIRST)]


def digests_of(response: IngestResponse) -> list[str | None]:
    data = None if response.data_path is None else hashlib.sha256(response.data_path.read_bytes()).hexdigest()
    state = None if response.state_path is None else repr(pq.read_table(response.state_path).to_pylist())
    stated = {
        "state": state,
        "quarantine": repr(quarantined(response)),
        "reasons": repr(response.quarantine_reasons),
        "schema": repr(response.schema),
        "kept": response.kept_rows,
    }
    return [data, hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()]


@pytest.mark.parametrize(("name", "read", "merge", "batches"), [pytest.param(*case, id=case[0]) for case in cases()])
def test_slices_errors_and_states_are_those_that_were_recorded(name, read, merge, batches):
    takes_op = isinstance(merge, MergeStrategyUpsertStream | MergeStrategyChangelogStream) or " " in name
    vocabulary = Vocabulary() if takes_op or name == "guessed" else Vocabulary(op="operation")
    dataset = RootDataset(read, merge, vocabulary=vocabulary)
    assert [digests_of(dataset.ingest(batch)) for batch in batches] == EXPECTED[name]


def test_ledger_knows_again_a_key_that_is_no_number():
    dataset = RootDataset(ReadStepCsv(schema=FLOATS), MergeStrategyLedger(primary_key=("f",)))
    dataset.vocabulary = Vocabulary(op="operation")
    taken = [[row["f"] for row in rows_of(dataset.ingest(float_lines(rows)).data_path)] for rows in FLOAT_ROWS]
    # A null never equals a key; both zeros are one.
    assert [len(each) for each in taken] == [9, 2, 0]
    assert taken[1] == [7.0, None]


def test_required_items_and_members_of_any_name():
    part = DataTypeStruct(
        fields=(DataField(name="sold at `x`", type=DataTypeTime()), DataField(name="n", type=opt(DataTypeInt32())))
    )
    point = DataTypeList(item_type=DataTypeFloat64(), fixed_length=2)
    read = ReadStepNdJson(schema=schema(k=Required(DataTypeInt64()), part=part, point=point))
    dataset = RootDataset(read, MergeStrategySnapshot(primary_key=("k",)))
    rows = [
        {"k": 1, "part": {"sold at `x`": "00:00:01", "n": 1}, "point": [1, 2]},
        {"k": 2},
        {"k": 3, "part": {"n": 1}, "point": [1, 2, 3]},
        {"k": 4, "part": {"sold at `x`": None}, "point": [1, None]},
    ]
    response = dataset.ingest(lines(rows))
    assert [(row["k"], row["point"]) for row in rows_of(response.data_path)] == [(1, [1.0, 2.0]), (2, None)]
    found = [
        [(error["column"], error["code"], error["message"]) for error in row["errors"]] for row in quarantined(response)
    ]
    needed = ("part.sold at `x`", "null", "null in a required column")
    assert found == [
        [needed, ("point", "misfit", "an item does not fit")],
        [needed, ("point[1]", "null", "null in a required column")],
    ]
    assert dataset.ingest(lines(rows[:2])).statistics.rows_out == 0


def test_time_of_day_in_seconds_is_kept_in_milliseconds():
    dataset = RootDataset(ReadStepCsv(schema=schema(at=DataTypeTime(unit=TimeUnit.SECOND))))
    response = dataset.ingest("23:59:59\n1:00:00\n")
    assert str(pq.read_schema(response.data_path).field("at").type) == "time32[ms]"
    assert response.quarantined_rows == 1
    assert dataset.ingest("00:00:00\n").statistics.rows_out == 1


def test_faults_of_one_value_are_bounded():
    dataset = RootDataset(ReadStepNdJson(schema=schema(a=list_of(DataTypeInt32()), b=list_of(BOX))))
    response = dataset.ingest(lines([{"a": ["x"] * 1000, "b": "[" * 5000}]))
    (row,) = quarantined(response)
    assert [error["column"] for error in row["errors"]] == [*(f"a[{place}]" for place in range(100)), "b"]


def test_key_that_is_there_twice_is_no_value_in_a_text_either():
    part = DataTypeStruct(fields=(DataField(name="n", type=opt(DataTypeInt32())),))
    dataset = RootDataset(ReadStepCsv(schema=schema(part=part, parts=list_of(part)), quote="'"))
    response = dataset.ingest("""'{"n": 1, "n": 2}','[{"n": 1, "n": 2}]'\n'{"n": 1, "n": 1}',\n""")
    assert [row["part"] for row in rows_of(response.data_path)] == [{"n": 1}]
    (row,) = quarantined(response)
    assert [(error["column"], error["code"]) for error in row["errors"]] == [("part", "form"), ("parts", "form")]
