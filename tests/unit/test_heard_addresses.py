"""Addresses that only a peer named: what is connected to when their dataset is pulled again by name (GOSSIP-57)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.peer_addresses import open_heard_peer
from odf_node.composition import Node
from odf_node.exchange.pulling import PullOptions
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Silence
from odf_protocol.accept_policy_text import parse_policies
from odf_protocol.errors import OdfError, RejectedError
from odf_protocol.public_addresses import as_heard, is_heard, without_mark
from support.nodes import RealNode
from support.offering_peer import OfferingPeer
from support.offers import NOW, Judge, PeerChain, PublisherHome
from support.signing import DATASET_KEY, dataset_of

INSIDE = [
    "http://127.0.0.1:{port}/cities",
    "http://localhost:{port}/cities",
    "http://[::1]:{port}/cities",
    "http://169.254.169.254/latest",
    "http://169.254.1.1/cities",
    "http://10.0.0.1/cities",
    "http://[::ffff:127.0.0.1]/cities",
    "http://metadata.google.internal/cities",
]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(HomeFolder(Judge.create(tmp_path / "home").home.path), FixedClock(NOW))
    yield node
    node.close()


def take(node: Node, chain: PeerChain, url: str) -> None:
    """Take a dataset as a subscription does."""
    asyncio.run(node.taking.take(OfferingPeer(chain), PullRequest(url=url, name="cities")))


def pull_by_name(node: Node) -> None:
    (target,) = node.planner.plan(["cities"])
    asyncio.run(node.pulling.pull(target, PullOptions(), Silence()))


@pytest.mark.parametrize("address", INSIDE)
def test_address_inside_that_a_peer_named_is_not_connected_to_by_a_later_pull(
    node: Node, chain: PeerChain, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(node, chain, as_heard(address.format(port=9)))

    def connect(*_: object, **__: object) -> None:
        raise AssertionError("nothing may be opened")

    monkeypatch.setattr("odf_node.adapters.peer_addresses.open_peer", connect)
    with pytest.raises(RejectedError, match="GOSSIP-9"):
        pull_by_name(node)


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "/etc/passwd", "http://8.8.8.8:80@127.0.0.1/x", "ftp://8.8.8.8/x"]
)
def test_what_is_no_address_of_a_node_is_never_opened(address: str) -> None:
    with pytest.raises(OdfError):
        asyncio.run(open_heard_peer(as_heard(address), ClientSettings(), allow_private=False))


def test_operator_may_type_the_same_address_and_may_allow_such(tmp_path: Path, chain: PeerChain) -> None:
    publisher, reader = tmp_path / "publisher", RealNode(tmp_path / "reader")
    PublisherHome(Judge.create(publisher)).keep(chain)
    with RealNode(publisher).serving() as address:
        url = f"{address}/cities"
        opened = Node(HomeFolder(reader.home), FixedClock(NOW))
        take(opened, chain.up_to(2), as_heard(url))
        opened.close()
        refused = reader.run("pull", "cities")
        assert (refused.code, "GOSSIP-9" in refused.err) == (4, True)
        assert reader.must("list", "-o", "json").json()[0]["blocks"] == 3
        allowed = {"ODF_NODE_GOSSIP_ALLOW_PRIVATE": "true"}
        assert "1 new block" in reader.must("pull", "cities", environment=allowed).out
        reader.must("pull", url)  # typed, and from now on an alias
        reader.must("pull", "cities")


def test_mark_is_put_once_and_policies_look_behind_it() -> None:
    assert as_heard(as_heard("http://a/b")) == "heard+http://a/b"
    assert (is_heard("heard+http://a/b"), is_heard("http://a/b")) == (True, False)
    assert without_mark("heard+http://a/b") == without_mark("http://a/b") == "http://a/b"
    text = "kind: AcceptPolicies\nversion: 1\nrules: [{peers: ['http://a/'], accept: integrity}]\n"
    policies = parse_policies(text, source_name="p")
    found = {policies.find_rule("x", dataset_of(DATASET_KEY), url).name for url in ("http://a/b", "heard+http://a/b")}
    assert len(found) == 1
    assert policies.find_rule("x", dataset_of(DATASET_KEY), "http://c/b").name not in found
