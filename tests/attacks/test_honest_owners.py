"""Honest owners in circumstances that look like a lie, in real daemons: nobody is frozen, nothing is proved.

Source: HEAD-8 and HEAD-9 in ``spec/extensions/heads.md``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.errors import RestoredBackupError
from odf_node.home_folder import HomeFolder
from support.gossip_processes import Daemon, stop_all, wait_until
from support.offers import Judge, PublisherHome, root_chain
from support.own_datasets import write

LIMIT_S = 120.0


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[list[Daemon]]:
    made = [Daemon(tmp_path / name) for name in ("ahead", "behind", "reader")]
    yield made
    assert set(stop_all(made)) <= {0}


def test_owner_with_two_nodes_of_which_one_is_behind_is_stopped_and_not_convicted_head_9(
    tmp_path: Path, daemons: list[Daemon]
) -> None:
    """The newest head reaches the copy by gossip; both renew their heads meanwhile, at their own times."""
    ahead, behind, reader = daemons
    chain = root_chain(tmp_path)
    PublisherHome(Judge.create(behind.home)).keep(chain.up_to(2))
    PublisherHome(Judge.create(ahead.home)).keep(chain)
    behind.start()
    reader.node.must("pull", f"{behind.url()}/cities")
    ahead.bootstrap = reader.bootstrap = behind.url()
    ahead.start()
    reader.start()

    newest = str(chain.head.hash).encode()
    wait_until(lambda: behind.knows(newest) and reader.knows(newest), LIMIT_S, "newest head at both")
    reader.node.must("pull", f"{ahead.url()}/cities")

    def is_stopped() -> bool:
        node = Node(HomeFolder(behind.home), SystemClock())
        try:
            seen = node.store.find_seen_head(chain.id)
            if seen is None or seen.sequence_number < chain.head.sequence_number:
                return False
            with pytest.raises(RestoredBackupError, match="restored backup"):
                write(node, "a second history")
        finally:
            node.close()
        return True

    wait_until(is_stopped, LIMIT_S, "the copy does not write")
    for daemon in daemons:
        assert "FROZEN" not in daemon.node.must("list").out
        assert daemon.node.must("evidence", "show", "cities", "-o", "json").json() == []
