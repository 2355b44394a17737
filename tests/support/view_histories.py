"""Random changelogs, random queries over them, and what another database says that the queries give.

Two inputs: ``orders`` (k, s, a) and ``people`` (k, r), with nulls, duplicates, retractions and corrections. A query is
composed of layers, each of which takes and gives the columns event_time, k, s and a, so that layers can be put over one
another; text that Spark and DuckDB both read.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from math import isnan
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import QueryTable, TransformInput, TransformRequest, TransformResponse, Watermark
from odf_engines.engine import EngineSession
from odf_engines.reading.event_times import find_newest, read_times_beside
from odf_node.derive.earlier_rows import EarlierRows, InputRows, needed_watermarks
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataSlice,
    DataTypeFloat64,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    OffsetInterval,
    TransformSql,
)
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary, system_fields
from support.times_in_files import read_event_times
from support.transforms import SYSTEM_TIME, transform_sql

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)
Row = tuple[Any, ...]  # event time in ms, then the columns of the data


def _schema(**columns: type) -> DataSchema:
    kinds = {int: DataTypeInt64(), str: DataTypeString(), float: DataTypeFloat64()}
    fields = (DataField(name=name, type=DataTypeOption(inner=kinds[kind])) for name, kind in columns.items())
    return DataSchema(fields=(*system_fields(Vocabulary()), *fields))


SCHEMAS = {"orders": _schema(k=int, s=str, a=int), "people": _schema(k=int, r=str)}
WITH_FLOATS = {"orders": _schema(k=int, s=str, a=int, f=float), "people": _schema(k=int, r=str, f=float)}
"""The same with a column that no query names, whose presence leaves it to Spark which rows are in force."""
_FLOAT = 0.5


@dataclass(frozen=True)
class Change:
    """A row of a changelog."""

    op: int
    row: Row


def random_row(random: Random, name: str) -> Row:
    """A row of which others will be equal."""
    time = 1_600_000_000_000 + 86_400_000 * random.randrange(5)
    key = random.choice([None, 1, 2, 3, 4])
    if name == "people":
        return time, key, random.choice([None, "north", "south"])
    return time, key, random.choice([None, "x", "y", "z"]), random.choice([None, -3, 0, 1, 2, 2, 7])


def random_changelog(random: Random, name: str, size: int) -> list[Change]:
    """A sound changelog: what is taken was given before."""
    live: list[Row] = []
    changes: list[Change] = []
    while len(changes) < size:
        kind = random.random()
        if kind < 0.65 or not live:
            live.append(random_row(random, name))
            changes.append(Change(APPEND, live[-1]))
        elif kind < 0.8:
            changes.append(Change(RETRACT, live.pop(random.randrange(len(live)))))
        else:
            position = random.randrange(len(live))
            new = random_row(random, name)
            changes += [Change(CORRECT_FROM, live[position]), Change(CORRECT_TO, new)]
            live[position] = new
    return changes


def fold(changes: Sequence[Change]) -> Counter[Row]:
    """What remains; fails where a row is taken that is not there."""
    left: Counter[Row] = Counter()
    for each in changes:
        left[each.row] += 1 if each.op in {APPEND, CORRECT_TO} else -1
        assert left[each.row] >= 0, f"{each} takes a row that is not there"
    return +left


def fold_leniently(changes: Sequence[Change]) -> Counter[Row]:
    """What remains of changes of which some were left out, so that a row may be taken that was not given."""
    left: Counter[Row] = Counter()
    for each in changes:
        left[each.row] += 1 if each.op in {APPEND, CORRECT_TO} else -1
    return +left


def random_query(random: Random) -> str:
    """Layers over the inputs."""
    query = _source(random)
    for _ in range(random.choice([1, 1, 2])):
        query = random_layer(random, query)
    return query


def _source(random: Random) -> str:
    orders = random.choice(
        [
            "SELECT event_time, k, s, a FROM orders",
            "SELECT event_time, k, s, a FROM orders WHERE a > 0 OR s IS NULL",
            "SELECT event_time, coalesce(k, 0) AS k, upper(s) AS s, a * 2 AS a FROM orders",
        ]
    )
    join = random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL OUTER JOIN"])
    return random.choice(
        [
            orders,
            orders,
            (
                f"SELECT coalesce(o.event_time, p.event_time) AS event_time, coalesce(o.k, p.k) AS k, p.r AS s, o.a "
                f"FROM ({orders}) o {join} people p ON o.k = p.k"
            ),
            f"SELECT o.event_time, o.k, o.s, o.a FROM ({orders}) o LEFT SEMI JOIN people p ON o.k = p.k",
            f"SELECT o.event_time, o.k, o.s, o.a FROM ({orders}) o LEFT ANTI JOIN people p ON o.k = p.k",
            f"SELECT o.event_time, o.k, q.s, o.a FROM ({orders}) o JOIN orders q ON o.k = q.k AND o.a < q.a",
            f"SELECT o.event_time, k, r AS s, o.a FROM ({orders}) o JOIN people p USING (k)",
            f"{orders} UNION ALL SELECT event_time, k, r AS s, 1 AS a FROM people",
            f"{orders} UNION SELECT event_time, k, r AS s, CAST(NULL AS BIGINT) AS a FROM people",
            f"SELECT event_time, k, s, a FROM ({orders}) o WHERE EXISTS (SELECT 1 FROM people p WHERE p.k = o.k)",
            f"SELECT event_time, k, s, a FROM ({orders}) o WHERE k IN (SELECT k FROM people WHERE r = 'north')",
            f"SELECT event_time, k, s, a FROM ({orders}) o WHERE a >= (SELECT avg(a) FROM orders)",
            f"SELECT event_time, k, s, (SELECT count(*) FROM people p WHERE p.k = o.k) AS a FROM ({orders}) o",
            f"SELECT event_time, k, s, a FROM ({orders}) o CROSS JOIN (VALUES (1), (2)) AS v(n) WHERE a > n",
        ]
    )


def random_layer(random: Random, below: str) -> str:
    """A query over another one, both of which give event_time, k, s and a."""
    group, columns = random.choice(
        [
            ("k", "k, CAST(NULL AS STRING) AS s"),
            ("s", "CAST(NULL AS BIGINT) AS k, s"),
            *((each, "k, s") for each in ("k, s", "ROLLUP (k, s)", "CUBE (k, s)", "GROUPING SETS ((k), (s), ())")),
        ]
    )
    # Databases compute a mean or variance by other steps, so one that is a half may be rounded either way.
    amount = random.choice(
        [
            "sum(a)", "count(*)", "count(a)", "min(a)", "max(a)", "count(DISTINCT a)",
            "sum(a) FILTER (WHERE s = 'x')", "sum(DISTINCT a)", "max(a) - min(a)",
            "CAST(floor(avg(a) * 1000 + 0.1234567) AS BIGINT)",
            "CAST(floor(stddev_pop(a) * 1000 + 0.1234567) AS BIGINT)",
            "CAST(floor(var_samp(a) * 1000 + 0.1234567) AS BIGINT)",
        ]
    )  # fmt: skip
    # Over no rows the grand total of grouping sets is no row in Spark, and one in DuckDB.
    having = random.choice([" HAVING count(*) > 0", " HAVING count(*) > 1"])
    total = "count(*) OVER (PARTITION BY k ORDER BY s NULLS FIRST)"
    ranked = random.choice(
        [
            "rank() OVER (PARTITION BY k ORDER BY a NULLS FIRST)",
            "dense_rank() OVER (PARTITION BY s ORDER BY a DESC NULLS LAST, k NULLS LAST)",
            "sum(a) OVER (PARTITION BY k ORDER BY event_time RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
            "max(a) OVER (PARTITION BY s)",
            total,
        ]
    )
    unique = "ORDER BY event_time, k NULLS FIRST, s NULLS FIRST, a NULLS FIRST"
    return random.choice(
        [
            f"SELECT max(event_time) AS event_time, {columns}, {amount} AS a FROM ({below}) t GROUP BY {group}{having}",
            (
                f"SELECT coalesce(max(event_time), TIMESTAMP '2020-01-01 00:00:00') AS event_time, "
                f"max(k) AS k, min(s) AS s, {amount} AS a FROM ({below}) t"
            ),
            f"SELECT DISTINCT event_time, k, s, a FROM ({below}) t",
            f"SELECT event_time, k, s, {ranked} AS a FROM ({below}) t",
            f"SELECT event_time, k, s, a FROM ({below}) t {unique} LIMIT 3",
            (
                f"SELECT event_time, k, s, a FROM (SELECT *, row_number() OVER (PARTITION BY k {unique}) AS nr FROM "
                f"({below}) t) u WHERE nr <= 2"
            ),
            f"SELECT event_time, k, s, a FROM ({below}) t EXCEPT SELECT event_time, k, r AS s, 2 AS a FROM people",
            f"SELECT event_time, k, s, a FROM ({below}) t INTERSECT SELECT event_time, k, s, a FROM orders",
            (
                f"WITH t AS ({below}), u AS (SELECT k, max(a) AS most FROM t GROUP BY k) "
                f"SELECT t.event_time, t.k, t.s, t.a FROM t JOIN u ON t.k = u.k AND t.a = u.most"
            ),
        ]
    )


def expected_rows(
    query: str, inputs: dict[str, Counter[Row]], schemas: dict[str, DataSchema] | None = None
) -> Counter[Row]:
    """What DuckDB says that a query gives over rows, by default of ``SCHEMAS``."""
    connection = _database().cursor()
    connection.execute("SET TimeZone = 'UTC'")
    for name, rows in inputs.items():
        schema = arrow_schema_of((schemas or SCHEMAS)[name])
        fields = [schema.field(i) for i in range(3, len(schema))]
        columns = list(zip(*rows.elements(), strict=True)) or [[] for _ in fields]
        arrays = [_array(column, field.type) for column, field in zip(columns, fields, strict=True)]
        connection.register(name, pa.table(arrays, names=[field.name for field in fields]))
    query = query.replace("LEFT SEMI JOIN", "SEMI JOIN").replace("LEFT ANTI JOIN", "ANTI JOIN")
    answer = connection.sql(query).to_arrow_table()
    columns = [column.to_pylist() for column in answer.columns]
    return Counter(tuple(map(plain, row)) for row in zip(*columns, strict=True))


@cache
def _database() -> duckdb.DuckDBPyConnection:
    # To make one takes longer than a question does.
    return duckdb.connect(config={"threads": 1})


def plain(value: Any) -> Any:
    """A value as both databases can be compared by."""
    if isinstance(value, datetime):
        return round((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, float):
        return "NaN" if isnan(value) else round(value, 9) + 0.0
    return [plain(each) for each in value] if isinstance(value, list) else value


def exact(value: Any) -> Any:
    """A value that is equal to another one if their bits are."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, dict):
        return tuple((name, exact(each)) for name, each in value.items())
    return tuple(map(exact, value)) if isinstance(value, list) else plain(value)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)


Block = tuple[Sequence[Change], int | None]
"""Rows that an input gains, and the watermark in ms that it states with them."""


@dataclass
class View:
    """A derivative that runs step by step over changelogs which grow.

    Its steps are handed those slices that the node would choose, or all before them where it ``takes_all``.
    """

    session: EngineSession
    transform: TransformSql
    folder: Path
    inputs: dict[str, TransformInput]
    changes: list[Change]
    next_offset: int = 0
    watermark: Timestamp | None = None
    takes_all: bool = False
    is_exact: bool = False
    """Whether floating-point numbers are told apart by their bits, and rows need not compare with DuckDB's."""
    handed_over: int = 0
    """Slices before its steps, over all steps so far."""

    @classmethod
    def over(
        cls, session: EngineSession, query: str | TransformSql, folder: Path, schemas: dict[str, DataSchema]
    ) -> "View":
        """A view that has not run."""
        transform = transform_sql(query) if isinstance(query, str) else query
        inputs = {
            name: TransformInput(
                dataset_id=f"did:odf:{name}",
                alias=name,
                vocabulary=Vocabulary(),
                schema=schema,
                slices=(),
                offset_interval=None,
            )
            for name, schema in schemas.items()
        }
        return cls(session, transform, folder, inputs, [])

    def step(
        self, subsets: dict[str, Sequence[Change]], watermarks: dict[str, int | None] | None = None
    ) -> TransformResponse:
        """Run one step over one more block of each input, with a watermark in ms where it states one."""
        marks = watermarks or {}
        names = {*subsets, *marks}
        return self.blocks({name: [(subsets.get(name, ()), marks.get(name))] for name in names})

    def blocks(self, gained: dict[str, Sequence[Block]]) -> TransformResponse:
        """Run one step over more blocks of the inputs."""
        self._gain(gained)
        request = TransformRequest(
            dataset_id="did:odf:view",
            transform=self.transform,
            vocabulary=Vocabulary(),
            inputs=tuple(self.inputs.values()) if self.takes_all else self._chosen_inputs(),
            system_time=SYSTEM_TIME,
            next_offset=self.next_offset,
            prev_watermark=self.watermark,
        )
        self.handed_over += sum(len(each.earlier_slices) for each in request.inputs)
        response = self.session.transform(request)
        self.watermark = response.watermark
        if response.data_path is not None:
            table = pq.read_table(response.data_path)
            columns = [table.column(i).to_pylist() for i in (1, *range(3, table.num_columns))]
            reported = exact if self.is_exact else plain
            self.changes += [Change(op, tuple(map(reported, row))) for op, *row in zip(*columns, strict=True)]
            self.next_offset += table.num_rows
        return response

    def begin_after(self, gained: dict[str, Sequence[Block]], given: Counter[Row]) -> None:
        """Stand where a first step over blocks ends that gave these rows, and do not run it.

        The next step computes the result before it again, so it shows whether these are the rows.
        """
        self._gain(gained)
        self.changes += [Change(APPEND, row) for row in given.elements()]
        self.next_offset = len(self.changes)

    def _gain(self, gained: dict[str, Sequence[Block]]) -> None:
        for name, each in self.inputs.items():
            first = last = each.last_offset
            known = [mark.event_time for mark in each.watermarks]
            known += [] if each.prev_watermark is None else [each.prev_watermark]
            slices, stated = [], []
            for rows, mark in gained.get(name, ()):
                if rows:
                    start = 0 if last is None else last + 1
                    slices.append(self.folder / f"{name}-{start}.parquet")
                    write_changes(slices[-1], each.schema, start, rows)
                    last = start + len(rows) - 1
                if mark is not None:
                    event_time = Timestamp.from_unix_ms(mark)
                    stated.append(Watermark(system_time=SYSTEM_TIME, event_time=event_time, last_offset=last))
            interval = None
            if last is not None and last != first:
                interval = OffsetInterval(start=0 if first is None else first + 1, end=last)
            self.inputs[name] = replace(
                each,
                earlier_slices=(*each.earlier_slices, *each.slices),
                prev_offset=first,
                prev_watermark=max(known, default=None),
                earlier_watermarks=(*each.earlier_watermarks, *each.watermarks),
                slices=tuple(slices),
                offset_interval=interval,
                watermarks=tuple(stated),
            )

    def _chosen_inputs(self) -> tuple[TransformInput, ...]:
        """The inputs of a step as ``WholeInputs`` completes them."""
        tables = [QueryTable(name=n, vocabulary=Vocabulary(), schema=each.schema) for n, each in self.inputs.items()]
        lookbacks = self.session.check(self.transform, tables, vocabulary=Vocabulary()).lookbacks
        reached = {name: each.prev_watermark for name, each in self.inputs.items()}
        choice = EarlierRows(lookbacks, reached, {name: _rows_of(each) for name, each in self.inputs.items()})
        chosen = []
        for name, each in self.inputs.items():
            earlier = choice.choose(name)
            kept = {each.offset_interval.start for each in earlier}
            chosen.append(
                replace(
                    each,
                    earlier_slices=tuple(path for path in each.earlier_slices if _start_of(path) in kept),
                    earlier_intervals=tuple(each.offset_interval for each in earlier),
                    earlier_watermarks=needed_watermarks(each.earlier_watermarks, earlier),
                    earlier_since_us=choice.get_since_us(name),
                )
            )
        return tuple(chosen)


def _rows_of(source: TransformInput) -> InputRows:
    paths = {_start_of(path): path for path in (*source.earlier_slices, *source.slices)}

    def path_of(each: DataSlice) -> Path:
        return paths[each.offset_interval.start]

    def read(slices: Sequence[DataSlice], beside: Sequence[str]) -> list[pa.Table | None]:
        return [read_times_beside(path_of(each), "event_time", beside) for each in slices]

    def read_newest(slices: Sequence[DataSlice], key: Sequence[str]) -> list[pa.Table | None]:
        return [None if each is None else find_newest(each) for each in read(slices, (*key, "op"))]

    return InputRows(
        [_described(path) for path in source.earlier_slices],
        [_described(path) for path in source.slices],
        source.earlier_watermarks,
        lambda slices: [read_event_times(path_of(each), "event_time") for each in slices],
        read,
        read_newest,
    )


def _start_of(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


def _described(path: Path) -> DataSlice:
    """What a block would say of a slice that ``View`` wrote."""
    start, name = _start_of(path), Multihash.of_sha3_256(str(path).encode())
    interval = OffsetInterval(start=start, end=start + pq.read_metadata(path).num_rows - 1)
    return DataSlice(logical_hash=name, physical_hash=name, offset_interval=interval, size=path.stat().st_size)


def write_changes(path: Path, schema: DataSchema, start: int, changes: Sequence[Change]) -> None:
    """Write a slice."""
    arrow = arrow_schema_of(schema)
    # Rows of ``WITH_FLOATS`` may leave the float out.
    columns = zip(*((*each.row, _FLOAT)[: len(arrow) - 3] for each in changes), strict=True)
    arrays = [
        pa.array(range(start, start + len(changes)), pa.int64()),
        pa.array([each.op for each in changes], pa.int32()),
        pa.array([SYSTEM_TIME.unix_ms] * len(changes), pa.int64()).cast(arrow.types[2]),
        *(_array(column, kind) for column, kind in zip(columns, arrow.types[3:], strict=True)),
    ]
    pq.write_table(pa.Table.from_arrays(arrays, schema=arrow), path)


def cut(random: Random, changes: Sequence[Change], subsets: int) -> list[Sequence[Change]]:
    """Cut a changelog into subsets at random; some may be empty, and a pair may be cut in two."""
    ends = sorted(random.randrange(len(changes) + 1) for _ in range(subsets - 1))
    starts = [0, *ends]
    return [changes[start:end] for start, end in zip(starts, [*ends, len(changes)], strict=True)]
