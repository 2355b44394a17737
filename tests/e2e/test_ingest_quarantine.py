"""Rows that cannot be taken: none is lost, each says everything that is wrong with it, and the others go on."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import IngestResponse
from odf_engines.errors import InvalidQueryError, InvalidSourceError
from odf_protocol.events import (
    DataField,
    DataTypeBool,
    DataTypeDate,
    DataTypeDecimal,
    DataTypeFloat64,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeList,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
    DataTypeTime,
    DataTypeTimestamp,
    DataTypeUInt8,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepCsv,
    ReadStepJson,
    ReadStepNdJson,
    ReadStepParquet,
    TransformSql,
)
from support.ingests import Required, RootDataset, quarantined, rows_of, schema

pytestmark = pytest.mark.spark

PEOPLE = schema(
    event_time=DataTypeTimestamp(),
    name=Required(DataTypeString()),
    age=DataTypeInt32(),
    born=DataTypeDate(),
    paid=DataTypeDecimal(precision=5, scale=2),
)


def csv_people(**changes: object) -> RootDataset:
    return RootDataset(ReadStepCsv(header=True, schema=PEOPLE, **changes))


def complaints(row: dict) -> list[tuple[str | None, str | None, str]]:
    return [(error["column"], error["value"], error["message"]) for error in row["errors"]]


def assert_nothing_lost(response: IngestResponse) -> None:
    assert response.statistics.rows_in == response.statistics.rows_out + response.quarantined_rows


def test_bad_csv_records_go_to_quarantine_with_text_number_line_and_every_error() -> None:
    response = csv_people().ingest(
        "event_time,name,age,born,paid\n"
        "2024-01-01T00:00:00Z,ann,1,2020-01-31,1.50\n"
        '2024-13-01,"b,\n""ob""",1.5,2020-02-30,1.234\n'
        "2024-01-02T00:00:00Z,cyd,2\n"
        "\n"
        ",,,,\n"
        "2024-01-03,dan,2147483648,2020-01-01,999.99\n"
        '"2024-01-04","eve","5",,\n'
    )
    assert_nothing_lost(response)
    assert [(row["name"], row["age"]) for row in rows_of(response.data_path)] == [("ann", 1), ("eve", 5)]
    bad = quarantined(response)
    assert [(row["record"], row["line"], row["stage"]) for row in bad] == [
        (2, 3, "convert"),
        (3, 5, "read"),
        (4, 7, "convert"),
        (5, 8, "convert"),
    ]
    assert bad[0]["original"] == '2024-13-01,"b,\n""ob""",1.5,2020-02-30,1.234'
    assert complaints(bad[0]) == [
        ("event_time", "2024-13-01", "no such time"),
        ("age", "1.5", "not a whole number"),
        ("born", "2020-02-30", "no such day"),
        ("paid", "1.234", "more digits than the type holds"),
    ]
    assert complaints(bad[1]) == [(None, None, "wrong number of fields: expected 5, found 3")]
    assert complaints(bad[2]) == [("name", None, "null in a required column")]
    assert complaints(bad[3]) == [("age", "2147483648", "out of range")]
    assert bad[3]["errors"][0]["expected"] == "int32"


def test_record_that_is_not_utf8_keeps_its_bytes() -> None:
    response = csv_people().ingest(b"event_time,name,age,born,paid\n,\xfc,,,\n,ann,,,\n")
    (bad,) = quarantined(response)
    assert (bad["original"], bad["original_bytes"]) == (None, b",\xfc,,,")
    assert [row["name"] for row in rows_of(response.data_path)] == ["ann"]


def test_bad_json_lines_go_to_quarantine() -> None:
    dataset = RootDataset(ReadStepNdJson(schema=schema(a=DataTypeInt64(), b=DataTypeString())))
    response = dataset.ingest(
        '{"a": 1, "b": "x", "c": 0}\n{"a": 1\n[1]\n{"b": "y"}\n{"a": "z"}\n{"a": 12345678901234567890}\n'
    )
    assert_nothing_lost(response)
    assert [(row["a"], row["b"]) for row in rows_of(response.data_path)] == [(1, "x"), (None, "y")]
    bad = quarantined(response)
    assert [(row["record"], row["line"], row["original"]) for row in bad] == [
        (2, 2, '{"a": 1'),
        (3, 3, "[1]"),
        (5, 5, '{"a": "z"}'),
        (6, 6, '{"a": 12345678901234567890}'),
    ]
    assert complaints(bad[2]) == [("a", "z", "not a whole number")]
    assert complaints(bad[3]) == [("a", "12345678901234567890", "out of range")]


def test_errors_inside_lists_and_structs_name_the_element() -> None:
    item = DataTypeStruct(
        fields=(
            DataField(name="price", type=DataTypeOption(inner=DataTypeInt64())),
            DataField(name="days", type=DataTypeOption(inner=DataTypeList(item_type=DataTypeDate()))),
        )
    )
    dataset = RootDataset(ReadStepNdJson(schema=schema(a=DataTypeInt64(), items=DataTypeList(item_type=item))))
    response = dataset.ingest(
        '{"a": 1, "items": [{"price": 1, "days": ["2024-01-01"]}, {"price": null}]}\n'
        '{"a": "z", "items": [{"price": 2}, {"price": "x", "days": ["2024-13-01", "2024-01-01", null]}]}\n'
        '{"a": 2, "items": [[], {"days": 5}]}\n{"a": 3, "items": {"price": 1}}\n'
    )
    assert_nothing_lost(response)
    assert [row["a"] for row in rows_of(response.data_path)] == [1]
    bad = quarantined(response)
    assert complaints(bad[0]) == [
        ("a", "z", "not a whole number"),
        ("items[1].price", "x", "not a whole number"),
        ("items[1].days[0]", "2024-13-01", "no such day"),
        ("items[1].days[2]", None, "null in a required column"),
    ]
    assert [(column, value) for column, value, _ in complaints(bad[1])] == [("items[0]", "[]"), ("items[1].days", "5")]
    assert [(column, value) for column, value, _ in complaints(bad[2])] == [("items", '{"price": 1}')]


def test_bad_parquet_rows_go_to_quarantine(tmp_path) -> None:
    path = tmp_path / "source.parquet"
    pq.write_table(pa.table({"a": pa.array([1, 300, None, 4], pa.int64()), "b": ["x", "y", "z", None]}), path)
    dataset = RootDataset(ReadStepParquet(schema=schema(a=DataTypeUInt8(), b=Required(DataTypeString()))))
    response = dataset.ingest(path)
    assert_nothing_lost(response)
    assert [(row["a"], row["b"]) for row in rows_of(response.data_path)] == [(1, "x"), (None, "z")]
    bad = quarantined(response)
    assert [row["original"] for row in bad] == ['{"a": 300, "b": "y"}', '{"a": 4, "b": null}']
    assert [complaints(row) for row in bad] == [
        [("a", "300", "does not fit the type")],
        [("b", None, "null in a required column")],
    ]


def test_second_record_with_a_key_of_a_snapshot_goes_to_quarantine() -> None:
    read = ReadStepCsv(header=True, schema=schema(id=DataTypeInt64(), v=DataTypeString()))
    dataset = RootDataset(read, MergeStrategySnapshot(primary_key=("id",)))
    response = dataset.ingest("id,v\n2,b\n1,a\n2,c\n")
    assert_nothing_lost(response)
    assert [(row["id"], row["v"]) for row in rows_of(response.data_path)] == [(1, "a"), (2, "b")]
    (bad,) = quarantined(response)
    assert (bad["record"], bad["stage"], bad["original"]) == (3, "merge", "2,c")
    assert complaints(bad) == [("id", "2", "duplicate primary key: an earlier record has it")]


def test_impossible_operations_go_to_quarantine() -> None:
    columns = schema(op=DataTypeInt32(), id=DataTypeInt64())
    changelog = RootDataset(ReadStepCsv(header=True, schema=columns), MergeStrategyChangelogStream(primary_key=("id",)))
    response = changelog.ingest("op,id\n0,1\n4,2\n,3\n")
    assert_nothing_lost(response)
    assert [complaints(row) for row in quarantined(response)] == [
        [("op", "4", "not an operation (0 to 3)")],
        [("op", None, "not an operation (0 to 3)")],
    ]
    upserts = RootDataset(ReadStepCsv(header=True, schema=columns), MergeStrategyUpsertStream(primary_key=("id",)))
    response = upserts.ingest("op,id\n0,1\n2,2\n,3\n")
    assert_nothing_lost(response)
    assert [complaints(row) for row in quarantined(response)] == [
        [("op", "2", "neither 0 (upsert) nor 1 (retract)")],
    ]


def test_source_of_bad_records_only_gives_no_slice() -> None:
    response = csv_people().ingest("event_time,name,age,born,paid\n,,,,\n")
    assert (response.data_path, response.offset_interval, response.quarantined_rows) == (None, None, 1)
    assert response.schema.names[:4] == ["offset", "op", "system_time", "event_time"]


@pytest.mark.parametrize(
    ("read", "source", "message"),
    [
        pytest.param(
            ReadStepCsv(header=True, schema=schema(a=DataTypeInt64(), b=DataTypeInt64())),
            "a,c\n1,2\n",
            "unusable source the source: columns differ from the schema of the source (missing: b; not in the schema:"
            " c); expected a, b, found a, c. Correct the file, or change the read step's schema",
            id="other-columns",
        ),
        *(
            pytest.param(
                ReadStepCsv(header=True, schema=schema(a=DataTypeInt64(), b=DataTypeInt64())),
                nothing,
                "unusable source the source: it is empty: even the header with the names of the columns is missing",
                id=f"nothing-{len(nothing)}",
            )
            for nothing in ("", "\n\n")
        ),
        pytest.param(
            ReadStepCsv(header=True),
            "a,a\n",
            "unusable source the source: two columns have the same name: a",
            id="twins",
        ),
        pytest.param(
            ReadStepCsv(header=True, schema=schema(offset=DataTypeInt64(), b=DataTypeString())),
            "offset,b\n",
            "unusable source the source: column offset has a name that is reserved for a system column; rename it in a"
            " preprocess step",
            id="reserved-name",
        ),
        pytest.param(
            ReadStepCsv(separator="||"),
            "a",
            "unusable source the source: unsupported separator of a read step: '||' (supported: one ASCII character)",
            id="separator-of-two-characters",
        ),
        pytest.param(
            ReadStepCsv(encoding="latin1"),
            "a",
            "unusable source the source: unsupported encoding of a read step: latin1 (supported: utf8; convert the"
            " file beforehand)",
            id="encoding",
        ),
        pytest.param(
            ReadStepJson(sub_path="a.b"),
            '{"a": {"c": []}}',
            "unusable source the source: no key 'b' of the path 'a.b'",
            id="path-into-nothing",
        ),
        pytest.param(
            ReadStepCsv(header=True, schema=schema(event_time=DataTypeInt64())),
            "event_time\n1\n",
            "unusable source the source: column event_time: expected a date or a timestamp, found int64; cast it in a"
            " preprocess step",
            id="event-time-that-is-no-time",
        ),
    ],
)
def test_unusable_source_is_rejected_with_what_to_do(read: object, source: str, message: str) -> None:
    with pytest.raises(InvalidSourceError) as caught:
        RootDataset(read).ingest(source)
    assert str(caught.value) == message


def test_columns_that_differ_from_the_dataset_are_rejected() -> None:
    dataset = RootDataset(ReadStepCsv(header=True))
    dataset.ingest("a,b\n1,2\n")
    with pytest.raises(InvalidSourceError, match=r"columns differ from the dataset's \(missing: b; new: c\)"):
        dataset.ingest("a,c\n1,2\n")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("SELECT * FROM other", "unknown relation other", id="other-table"),
        pytest.param("DROP TABLE input", "only a query is allowed", id="command"),
        pytest.param("SELECT nope FROM input", "nope", id="unknown-column"),
        pytest.param("SELECT a AS offset FROM input", "column offset has a name that is reserved", id="reserved-name"),
        pytest.param("SELECT CAST(a AS INT) AS a FROM input", "x", id="value-it-fails-on"),
    ],
)
def test_wrong_preprocess_query_is_rejected(query: str, message: str) -> None:
    dataset = RootDataset(ReadStepCsv(header=True), preprocess=TransformSql(engine="spark", query=query))
    with pytest.raises(InvalidQueryError, match=message):
        dataset.ingest("a\nx\n")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        pytest.param(
            DataTypeInt32(),
            ["1", "+5", "-3", "007"],
            ["1.5", "abc", " 1", "1 ", "1e2", "2147483648", "٣", "1_0"],
            id="int",
        ),
        pytest.param(DataTypeUInt8(), ["0", "255"], ["256", "-1"], id="unsigned"),
        pytest.param(
            DataTypeFloat64(),
            ["1.5", ".5", "5.", "-1e-3", "NaN", "-inf", "Infinity", "1e-400"],
            ["1.5f", "1d", "0x1p3", "1e999", "1,5", " 1", "--1", "."],
            id="float",
        ),
        pytest.param(DataTypeBool(), ["true", "FALSE"], ["1", "yes", "t", " true"], id="bool"),
        pytest.param(
            DataTypeDecimal(precision=5, scale=2),
            ["1.5", "999.99", "1.2300", "-.5", "0001"],
            ["1.234", "1000", "1e2", ".", "1,5"],
            id="decimal",
        ),
        pytest.param(
            DataTypeDate(),
            ["2020-02-29", "0001-01-01"],
            ["2020-13-40", "2021-02-29", "2020-1-1", "2020", "0000-01-01"],
            id="date",
        ),
        pytest.param(
            DataTypeTimestamp(),
            ["2020-01-01", "2020-01-01T10:00:00", "2020-01-01 10:00:00+02:00", "2020-01-01t10:00:00.123456789z"],
            [
                "2020",
                "2020-01-01T24:00:00Z",
                "2020-01-01T23:59:60Z",
                "2020-01-01T10:00:00Zx",
                "10:00:00",
                "2020-01-01T10:00Z",
            ],
            id="timestamp",
        ),
        pytest.param(DataTypeTime(), ["23:59:59", "00:00:00.125"], ["24:00:00", "1:00:00", "12:00:00.1234"], id="time"),
        pytest.param(
            DataTypeList(item_type=DataTypeOption(inner=DataTypeInt32())),
            ["[1,null]", "[]"],
            ["[1.5]", "1", "[1"],
            id="list",
        ),
    ],
)
def test_texts_are_values_or_are_rejected(kind: object, good: list[str], bad: list[str]) -> None:
    dataset = RootDataset(ReadStepCsv(separator="|", schema=schema(v=kind, n=DataTypeInt32())))
    lines = [f"{text}|{number}" for number, text in enumerate([*good, *bad])]
    response = dataset.ingest("\n".join(lines))
    taken = {row["n"] for row in rows_of(response.data_path) if row["v"] is not None}
    assert taken == set(range(len(good)))
    assert [row["original"] for row in quarantined(response)] == lines[len(good) :]


def test_times_are_milliseconds_in_utc_rounded_to_the_past() -> None:
    dataset = RootDataset(ReadStepCsv(schema=schema(t=DataTypeTimestamp())), MergeStrategyAppend())
    response = dataset.ingest(
        "2020-01-01 10:00:00+02:00\n2020-01-01T10:00:00.9999\n1969-12-31T23:59:59.9999Z\n2020-06-01\n"
    )
    ticks = pq.read_table(response.data_path)["t"].cast(pa.int64()).to_pylist()
    assert ticks == [1577865600000, 1577872800999, -1, 1590969600000]
