"""Long chains through the commands: pulled, pushed and pulled again, with the memory of both sides.

    python tests/benchmarks/bench_long_chains.py [BLOCKS ...]     (10,000 and 100,000 by default)

A chain of blocks that state watermarks and name no files is served, pulled by our exchange and by the Smart Transfer
Protocol, pushed by both, and pulled once more where there is nothing new. Seconds of the wall and of the processor,
and the most memory that each process ever had. Goals: 100,000 blocks in seconds; memory that does not grow with the
chain. Blocks arrive in packs of up to 20,000 blocks, one of which is in memory; so from 20,000 blocks on it is flat.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS))

from odf_node.home_folder import HomeFolder  # noqa: E402
from odf_node.records.commits import Commit, NewBlock, NewDataset  # noqa: E402
from odf_node.records.datasets import Origin  # noqa: E402
from odf_node.store import MetadataStore  # noqa: E402
from odf_protocol.block import decode_block, encode_block  # noqa: E402
from odf_protocol.chain import Strictness  # noqa: E402
from odf_protocol.chain.stored_state import encode_state  # noqa: E402
from odf_protocol.chain.verify import ChainVerifier  # noqa: E402
from odf_protocol.events import AddData, DatasetKind, Seed  # noqa: E402
from odf_protocol.multihash import Multihash  # noqa: E402
from odf_protocol.timestamp import Timestamp  # noqa: E402
from support.chains import NOON, later, push_source, schema  # noqa: E402
from support.exchange_nodes import dataset_id  # noqa: E402

COUNTS = (10_000, 100_000)
BATCH = 5_000
GOAL_S, GOAL_GROWTH_MB = 15.0, 40.0
"""Of the processor for 100,000 blocks; of memory from the shortest chain to the longest."""


def iter_raw(length: int) -> Iterator[bytes]:
    """Encode a chain, one block after the other."""
    previous = None
    start = [Seed(dataset_id=dataset_id("long"), dataset_kind=DatasetKind.ROOT), push_source(), schema()]
    for number in range(length):
        event = start[number] if number < len(start) else AddData(new_watermark=later(number))
        at = Timestamp(NOON.seconds + number)
        raw = encode_block(event, system_time=at, prev_block_hash=previous, sequence_number=number)
        yield raw
        previous = Multihash.of_sha3_256(raw)


def write_home(folder: Path, length: int) -> None:
    """Keep the chain in a home, as a dataset that it wrote itself and shows to others."""
    verifier = ChainVerifier(None, strictness=Strictness.FOREIGN)
    raws, head = iter_raw(length), None
    with closing(MetadataStore(HomeFolder(folder))) as store:
        while batch := list(islice(raws, BATCH)):
            verifier.verify(batch)
            assert verifier.state is not None
            new = NewDataset(name="long", kind=DatasetKind.ROOT, origin=Origin.OWN, created_at=NOON)
            store.commit(
                Commit(
                    dataset_id=dataset_id("long"),
                    expected_head=head,
                    blocks=tuple(NewBlock.of(decode_block(raw, expected_hash=None)) for raw in batch),
                    chain_state=encode_state(verifier.state),
                    new_dataset=new if head is None else None,
                )
            )
            head = verifier.state.head


def odf_node(home: Path, *words: str, token: str = "") -> tuple[float, float, float, str]:
    """Run a command; give its seconds on the wall, those of the processor, its peak in MB, and what it wrote."""
    began = time.perf_counter()
    environment = os.environ | {"ODF_NODE_TOKEN": token, "ODF_NODE_HOME": str(home)}
    with tempfile.TemporaryFile("w+") as output:
        command = [sys.executable, "-m", "odf_node", *words]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(words)}: {text}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6, text


@contextmanager
def daemon(home: Path) -> Iterator[tuple[str, int]]:
    """Run ``odf-node serve``; give its address and its process."""
    ready = home.with_suffix(".ready")
    words = ["serve", "--home", str(home), "--http-port", "0", "--ready-file", str(ready), "-q"]
    process = subprocess.Popen([sys.executable, "-m", "odf_node", *words], stderr=subprocess.DEVNULL)
    try:
        while not ready.exists():
            assert process.poll() is None
            time.sleep(0.01)
        yield ready.read_text().strip(), process.pid
    finally:
        process.terminate()
        process.wait()
        ready.unlink(missing_ok=True)


def peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM"))


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(folder: Path, length: int) -> dict[str, tuple[float, float]]:
    """Print one table; give CPU seconds and peak of each command."""
    write_home(folder / "origin", length)
    found: dict[str, tuple[float, float]] = {}

    def note(what: str, ran: tuple[float, float, float, str], pid: int, before_s: float) -> None:
        wall_s, used_s, memory_mb, _ = ran
        found[what] = (used_s, memory_mb)
        print(
            f"  {what:<22} {wall_s:6.1f} s, CPU {used_s:6.1f} s, peak {memory_mb:5.0f} MB; "
            f"server CPU {cpu_s(pid) - before_s:5.1f} s, peak so far {peak_mb(pid):5.0f} MB",
            flush=True,
        )

    print(f"{length:,} blocks")
    with daemon(folder / "origin") as (url, pid):
        for what, home, address in (
            ("pull", "copy", f"{url}/long"),
            ("pull, nothing new", "copy", f"{url}/long"),
            ("pull, smart", "smart", f"odf+{url}/long"),
        ):
            before_s = cpu_s(pid)
            note(what, odf_node(folder / home, "pull", address, "--policy", "unsigned", "-q"), pid, before_s)
    for what, prefix in (("push", ""), ("push, smart", "odf+")):
        home = folder / f"taker{prefix.strip('+')}"
        home.mkdir()
        (home / "policies.yaml").write_text("kind: AcceptPolicies\nversion: 1\ndefault:\n  accept: unsigned\n")
        token = odf_node(home, "token", "create", "bench", "-q")[3].split()[-1]
        with daemon(home) as (url, pid):
            before_s = cpu_s(pid)
            address = f"{prefix}{url}/long"
            note(what, odf_node(folder / "copy", "push", "long", "--to", address, "-q", token=token), pid, before_s)
    return found


def main(counts: tuple[int, ...]) -> int:
    tables = {}
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            tables[count] = measure(Path(folder), count)
    shortest, longest = tables[min(counts)], tables[max(counts)]
    growth = {what: longest[what][1] - shortest[what][1] for what in longest}
    shown = ", ".join(f"{what}: {value:+.0f} MB" for what, value in growth.items())
    print(f"memory of the command, {max(counts):,} against {min(counts):,} blocks: {shown}")
    scaled_s = GOAL_S * max(counts) / 100_000
    return 0 if all(each[0] <= scaled_s for each in longest.values()) and max(growth.values()) < GOAL_GROWTH_MB else 1


if __name__ == "__main__":
    sys.exit(main(tuple(map(int, sys.argv[1:])) or COUNTS))
