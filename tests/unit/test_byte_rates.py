"""One rate for everything that moves (DAEMON-11 to DAEMON-13), with real sockets where it matters."""

import argparse
import asyncio
from pathlib import Path

import pytest

from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.http_push import push_dataset
from odf_node.adapters.peer_addresses import open_peer, open_peers
from odf_node.byte_rate import ByteRate
from odf_node.cli.parsing import byte_rate
from odf_node.configuration import Configuration, LimitSettings
from odf_node.http.served_node import Live
from odf_node.ports.pushes import PushedHead
from odf_protocol.exchange.block_outlines import iter_wanted
from odf_protocol.exchange.limits import MIN_SET_RATE_BYTES_PER_S
from support.event_loop import in_loop
from support.exchange_nodes import TOKEN, Chain, TestNode

MIB = 1024 * 1024
SLICE = bytes(range(256)) * 4096 * 5


@pytest.mark.parametrize(
    ("text", "rate"),
    [("5M", 5_000_000), ("500k", 500_000), ("1.5M", 1_500_000), ("250000", 250_000), ("0", 0), ("1G", 10**9)],
)
def test_rate_is_read_as_people_write_it(text: str, rate: int) -> None:
    assert byte_rate(text) == rate


@pytest.mark.parametrize("text", ["", "5 M", "5MB", "-1", "9k", "1e6", "5m", "9999"])
def test_rate_that_makes_no_sense_is_rejected_with_examples(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="5M, 500k, 250000"):
        byte_rate(text)


def test_rate_below_the_least_is_taken_as_the_least() -> None:
    rate = ByteRate(1)
    assert rate.is_limited
    assert 0 < rate.chunk_bytes < MIN_SET_RATE_BYTES_PER_S
    rate.set(0)
    assert not rate.is_limited


async def fetch(url: str, chain: Chain, home: Path, rate: ByteRate, *, also: str | None = None) -> TestNode:
    copy = TestNode.create(home)
    wanted = [item for block in chain.blocks for item in iter_wanted(block.event)]
    settings = ClientSettings(rate=rate, backoff_s=0.01)
    addresses = [f"{address}/{chain.name}" for address in (url, also) if address]
    opened = open_peers(addresses, lambda _: settings, home / "staging") if also else open_peer(addresses[0], settings)
    async with await opened as peer:
        head = await peer.get_head()
        async for _ in peer.iter_blocks(after=None, upto=head.head):
            pass
        with copy.objects.writing():
            await peer.fetch_objects(wanted, copy.objects)
    return copy


@pytest.mark.parametrize("several", [False, True], ids=["one-node", "two-nodes"])
@in_loop
async def test_pull_keeps_to_its_rate_and_brings_everything(tmp_path: Path, several: bool) -> None:
    chain, rate = Chain("demo.data").add(SLICE), ByteRate(10 * MIB)
    nodes = [TestNode.create(tmp_path / name) for name in ("one", "two")]
    for node in nodes:
        node.keep(chain)
    loop = asyncio.get_running_loop()
    async with nodes[0].serving() as url, nodes[1].serving() as also:
        began = loop.time()
        copy = await fetch(url, chain, tmp_path / "copy", rate, also=also if several else None)
        # A lower bound holds on every machine: half a second's worth comes at once, the rest not faster than the rate.
        assert loop.time() - began > len(SLICE) / (10 * MIB) - 0.6
    for object_hash in chain.objects:
        copy.objects.check(object_hash)


@pytest.mark.parametrize("side", ["pusher", "receiver"])
@in_loop
async def test_push_keeps_to_the_rate_of_either_side(tmp_path: Path, side: str) -> None:
    chain, pusher, receiver = (
        Chain("demo.data").add(SLICE),
        TestNode.create(tmp_path / "a"),
        TestNode.create(tmp_path / "b"),
    )
    pusher.keep(chain)
    receiver.put_token()
    limits = LimitSettings(receive_bytes_per_second=10 * MIB if side == "receiver" else 0)
    rate = ByteRate(10 * MIB if side == "pusher" else 0)
    loop = asyncio.get_running_loop()
    async with receiver.serving(live=Live(Configuration(limits=limits))) as url:
        began = loop.time()
        await push_dataset(
            f"{url}/demo.data",
            PushedHead(dataset_id=chain.id, head=chain.head, signed_head=None),
            store=pusher.store,
            objects=pusher.objects,
            settings=ClientSettings(rate=rate, token=TOKEN),
        )
        assert loop.time() - began > len(SLICE) / (10 * MIB) - 0.6
    assert receiver.store.get_head(chain.id) == chain.head
