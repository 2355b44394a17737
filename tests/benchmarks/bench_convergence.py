"""A graph of many datasets, read from a home and planned; goal: 1,000 datasets in 1 s and 10,000 in 10 s.

    python tests/benchmarks/bench_convergence.py [DATASETS ...]

A tenth are roots, each of which has just got new rows; the others are derivatives of one to three datasets each. All is
read from chains in a real home, by a process that has read none before; then once more, as a daemon does after one
commit. The goals are CONVERGE-10's, of processor time.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_convergence.home_graph import HomeGraph
from odf_convergence.planner import ConvergencePlan, Goal, make_plan
from odf_node.composition import open_node
from odf_node.records.commits import Commit, NewBlock, NewDataset
from odf_node.records.datasets import Origin
from odf_protocol.block import decode_block, encode_block
from odf_protocol.chain import Strictness
from odf_protocol.chain.stored_state import encode_state
from odf_protocol.chain.verify import ChainVerifier
from odf_protocol.did import DatasetId
from odf_protocol.events import (
    AddData,
    AddPushSource,
    DatasetKind,
    DataSlice,
    Event,
    ExecuteTransform,
    ExecuteTransformInput,
    MergeStrategyAppend,
    OffsetInterval,
    ReadStepCsv,
    Seed,
    SetDataSchema,
    SetTransform,
    SqlQueryStep,
    TransformInput,
    TransformSql,
)
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash
from odf_protocol.timestamp import Timestamp
from support.offers import CITY_SCHEMA

GOALS_S = {1_000: 1.0, 10_000: 10.0}
NOON = Timestamp.parse("2024-01-01T12:00:00Z")
ROWS = 10


def identity(number: int) -> DatasetId:
    return DatasetId(Multihash.of_sha3_256(str(number).encode()).digest)


def chain_of(events: list[Event]) -> tuple[list[NewBlock], bytes]:
    """Blocks, and the chain's state after them."""
    blocks: list[NewBlock] = []
    for place, event in enumerate(events):
        last = blocks[-1].hash if blocks else None
        raw = encode_block(event, system_time=NOON, prev_block_hash=last, sequence_number=place)
        blocks.append(NewBlock.of(decode_block(raw, expected_hash=None), None, None))
    verifier = ChainVerifier(None, strictness=Strictness.OWN)
    verifier.verify(block.raw for block in blocks)
    assert verifier.state is not None
    return blocks, encode_state(verifier.state)


def slice_of(first: int) -> DataSlice:
    return DataSlice(
        logical_hash=Multihash(ARROW0_SHA3_256, bytes(32)),
        physical_hash=Multihash.of_sha3_256(b"file"),
        offset_interval=OffsetInterval(start=first, end=first + ROWS - 1),
        size=1_000,
    )


def fill(home: Path, count: int) -> None:
    """Make a home whose derivatives have read all but the newest block of the roots."""
    chance = random.Random(1)
    read: dict[int, tuple[Multihash, int]] = {}
    with closing(open_node(home)) as node:
        for number in range(count):
            is_root = number < max(1, count // 10)
            events: list[Event] = [Seed(dataset_id=identity(number), dataset_kind=DatasetKind.ROOT)]
            if is_root:
                source = ReadStepCsv(ddl_schema=("city STRING", "people BIGINT"))
                events.append(AddPushSource(source_name="default", read=source, merge=MergeStrategyAppend()))
                events.append(SetDataSchema(schema=CITY_SCHEMA))
                for step in range(2):
                    last = None if step == 0 else ROWS - 1
                    events.append(AddData(prev_offset=last, new_data=slice_of(step * ROWS)))
            else:
                inputs = sorted({chance.randrange(number) for _ in range(chance.randint(1, 3))})
                events = [Seed(dataset_id=identity(number), dataset_kind=DatasetKind.DERIVATIVE)]
                declared = tuple(TransformInput(dataset_ref=str(identity(each)), alias=f"in{each}") for each in inputs)
                query = TransformSql(engine="datafusion", queries=(SqlQueryStep(query="SELECT * FROM in0"),))
                events += [SetTransform(inputs=declared, transform=query), SetDataSchema(schema=CITY_SCHEMA)]
                taken = tuple(
                    ExecuteTransformInput(
                        dataset_id=identity(each), new_block_hash=read[each][0], new_offset=read[each][1]
                    )
                    for each in inputs
                )
                events.append(ExecuteTransform(query_inputs=taken, new_data=slice_of(0)))
            blocks, state = chain_of(events)
            read[number] = (blocks[3].hash, ROWS - 1)
            made = NewDataset(
                name=f"dataset{number:05}",
                kind=DatasetKind.ROOT if is_root else DatasetKind.DERIVATIVE,
                origin=Origin.OWN,
                created_at=NOON,
            )
            node.store.commit(
                Commit(
                    dataset_id=identity(number),
                    expected_head=None,
                    blocks=tuple(blocks),
                    chain_state=state,
                    new_dataset=made,
                )
            )


def measure(what: str, count: int, work: Callable[[], ConvergencePlan]) -> float:
    began_s, used_s = time.perf_counter(), time.process_time()
    plan = work()
    wall_s, used_s = time.perf_counter() - began_s, time.process_time() - used_s
    print(f"{count:>7,} datasets, {what}: {used_s:.2f} s of processor ({wall_s:.2f} s), {len(plan.actions):,} actions")
    assert len(plan.actions) == len({each.key for each in plan.actions}) > 0
    return used_s


def main() -> int:
    failed = False
    for count in [int(each) for each in sys.argv[1:]] or list(GOALS_S):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            fill(home, count)
            with closing(open_node(home)) as node:
                reader = HomeGraph(node.home)

                def plan(reader: HomeGraph = reader) -> ConvergencePlan:
                    graph = reader.read()
                    assert not any(each.reported for each in graph.datasets.values())
                    return make_plan(graph, [Goal(key=key) for key in graph.order], 0)

                cold_s = measure("read from their chains and planned", count, plan)
                measure("read again and planned", count, plan)
                failed |= cold_s > GOALS_S.get(count, float("inf"))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
