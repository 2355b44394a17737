"""Queries for two engines of one make: written by hand (``data/fusion_queries.yaml``), and from a grammar."""

import random
from collections.abc import Iterator
from pathlib import Path

import yaml

Steps = tuple[str | tuple[str, str], ...]

_QUERIES = yaml.safe_load((Path(__file__).parents[1] / "data" / "fusion_queries.yaml").read_text())


def _steps_of(kind: str) -> dict[str, Steps]:
    return {
        name: tuple(each if isinstance(each, str) else (each["alias"], each["query"]) for each in steps)
        for name, steps in _QUERIES[kind].items()
    }


BY_HAND = _steps_of("equal")
REJECTED_BY_BOTH = _steps_of("refused-by-both")
REJECTED_HERE = _steps_of("refused-here")
"""What another implementation runs, and whose result we do not promise to repeat."""

_SCALARS = (
    "id", "amount", "status", "price", "day", "id * {n}", "amount + {n}", "coalesce(status, 's{n}')", "upper(status)",
    "CASE WHEN id > {n} THEN status ELSE 'other' END", "round(amount, {n})", "CAST(amount AS BIGINT) % ({n} + 1)",
    "date_part('hour', event_time)", "price * {n}", "tags[{n}]", "place['name']", "length(status) + {n}",
    "nullif(id, {n})", "substr(status, {n}, 2)", "amount > {n}", "status IS NULL", "CAST(id AS VARCHAR) || '{n}'",
    "day + INTERVAL '{n} days'", "array_length(tags)", "greatest(id, {n})", "CAST(price AS DECIMAL(18, {n}))",
)  # fmt: skip
_CONDITIONS = (
    "id > {n}", "amount BETWEEN {n} AND 60", "status = 'paid'", "status IS NOT NULL", "id IN (1, {n}, 7)",
    "status LIKE '%{n}%' OR id < 5", "NOT (id = {n})", "price >= {n}", "day > DATE '2024-01-0{n}'", "op <> 1",
)  # fmt: skip
_AGGREGATES = (
    "count(*)", "sum(amount)", "avg(amount)", "min(status)", "max(price)", "sum(id)", "count(DISTINCT status)",
    "avg(price)", "bool_or(amount > {n})", "stddev(amount)", "first_value(id ORDER BY id)", "sum(price)",
)  # fmt: skip
_KEYS = ("event_time", "status", "day", "id % {n}", "date_trunc('day', event_time)")
_WINDOWS = (
    "row_number() OVER (PARTITION BY status ORDER BY id, \"offset\")", "sum(id) OVER (ORDER BY \"offset\")",
    "lag(status, {n}) OVER (ORDER BY \"offset\")", "max(amount) OVER (PARTITION BY day)",
    "count(*) OVER (ORDER BY event_time RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND CURRENT ROW)",
)  # fmt: skip


def iter_generated(count: int, seed: int = 7) -> Iterator[tuple[str, Steps]]:
    """Give queries of a small grammar, each under a name that says its number."""
    chance = random.Random(seed)
    for number in range(count):
        yield f"generated-{number}", _generate(chance)


def _generate(chance: random.Random) -> Steps:
    def some(words: tuple[str, ...], most: int) -> list[str]:
        chosen = chance.sample(words, chance.randint(1, most))
        return [word.replace("{n}", str(chance.randint(1, 4))) for word in chosen]

    def listed(words: list[str]) -> str:
        return ", ".join(f"{word} AS c{place}" for place, word in enumerate(words))

    source = f"orders WHERE {' AND '.join(some(_CONDITIONS, 2))}" if chance.random() < 0.6 else "orders"
    match chance.randrange(5):
        case 0 | 1:
            op = "op, " if chance.random() < 0.7 else ""
            return (f"SELECT {op}event_time, {listed(some(_SCALARS, 6))} FROM {source}",)
        case 2:
            keys = [key for key in some(_KEYS, 3) if key != "event_time"] or ["status"]
            grouped = ", ".join(keys)
            columns = listed([*keys, *some(_AGGREGATES, 4)])
            return (f"SELECT max(event_time) AS event_time, {columns} FROM {source} GROUP BY {grouped}",)
        case 3:
            return (f"SELECT event_time, id, {listed(some(_WINDOWS, 3))} FROM {source}",)
        case _:
            kind = chance.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            step = f"SELECT op, event_time, id, {listed(some(_SCALARS, 3))} FROM {source}"
            time = "coalesce(s.event_time, c.event_time) AS event_time"
            return (("step", step), f"SELECT {time}, s.c0, c.city, c.people FROM step s {kind} cities c ON s.id = c.id")
