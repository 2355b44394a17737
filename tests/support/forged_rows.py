"""Forgeries of the rows of a derivative: cells, order, rows that are left out or there twice."""

import math
from random import Random
from typing import Any

import pyarrow as pa

from support.honest_derivatives import Published
from support.rebuilt_chains import (
    MILLISECOND,
    Forgery,
    events_of,
    numbered_anew,
    rebuilt,
    steps_of,
    table_of,
    with_rows,
    with_table,
)

# Values


def _other_value(value: Any, kind: pa.DataType, random: Random) -> Any:
    if pa.types.is_struct(kind):
        if value is None:
            return {field.name: None for field in kind}
        name = random.choice([field.name for field in kind])
        return value | {name: _other_value(value[name], kind.field(name).type, random)}
    if value is not None and random.random() < 0.2:
        return None
    if pa.types.is_floating(kind):
        if value is None or math.isnan(value):
            return 0.0
        return -0.0 if value == 0 and math.copysign(1, value) > 0 else math.nextafter(value, random.choice((-9e9, 9e9)))
    if pa.types.is_integer(kind):
        return 0 if value is None else value + random.choice((-1, 1))
    assert pa.types.is_string(kind) or pa.types.is_large_string(kind), kind
    return (
        ""
        if value is None
        else random.choice((value + " ", value + "\u200b", value[:-1] or "x", value.swapcase() + "."))
    )


def another_cell(published: Published, random: Random) -> Forgery | None:
    """A value of the query's own columns: by one, by the last digit, null for a value, a sign of zero, a space."""
    if (found := with_rows(published, random)) is None:
        return None
    number, table = found
    position, row = random.randrange(4, table.num_columns), random.randrange(table.num_rows)
    given = table.schema.field(position)
    values = table.column(position).to_pylist()
    values[row] = _other_value(values[row], given.type, random)
    changed = table.set_column(position, given, pa.array(values, given.type))
    return Forgery(with_table(published.chain, number, changed), number, given.name, given.name)


def another_event_time(published: Published, random: Random) -> Forgery | None:
    """One event time moved, by a millisecond or by a century."""
    if (found := with_rows(published, random)) is None:
        return None
    number, table = found
    values, row = table.column(3).cast(pa.int64()).to_pylist(), random.randrange(table.num_rows)
    values[row] += random.choice((-1, 1, 86_400_000, -3_155_760_000_000))
    times = pa.array(values, pa.int64()).cast(MILLISECOND)
    changed = table.set_column(3, table.schema.field(3), times)
    return Forgery(with_table(published.chain, number, changed), number, "event_time", "event_time")


def another_operation(published: Published, random: Random) -> Forgery | None:
    """A row that is taken instead of given, or the other way round."""
    if (found := with_rows(published, random)) is None:
        return None
    number, table = found
    values, row = table.column(1).to_pylist(), random.randrange(table.num_rows)
    values[row] = random.choice([each for each in range(4) if each != values[row]])
    changed = table.set_column(1, table.schema.field(1), pa.array(values, pa.int32()))
    return Forgery(with_table(published.chain, number, changed), number, r"\bop\b", "op")


def another_system_column(published: Published, random: Random) -> Forgery | None:
    """An offset, system time or operation that no block could have (ROWS-2 to ROWS-4)."""
    if (found := with_rows(published, random)) is None:
        return None
    number, table = found
    position, wrong, clause = random.choice(((0, 10**6, "ROWS-2"), (1, 7, "ROWS-4"), (2, 5, "ROWS-3")))
    given = table.schema.field(position)
    values = table.column(position).cast(pa.int64()).to_pylist()
    values[random.randrange(len(values))] += wrong
    changed = table.set_column(position, given, pa.array(values, pa.int64()).cast(given.type))
    return Forgery(with_table(published.chain, number, changed), number, clause)


# Rows


def other_order(published: Published, random: Random) -> Forgery | None:
    """Two rows that are not alike in each other's place."""
    if (found := with_rows(published, random, 2)) is None:
        return None
    number, table = found
    rows = [repr(row) for row in table.drop_columns(["offset"]).to_pylist()]
    pairs = [(a, b) for a in range(len(rows)) for b in range(a) if rows[a] != rows[b]]
    if not pairs:
        return None
    first, second = random.choice(pairs)
    order = list(range(len(rows)))
    order[first], order[second] = second, first
    chain = with_table(published.chain, number, numbered_anew(table.take(order)))
    return Forgery(chain, number, "another order|rows differ")


def row_left_out(published: Published, random: Random) -> Forgery | None:
    """One row less; the others move up."""
    if (found := with_rows(published, random)) is None:
        return None
    number, table = found
    left = random.randrange(table.num_rows)
    kept = table.take([row for row in range(table.num_rows) if row != left])
    chain = with_table(published.chain, number, numbered_anew(kept))
    # A step of which nothing is left may not be written at all (CHAIN-13, CHAIN-14).
    return Forgery(chain, number, "rows published|claims 0 rows|CHAIN-1[34]")


def row_twice(published: Published, random: Random) -> Forgery | None:
    """One row more: one of the step's own, or of another step."""
    if (found := with_rows(published, random)) is None or (other := with_rows(published, random)) is None:
        return None
    (number, table), source = found, other[1]
    row = source.slice(random.randrange(source.num_rows), 1)
    row = row.set_column(2, row.schema.field(2), table.column(2).slice(0, 1))
    place = random.randint(0, table.num_rows)
    more = pa.concat_tables([table.slice(0, place), row, table.slice(place)]).combine_chunks()
    return Forgery(with_table(published.chain, number, numbered_anew(more)), number, "rows published")


def all_rows_left_out(published: Published, random: Random) -> Forgery | None:
    """A step that says it gave nothing."""
    if (found := with_rows(published, random)) is None:
        return None
    return Forgery(with_table(published.chain, found[0], None), found[0], "claims 0 rows|CHAIN-1[34]")


def rows_of_an_empty_step(published: Published, random: Random) -> Forgery | None:
    """A step without rows that says it gave some."""
    chain = published.chain
    empty = [number for number in steps_of(chain) if table_of(chain, number) is None]
    if not empty or (found := with_rows(published, random)) is None:
        return None
    number, table = random.choice(empty), found[1]
    time = pa.array([chain.blocks[number].system_time.unix_ms] * table.num_rows, pa.int64()).cast(MILLISECOND)
    moved = numbered_anew(table.set_column(2, table.schema.field(2), time))
    return Forgery(with_table(chain, number, moved), number, "re-execution gives no rows")


def rows_of_two_steps_swapped(published: Published, random: Random) -> Forgery | None:
    """What one step gave, said of another one."""
    chain = published.chain
    steps = [(number, table) for number in steps_of(chain) if (table := table_of(chain, number)) is not None]
    if len(steps) < 2:
        return None
    (first, a), (second, b) = sorted(random.sample(steps, 2), key=lambda item: item[0])
    own = ["offset", "system_time"]
    if a.drop_columns(own).equals(b.drop_columns(own)):
        return None

    def at(table: pa.Table, number: int) -> pa.Table:
        time = pa.array([chain.blocks[number].system_time.unix_ms] * table.num_rows, pa.int64()).cast(MILLISECOND)
        return numbered_anew(table.set_column(2, table.schema.field(2), time))

    forged = rebuilt(chain, events_of(chain), {first: at(b, first), second: at(a, second)})
    return Forgery(forged, first, "rows differ|rows published")
