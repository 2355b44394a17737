"""Random changelogs of sizes at which engines change their ways, and random queries over them.

Inputs and queries are those of ``view_histories``, and further ones whose result rests on the order of rows. Sizes are
drawn so that each threshold is crossed now and then; most of them by few rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from odf_protocol.events import DataField, DataSchema, DataTypeFloat64, DataTypeInt64, DataTypeOption
from support.view_histories import (
    APPEND,
    CORRECT_FROM,
    CORRECT_TO,
    RETRACT,
    WITH_FLOATS,
    Change,
    Row,
    random_query,
)

_WIDE = 105  # above 100 columns Spark neither compiles a stage nor reads files in batches


@dataclass(frozen=True)
class Size:
    """How large the inputs of an example are.

    Attributes:
        groups: Values of the column ``k``.
        rows: Of ``orders`` before the first step.
        slices: That the first step reads of ``orders``.
        text_bytes: Of a value of the column ``s``.
        is_wide: Whether ``orders`` has more than 100 columns.
    """

    groups: int
    rows: int
    slices: int = 1
    text_bytes: int = 1
    is_wide: bool = False


SIZES = {
    "groups of an aggregation of objects": Size(groups=140, rows=1_500),
    "rows of a batch of files": Size(groups=400, rows=4_500),
    "rows of a batch of DataFusion and Arrow": Size(groups=1_500, rows=10_500),
    "files": Size(groups=150, rows=1_200, slices=257),
    "columns": Size(groups=140, rows=1_500, is_wide=True),
    "bytes of a small input": Size(groups=300, rows=12_000, text_bytes=1_100),
    "groups of the first map": Size(groups=70_000, rows=72_000),
    "bytes of a partition": Size(groups=600, rows=22_000, text_bytes=2_200),
}
"""By the threshold that each crosses; beyond the first five, an example takes seconds."""
CHEAP = tuple(SIZES)[:5]


def draw_size(random: Random) -> Size:
    """Draw a size; the dear ones seldom."""
    return SIZES[random.choice(CHEAP if random.random() < 0.93 else tuple(SIZES)[5:])]


def schemas_of(size: Size) -> dict[str, DataSchema]:
    """The columns of both inputs."""
    orders = WITH_FLOATS["orders"]
    if size.is_wide:
        more = (DataField(name=f"c{n}", type=DataTypeOption(inner=DataTypeFloat64())) for n in range(_WIDE // 2))
        others = (DataField(name=f"i{n}", type=DataTypeOption(inner=DataTypeInt64())) for n in range(_WIDE // 2))
        orders = DataSchema(fields=(*orders.fields, *more, *others))
    return {"orders": orders, "people": WITH_FLOATS["people"]}


def random_orders(random: Random, size: Size, number: int, keys: Sequence[int | None] | None = None) -> list[Row]:
    """Rows of ``orders`` that tie in most columns; those with text of some size differ in it."""
    wide = (*(0.1 * n for n in range(_WIDE // 2)), *range(_WIDE // 2)) if size.is_wide else ()
    found: list[Row] = []
    for _ in range(number):
        text = random.choice([None, "x", "y", "z"])
        if text is not None and size.text_bytes > 1:
            text += random.randbytes(size.text_bytes // 2).hex()
        key = None if random.random() < 0.05 else random.randrange(size.groups)
        found.append(
            (
                1_600_000_000_000 + 86_400_000 * random.randrange(5),
                random.choice(keys) if keys is not None else key,
                text,
                random.choice([None, -3, 0, 1, 2, 2, 7]),
                random.choice([None, 0.1, 0.2, -0.0, 0.0, 1e9, random.random()]),
                *wide,
            )
        )
    return found


def random_people(random: Random, size: Size) -> list[Row]:
    """Rows of ``people``: about one for each value of ``k``, some of which are none of ``orders``."""
    return [
        (
            1_600_000_000_000 + 86_400_000 * random.randrange(5),
            None if random.random() < 0.02 else random.randrange(size.groups + 5),
            random.choice([None, "north", "south"]),
            random.choice([0.5, -0.0]),
        )
        for _ in range(size.groups)
    ]


def random_steps(random: Random, size: Size) -> list[dict[str, list[Change]]]:
    """What each input gains in each step: much in the first one, then what touches few groups, and takes some back."""
    live = random_orders(random, size, size.rows)
    people = random_people(random, size)
    steps = [
        {"orders": [Change(APPEND, row) for row in live], "people": [Change(APPEND, row) for row in people]},
    ]
    for _ in range(random.choice([1, 1, 2])):
        keys = [random.choice([None, *(random.randrange(size.groups) for _ in range(9))]) for _ in range(3)]
        changes = [Change(APPEND, row) for row in random_orders(random, size, random.randrange(1, 9), keys)]
        for _ in range(random.choice([0, 0, 1, 3])):
            place = random.randrange(len(live))
            if random.random() < 0.5:
                changes.append(Change(RETRACT, live.pop(place)))
            else:
                (new,) = random_orders(random, size, 1)
                changes += [Change(CORRECT_FROM, live[place]), Change(CORRECT_TO, new)]
                live[place] = new
        live += [each.row for each in changes if each.op == APPEND]
        steps.append({"orders": changes})
        if random.random() < 0.2:
            steps[-1]["people"] = [Change(APPEND, row) for row in random_people(random, Size(groups=3, rows=0))]
    return steps


_IN_ORDER = (
    "collect_list(s)", "collect_list(f)", "listagg(s, ',')", "first(s)", "last(f)", "any_value(a)", "first(a, true)",
    "approx_percentile(f, 0.5)", "percentile(f, 0.25)", "avg(f)", "sum(f)", "stddev(f)", "corr(f, a)", "mode(s)",
    "max_by(s, a)", "min_by(f, s)", "histogram_numeric(f, 3)", "collect_list(DISTINCT a)", "collect_set(s)",
    "sum(DISTINCT f)", "min(f)", "skewness(f)", "listagg(s) WITHIN GROUP (ORDER BY a)", "avg(a)",
)  # fmt: skip
_IN_ANY_ORDER = (
    "sum(a)", "count(*)", "max(s)", "count(DISTINCT s)", "sort_array(collect_list(a))", "percentile(a, 0.5)",
    "median(a)", "approx_count_distinct(s)", "bit_xor(a)", "bool_or(a > 1)", "sum(CAST(a AS DECIMAL(20, 2)))",
)  # fmt: skip


def random_ordered_query(random: Random) -> tuple[str, bool]:
    """A query whose result rests on the order of rows; and whether rows of different ``k`` never meet in it."""
    below = random.choice(
        [
            "orders",
            "orders",
            "(SELECT * FROM orders WHERE a > 0 OR s IS NULL)",
            "(SELECT *, row_number() OVER (PARTITION BY k ORDER BY s) AS n FROM orders)",
            ("(SELECT max(event_time) AS event_time, k, s, sum(f) AS f, first(a) AS a FROM orders GROUP BY k, s)"),
            "(SELECT DISTINCT event_time, k, s, a, f FROM orders)",
            "(SELECT o.event_time, o.k, p.r AS s, o.a, o.f FROM orders o JOIN people p ON o.k = p.k)",
            "(SELECT event_time, k, s, a, f FROM orders UNION ALL SELECT event_time, k, r, 1, f FROM people)",
        ]
    )
    asked = [*random.sample(_IN_ORDER, random.choice([1, 2, 3, 4])), *random.sample(_IN_ANY_ORDER, 2)]
    random.shuffle(asked)
    columns = ", ".join(f"{each} AS v{number}" for number, each in enumerate(asked))
    group, is_local = random.choice([("k", True), ("k", True), ("k, s", True), ("s", False)])
    window = random.choice(
        [
            "row_number() OVER (PARTITION BY k ORDER BY s)", "lag(f) OVER (PARTITION BY k ORDER BY a)",
            "sum(f) OVER (PARTITION BY k ORDER BY s ROWS 2 PRECEDING)",
            "first_value(f) OVER (PARTITION BY k ORDER BY s)",
            "ntile(3) OVER (PARTITION BY k ORDER BY a)", "avg(f) OVER (PARTITION BY k)",
        ]
    )  # fmt: skip
    return random.choice(
        [
            (f"SELECT max(event_time) AS event_time, {group}, {columns} FROM {below} t GROUP BY {group}", is_local),
            (f"SELECT max(event_time) AS event_time, {group}, {columns} FROM {below} t GROUP BY {group}", is_local),
            (f"SELECT event_time, k, s, {window} AS v FROM {below} t", True),
        ]
    )


__all__ = ["CHEAP", "SIZES", "Size", "draw_size", "random_ordered_query", "random_query", "random_steps", "schemas_of"]
