"""Slices of strangers with values that Python, JSON or CSV has no form for: shown as they are, never as others.

Each is a slice that passes every check, pulled like any other; then people look at it.

Source: ROWS-1 and ROWS-11 in ``spec/extensions/acceptance.md``.
"""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_node.adapters.rows_folder import RowsFolder
from odf_node.cli.console import Console
from odf_node.cli.rows import write_rows
from odf_node.datasets.engine_rows import EngineRows
from odf_node.errors import UsageError
from odf_protocol.events import (
    AddData,
    DataField,
    DataSchema,
    DatasetKind,
    DataType,
    DataTypeDate,
    DataTypeFloat64,
    DataTypeInt64,
    DataTypeList,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
    DataTypeTime,
    DataTypeTimestamp,
    ExtraAttributes,
    Seed,
    SetDataSchema,
    TimeUnit,
)
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary, system_fields
from support.command_line import run_command
from support.offers import CITIES, CITY_SCHEMA, NOON, Judge, PeerChain, parquet_bytes, slice_table

NAMED_TWICE = DataTypeStruct(
    fields=(DataField(name="a", type=DataTypeInt64()), DataField(name="a", type=DataTypeInt64()))
)
LIST_OF_TIMES = DataTypeList(item_type=DataTypeOption(inner=DataTypeTimestamp()))


def whole(*numbers: int) -> pa.Array:
    return pa.array(numbers, pa.int64())


def times(*numbers: int, unit: str = "ms", zone: str = "UTC") -> pa.Array:
    return whole(*numbers).cast(pa.timestamp(unit, zone))


def days(*numbers: int) -> pa.Array:
    return pa.array(numbers, pa.int32()).cast(pa.date32())


def chain_of(folder: Path, kind: DataType, values: pa.Array, **more: Any) -> PeerChain:
    """A root with one slice of two rows, whose one column beside those of the system has these values."""
    schema = DataSchema(fields=(*system_fields(Vocabulary()), DataField(name="x", type=kind, **more)))
    chain = PeerChain(folder)
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.ROOT)).add(SetDataSchema(schema=schema))
    at = NOON.unix_ms + 2000
    columns = [whole(0, 1), pa.array([0, 0], pa.int32()), times(at, at), times(at, at), values]
    rows = pa.table(columns, schema=arrow_schema_of(DataSchema(fields=(*schema.fields[:4], bare(schema.fields[4])))))
    return chain.add_slice(parquet_bytes(rows), rows=2)


def bare(field: DataField) -> DataField:
    return DataField(name=field.name, type=field.type)


def shown(home: Path, form: str) -> list[Any]:
    """What ``tail`` says of the column in both rows."""
    found = run_command(home, "tail", "cities", "-o", form)
    assert found.returncode == 0, found.stderr
    if form == "json":
        return [
            row["x"] for row in json.loads(found.stdout, parse_constant=lambda word: pytest.fail(f"no JSON: {word}"))
        ]
    return [row["x"] for row in csv.DictReader(found.stdout.splitlines())]


FAR = {
    "after-9999": (DataTypeTimestamp(), times(0, 2**62), ["1970-01-01T00:00:00Z", f"{2**62} ms since 1970"]),
    "before-1": (DataTypeTimestamp(), times(0, -(2**50)), ["1970-01-01T00:00:00Z", f"{-(2**50)} ms since 1970"]),
    "day": (DataTypeDate(), days(0, 2**31 - 1), ["1970-01-01", f"{2**31 - 1} days since 1970"]),
    "nanoseconds": (
        DataTypeTimestamp(unit=TimeUnit.NANOSECOND),
        times(0, 123_456_789, unit="ns"),
        ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00.123456789Z"],
    ),
    "time-of-day": (
        DataTypeTime(unit=TimeUnit.NANOSECOND),
        pa.array([1, 86_399_999_999_999], pa.time64("ns")),
        ["00:00:00.000000001", "23:59:59.999999999"],
    ),
    "zone-of-nowhere": (
        DataTypeTimestamp(timezone="../../etc/passwd"),
        times(0, 1, zone="../../etc/passwd"),
        ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00.001Z"],
    ),
}


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize("case", FAR)
def test_time_that_nobody_can_write_is_shown_as_no_other_time(tmp_path: Path, case: str, form: str) -> None:
    kind, values, expected = FAR[case]
    judge = Judge.create(tmp_path / "home")
    judge.accept(chain_of(tmp_path, DataTypeOption(inner=kind), values.cast(arrow_of(kind))))

    assert shown(judge.home.path, form) == expected


def arrow_of(kind: DataType) -> pa.DataType:
    return arrow_schema_of(DataSchema(fields=(DataField(name="x", type=kind),))).field(0).type


def test_values_that_json_lacks_are_words(tmp_path: Path) -> None:
    judge = Judge.create(tmp_path / "home")
    judge.accept(chain_of(tmp_path, DataTypeFloat64(), pa.array([float("nan"), float("-inf")])))

    assert shown(judge.home.path, "json") == ["NaN", "-Infinity"]


def test_lists_in_csv_are_json(tmp_path: Path) -> None:
    judge = Judge.create(tmp_path / "home")
    values = pa.ListArray.from_arrays([0, 1, 2], times(0, 2**62)).cast(arrow_of(LIST_OF_TIMES))
    judge.accept(chain_of(tmp_path, LIST_OF_TIMES, values))

    assert shown(judge.home.path, "csv") == ['["1970-01-01T00:00:00Z"]', f'["{2**62} ms since 1970"]']


@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_answer_with_two_columns_of_one_name_loses_none_in_json(form: str) -> None:
    rows = pa.table([whole(1), whole(2)], names=["n", "n"])

    with pytest.raises(UsageError, match="two columns called n"):
        write_rows(Console(out=io.StringIO()), rows, form)


def test_struct_that_names_a_field_twice_is_rejected(tmp_path: Path) -> None:
    values = pa.StructArray.from_arrays([whole(1, 2), whole(3, 4)], fields=list(arrow_of(NAMED_TWICE)))
    chain = chain_of(tmp_path, NAMED_TWICE, values)

    Judge.create(tmp_path / "home").reject(chain.proposal(), chain.files, rule="ROWS-1")


@pytest.mark.parametrize("unit", [TimeUnit.MICROSECOND, TimeUnit.NANOSECOND])
def test_system_time_in_another_unit_is_still_that_of_the_block(tmp_path: Path, unit: TimeUnit) -> None:
    column = DataField(name="system_time", type=DataTypeTimestamp(unit=unit))
    schema = DataSchema(fields=(*CITY_SCHEMA.fields[:2], column, *CITY_SCHEMA.fields[3:]))
    kind = arrow_schema_of(schema).field("system_time").type
    chain = PeerChain(tmp_path)
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.ROOT)).add(SetDataSchema(schema=schema))
    honest = slice_table(CITIES, first_offset=0, at=Timestamp(NOON.seconds + 2))
    numbers = honest.column("system_time").cast(pa.int64())  # of milliseconds, but said to be of smaller units
    lying = honest.set_column(2, pa.field("system_time", kind, nullable=False), numbers.cast(kind))
    false = chain.copy().add_slice(parquet_bytes(lying), rows=3)

    judge = Judge.create(tmp_path / "home")
    judge.reject(false.proposal(), false.files, rule="ROWS-3")

    true = honest.set_column(2, lying.schema.field(2), honest.column("system_time").cast(kind))
    judge.accept(chain.add_slice(parquet_bytes(true), rows=3))


def test_slice_that_names_a_column_twice_is_rejected(tmp_path: Path) -> None:
    schema = DataSchema(fields=(*CITY_SCHEMA.fields, CITY_SCHEMA.fields[-1]))
    chain = PeerChain(tmp_path)
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.ROOT)).add(SetDataSchema(schema=schema))
    at = NOON.unix_ms + 2000
    columns = [whole(0), pa.array([0], pa.int32()), times(at), times(at), pa.array(["Oslo"]), whole(1), whole(2)]
    chain.add_slice(parquet_bytes(pa.table(columns, schema=arrow_schema_of(schema))), rows=1)

    Judge.create(tmp_path / "home").reject(chain.proposal(), chain.files, rule="ROWS-1")


@pytest.mark.parametrize(
    "layout",
    [
        {"kind": "RunEnd", "runEndsBitWidth": 32},
        {"kind": "View", "offsetBitWidth": 32},
        {"kind": "Zigzag"},
        "no layout at all",
    ],
    ids=["run-ends", "views", "unknown", "text"],
)
def test_layout_that_a_schema_names_keeps_no_engine_from_its_rows(tmp_path: Path, layout: object) -> None:
    extra = ExtraAttributes.of({"arrow.apache.org/bufferEncoding": layout})
    chain = chain_of(tmp_path, DataTypeString(), pa.array(["a", "b"]), extra=extra)
    judge = Judge.create(tmp_path / "home")
    judge.accept(chain)

    event = chain.blocks[-1].event
    assert isinstance(event, AddData)
    assert event.new_data is not None
    with judge.opened() as store:
        rows = EngineRows(store, judge.objects, RowsFolder(judge.home))
        (made,) = rows.get_paths(chain.id, (event.new_data,), None)
    assert pq.read_schema(made).field("x").type == pa.string()
