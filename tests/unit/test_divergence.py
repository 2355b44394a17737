import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from odf_protocol.divergence import CAUSE_TEXTS, MAX_LISTED_CELLS, Cause, Divergence
from odf_protocol.slice_comparison import compare_slices
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("op", pa.int32()),
        ("system_time", pa.timestamp("ms", "UTC")),
        ("event_time", pa.timestamp("ms", "UTC")),
        ("city", pa.string()),
        ("rate", pa.decimal128(9, 4)),
        ("heat", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)


def rows(count: int = 3, **changes: dict[int, Any]) -> pa.Table:
    """A slice of ``count`` rows; ``changes`` maps a column to new values by position."""
    columns: dict[str, list[Any]] = {
        "offset": list(range(10, 10 + count)),
        "op": [0] * count,
        "system_time": [NOON] * count,
        "event_time": [NOON + dt.timedelta(days=i) for i in range(count)],
        "city": [f"city {i}" for i in range(count)],
        "rate": [Decimal(i) for i in range(count)],
        "heat": [float("nan")] * count,
        "tags": [["a", None]] * count,
    }
    for name, values in changes.items():
        for position, value in values.items():
            columns[name][position] = value
    return pa.table(columns, schema=SCHEMA)


def test_equal_slices_do_not_diverge_even_with_nan_and_nulls() -> None:
    table = rows(city={1: None})

    assert compare_slices(table, table, Vocabulary()) is None


def test_cells_of_lists_are_compared_as_cells_are() -> None:
    def heats(*values: float) -> pa.Table:
        table = rows(1)
        return table.append_column("heats", pa.array([list(values)], pa.list_(pa.float64())))

    nan = float("nan")
    assert compare_slices(heats(nan, 0.0), heats(nan, 0.0), Vocabulary()) is None
    divergence = compare_slices(heats(nan, 0.0), heats(nan, -0.0), Vocabulary())
    assert divergence is not None
    assert divergence.columns == ("heats",)


def test_forged_cell_is_named_with_both_values_and_its_row() -> None:
    divergence = compare_slices(rows(rate={1: Decimal("7.5")}), rows(), Vocabulary())

    assert divergence is not None
    assert (divergence.kind, divergence.columns, divergence.differing_rows) == ("cells", ("rate",), 1)
    (cell,) = divergence.cells
    assert (cell.offset, cell.column, cell.published, cell.reexecuted) == (11, "rate", "7.5000", "1.0000")
    assert cell.key == "2024-01-02, city 1"
    assert divergence.describe() == "1 of 3 rows differ, in column rate"


def test_null_against_value_is_a_difference() -> None:
    divergence = compare_slices(rows(city={0: None}), rows(), Vocabulary())

    assert divergence is not None
    assert (divergence.cells[0].published, divergence.cells[0].reexecuted) == (None, "city 0")


def test_difference_inside_a_list_is_found() -> None:
    divergence = compare_slices(rows(tags={2: ["a", "b"]}), rows(), Vocabulary())

    assert divergence is not None
    assert divergence.columns == ("tags",)


def test_missing_rows_are_counted() -> None:
    divergence = compare_slices(rows(2), rows(3), Vocabulary())

    assert divergence is not None
    assert (divergence.kind, divergence.differing_rows) == ("row-count", 1)
    assert "2 rows published, 3 re-executed" in divergence.describe()


def test_same_rows_in_another_order_are_called_that() -> None:
    names = ["offset", "op", "system_time", "event_time", "city", "rate", "heat"]
    ordered = rows(2).select(names)
    swapped = rows(2, city={0: "city 1", 1: "city 0"}, rate={0: Decimal(1), 1: Decimal(0)}).select(names)
    swapped = swapped.set_column(3, "event_time", ordered.column("event_time").take(pa.array([1, 0])))

    divergence = compare_slices(swapped.cast(ordered.schema), ordered, Vocabulary())

    assert divergence is not None
    assert divergence.kind == "row-order"


def test_other_columns_are_named_with_their_types() -> None:
    published = rows().rename_columns([*SCHEMA.names[:-1], "labels"])

    divergence = compare_slices(published, rows(), Vocabulary())

    assert divergence is not None
    assert divergence.kind == "schema"
    assert divergence.columns == ("labels", "tags")
    assert "tags: published absent" in divergence.describe()


def test_report_of_many_differences_stays_small_and_counts_exactly() -> None:
    count = MAX_LISTED_CELLS * 3
    divergence = compare_slices(rows(count, city=dict.fromkeys(range(count), "x")), rows(count), Vocabulary())

    assert divergence is not None
    assert len(divergence.cells) == MAX_LISTED_CELLS
    assert divergence.differing_rows == count
    assert [cell.offset for cell in divergence.cells] == list(range(10, 10 + MAX_LISTED_CELLS))


# What lies behind it


def cause_of(published: pa.Table, reexecuted: pa.Table, watermark: dt.datetime | None = None) -> Cause | None:
    mark = None if watermark is None else Timestamp.from_unix_ms(int(watermark.timestamp() * 1000))
    divergence = compare_slices(published, reexecuted, Vocabulary(), mark)
    assert divergence is not None
    assert Divergence.from_json(divergence.to_json()) == divergence
    return divergence.cause


def test_same_rows_in_another_order_are_a_matter_of_order() -> None:
    table = rows()
    columns = {name: table.column(name) for name in table.column_names}
    swapped = table.drop_columns("tags").take([2, 1, 0]).set_column(0, "offset", columns["offset"])

    assert cause_of(swapped, table.drop_columns("tags")) is Cause.ORDER


@pytest.mark.parametrize(
    ("published", "reexecuted", "cause"),
    [
        (0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1, Cause.FLOAT),
        (0.0, -0.0, Cause.FLOAT),
        (1.0, 1.001, None),
        (1.0, None, None),
        (1.0, float("nan"), None),
        (float("inf"), -float("inf"), None),
    ],
)
def test_last_digits_of_floats_are_told_from_other_figures(
    published: float, reexecuted: float | None, cause: Cause | None
) -> None:
    assert cause_of(rows(heat={1: published}), rows(heat={1: reexecuted})) is cause


def test_float_beside_another_column_is_no_matter_of_floats() -> None:
    assert cause_of(rows(heat={1: 0.3}, city={1: "x"}), rows(heat={1: 0.1 + 0.2})) is None


def test_rows_older_than_the_watermark_are_a_matter_of_late_data() -> None:
    fewer, more = rows(2).drop_columns("tags"), rows(3).drop_columns("tags")  # the third row is of two days later
    assert cause_of(fewer, more, NOON + dt.timedelta(days=3)) is Cause.LATE_DATA
    assert cause_of(more, fewer, NOON + dt.timedelta(days=3)) is Cause.LATE_DATA
    assert cause_of(fewer, more, NOON + dt.timedelta(days=2)) is None
    assert cause_of(fewer, more) is None
    assert cause_of(rows(2, city={0: "x"}).drop_columns("tags"), more, NOON + dt.timedelta(days=3)) is Cause.LATE_DATA
    assert cause_of(rows(2, city={0: "x"}).drop_columns("tags"), more, NOON + dt.timedelta(days=1)) is None


def test_every_cause_has_a_text_that_ends_the_explanation() -> None:
    divergence = compare_slices(rows(2), rows(3), Vocabulary())
    assert divergence is not None
    for cause in Cause:
        assert replace(divergence, cause=cause).explain().endswith(CAUSE_TEXTS[cause])
