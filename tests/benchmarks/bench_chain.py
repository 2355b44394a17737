"""How fast chains are verified: every block hashed, every rule applied, from raw bytes.

Run: ``python tests/benchmarks/bench_chain.py``. Times differ between machines; what must hold are the last two lines of
each table: time grows with the number of blocks and no faster, memory does not grow at all.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha3_256
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from odf_protocol.block import decode_block, encode_block
from odf_protocol.chain import Strictness, append
from odf_protocol.chain.verify import ChainVerifier
from odf_protocol.events import Event
from support.chains import (
    NOON,
    ChainBuilder,
    ordinary_derivative_events,
    ordinary_root_events,
)

COUNTS = (1_000, 10_000, 100_000)
CAREFUL_COUNT = 2_000
BATCH = 1_000
TRACED_COUNTS = (5_000, 20_000)


def encoded_chain(chain: ChainBuilder, events: Iterator[Event], count: int) -> Iterator[bytes]:
    """Yield a chain of ``count`` blocks: the one given, and events encoded one after another."""
    yield from (block.raw for block in chain.blocks)
    link, number = chain.blocks[-1].hash, len(chain.blocks)
    for event in islice(events, count - number):
        raw = encode_block(event, system_time=NOON, prev_block_hash=link, sequence_number=number)
        yield raw
        link, number = type(link)(link.code, sha3_256(raw).digest()), number + 1


def root_chain(count: int) -> Iterator[bytes]:
    """Slices of ten rows."""
    return encoded_chain(ChainBuilder.root(), ordinary_root_events(count), count)


def derivative_chain(count: int) -> Iterator[bytes]:
    """Steps over two inputs that take turns."""
    return encoded_chain(ChainBuilder.derivative(), ordinary_derivative_events(count), count)


def verify_in_batches(raws: Iterator[bytes]) -> int:
    """Verify as a node does: one batch after another, keeping nothing."""
    verifier = ChainVerifier(None, strictness=Strictness.FOREIGN)
    count = 0
    while batch := list(islice(raws, BATCH)):
        count += len(verifier.verify(batch))
    return count


def seconds_of(work: Callable[[], object]) -> float:
    """Processor time of a call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def measure(name: str, make_chain: Callable[[int], Iterator[bytes]], counts: tuple[int, ...]) -> None:
    """Print one table."""
    raws = list(make_chain(counts[-1]))
    print(f"{name}, {len(raws[-1])} bytes a block")
    times = {}
    for count in counts:
        # Short chains several times, so that one is not all warming up.
        repeats = max(1, 20_000 // count)
        chain = raws[:count]
        times[count] = min(seconds_of(partial(verify_in_batches, iter(chain))) for _ in range(repeats))
        print(f"  {count:>7,} blocks {count / times[count]:>9,.0f} blocks/s")

    def judge_one_by_one() -> None:
        state = None
        for raw in raws[:CAREFUL_COUNT]:
            state, _warnings = append(state, decode_block(raw, expected_hash=None), strictness=Strictness.FOREIGN)

    careful = CAREFUL_COUNT / seconds_of(judge_one_by_one)
    hashing = len(raws) / seconds_of(lambda: [sha3_256(raw).digest() for raw in raws])
    print(f"  one by one     {careful:>9,.0f} blocks/s, hashing alone {hashing:,.0f} blocks/s")
    long, short = counts[-1], counts[-2]
    print(f"  time {long:,} / {short:,} blocks: {times[long] / times[short]:.1f} (linear: {long / short:.1f})")
    few, many = TRACED_COUNTS
    growth = peak_bytes(raws[:many]) / peak_bytes(raws[:few])
    print(f"  memory {many:,} / {few:,} blocks: {growth:.2f} (linear: {many / few:.1f})")


def peak_bytes(raws: list[bytes]) -> int:
    """Most memory taken at a time while blocks are verified that are there already."""
    tracemalloc.start()
    verify_in_batches(iter(raws))
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


if __name__ == "__main__":
    measure("AddData", root_chain, COUNTS)
    measure("ExecuteTransform of two inputs", derivative_chain, (1_000, 10_000, 30_000))
