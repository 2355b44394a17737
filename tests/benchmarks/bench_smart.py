"""The Smart Transfer Protocol: a long chain with bounded memory, and a large slice, also with another implementation.

Run: .venv/bin/python tests/benchmarks/bench_smart.py [BLOCKS] [MEGABYTES]   (100,000 blocks and 200 MB by default)
With ODF_PEER, the slice is also pushed to that node's server and pulled back, and pulled by its client from ours.
"""

import asyncio
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from yarl import URL

from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.http_push import push_dataset
from odf_node.ports.pushes import PushedHead
from odf_protocol.block import decode_block, encode_block
from odf_protocol.events import AddData, DatasetKind, DataSlice, OffsetInterval, Seed
from odf_protocol.exchange.block_outlines import iter_wanted
from odf_protocol.head import Head
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash
from odf_protocol.timestamp import Timestamp
from odf_smart.peer import SmartPeer
from support.chains import NOON, later, push_source, schema
from support.exchange_nodes import Chain, TestNode, dataset_id
from support.kamu_workspace import PeerWorkspace

MIB = 1024 * 1024


def long_chain(length: int) -> Chain:
    raws: list[bytes] = []
    previous = None
    start = [Seed(dataset_id=dataset_id("long"), dataset_kind=DatasetKind.ROOT), push_source(), schema()]
    for number in range(length):
        event = start[number] if number < len(start) else AddData(new_watermark=later(number))
        time_ = Timestamp(NOON.seconds + number)
        raws.append(encode_block(event, system_time=time_, prev_block_hash=previous, sequence_number=number))
        previous = Multihash.of_sha3_256(raws[-1])
    return Chain("long", [decode_block(raw, expected_hash=None) for raw in raws])


def large_chain(megabytes: int) -> Chain:
    data = os.urandom(megabytes * 1_000_000)
    chain = Chain("large", [])
    chain.blocks.clear()
    chain._append(Seed(dataset_id=dataset_id("large"), dataset_kind=DatasetKind.ROOT))
    chain._append(push_source())
    chain._append(schema())
    physical = Multihash.of_sha3_256(data)
    chain.objects[physical] = data
    chain._append(
        AddData(
            new_data=DataSlice(
                logical_hash=Multihash(ARROW0_SHA3_256, bytes(32)),
                physical_hash=physical,
                offset_interval=OffsetInterval(start=0, end=9),
                size=len(data),
            )
        )
    )
    return chain


async def serve(folder: Path) -> tuple[asyncio.subprocess.Process, str]:
    program = Path(__file__).parents[1] / "support" / "serve_node.py"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, program, folder, "0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert process.stdout is not None
    return process, (await process.stdout.readline()).decode().strip()


def peak_mib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024


async def pull(url: str, name: str, node: TestNode | None, token: str | None = None) -> tuple[int, float]:
    """Read all blocks, keeping none, and the objects; give their number and the seconds."""
    client = HttpClient(ClientSettings(token=token))
    await client.__aenter__()
    began = time.perf_counter()
    count, wanted = 0, []
    async with SmartPeer(client, URL(f"{url}/{name}/")) as peer:
        head = await peer.get_head()
        async for block in peer.iter_blocks(after=None, upto=head.head):
            count += 1
            if node is not None:
                wanted += list(iter_wanted(decode_block(block.raw, expected_hash=None).event))
        if node is not None:
            with node.objects.writing():
                await peer.fetch_objects(wanted, node.objects)
    return count, time.perf_counter() - began


async def measure_chain(folder: Path, blocks: int) -> None:
    node = TestNode.create(folder / "long")
    node.keep(long_chain(blocks))
    node.store.close()
    process, url = await serve(folder / "long")
    try:
        began_cpu = time.process_time()
        count, seconds = await pull(url, "long", None)
        assert count == blocks
        print(
            f"{blocks:,} blocks, ours from ours: {seconds:.1f} s ({blocks / seconds:,.0f} blocks/s), client's CPU"
            f" {time.process_time() - began_cpu:.1f} s, server's peak {peak_mib(process.pid)} MiB"
        )
    finally:
        process.terminate()
        await process.wait()


async def measure_slice(folder: Path, megabytes: int) -> None:
    chain = large_chain(megabytes)
    node = TestNode.create(folder / "large")
    node.keep(chain)
    process, url = await serve(folder / "large")
    try:
        _, seconds = await pull(url, "large", TestNode.create(folder / "copy"))
        print(f"{megabytes} MB, ours from ours: {seconds:.2f} s ({megabytes / seconds:.0f} MB/s)")
        if "ODF_PEER" not in os.environ:
            return
        workspace = await PeerWorkspace.create(folder / "workspace")
        async with workspace.serving(with_token=True) as server:
            began = time.perf_counter()
            await push_dataset(
                f"{server.smart}/large",
                PushedHead(dataset_id=chain.id, head=Head(3, chain.head.hash), signed_head=None),
                store=node.store,
                objects=node.objects,
                settings=ClientSettings(token=server.token),
            )
            seconds = time.perf_counter() - began
            print(f"{megabytes} MB, ours pushed to the peer: {seconds:.2f} s ({megabytes / seconds:.0f} MB/s)")
            _, seconds = await pull(server.url, "large", TestNode.create(folder / "back"), server.token)
            print(f"{megabytes} MB, ours from the peer: {seconds:.2f} s ({megabytes / seconds:.0f} MB/s)")
        other = await PeerWorkspace.create(folder / "other")
        began = time.perf_counter()
        await other.run("pull", f"odf+{url}/large", "--as", "large", "--no-alias")
        seconds = time.perf_counter() - began
        print(f"{megabytes} MB, the peer from ours: {seconds:.2f} s ({megabytes / seconds:.0f} MB/s)")
    finally:
        process.terminate()
        await process.wait()


async def run(blocks: int, megabytes: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="bench-smart-"))
    try:
        await measure_slice(folder, megabytes)
        await measure_chain(folder, blocks)
        print(f"this process's peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB (with the inputs)")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    asyncio.run(run(int((sys.argv[1:] or ["100000"])[0]), int((sys.argv[2:] or ["200"])[0])))
