"""A publisher whose history is replaced by another one, behind which the numbers of versions mean other rows.

Source: clause TABLE-12 in ``spec/plug-ins/tables.md``; ACCEPT-10 in ``spec/extensions/acceptance.md``.
"""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.acceptance.offers import AcceptOptions
from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.errors import UsageError
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.records.datasets import DatasetRecord
from odf_protocol.policy import Policy
from odf_tables.changes import VersionChanges
from odf_tables.consumers import Consumer
from odf_tables.queries import Relations
from support.offering_peer import OfferingPeer
from support.offers import MORE_CITIES, NOW, Judge, PeerChain, root_chain
from support.stores import find_named


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    judge = Judge.create(tmp_path / "home")
    with closing(Node(HomeFolder(judge.home.path), FixedClock(NOW))) as node:
        yield node


def unsigned(chain: PeerChain) -> PeerChain:
    return chain.copy(signatures=[None] * len(chain.blocks))


def pull(node: Node, chain: PeerChain, *, force: bool = False) -> DatasetRecord:
    request = PullRequest(
        url="http://peer.example/cities",
        name="cities",
        policy=Policy.UNSIGNED,
        pull_options=AcceptOptions(published=True, force=force),
    )
    asyncio.run(node.taking.take(OfferingPeer(chain, has_signatures=False), request))
    record = find_named(node.store, "cities")
    assert record is not None
    return record


@pytest.mark.parametrize("is_committed", [True, False], ids=["committed", "handed-out"])
def test_consumer_is_not_led_on_into_another_history_table_12(node: Node, tmp_path: Path, is_committed: bool) -> None:
    """The rows of the other history before its position were never given to it, and nothing was said."""
    base = root_chain(tmp_path, slices=1)
    one, other = unsigned(root_chain(tmp_path)), unsigned(base.copy().add_rows(MORE_CITIES[::-1]).add_rows(MORE_CITIES))
    record = pull(node, one)
    consumer = Consumer.of(node.home.folder, record, "report")
    handed = consumer.read(VersionChanges(Relations(node, record)))
    if is_committed:
        consumer.commit(handed.since, handed.until)
    record = pull(node, other, force=True)

    with pytest.raises(UsageError, match="replaced"):
        Consumer.of(node.home.folder, record, "report").read(VersionChanges(Relations(node, record)))

    anew = Consumer.of(node.home.folder, record, "anew").read(VersionChanges(Relations(node, record)))
    assert anew.until == record.head.sequence_number


def test_consumer_before_the_fork_reads_on_table_12(node: Node, tmp_path: Path) -> None:
    base = root_chain(tmp_path, slices=1)
    record = pull(node, unsigned(base))
    consumer = Consumer.of(node.home.folder, record, "report")
    handed = consumer.read(VersionChanges(Relations(node, record)))
    consumer.commit(handed.since, handed.until)
    record = pull(node, unsigned(base.copy().add_rows(MORE_CITIES)))

    found = Consumer.of(node.home.folder, record, "report").read(VersionChanges(Relations(node, record)))
    assert (found.since, found.rows.num_rows) == (handed.until, len(MORE_CITIES))
