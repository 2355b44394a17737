"""Twelve real daemons on loopback: they find each other, hear news, are killed, come back, and follow a dataset."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from odf_gossip.client import GossipClient
from odf_gossip_protocol import Item, ItemKind, read_item
from odf_gossip_protocol.messages import ItemMessage, Push
from odf_node.adapters.clocks import SystemClock
from odf_node.adapters.key_files import KeyFiles
from odf_node.home_folder import HomeFolder
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.heads import sign_head
from odf_protocol.multihash import Multihash
from odf_protocol.peer_addresses import PeerAddress
from support.gossip_processes import Daemon, stop_all, wait_until

COUNT = 12
KILLED = range(5, 8)
LIMIT_S = 300.0
"""Generous: the machine may be shared. Alone, each wait takes some rounds of a second."""

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata: []
"""


def add_dataset(daemon: Daemon, name: str) -> str:
    """Make an empty dataset in a home and return its identity."""
    manifest = daemon.home.with_name(f"{name}.yaml")
    manifest.write_text(MANIFEST.format(name=name), encoding="utf-8")
    daemon.node.must("add", str(manifest))
    (found,) = [one for one in daemon.node.must("list", "-o", "json").json() if one["name"] == name]
    return str(found["id"])


def contrary_head(daemon: Daemon, dataset: str) -> Item:
    """Sign another head of the number that an own dataset of a home has now."""
    dataset_id = DatasetId.parse(dataset)
    home = HomeFolder(daemon.home)
    with closing(MetadataStore(home)) as store:
        number = store.get_head(dataset_id).sequence_number
    raw = sign_head(
        KeyFiles(home).get_dataset_key(dataset_id).seed,
        dataset_id=dataset_id,
        sequence_number=number,
        block_hash=Multihash.of_sha3_256(b"another history"),
        time=SystemClock().now(),
    )
    return read_item(ItemKind.HEAD, raw)


async def push(daemon: Daemon, item: Item) -> None:
    """Push an item to a daemon as a peer would."""
    async with GossipClient(allow_private=True) as client:
        await client.ask(PeerAddress(daemon.url()), Push(items=(ItemMessage.of(item),)), is_named=True)


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[list[Daemon]]:
    made = [Daemon(tmp_path / f"node{number}") for number in range(COUNT)]
    try:
        made[0].start()
        bootstrap = made[0].url()
        for daemon in made[1:]:
            daemon.bootstrap = bootstrap
            daemon.start()
        yield made
    finally:
        ended = stop_all(made)
    assert ended == [0] * COUNT


@pytest.mark.timeout(1800)
def test_twelve_nodes_hear_news_survive_kills_and_follow_a_dataset(daemons: list[Daemon]) -> None:
    for daemon in daemons:
        daemon.url()

    # News of a node in the middle reaches everybody else.
    first = add_dataset(daemons[7], "first.one")
    others = [daemon for daemon in daemons if daemon is not daemons[7]]
    wait_until(lambda: all(daemon.knows(first.encode()) for daemon in others), LIMIT_S, "first head everywhere")

    # Its daemon signs it again, with its own clock and an end, and that travels too.
    renewed = f'"dataset":"{first}","expires":'.encode()
    wait_until(lambda: all(daemon.knows(renewed) for daemon in others), LIMIT_S, "renewed head everywhere")

    # A subscription brings the dataset by itself, from where it was subscribed to.
    reader = daemons[9]
    reader.node.must("subscribe", f"{daemons[7].url()}/first.one", "--as", "followed")
    wait_until(lambda: "followed" in reader.node.must("list").out, LIMIT_S, "subscribed dataset")

    # Killed without warning, among them the publisher; then there is news that they miss.
    for number in KILLED:
        daemons[number].kill()
    second = add_dataset(daemons[2], "second.one")
    alive = [daemon for number, daemon in enumerate(daemons) if number not in KILLED and number != 2]
    wait_until(lambda: all(daemon.knows(second.encode()) for daemon in alive), LIMIT_S, "second head among the living")
    assert not any(daemons[number].knows(second.encode()) for number in KILLED)

    # Somebody got a second history out of the publisher of the second dataset: whoever holds it freezes it.
    witness = daemons[10]
    witness.node.must("subscribe", f"{daemons[2].url()}/second.one", "--as", "second")
    wait_until(lambda: "second" in witness.node.must("list").out, LIMIT_S, "second dataset")
    asyncio.run(push(daemons[11], contrary_head(daemons[2], second)))
    wait_until(lambda: "FROZEN" in witness.node.must("list").out, LIMIT_S, "proof at the witness")
    wait_until(lambda: "FROZEN" in daemons[2].node.must("list").out, LIMIT_S, "proof at the owner")
    # Its owner says which one goes on, and that reaches the witness.
    daemons[2].node.must("evidence", "settle", "second.one", "--reason", "a lost disk")
    wait_until(lambda: "FROZEN" not in witness.node.must("list").out, LIMIT_S, "settlement at the witness")
    (dispute,) = witness.node.must("evidence", "show", "second", "-o", "json").json()
    assert dispute["kept"] is not None

    # They come back at other addresses, with what they knew, and hear what they missed.
    for number in KILLED:
        daemons[number].start()
    back = [daemons[number] for number in KILLED]
    for daemon in back:
        daemon.url()
        assert daemon is daemons[7] or daemon.knows(first.encode())
    wait_until(lambda: all(daemon.knows(second.encode()) for daemon in back), LIMIT_S, "second head after the restart")
