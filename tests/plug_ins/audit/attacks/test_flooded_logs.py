"""A stranger whose program calls itself something else with each request, to push what others read out of the log.

Source: clause AUDIT-20 in ``spec/plug-ins/audit.md``.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from odf_audit import recording
from odf_audit.recording import DETAILS_PER_S
from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.home_folder import HomeFolder
from odf_node.ports.access import Requester, calling
from support.exchange_nodes import Chain, TestNode

FLOOD = 5_000
BURST = int(DETAILS_PER_S * 60)


class Read(NamedTuple):
    """A read in the log: who, of which dataset, by which program, how often."""

    caller: str
    dataset: str
    agent: str
    times: int


@pytest.fixture
def node(tmp_path: Path) -> Node:
    kept = TestNode.create(tmp_path / "home")
    for name in ("one", "other"):
        kept.keep(Chain(name, has_schema=True).add(b"slice"))
    return Node(HomeFolder(tmp_path / "home"), SystemClock())


def list_reads(node: Node) -> list[Read]:
    query = (
        "SELECT record ->> 'caller', record ->> 'name', coalesce(record ->> 'agent', ''), record ->> 'count'"
        " FROM audit WHERE command = 'read' AND record IS NOT NULL ORDER BY id"
    )
    with closing(sqlite3.connect(node.home.folder.database)) as connection:
        return [Read(*row) for row in connection.execute(query)]


def read(node: Node, name: str, caller: str, agent: str) -> None:
    record = next(each for each in node.store.list_datasets() if each.name == name)
    with calling(Requester(door="http", name=caller, work="/blocks", agent=agent)):
        node.store.access.note_read(record, what="blocks")


def test_flood_of_names_of_programs_is_counted_by_dataset_audit_20(node: Node) -> None:
    with closing(node):
        for number in range(FLOOD):
            read(node, "one", "address:203.0.113.7", f"program {number}")
            if number % 1_000 == 0:
                node.store.access.flush()
        read(node, "other", "address:203.0.113.7", "program")
        read(node, "one", "address:198.51.100.9", "an honest program")
    found = list_reads(node)

    assert sum(each.times for each in found) == FLOOD + 2
    assert len(found) <= BURST + DETAILS_PER_S * 60 + 3
    assert Read("address:198.51.100.9", "one", "an honest program", 1) in found
    assert [each for each in found if each.dataset == "other"] == [Read("address:203.0.113.7", "other", "", 1)]


def test_flood_is_written_while_it_goes_on_audit_20(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MORE_EACH_S", 0.0)
    with closing(node):
        for number in range(BURST + 100):
            read(node, "one", "token:abc", f"program {number}")
        node.store.access.flush()
        assert sum(each.times for each in list_reads(node)) == BURST + 100


def test_program_of_the_home_itself_is_told_apart_always_audit_20(node: Node) -> None:
    with closing(node):
        for number in range(BURST + 100):
            record = node.store.list_datasets()[0]
            with calling(Requester(door="python", work=f"{number}")):
                node.store.access.note_read(record)
    assert len(list_reads(node)) == BURST + 100
