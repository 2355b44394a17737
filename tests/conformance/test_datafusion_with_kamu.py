"""Clauses FUSION-2 and FUSION-6: our DataFusion engine gives what another implementation's gives, to the bit."""

import datetime as dt
import decimal
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_engines.contract import Limits, TransformInput, TransformRequest, TransformResponse, Watermark
from odf_engines.engine import EngineSession
from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_engines.reading.slices import logical_hash_of
from odf_engines.registry import get_engine
from odf_protocol import engine_messages
from odf_protocol.did import DatasetId
from odf_protocol.events import DataSchema, OffsetInterval, SqlQueryStep, TransformSql
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.fusion_queries import BY_HAND, REJECTED_BY_BOTH, REJECTED_HERE, Steps, iter_generated
from support.peer_engine import PeerEngine, running_peer_engine

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs"),
]

GENERATED = int(os.environ.get("FUSION_QUERIES", "150"))
SYSTEM_TIME = Timestamp.from_unix_ms(1_700_000_000_123)
INSTANT = pa.timestamp("ms", "UTC")
FIRST_DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
SYSTEM = [
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("op", pa.int32(), nullable=False),
    pa.field("system_time", INSTANT, nullable=False),
    pa.field("event_time", INSTANT, nullable=False),
]
ORDERS = pa.schema([
    *SYSTEM, ("id", pa.int64()), ("status", pa.string()), ("amount", pa.float64()), ("price", pa.decimal128(10, 2)),
    ("day", pa.date32()), ("tags", pa.list_(pa.string())),
    ("place", pa.struct([("name", pa.string()), ("storey", pa.int32())])),
])  # fmt: skip
CITIES = pa.schema([*SYSTEM, ("id", pa.int64()), ("city", pa.string()), ("people", pa.int64())])


@dataclass(frozen=True)
class Changelog:
    """Slices under their hashes, as another implementation keeps them, and their rows' offsets."""

    alias: str
    schema: pa.Schema
    paths: tuple[Path, ...]
    hashes: tuple[Multihash, ...]
    rows: int


@dataclass(frozen=True)
class Subset:
    """What one step sees: of each input its slices, offsets and watermarks in milliseconds."""

    name: str
    orders: OffsetInterval | None
    cities: OffsetInterval | None
    marks: dict[str, tuple[int, ...]] = field(default_factory=dict)


SUBSETS = [
    Subset("first", OffsetInterval(start=0, end=9), OffsetInterval(start=0, end=3), {"orders": (5, 9), "cities": (7,)}),
    Subset("across-slices", OffsetInterval(start=7, end=24), OffsetInterval(start=2, end=8)),
    Subset("one-input-stands", OffsetInterval(start=10, end=29), None, {"orders": (20,)}),
    Subset("marks-alone", None, None, {"orders": (30,), "cities": (25, 28)}),
]


def order(offset: int) -> dict[str, Any]:
    """A row; every fifth has nulls, every sixth and the next are a correction."""
    empty = offset % 5 == 3
    return {
        "op": {4: 2, 5: 3}.get(offset % 6, 1 if offset % 11 == 10 else 0),
        "event_time": FIRST_DAY + dt.timedelta(hours=7 * (offset % 13)),
        "id": offset % 9,
        "status": None if empty else ("new", "paid", "sent2")[offset % 3],
        "amount": None if empty else offset * 3.7 - 10,
        "price": None if empty else decimal.Decimal(offset * 101) / 100,
        "day": None if empty else dt.date(2024, 1, 1 + offset % 4),
        "tags": None if empty else ["a", None, f"t{offset}"][: offset % 4],
        "place": None if empty else {"name": f"p{offset}", "storey": offset},
    }


def city(offset: int) -> dict[str, Any]:
    return {
        "op": 0, "event_time": FIRST_DAY + dt.timedelta(hours=7 * offset), "id": 2 * offset % 7,
        "city": f"city {offset}", "people": offset * 10,
    }  # fmt: skip


def write_changelog(folder: Path, alias: str, schema: pa.Schema, make: Any, sizes: list[int]) -> Changelog:
    paths, hashes, start = [], [], 0
    for size in sizes:
        rows = [{"offset": at, "system_time": FIRST_DAY, **make(at)} for at in range(start, start + size)]
        path = folder / f"{alias}-{start}"
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
        named = Multihash.of_sha3_256(path.read_bytes())
        paths.append(path.rename(folder / str(named)))
        hashes.append(named)
        start += size
    return Changelog(alias, schema, tuple(paths), tuple(hashes), start)


@dataclass(frozen=True)
class Engines:
    """Ours and theirs, over the same two changelogs."""

    ours: EngineSession
    theirs: PeerEngine
    folder: Path
    orders: Changelog
    cities: Changelog

    def ask_ours(self, steps: Steps, subset: Subset) -> TransformResponse:
        return self.ours.transform(
            TransformRequest(
                dataset_id="did:odf:derivative",
                transform=sql_of(steps),
                vocabulary=Vocabulary(),
                inputs=tuple(self._input(*each, subset) for each in self._intervals(subset)),
                system_time=SYSTEM_TIME,
                next_offset=100,
            )
        )

    def ask_theirs(self, steps: Steps, subset: Subset) -> tuple[Any, Path]:
        output = self.folder / "their-output"
        output.unlink(missing_ok=True)
        answer = self.theirs.transform(
            engine_messages.WireTransformRequest(
                dataset_id=DatasetId(b"\x01" * 32),
                dataset_alias="someone/derivative",
                system_time=SYSTEM_TIME,
                vocab=engine_messages.DatasetVocabulary(),
                transform=sql_of(steps),
                query_inputs=tuple(self._their_input(*each, subset) for each in self._intervals(subset)),
                next_offset=100,
                new_checkpoint_path=str(self.folder / "checkpoint"),
                new_data_path=str(output),
            )
        )
        return answer, output

    def _intervals(self, subset: Subset) -> list[tuple[Changelog, OffsetInterval | None]]:
        return [(self.orders, subset.orders), (self.cities, subset.cities)]

    def _input(self, log: Changelog, interval: OffsetInterval | None, subset: Subset) -> TransformInput:
        marks = subset.marks.get(log.alias, ())
        return TransformInput(
            dataset_id=f"did:odf:{log.alias}",
            alias=log.alias,
            vocabulary=Vocabulary(),
            schema=DataSchema(fields=data_schema_of(log.schema).fields),
            slices=() if interval is None else log.paths,
            hashes=() if interval is None else log.hashes,
            offset_interval=interval,
            watermarks=tuple(Watermark(system_time=SYSTEM_TIME, event_time=Timestamp.from_unix_ms(ms)) for ms in marks),
        )

    def _their_input(
        self, log: Changelog, interval: OffsetInterval | None, subset: Subset
    ) -> engine_messages.TransformRequestInput:
        schema_file = self.folder / f"schema-{log.alias}.parquet"
        pq.write_table(log.schema.empty_table(), schema_file)
        return engine_messages.TransformRequestInput(
            dataset_id=DatasetId(b"\x02" * 32),
            dataset_alias=log.alias,
            query_alias=log.alias,
            vocab=engine_messages.DatasetVocabulary(),
            offset_interval=interval,
            data_paths=() if interval is None else tuple(map(str, log.paths)),
            schema_file=str(schema_file),
            explicit_watermarks=tuple(
                engine_messages.WireWatermark(system_time=SYSTEM_TIME, event_time=Timestamp.from_unix_ms(ms))
                for ms in subset.marks.get(log.alias, ())
            ),
        )


def sql_of(steps: Steps) -> TransformSql:
    made = [
        SqlQueryStep(query=each) if isinstance(each, str) else SqlQueryStep(alias=each[0], query=each[1])
        for each in steps
    ]
    return TransformSql(engine="datafusion", queries=tuple(made))


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    folder = tmp_path_factory.mktemp("engines")
    (folder / "session").mkdir()
    orders = write_changelog(folder, "orders", ORDERS, order, [8, 3, 12, 7])
    cities = write_changelog(folder, "cities", CITIES, city, [4, 5])
    limits = Limits(memory_bytes=1024**3)
    with get_engine("datafusion").open(folder / "session", limits) as ours, running_peer_engine() as theirs:
        yield Engines(ours, theirs, folder, orders, cities)


def check_equal(engines: Engines, steps: Steps, subset: Subset) -> bool:
    """Check that both engines give the same, or both reject; say whether they gave something."""
    answer, output = engines.ask_theirs(steps, subset)
    if not isinstance(answer, engine_messages.TransformResponseSuccess):
        with pytest.raises(InvalidQueryError):
            engines.ask_ours(steps, subset)
        return False
    response = engines.ask_ours(steps, subset)
    table = pq.read_table(output)
    assert response.schema.names == table.column_names
    assert [each.nullable for each in response.schema] == [each.nullable for each in table.schema]
    assert response.offset_interval == answer.new_offset_interval
    assert response.watermark == answer.new_watermark
    if response.data_path is not None:
        assert response.logical_hash == logical_hash_of(output), (pq.read_table(response.data_path), table)
    return True


@pytest.mark.parametrize("subset", SUBSETS, ids=lambda each: each.name)
@pytest.mark.parametrize("name", BY_HAND)
def test_queries_give_the_same_bits(engines: Engines, name: str, subset: Subset) -> None:
    check_equal(engines, BY_HAND[name], subset)


@pytest.mark.parametrize("subset", SUBSETS[:2], ids=lambda each: each.name)
def test_generated_queries_give_the_same_bits(engines: Engines, subset: Subset) -> None:
    given = [check_equal(engines, steps, subset) for _, steps in iter_generated(GENERATED)]
    assert sum(given) > GENERATED * 0.8


@pytest.mark.parametrize("name", REJECTED_BY_BOTH)
def test_broken_contracts_are_rejected_by_both(engines: Engines, name: str) -> None:
    answer, output = engines.ask_theirs(REJECTED_BY_BOTH[name], SUBSETS[0])
    assert not isinstance(answer, engine_messages.TransformResponseSuccess), output
    with pytest.raises(InvalidQueryError):
        engines.ask_ours(REJECTED_BY_BOTH[name], SUBSETS[0])


@pytest.mark.parametrize("name", REJECTED_HERE)
def test_what_cannot_be_repeated_is_rejected_here(engines: Engines, name: str) -> None:
    answer, _ = engines.ask_theirs(REJECTED_HERE[name], SUBSETS[0])
    assert isinstance(answer, engine_messages.TransformResponseSuccess), answer
    with pytest.raises((InvalidQueryError, NotReproducibleError)):
        engines.ask_ours(REJECTED_HERE[name], SUBSETS[0])


def test_watermark_never_goes_back(engines: Engines) -> None:
    """Theirs is the least of what this step's inputs stated, also where that is older than the step before."""
    subset = replace(SUBSETS[0], marks={"orders": (5,)})
    answer, _ = engines.ask_theirs(BY_HAND["filter"], subset)
    assert answer.new_watermark == Timestamp.from_unix_ms(5)
    assert engines.ask_ours(BY_HAND["filter"], subset).watermark == Timestamp.from_unix_ms(5)
