"""Many datasets in a home, searched, listed and looked over; goal: 10,000 within a second each.

    python tests/benchmarks/bench_many_datasets.py [DATASETS]

The goal is of processor time, which is what a machine takes that does nothing else.
"""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from odf_node.datasets.searching import Searching
from odf_node.home_folder import HomeFolder
from odf_node.records.commits import Commit, NewBlock, NewDataset
from odf_node.records.datasets import Origin
from odf_node.store import MetadataStore
from odf_protocol.block import decode_block, encode_block
from odf_protocol.chain import Strictness
from odf_protocol.chain.stored_state import encode_state
from odf_protocol.chain.verify import ChainVerifier
from odf_protocol.did import DatasetId
from odf_protocol.events import (
    AddPushSource,
    DatasetKind,
    MergeStrategyAppend,
    ReadStepCsv,
    Seed,
    SetInfo,
)
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

GOAL_S = 1.0
NOON = Timestamp.parse("2024-01-01T12:00:00Z")
THINGS = ("weather", "sales", "staff", "traffic", "energy", "health", "schools", "trees")


def creation(number: int) -> Commit:
    thing = THINGS[number % len(THINGS)]
    dataset_id = DatasetId(Multihash.of_sha3_256(str(number).encode()).digest)
    columns = tuple(f"{thing}_column_{n} BIGINT" for n in range(20))
    events = (
        Seed(dataset_id=dataset_id, dataset_kind=DatasetKind.ROOT),
        SetInfo(description=f"All that is known of {thing} in town {number}" * 5, keywords=(thing, f"town{number}")),
        AddPushSource(source_name="default", read=ReadStepCsv(ddl_schema=columns), merge=MergeStrategyAppend()),
    )
    blocks: list[NewBlock] = []
    for place, event in enumerate(events):
        last = blocks[-1].hash if blocks else None
        raw = encode_block(event, system_time=NOON, prev_block_hash=last, sequence_number=place)
        blocks.append(NewBlock.of(decode_block(raw, expected_hash=None), None, None))
    verifier = ChainVerifier(None, strictness=Strictness.OWN)
    verifier.verify(block.raw for block in blocks)
    assert verifier.state is not None
    new = NewDataset(name=f"{thing}.{number}", kind=DatasetKind.ROOT, origin=Origin.OWN, created_at=NOON)
    return Commit(
        dataset_id=dataset_id,
        expected_head=None,
        blocks=tuple(blocks),
        chain_state=encode_state(verifier.state),
        new_dataset=new,
    )


def main(count: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        with closing(MetadataStore(HomeFolder(Path(folder)))) as store:
            for number in range(count):
                store.commit(creation(number))
            slowest = search(store, count)
        return 0 if max(slowest, *(run(folder, command) for command in ("list", "status"))) < GOAL_S else 1


def search(store: MetadataStore, count: int) -> float:
    """Search with several words; give the longest time."""
    slowest = 0.0
    for words in (["town77"], ["nowhere"], ["trees_column_7", "town"], ["the"]):
        began, used = time.perf_counter(), time.process_time()
        found = sum(1 for _, _ in zip(Searching(store).iter_matches(words), range(51), strict=False))
        took, used = time.perf_counter() - began, time.process_time() - used
        slowest = max(slowest, used)
        times = f"{took:.2f} s, {used:.2f} s of a processor"
        print(f"{' '.join(words):24} {found:4} of {count:,} datasets (51 at most) in {times}")
    return slowest


def run(folder: str, command: str) -> float:
    """Run a command as it is typed; give its time."""
    began, before = time.perf_counter(), os.times()
    program = Path(sys.executable).with_name("odf-node")
    subprocess.run([program, "--home", folder, command], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"odf-node {command:15} in {time.perf_counter() - began:.2f} s, {used:.2f} s of a processor")
    return used


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
