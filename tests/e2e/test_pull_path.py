"""How straight two ways are: of a peer that is pulled from, and of the request of a step (processes, sockets)."""

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from odf_engines.contract import TransformRequest
from odf_node.adapters.clocks import SystemClock
from odf_node.adapters.exchange_peer import ExchangePeer
from odf_node.composition import Node
from odf_node.exchange.pulling import PullOptions
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Silence
from support.city_datasets import add_cities, derivative_manifest
from support.daemons import daemon
from support.nodes import RealNode
from support.traced_calls import Visits, visits_of

MAX_MODULES = 4
MAX_RETURNS = 6
MAX_MODULES_OF_A_STEP = 9
MAX_RETURNS_OF_A_STEP = 3
"""What ``spec/decisions/0170-straight-way-of-a-pull.md`` counts; less is better."""

pytestmark = pytest.mark.usefixtures("light_engines")


def add_derivative(publisher: RealNode, folder: Path) -> None:
    """Add roots, and a query over one of them that DataFusion runs."""
    add_cities(publisher, folder)
    manifest = folder / "all.yaml"
    query = "{kind: Sql, engine: datafusion, query: 'SELECT event_time, city, people FROM c'}"
    manifest.write_text(derivative_manifest("all.cities", query))
    publisher.must("add", str(manifest))


def pull(node: Node, address: str) -> Visits:
    """Pull a dataset, from the use case down."""
    (target,) = node.planner.plan([address])
    with visits_of(ExchangePeer, "odf_node") as requests:
        report = asyncio.run(node.pulling.pull(target, PullOptions(), Silence()))
    assert report.new_blocks
    return requests


def test_peer_of_a_pull_goes_straight(tmp_path: Path) -> None:
    publisher = RealNode(tmp_path / "publisher")
    add_derivative(publisher, tmp_path)
    publisher.must("pull", "all.cities")
    publisher.must("publish", "cities", "all.cities")
    with daemon(publisher.home) as served, closing(Node(HomeFolder(tmp_path / "home"), SystemClock())) as node:
        pull(node, f"{served.url}/cities")
        requests = pull(node, f"{served.url}/all.cities")
    assert len(set(requests.modules)) <= MAX_MODULES, requests.modules
    assert len(requests.returns) <= MAX_RETURNS, requests.modules


def test_request_of_a_step_goes_straight(tmp_path: Path) -> None:
    publisher = RealNode(tmp_path / "publisher")
    add_derivative(publisher, tmp_path)
    clock = SystemClock()
    with closing(Node(HomeFolder(publisher.home), clock)) as node:
        (record,) = (each for each in node.store.list_datasets() if each.name == "all.cities")
        with visits_of(TransformRequest, "odf_node", "odf_engines") as requests:
            report = node.transformer.run_next(record, system_time=clock.now())
    assert report.new_rows
    assert len(set(requests.modules)) <= MAX_MODULES_OF_A_STEP, requests.modules
    assert len(requests.returns) <= MAX_RETURNS_OF_A_STEP, requests.modules
