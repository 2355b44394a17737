"""VIEW-13: which rows of a large input stand for it in a step that touches few groups, and when all of it does."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from odf_engines.contract import TransformInput, TransformRequest
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataTypeFloat64,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    OffsetInterval,
)
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.vocabulary import Vocabulary, system_fields
from odf_spark.gate.view_class import GroupColumns, ViewQuery
from odf_spark.known_transforms import KnownView
from odf_spark.small_inputs import RowsRead, Work
from odf_spark.touched_rows import keep_touched
from support.transforms import SYSTEM_TIME, transform_sql

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)
KINDS = {"k": DataTypeInt64(), "s": DataTypeString(), "f": DataTypeFloat64()}
SCHEMA = DataSchema(
    fields=(
        *system_fields(Vocabulary()),
        *(DataField(name=name, type=DataTypeOption(inner=kind)) for name, kind in KINDS.items()),
    )
)
Row = tuple[int, Any, Any, Any]  # operation, k, s, f
UNTOUCHED: list[Row] = [(APPEND, 100 + number, f"other {number}", 100.5 + number) for number in range(600)]


def write_slice(path: Path, first: int, rows: list[Row], schema: pa.Schema) -> Path:
    count = len(rows)
    log = {
        "offset": range(first, first + count), "op": [row[0] for row in rows], "system_time": [0] * count,
        "event_time": [0] * count, "k": [row[1] for row in rows], "s": [row[2] for row in rows],
        "f": [row[3] for row in rows],
    }  # fmt: skip
    columns = [pa.array(log[field.name], pa.int64() if pa.types.is_timestamp(field.type) else None) for field in schema]
    arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, row_group_size=64)
    return path


def step_over(folder: Path, earlier: list[Row], brought: list[Row]) -> TransformInput:
    schema, last = arrow_schema_of(SCHEMA), len(earlier) - 1
    half = len(earlier) // 2
    slices = (
        write_slice(folder / "0", 0, earlier[:half], schema), write_slice(folder / "1", half, earlier[half:], schema)
    )  # fmt: skip
    return TransformInput(
        dataset_id="did:odf:orders",
        alias="orders",
        vocabulary=Vocabulary(),
        schema=SCHEMA,
        earlier_slices=slices,
        slices=(write_slice(folder / "2", last + 1, brought, schema),),
        offset_interval=OffsetInterval(start=last + 1, end=last + len(brought)),
        prev_offset=last,
    )


def request_of(*inputs: TransformInput) -> TransformRequest:
    return TransformRequest(
        dataset_id="did:odf:view",
        transform=transform_sql("SELECT 1"),
        vocabulary=Vocabulary(),
        inputs=inputs,
        system_time=SYSTEM_TIME,
        next_offset=1,
    )


def view_by(*names: str, looks_at: set[str] | None = None, in_order: bool = False) -> KnownView:
    columns = GroupColumns(names, frozenset(looks_at or KINDS))
    return KnownView((), ViewQuery(None, {"orders": columns}), in_order, StructType(), pa.schema([]))


def keep(folder: Path, source: TransformInput, known: KnownView) -> tuple[pa.Table | None, RowsRead | None]:
    """Return the rows that stand for the input, None where all of it does, and what was counted meanwhile."""
    work = Work(folder)
    (kept,) = keep_touched(request_of(source), known, work).inputs
    assert source.offset_interval is not None
    read = work.read.get((source.alias, source.offset_interval.end))
    if kept is source:
        return None, read
    assert kept.earlier_slices == kept.slices
    return pq.read_table(kept.slices[0]), read


def test_rows_of_touched_groups_stand_for_the_input_and_all_rows_are_counted(tmp_path: Path) -> None:
    earlier: list[Row] = [*UNTOUCHED, (APPEND, 1, "a", 0.5), (APPEND, None, "b", 0.5), (RETRACT, 1, "c", 0.5)]
    brought: list[Row] = [(APPEND, 1, "d", 0.5), (APPEND, None, "e", None), (APPEND, 2, "f", 0.5)]
    kept, read = keep(tmp_path, step_over(tmp_path, earlier, brought), view_by("k"))
    assert kept is not None
    assert kept.select(["offset", "op", "k", "s"]).to_pydict() == {
        "offset": [600, 601, 602, 603, 604, 605], "op": [0, 0, 1, 0, 0, 0],
        "k": [1, None, 1, 1, None, 2], "s": ["a", "b", "c", "d", "e", "f"],
    }  # fmt: skip
    assert read == {"rows": 606, "first": 0, "last": 605}


def test_zeros_and_nans_are_one_group_each_and_null_is_another(tmp_path: Path) -> None:
    other_nan = math.nan if math.copysign(1, math.nan) < 0 else -math.nan
    values = [0.0, -0.0, math.nan, other_nan, None, 1.0]
    earlier: list[Row] = [*UNTOUCHED, *((APPEND, 1, str(place), value) for place, value in enumerate(values))]
    for brought, expected in ((-0.0, "01"), (0.0, "01"), (other_nan, "23"), (math.nan, "23"), (None, "4")):
        folder = tmp_path / f"{brought}{expected}{math.copysign(1, brought or 0)}"
        folder.mkdir()
        kept, _ = keep(folder, step_over(folder, earlier, [(APPEND, 1, "new", brought)]), view_by("f"))
        assert kept is not None
        assert kept.column("s").to_pylist() == [*expected, "new"], brought


def test_combinations_of_values_are_touched_and_not_each_value(tmp_path: Path) -> None:
    earlier: list[Row] = [*UNTOUCHED, *((APPEND, k, s, 0.5) for k in (1, 2, None) for s in ("x", "y", None))]
    brought: list[Row] = [(CORRECT_FROM, 1, "x", 0.5), (CORRECT_TO, 2, None, 0.5), (APPEND, None, "y", 0.5)]
    kept, _ = keep(tmp_path, step_over(tmp_path, earlier, brought), view_by("k", "s"))
    assert kept is not None
    pairs = list(zip(kept.column("k").to_pylist(), kept.column("s").to_pylist(), strict=True))
    assert pairs == [(1, "x"), (2, None), (None, "y"), (1, "x"), (2, None), (None, "y")]


@pytest.mark.parametrize("operation", [APPEND, RETRACT])
def test_columns_that_no_query_looks_at_are_there_where_rows_are_taken(tmp_path: Path, operation: int) -> None:
    earlier: list[Row] = [*UNTOUCHED, (APPEND, 1, "a", 0.5), (operation, 99, "b", 0.5)]
    kept, _ = keep(tmp_path, step_over(tmp_path, earlier, [(APPEND, 1, "c", 0.5)]), view_by("k", looks_at={"k", "f"}))
    assert kept is not None
    assert kept.column("s").to_pylist() == (["a", "c"] if operation == RETRACT else [None, None])
    assert kept.column("f").to_pylist() == [0.5, 0.5]


def test_all_columns_are_there_where_their_order_matters(tmp_path: Path) -> None:
    known = view_by("k", looks_at={"k", "f"}, in_order=True)
    kept, _ = keep(tmp_path, step_over(tmp_path, [*UNTOUCHED, (APPEND, 1, "a", 0.5)], [(APPEND, 1, "c", 0.5)]), known)
    assert kept is not None
    assert kept.column("s").to_pylist() == ["a", "c"]


def test_rows_behind_the_step_and_columns_that_came_later(tmp_path: Path) -> None:
    source = step_over(tmp_path, [*UNTOUCHED, (APPEND, 1, "a", 0.5)], [(APPEND, 1, "b", 0.5), (APPEND, 2, "c", 0.5)])
    assert source.offset_interval is not None
    source = replace(source, offset_interval=OffsetInterval(start=601, end=601))
    older = pq.read_table(source.earlier_slices[1]).drop_columns(["s"])
    pq.write_table(older, source.earlier_slices[1])
    kept, read = keep(tmp_path, source, view_by("k"))
    assert kept is not None
    assert kept.select(["offset", "s"]).to_pydict() == {"offset": [600, 601], "s": [None, "b"]}
    assert read == {"rows": 602, "first": 0, "last": 601}


def test_groups_that_have_most_rows_are_not_cut_out(tmp_path: Path) -> None:
    crowded: list[Row] = [(APPEND, 1, "a", 0.5)] * 300
    assert keep(tmp_path, step_over(tmp_path, [*UNTOUCHED, *crowded], [(APPEND, 1, "b", 0.5)]), view_by("k")) == (
        None,
        None,
    )


@pytest.mark.parametrize(("share", "is_written"), [(2, False), (8, True)])
def test_few_row_groups_say_whether_most_rows_are_touched(tmp_path: Path, share: int, is_written: bool) -> None:
    mixed: list[Row] = [(APPEND, 1 if number % share == 0 else 2, "a", 0.5) for number in range(64 * 40)]
    source = step_over(tmp_path, mixed, [(APPEND, 1, "b", 0.5)])
    kept, read = keep(tmp_path, source, view_by("k"))
    assert (tmp_path / "touched.parquet").exists() == is_written
    assert (kept is not None, read is not None) == (is_written, is_written)
    if kept is not None:
        assert kept.num_rows == 64 * 40 // share + 1


def test_step_that_more_than_one_input_changes_is_computed_whole(tmp_path: Path) -> None:
    source = step_over(tmp_path, [*UNTOUCHED, (APPEND, 1, "a", 0.5)], [(APPEND, 1, "b", 0.5)])
    other = replace(source, alias="people")
    request = request_of(source, other)
    assert keep_touched(request, view_by("k"), Work(tmp_path)) is request
    quiet = request_of(source, replace(other, slices=(), offset_interval=None))
    assert keep_touched(quiet, view_by("k"), Work(tmp_path)) is not quiet
    assert keep_touched(quiet, view_by("k", in_order=True), Work(tmp_path)) is quiet
    renamed = request_of(source, replace(other, slices=(), offset_interval=None, prev_schema=DataSchema(fields=())))
    assert keep_touched(renamed, view_by("k"), Work(tmp_path)) is renamed
