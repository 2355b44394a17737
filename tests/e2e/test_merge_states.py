"""A merge state is as large as its dataset: each ingest leaves its own and removes the one before, and only that."""

from contextlib import closing
from pathlib import Path

import pytest

from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.home_folder import HomeFolder
from odf_protocol.multihash import Multihash
from support.nodes import FIRST_ROWS, make_publisher

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


def test_ingest_removes_the_merge_state_that_it_supersedes_and_nothing_else(tmp_path: Path) -> None:
    publisher = make_publisher(tmp_path, has_engine=True)
    home = HomeFolder(publisher.node.home)
    with closing(Node(home, SystemClock())) as node:
        (record,) = [record for record in node.store.list_datasets() if record.name == "cities"]
        before = node.store.find_newest_merge_state(record.id)
        # Named by nothing, but not superseded by an ingest either: a sweep's business.
        with node.objects.writing(), node.objects.stage() as staged:
            staged.write(b"somebody else's")
            stray = Multihash.of_sha3_256(b"somebody else's")
            node.objects.put(staged, stray)
        assert set(node.objects.iter_hashes()) == {*node.store.list_referenced_objects(), stray}

        publisher.publish(FIRST_ROWS, "2024-01-09T12:00:00Z", ("cities",))

        after = node.store.find_newest_merge_state(record.id)
        assert before is not None
        assert after is not None
        assert before != after
        assert not node.objects.has(before)
        assert set(node.objects.iter_hashes()) == {*node.store.list_referenced_objects(), stray}
    assert not list(home.staging.glob("superseded-*"))
