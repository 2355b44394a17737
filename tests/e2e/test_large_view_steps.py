"""Clause VIEW-7 where a step is large: in order however Spark came to it, whole inputs joined to parts of others."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import TransformInput, TransformRequest
from odf_protocol.events import OffsetInterval
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.vocabulary import Vocabulary
from support.transforms import SYSTEM_TIME, transform_sql
from support.view_histories import SCHEMAS

pytestmark = pytest.mark.spark

FILES, FILE_ROWS, KEYS = 3, 20_000, 1_000
TEXT_BYTES = 320  # shown as twice as many digits, which no file makes smaller: 38 MB
FIRST_MS = 1_600_000_000_000


def write_slice(path: Path, name: str, first: int, values: list[pa.Array]) -> Path:
    schema = arrow_schema_of(SCHEMAS[name])
    count, instant = len(values[0]), schema.field(2).type
    columns = [
        pa.array(np.arange(first, first + count)),
        pa.array(np.zeros(count, np.int32)),
        pa.array(np.zeros(count, np.int64)).cast(instant),
        # Some rows have the same time.
        pa.array(FIRST_MS + np.arange(first, first + count) // 3 * 1000).cast(instant),
        *values,
    ]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path, row_group_size=4_000)
    return path


def whole_input(name: str, slices: list[Path], rows: int) -> TransformInput:
    return TransformInput(
        alias=name,
        dataset_id=f"did:odf:{name}",
        vocabulary=Vocabulary(),
        schema=SCHEMAS[name],
        slices=tuple(slices),
        offset_interval=OffsetInterval(start=0, end=rows - 1),
    )


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[TransformInput, TransformInput]:
    folder, random = tmp_path_factory.mktemp("large"), np.random.default_rng(1)
    slices = []
    for number in range(FILES):
        keys = random.integers(0, KEYS, FILE_ROWS)
        texts = pa.array([random.bytes(TEXT_BYTES).hex() for _ in keys], mask=keys % 7 == 0)
        values = [pa.array(keys, mask=keys % 11 == 0), texts, pa.array(random.integers(0, 9, FILE_ROWS))]
        slices.append(write_slice(folder / f"{number}.parquet", "orders", number * FILE_ROWS, values))
    keys = np.arange(KEYS) // 2 * 2  # every other key twice
    people = [pa.array(keys), pa.array(["north", "south", None, "west"]).take(pa.array(np.arange(KEYS) % 4))]
    return (
        whole_input("orders", slices, FILES * FILE_ROWS),
        whole_input("people", [write_slice(folder / "people.parquet", "people", 0, people)], KEYS),
    )


def step(session: Any, query: str, *inputs: TransformInput) -> tuple[pa.Table, int]:
    """Compute a first step: its rows, and in how many groups they stand, as each subset that is given is one.

    Rows that were exchanged come in as many subsets as there are tasks behind the exchange, two for inputs of this
    size; what is sorted in its place, in one for each part of a file or more.
    """
    request = TransformRequest(
        dataset_id="did:odf:derived",
        transform=transform_sql(query),
        vocabulary=Vocabulary(),
        inputs=inputs,
        system_time=SYSTEM_TIME,
        next_offset=0,
    )
    response = session.transform(request)
    found = pq.read_table(response.data_path)
    assert found.column("offset").to_pylist() == list(range(found.num_rows))
    assert pc.all(pc.equal(found.column("op"), 0)).as_py()
    return found, pq.read_metadata(response.data_path).num_row_groups


def in_order(rows: pa.Table, names: list[str]) -> list[tuple[Any, ...]]:
    """All columns of the rows, by these: nulls first."""
    columns = [rows.column(name).to_pylist() for name in names]
    return sorted(zip(*columns, strict=True), key=lambda row: [(each is not None, each) for each in row])


def joined(inputs: tuple[TransformInput, TransformInput]) -> pa.Table:
    orders, people = (pa.concat_tables(map(pq.read_table, each.slices)) for each in inputs)
    return orders.select(["event_time", "k", "s", "a"]).join(people.select(["k", "r"]), "k", join_type="inner")


@pytest.mark.parametrize(
    ("names", "is_exchanged"),
    [
        (["event_time", "k", "s", "r"], False),  # parts of files follow one another
        (["k", "event_time", "s", "r"], True),  # they do not
    ],
)
def test_large_join_is_given_in_the_order_of_its_columns(
    spark_session: Any, inputs: tuple[TransformInput, TransformInput], names: list[str], is_exchanged: bool
) -> None:
    listed = ", ".join("p.r" if each == "r" else f"o.{each}" for each in names)
    found, groups = step(spark_session, f"SELECT {listed} FROM orders o JOIN people p ON o.k = p.k", *inputs)
    assert (groups < FILES) is is_exchanged
    expected = in_order(joined(inputs), names)
    assert list(zip(*(found.column(name).to_pylist() for name in names), strict=True)) == expected


def test_small_input_whose_rows_multiply_is_joined_as_ever(
    spark_session: Any, inputs: tuple[TransformInput, TransformInput]
) -> None:
    query = (
        "SELECT o.event_time, o.k, p.each, o.a FROM orders o "
        "JOIN (SELECT k, explode(array(1, 2)) AS each FROM people) p ON o.k = p.k"
    )
    found, groups = step(spark_session, query, *inputs)
    assert groups < FILES  # both sides were exchanged: what is joined whole stays in its place, as above
    once = joined(inputs)
    twice = pa.concat_tables([once.append_column("each", pa.array([n] * once.num_rows)) for n in (1, 2)])
    names = ["event_time", "k", "each", "a"]
    expected = in_order(twice, names)
    assert list(zip(*(found.column(name).to_pylist() for name in names), strict=True)) == expected
