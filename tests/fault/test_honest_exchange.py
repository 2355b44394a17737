"""Honest data over a bad line: whatever breaks, nothing true is ever rejected, and every copy ends up whole."""

import asyncio
import os
import random
from pathlib import Path

from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.ports.peer_errors import PeerUnavailableError
from odf_node.ports.progress import Silence
from odf_protocol.events import SetInfo
from odf_protocol.multihash import Multihash
from support.bad_lines import bad_line
from support.exchange_nodes import TestNode
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain

INCREMENTS = int(os.environ.get("HONEST_INCREMENTS", "24"))  # 'make soak' makes a thousand
ATTEMPTS = 40
SEED = 20_240_501
CUT_BYTES = (200, 60_000)  # between a piece of an answer and several slices


async def pull(node: Node, url: str) -> bool:
    """Pull once; say whether it came to an end."""
    try:
        async with await node.outgoing.open_peer(f"{url}/cities") as peer:
            await node.taking.take(peer, PullRequest(url=f"{url}/cities", name="cities"))
    except PeerUnavailableError:
        return False
    return True


def grow(chain: PeerChain, rng: random.Random) -> None:
    """Add what a publisher adds: rows that do not compress, or words."""
    if rng.random() < 0.2:
        chain.add(SetInfo(description=f"as of block {len(chain.blocks)}"))
    rows = [(f"{rng.getrandbits(256):064x}", rng.getrandbits(60)) for _ in range(rng.randint(1, 400))]
    chain.add_rows(rows)


def test_no_honest_increment_is_rejected_over_a_line_that_breaks(tmp_path: Path) -> None:
    rng, cuts_of = random.Random(SEED), random.Random(SEED)
    chain = root_chain(tmp_path, slices=0)
    publisher = PublisherHome(Judge.create(tmp_path / "publisher"))
    publisher.keep(chain)
    served = TestNode.create(tmp_path / "publisher")
    readers = [Node(HomeFolder(tmp_path / f"reader{n}"), FixedClock(NOW)) for n in range(2)]

    async def exchange() -> int:
        async with served.serving() as address, bad_line(address, lambda: cuts_of.randint(*CUT_BYTES)) as (line, url):
            for _ in range(INCREMENTS):
                grow(chain, rng)
                publisher.keep(chain)
                # One follows closely; the other comes by now and then, and finds several increments at once.
                for reader in readers[: rng.choice((1, 1, 2))]:
                    await pull(reader, url)
            line.is_healed = True
            for reader in readers:
                for _ in range(ATTEMPTS):
                    if await pull(reader, url):
                        break
            return line.cuts

    cuts = asyncio.run(exchange())

    assert cuts > INCREMENTS // 2
    for reader in readers:
        assert list(reader.refusals.iter_reports()) == []
        assert reader.store.get_head(chain.id) == chain.head
        assert set(reader.objects.iter_hashes()) == set(chain.files)
        for object_hash in reader.objects.iter_hashes():
            assert Multihash.of_sha3_256(reader.objects.get_path(object_hash).read_bytes()) == object_hash
        (record,) = reader.verifier.select(["cities"], recursive=False)
        assert reader.verifier.verify(record, replay=False, on_progress=Silence().on_progress).is_valid
        reader.close()
    served.store.close()
