"""Every merge strategy against its oracle, over three ingests each that go on from each other's state.

One ingest in the engine serves many cases: the number of the case is the first column of the key, so cases cannot meet.
"""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from odf_engines.contract import Limits
from odf_engines.engine import IngestSession
from odf_engines.ingest.state import rebuild_state
from odf_engines.registry import get_engine
from odf_protocol.events import (
    DataTypeInt32,
    DataTypeInt64,
    DataTypeString,
    DataTypeTimestamp,
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepNdJson,
)
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support import merge_oracle as oracle
from support.ingests import FALLBACK, RootDataset, engine_session, schema, workspace

KEY = ("case", "k", "j")
VOCABULARY = Vocabulary(event_time="t")
FALLBACK_S = Timestamp.parse(FALLBACK).seconds

# Rich cases from a seed: Hypothesis would begin with the poorest ones, and each example costs seconds; so there is one
# example, of many cases.
SEEDS = st.integers(0, 2**32)

Case = list[list[dict[str, Any]]]


def key(row: oracle.Row) -> tuple[Any, ...]:
    return (row["k"], row["j"])


def cases_of(seed: int) -> list[Case]:
    choose = random.Random(seed)

    def row() -> dict[str, Any]:
        return {
            "op": choose.choice([0, 0, 1]),
            "t": choose.choice([None, 10, 20, 30]),
            "k": choose.choice([None, 1, 2, 3]),
            "j": choose.choice([None, "a"]),
            "v": choose.choice([None, "x", "y"]),
        }

    return [[[row() for _ in range(choose.randint(0, 7))] for _ in range(3)] for _ in range(200)]


def timed(seconds: int | None) -> str | None:
    return None if seconds is None else str(Timestamp(seconds))


@pytest.fixture(scope="module", params=[pytest.param("spark", marks=pytest.mark.spark), "arrow"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IngestSession]:
    """Each engine that merges (ENGINE-25)."""
    if request.param == "spark":
        yield engine_session()
        return
    with get_engine("arrow").open(tmp_path_factory.mktemp("arrow"), Limits()) as opened:
        yield opened


def new_dataset(merge: MergeStrategy, session: IngestSession, *, with_op: bool) -> RootDataset:
    types = {"t": DataTypeTimestamp(), "case": DataTypeInt64(), "k": DataTypeInt64(), "j": DataTypeString()}
    op = {"op": DataTypeInt32()} if with_op else {}
    read = ReadStepNdJson(schema=schema(**op, **types, v=DataTypeString()))
    return RootDataset(read, merge, vocabulary=VOCABULARY, session=session)


def source_of(batches: list[list[dict[str, Any]]]) -> str:
    lines = []
    for number, batch in enumerate(batches):
        lines += [json.dumps({**row, "case": number, "t": timed(row["t"])}) for row in batch]
    return "\n".join(lines)


def written(path: Any, case_count: int) -> list[list[oracle.Change]]:
    """The rows of a slice by case, in their order."""
    found: list[list[oracle.Change]] = [[] for _ in range(case_count)]
    if path is not None:
        table = pq.read_table(path)
        table = table.set_column(3, "t", table["t"].cast(pa.int64()))
        for row in table.drop_columns(["system_time"]).to_pylist():
            data = {"t": row["t"] // 1000, "k": row["k"], "j": row["j"], "v": row["v"]}
            found[row["case"]].append((row["op"], data))
    return found


def assert_agrees(
    cases: list[Case],
    merge: MergeStrategy,
    decide: Callable[[list[oracle.Change], list[dict[str, Any]]], list[oracle.Change]],
    session: IngestSession,
    *,
    with_op: bool,
) -> RootDataset:
    dataset = new_dataset(merge, session, with_op=with_op)
    histories: list[list[oracle.Change]] = [[] for _ in cases]
    for step in range(3):
        batches = [case[step] for case in cases]
        if not with_op:
            batches = [[{n: v for n, v in row.items() if n != "op"} for row in batch] for batch in batches]
        response = dataset.ingest(source_of(batches))
        found = written(response.data_path, len(cases))
        for number, batch in enumerate(batches):
            expected = oracle.with_event_time(decide(histories[number], batch), FALLBACK_S)
            assert found[number] == expected, (number, step)
            histories[number] += expected
    return dataset


def assert_state_can_be_rebuilt(dataset: RootDataset) -> None:
    target = workspace() / "rebuilt.parquet"
    rebuild_state(dataset.slices, dataset.merge, VOCABULARY, target)
    assert dataset.state is not None
    kept, rebuilt = pq.read_table(dataset.state), pq.read_table(target)
    assert rebuilt.schema.metadata == kept.schema.metadata
    assert sorted(rebuilt.to_pylist(), key=str) == sorted(kept.to_pylist(), key=str)


few = settings(derandomize=True, max_examples=1, deadline=None, database=None, phases=[Phase.generate])


@few
@given(seed=SEEDS)
def test_append_takes_every_row_by_event_time_then_input_order(session: IngestSession, seed: int) -> None:
    assert_agrees(
        cases_of(seed), MergeStrategyAppend(), lambda _, batch: oracle.append(batch, FALLBACK_S), session, with_op=False
    )


@few
@given(seed=SEEDS)
def test_ledger_takes_rows_whose_key_was_never_seen(session: IngestSession, seed: int) -> None:
    dataset = assert_agrees(
        cases_of(seed),
        MergeStrategyLedger(primary_key=KEY),
        lambda history, batch: oracle.ledger(history, batch, key, FALLBACK_S),
        session,
        with_op=False,
    )
    assert_state_can_be_rebuilt(dataset)


@few
@given(seed=SEEDS)
def test_snapshot_turns_differences_into_changes(session: IngestSession, seed: int) -> None:
    dataset = assert_agrees(
        cases_of(seed),
        MergeStrategySnapshot(primary_key=KEY),
        lambda history, batch: oracle.snapshot(history, batch, key),
        session,
        with_op=False,
    )
    assert_state_can_be_rebuilt(dataset)


@few
@given(seed=SEEDS)
def test_upserts_turn_the_newest_word_on_a_key_into_changes(session: IngestSession, seed: int) -> None:
    dataset = assert_agrees(
        cases_of(seed),
        MergeStrategyUpsertStream(primary_key=KEY),
        lambda history, batch: oracle.upsert(history, batch, key),
        session,
        with_op=True,
    )
    assert_state_can_be_rebuilt(dataset)


@few
@given(seed=SEEDS)
def test_changelog_passes_rows_on_in_the_order_of_keys(session: IngestSession, seed: int) -> None:
    merge = MergeStrategyChangelogStream(primary_key=KEY)
    assert_agrees(cases_of(seed), merge, lambda _, batch: oracle.changelog(batch, key), session, with_op=True)
