"""Tables with every type and every odd value, and questions over them, made at random from a seed."""

import math
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import QueryTable
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.vocabulary import Vocabulary

_TIME: Final = pa.timestamp("ms", "UTC")
_LOG: Final = [
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("op", pa.int32(), nullable=False),
    pa.field("system_time", _TIME, nullable=False),
    pa.field("event_time", _TIME, nullable=False),
]
TYPES: Final = {
    "tiny": pa.int8(),
    "small": pa.int16(),
    "whole": pa.int32(),
    "Big": pa.int64(),
    "price": pa.decimal128(10, 2),
    "ratio": pa.float64(),
    "heat": pa.float64(),
    "word": pa.string(),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "seen": pa.timestamp("us", "UTC"),
}
VALUES: Final[dict[str, list[Any]]] = {
    "tiny": [None, -128, 127, 0, 1],
    "small": [None, -3, 0, 5, 32767],
    "whole": [None, -7, 0, 3, 2**31 - 1],
    "Big": [None, -(2**63), 0, 2**53 + 1, 2**63 - 1, 4],
    "price": [None, Decimal("-1.50"), Decimal("0.00"), Decimal("99999999.99"), Decimal("2.50")],
    "ratio": [None, -0.0, 0.0, math.nan, math.inf, -math.inf, 1.5, -2.25],
    "heat": [None, 0.0, math.nan, math.inf, -2.25, 20.5],
    "word": [None, "", "a", "A", "ä", "aa", "😀", "a%", "Z z"],
    "flag": [None, True, False],
    "day": [None, date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)],
    "seen": [
        None,
        datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        datetime(2024, 2, 29, 12, tzinfo=UTC),
        datetime(2024, 3, 1, tzinfo=UTC),
    ],
}
NUMBERS: Final = ("tiny", "small", "whole", "Big")


def make_table(folder: Path, name: str, chance: random.Random, columns: tuple[str, ...], rows: int) -> QueryTable:
    """Make a dataset of two slices with these columns beside those of the log."""
    schema = pa.schema([*_LOG, *(pa.field(each, TYPES[each]) for each in columns)])
    moments = [datetime(2024, 1, 1 + number % 28, tzinfo=UTC) for number in range(rows)]
    table = pa.table(
        {
            "offset": range(rows),
            "op": [0] * rows,
            "system_time": moments,
            "event_time": moments[::-1],
            **{each: [chance.choice(VALUES[each]) for _ in range(rows)] for each in columns},
        },
        schema=schema,
    )
    paths = []
    for number, part in enumerate((table.slice(0, rows // 2), table.slice(rows // 2))):
        paths.append(folder / f"{name}-{number}.parquet")
        pq.write_table(part, paths[-1])
    return QueryTable(name=name, vocabulary=Vocabulary(), schema=data_schema_of(schema), slices=tuple(paths))


def make_tables(folder: Path) -> tuple[QueryTable, ...]:
    chance = random.Random(20)
    return (
        make_table(folder, "my.things", chance, tuple(TYPES), 40),
        make_table(folder, "other", chance, ("whole", "word", "price", "day", "flag"), 15),
    )


def iter_questions(seed: int, count: int) -> Iterator[str]:
    """Yield questions, each of another kind than the one before."""
    chance = random.Random(seed)
    makers = (*(_rows, _groups, _joins, _orders, _unions, _nested, _whole_tables) * 2, _windows)
    for number in range(count):
        yield makers[number % len(makers)](chance)


def _value(chance: random.Random, column: str) -> str:
    match column:
        case "tiny" | "small" | "whole" | "Big":
            return str(chance.choice([0, 1, 4, -7, 127, 2147483647, 9007199254740993]))
        case "price":
            return chance.choice(["2.50", "0", "1.5", "-3", "99999999.99"])
        case "ratio" | "heat":
            return chance.choice(["0", "1.5", "-2", "100"])
        case "word":
            return chance.choice(["'a'", "''", "'ä'", '"A"', "'Z z'"])
        case "day":
            return chance.choice(["'2024-02-29'", "DATE '1970-01-01'", "DATE '9999-12-31'"])
        case "seen":
            return chance.choice(["'2024-02-29'", "TIMESTAMP '2024-02-29 12:00:00'", "'1970-01-01 00:00:00'"])
        case _:
            return chance.choice(["true", "false"])


def _condition(chance: random.Random, columns: tuple[str, ...] = tuple(TYPES), alias: str = "") -> str:
    column = chance.choice(columns)
    name = f"{alias}{column if chance.random() < 0.95 else column.upper()}"
    value = _value(chance, column)
    choices = [f"{name} IS NULL", f"{name} IS NOT NULL"]
    if column != "flag":
        signs = ("=", "<>", "<", "<=", ">", ">=")
        choices += [f"{name} {chance.choice(signs)} {value}" for _ in range(3)]
        choices += [f"{name} BETWEEN {value} AND {_value(chance, column)}", f"NOT {name} = {value}"]
    else:
        choices += [name, f"NOT {name}"]
    if column in {"word", *NUMBERS}:
        choices += [f"{name} IN ({value}, {_value(chance, column)})"]
    if column == "word":
        choices += [f"{name} LIKE 'a%'", f"{name} NOT LIKE '%a'"]
    first = chance.choice(choices)
    if chance.random() < 0.4:
        return f"({first} {chance.choice(['AND', 'OR'])} {_condition(chance, columns, alias)})"
    return first


def _expression(chance: random.Random) -> str:
    number = chance.choice(NUMBERS)
    return chance.choice(
        [
            f"{number} + 1",
            f"{number} * {chance.choice(NUMBERS)}",
            f"{number} - {_value(chance, number)}",
            f"{number} / 3",
            f"whole / {chance.choice(NUMBERS)}",
            "1 / 2",
            "ratio * 2",
            "ratio + whole",
            f"coalesce({number}, 0)",
            "coalesce(word, 'none')",
            f"CASE WHEN {_condition(chance)} THEN word ELSE 'other' END",
            f"CASE WHEN {_condition(chance)} THEN {number} END",
            "word || '!'",
            f"CAST({number} AS STRING)",
            f"CAST({number} AS BIGINT)",
            f"CAST({number} AS DOUBLE)",
            "CAST(seen AS DATE)",
            "upper(word)",
            "price * 2",
            "-7",
        ]
    )


def _some(chance: random.Random, most: int = 4) -> list[str]:
    return chance.sample([*TYPES, "offset", "event_time", "system_time"], chance.randint(1, most))


def _rows(chance: random.Random) -> str:
    items = [*_some(chance), f"{_expression(chance)} AS made", chance.choice(["small - 1", "Big", "7", "count"])]
    items = [each for each in items if each != "count"]
    where = f" WHERE {_condition(chance)}" if chance.random() < 0.7 else ""
    limit = f" LIMIT {chance.randint(0, 20)}" if chance.random() < 0.3 else ""
    return f"SELECT {', '.join(items)} FROM my.things{where}{limit}"


def _total(chance: random.Random) -> str:
    number = chance.choice(NUMBERS[:3])
    choices = [
        "count(*)",
        f"count({chance.choice([*TYPES])})",
        f"count(DISTINCT {chance.choice(['word', 'whole', 'day', 'ratio'])})",
        f"sum({number})",
        "sum(Big)",
        "sum(price)",
        f"avg({number})",
        "avg(Big)",
        "sum(ratio)",
        f"{chance.choice(['min', 'max'])}({chance.choice(['word', 'day', 'seen', 'price', 'Big', 'flag'])})",
        f"sum({number} - 1)",
    ]
    return chance.choice(choices)


def _groups(chance: random.Random) -> str:
    keys = chance.sample(["word", "flag", "day", "small", "price", "seen"], chance.randint(0, 2))
    totals = [_total(chance) if chance.random() < 0.6 else f"{_total(chance)} AS t{n}" for n in range(2)]
    group = (
        f" GROUP BY {', '.join(chance.choice([key, str(place)]) for place, key in enumerate(keys, 1))}" if keys else ""
    )
    having = (
        f" HAVING {chance.choice(['count(*) > 1', 'max(whole) IS NOT NULL'])}" if keys and chance.random() < 0.3 else ""
    )
    where = f" WHERE {_condition(chance)}" if chance.random() < 0.5 else ""
    order = " ORDER BY count(*) DESC, 1 LIMIT 3" if keys and chance.random() < 0.4 else ""
    return f"SELECT {', '.join([*keys, *totals])} FROM `my.things`{where}{group}{having}{order}"


def _joins(chance: random.Random) -> str:
    kind = chance.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN", "INNER JOIN"])
    on = chance.choice(
        ["a.whole = b.whole", "a.word = b.word", "a.day = b.day AND a.flag = b.flag", "a.price < b.price"]
    )
    where = f" WHERE {_condition(chance, ('whole', 'word', 'price'), 'a.')}" if chance.random() < 0.5 else ""
    if chance.random() < 0.3:
        return f"SELECT count(*) AS n, max(b.word) FROM my.things a {kind} other b ON {on}{where}"
    return f"SELECT a.offset, a.word, b.word AS word, b.price FROM my.things a {kind} other AS b ON {on}{where}"


def _orders(chance: random.Random) -> str:
    column, other = chance.sample([each for each in TYPES if each != "ratio" or chance.random() < 0.2], 2)
    way = chance.choice(["", " ASC", " DESC", " DESC NULLS FIRST", " ASC NULLS LAST"])
    distinct = chance.choice(["", "", "DISTINCT "])
    key = chance.choice([column, other, "1", "2", "whole", f"my.things.{other}"])
    limit = f" LIMIT {chance.randint(1, 25)}" if chance.random() < 0.6 else ""
    return f"SELECT {distinct}{column}, {other} FROM my.things ORDER BY {key}{way}{limit}"


def _unions(chance: random.Random) -> str:
    column = chance.choice(["word", "whole", "price", "day"])
    word = chance.choice(["UNION", "UNION ALL"])
    order = f" ORDER BY {chance.choice(['1', column])} DESC LIMIT 5" if chance.random() < 0.5 else ""
    first = f"SELECT {column} FROM my.things WHERE {_condition(chance)}"
    return f"{first} {word} SELECT {column} AS other_name FROM other{order}"


def _nested(chance: random.Random) -> str:
    inner = f"SELECT word, whole, Big AS size FROM my.things WHERE {_condition(chance)}"
    outer = chance.choice(
        [
            "SELECT * FROM {}",
            "SELECT size, word FROM {} WHERE whole > 0",
            "SELECT word, count(*) FROM {} GROUP BY word",
            "SELECT x.*, 1 AS one FROM {} ORDER BY size DESC, word",
        ]
    )
    if chance.random() < 0.5:
        return f"WITH x AS ({inner}) {outer.format('x')}"
    return outer.format(f"({inner}) AS x")


def _windows(chance: random.Random) -> str:
    over = f"OVER (PARTITION BY flag ORDER BY {chance.choice(['offset', 'whole, offset'])})"
    what = chance.choice(["row_number()", "rank()", "sum(whole)", "lag(word)"])
    return f"SELECT offset, {what} {over} AS w FROM my.things"


def _whole_tables(chance: random.Random) -> str:
    condition = _condition(chance, ("whole", "word", "price", "day", "flag"))
    return chance.choice(
        [
            "SELECT * FROM my.things",
            "SELECT * FROM other__state",
            f"SELECT word, whole FROM other__state WHERE {condition}",
            "SELECT flag, count(*), sum(price) FROM other__state GROUP BY flag",
            "SELECT * FROM my.things__state",
            f"SELECT o.* FROM other o WHERE {_condition(chance, ('whole', 'word', 'flag'))} LIMIT 7",
            "SELECT ratio, day FROM MY.THINGS ORDER BY ratio, day",
            "SELECT heat FROM my.things ORDER BY 1 DESC",
        ]
    )
