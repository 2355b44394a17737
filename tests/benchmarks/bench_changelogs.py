"""What the rule of rows that are taken back costs (ROWS-12): taking a chain and ``verify``, with it and without.

Two chains of as many rows: one of appends alone, one whose later blocks correct and retract rows of those before. Each
is taken whole, gets one further block, which only the fingerprints that are kept make cheap, and is verified; in turns,
in one run.

Run: ``python tests/benchmarks/bench_changelogs.py [rows] [blocks]``.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from unittest.mock import patch

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS))

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

from odf_node.adapters.clocks import FixedClock  # noqa: E402
from odf_node.composition import Node  # noqa: E402
from odf_node.datasets.changelogs import Changelogs  # noqa: E402
from odf_node.home_folder import HomeFolder  # noqa: E402
from odf_node.ports.progress import Silence  # noqa: E402
from odf_node.trust.verifying import VerifyOptions  # noqa: E402
from odf_protocol.schema_arrow import arrow_schema_of  # noqa: E402
from odf_protocol.timestamp import Timestamp  # noqa: E402
from support.offers import CITY_SCHEMA, NOON, Judge, PeerChain, parquet_bytes, root_chain  # noqa: E402

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)
ROUNDS = 3


def add(chain: PeerChain, operations: np.ndarray, people: np.ndarray) -> None:
    first, at = chain.next_offset(), Timestamp(NOON.seconds + len(chain.blocks))
    count = len(operations)
    time_type = pa.timestamp("ms", "UTC")
    columns = [
        pa.array(np.arange(first, first + count)),
        pa.array(operations.astype(np.int32)),
        pa.array(np.full(count, at.unix_ms)).cast(time_type),
        pa.array(np.full(count, NOON.unix_ms) + people).cast(time_type),
        pa.array(np.char.add("city number ", (people % 1_000_003).astype(str))),
        pa.array(people),
    ]
    chain.add_slice(parquet_bytes(pa.table(columns, schema=arrow_schema_of(CITY_SCHEMA))), rows=count)


def make_chain(folder: Path, rows: int, blocks: int, *, corrected: bool) -> PeerChain:
    """A first block with half of the rows; of those in the others, nine of ten belong to corrections."""
    folder.mkdir()
    chain, each = root_chain(folder, slices=0), rows // 2 // (blocks - 1)
    current = list(range(rows // 2))
    add(chain, np.zeros(len(current), np.int64), np.array(current))
    random, fresh = Random(1), rows
    for _ in range(blocks):  # the last one is the further block
        if not corrected:
            add(chain, np.zeros(each, np.int64), np.arange(fresh, fresh + each))
            fresh += each
            continue
        operations, people = [], []
        for _ in range(each // 2):
            place = random.randrange(len(current))
            operations += [CORRECT_FROM, CORRECT_TO] if random.random() < 0.9 else [APPEND, RETRACT]
            people += [current[place], fresh] if operations[-1] == CORRECT_TO else [fresh, current[place]]
            current[place] = fresh
            fresh += 1
        add(chain, np.array(operations), np.array(people))
    return chain


@contextmanager
def ruled(on: bool) -> Iterator[None]:
    if on:
        yield
        return
    with patch.object(Changelogs, "find_unsound", lambda *_args, **_named: []):
        yield


def measure(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def verify(judge: Judge) -> None:
    with closing(Node(HomeFolder(judge.home.path), FixedClock(NOON))) as node:
        (record,) = node.verifier.select(["cities"], recursive=False)
        finding = node.verifier.verify(
            record, on_progress=Silence().on_progress, options=VerifyOptions(everything=True)
        )
        assert finding.is_valid, finding.problem


def run_once(folder: Path, chain: PeerChain, *, on: bool) -> dict[str, float]:
    """Seconds of each piece of work in a home of its own."""
    judge, whole = Judge.create(folder), chain.up_to(len(chain.blocks) - 2)
    with ruled(on):
        found = {
            "taken whole": measure(lambda: judge.accept(whole)),
            "one more block": measure(lambda: judge.accept(chain, base=whole.head)),
            "verify --all": measure(lambda: verify(judge)),
        }
    shutil.rmtree(folder)
    return found


def main(rows: int, blocks: int) -> None:
    print(f"{rows:,} rows in {blocks} blocks, best of {ROUNDS}, seconds without the rule and with it")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, corrected in (("appends", False), ("corrections", True)):
            chain = make_chain(folder / name, rows, blocks, corrected=corrected)
            runs: dict[bool, list[dict[str, float]]] = {False: [], True: []}
            for _ in range(ROUNDS):
                for on, found in runs.items():
                    found.append(run_once(folder / "home", chain, on=on))
            for what in runs[True][0]:
                without, with_rule = (min(run[what] for run in runs[on]) for on in (False, True))
                print(f"{name:12} {what:15} {without:6.2f} {with_rule:6.2f}   {with_rule / without:.2f} times")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000, int(sys.argv[2]) if len(sys.argv) > 2 else 20)
