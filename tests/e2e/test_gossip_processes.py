"""Twenty real daemons on loopback: they find each other, hear news, are killed, come back, and follow a dataset."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gossip_processes import Daemon, stop_all, wait_until

COUNT = 20
KILLED = range(4, 10)
LIMIT_S = 120.0
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


@pytest.mark.timeout(600)
def test_twenty_nodes_hear_news_survive_kills_and_follow_a_dataset(daemons: list[Daemon]) -> None:
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
    reader = daemons[15]
    reader.node.must("subscribe", f"{daemons[7].url()}/first.one", "--as", "followed")
    wait_until(lambda: "followed" in reader.node.must("list").out, LIMIT_S, "subscribed dataset")

    # Killed without warning, among them the publisher; then there is news that they miss.
    ports = {number: int(daemons[number].url().rsplit(":", 1)[1]) for number in KILLED}
    for number in KILLED:
        daemons[number].kill()
    second = add_dataset(daemons[2], "second.one")
    alive = [daemon for number, daemon in enumerate(daemons) if number not in KILLED and number != 2]
    wait_until(lambda: all(daemon.knows(second.encode()) for daemon in alive), LIMIT_S, "second head among the living")
    assert not any(daemons[number].knows(second.encode()) for number in KILLED)

    # They come back, with what they knew, and hear what they missed.
    for number, port in ports.items():
        daemons[number].start(port=port)
    back = [daemons[number] for number in KILLED]
    for daemon in back:
        daemon.url()
        assert daemon is daemons[7] or daemon.knows(first.encode())
    wait_until(lambda: all(daemon.knows(second.encode()) for daemon in back), LIMIT_S, "second head after the restart")
