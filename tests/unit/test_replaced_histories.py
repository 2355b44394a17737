"""Another history in the place of the one held here: only by force, only unsigned, and nothing is lost (ACCEPT-10)."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from odf_node.acceptance.offers import AcceptanceReport, AcceptOptions
from odf_node.adapters.clocks import FixedClock
from odf_node.cli.main import main
from odf_node.composition import Node
from odf_node.errors import ProposalRejectedError
from odf_node.exchange.receiving import PushJudge
from odf_node.exchange.taking import PullRequest
from odf_node.home_folder import HomeFolder
from odf_node.records.access import READS_EVERYTHING
from odf_node.records.datasets import DatasetRecord
from odf_node.store.object_names import open_arrivals
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Policy
from support.offering_peer import OfferingPeer
from support.offers import MORE_CITIES, NOW, Judge, PeerChain, root_chain
from support.stores import find_named

URL = "http://peer.example/cities"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    judge = Judge.create(tmp_path / "home")
    node = Node(HomeFolder(judge.home.path), FixedClock(NOW))
    yield node
    node.close()


def unsigned(chain: PeerChain) -> PeerChain:
    return chain.copy(signatures=[None] * len(chain.blocks))


def forked(folder: Path) -> tuple[PeerChain, PeerChain]:
    """Two histories that have the first three blocks in common."""
    base = root_chain(folder, slices=1)
    return unsigned(root_chain(folder)), unsigned(base.copy().add_rows(MORE_CITIES[::-1]).add_rows(MORE_CITIES))


def pull(node: Node, chain: PeerChain, *, force: bool = False, signed: bool = False) -> AcceptanceReport:
    return take(node, OfferingPeer(chain, has_signatures=signed), force=force, signed=signed)


def take(node: Node, peer: OfferingPeer, *, force: bool = False, signed: bool = False) -> AcceptanceReport:
    return asyncio.run(
        node.taking.take(
            peer,
            PullRequest(
                url=URL,
                name="cities",
                policy=None if signed else Policy.UNSIGNED,
                pull_options=AcceptOptions(published=True, force=force),
            ),
        )
    )


def held(node: Node) -> DatasetRecord:
    record = find_named(node.store, "cities")
    assert record is not None
    return record


def raw_of(node: Node) -> list[bytes]:
    return [block.raw for block in node.store.iter_blocks(held(node).id)]


@dataclass
class AskedPeer(OfferingPeer):
    """One that says single hashes too."""

    query_service: list[int] = field(default_factory=list)

    async def find_hash(self, sequence_number: int) -> Multihash | None:
        self.query_service.append(sequence_number)
        return self.chain.blocks[sequence_number].hash


@pytest.mark.parametrize("end", [3, 4], ids=["as-long-as-ours", "longer"])
def test_other_history_is_rejected_without_force(node: Node, tmp_path: Path, end: int) -> None:
    ours, other = forked(tmp_path)
    pull(node, ours)
    peer = AskedPeer(other.up_to(end), has_signatures=False)
    with pytest.raises(ProposalRejectedError, match=r"the histories part after block 2$") as caught:
        take(node, peer)
    assert caught.value.report["partsAfter"] == 2
    # Three questions would be allowed for four blocks; what is here whole need not be asked for.
    assert peer.query_service == ([1, 2, 3] if end == 4 else [])
    assert held(node).head == ours.head
    assert node.store.list_replaced_histories(ours.id) == ()


def test_forced_history_takes_the_place_and_the_old_one_is_kept(node: Node, tmp_path: Path) -> None:
    ours, other = forked(tmp_path)
    pull(node, ours)
    report = pull(node, other, force=True)
    assert report.new_blocks == 2
    assert raw_of(node) == [block.raw for block in other.blocks]
    (history,) = node.store.list_replaced_histories(ours.id)
    assert (history.after, history.head, history.replaced_by) == (2, ours.head, other.head)
    assert (history.source_url, history.replaced_at) == (URL, NOW)
    assert [block.raw for block in node.store.iter_replaced_blocks(history)] == [ours.blocks[-1].raw]
    referenced = node.store.list_referenced_objects()
    assert set(ours.files) | set(other.files) <= referenced
    node.objects.sweep(node.store.list_referenced_objects, now=NOW)
    assert all(node.objects.has(object_hash) for object_hash in ours.files)
    acceptance = list(node.store.iter_acceptances(ours.id))[-1]
    assert acceptance.grounds.replaced == ours.head.hash


def test_replaced_chain_goes_on_and_verifies(node: Node, tmp_path: Path) -> None:
    ours, other = forked(tmp_path)
    pull(node, ours)
    pull(node, other, force=True)
    longer = unsigned(other.copy().add_rows((("Pisa", 90_000),)))
    assert pull(node, longer).new_blocks == 1
    assert raw_of(node) == [block.raw for block in longer.blocks]
    assert held(node).head == longer.head
    # Back again: a second replacement is a second entry.
    assert pull(node, ours, force=True).new_blocks == 1
    assert [history.head for history in node.store.list_replaced_histories(ours.id)] == [ours.head, longer.head]


def test_force_where_nothing_is_replaced_is_a_pull(node: Node, tmp_path: Path) -> None:
    ours, _ = forked(tmp_path)
    pull(node, ours.up_to(2), force=True)
    assert pull(node, ours, force=True).new_blocks == 1
    assert pull(node, ours, force=True).new_blocks == 0
    assert pull(node, ours.up_to(2), force=True).new_blocks == 0
    assert held(node).head == ours.head
    assert node.store.list_replaced_histories(ours.id) == ()


@pytest.mark.parametrize(("first", "then"), [(True, True), (True, False), (False, True)])
def test_what_is_signed_is_never_replaced(node: Node, tmp_path: Path, first: bool, then: bool) -> None:
    ours, other = root_chain(tmp_path), root_chain(tmp_path, slices=1).add_rows(MORE_CITIES[::-1]).add_rows(MORE_CITIES)
    pull(node, ours if first else unsigned(ours), signed=first)
    with pytest.raises(ProposalRejectedError):
        pull(node, other if then else unsigned(other), signed=then, force=True)
    assert held(node).head == ours.head
    assert node.store.list_replaced_histories(ours.id) == ()


def test_forced_history_is_verified_before_it_takes_the_place(node: Node, tmp_path: Path) -> None:
    ours, other = forked(tmp_path)
    pull(node, ours)
    other.files[other.blocks[3].event.new_data.physical_hash] += b"x"  # type: ignore[union-attr]
    with pytest.raises(ProposalRejectedError):
        pull(node, other, force=True)
    assert raw_of(node) == [block.raw for block in ours.blocks]
    assert node.store.list_replaced_histories(ours.id) == ()


def test_forced_push_replaces_only_with_leave(node: Node, tmp_path: Path) -> None:
    ours, other = forked(tmp_path)
    pull(node, ours)
    (node.home.folder.path / "policies.yaml").write_text(
        "kind: AcceptPolicies\nversion: 1\nrules:\n  - peers: ['push:']\n    accept: unsigned\n"
    )

    def push(**pull_options: Any) -> Head:
        judge = PushJudge(node.store, node.taking)
        peer = OfferingPeer(other, has_signatures=False)
        with node.objects.writing(), open_arrivals(node.store, node.objects, other.id, "push:token") as peer.arrivals:
            return asyncio.run(judge.receive(peer, actor="token", reads=READS_EVERYTHING, **pull_options)).head

    with pytest.raises(ProposalRejectedError):
        push()
    assert push(force=True) == other.head
    (history,) = node.store.list_replaced_histories(ours.id)
    assert history.source_url == "push:token"


def test_replaced_histories_are_shown(node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours, other = forked(tmp_path)
    home = ("--home", str(node.home.folder.path))
    pull(node, ours)
    assert main(["inspect", "histories", "cities", *home]) == 0
    assert "no history was replaced" in capsys.readouterr().out
    pull(node, other, force=True)
    assert main(["inspect", "histories", "cities", "-o", "json", *home]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["blocks"] == [str(ours.head.hash)]
    assert (shown["by"], shown["after"], shown["replacedBy"]) == (URL, 2, str(other.head.hash))
    assert main(["inspect", "histories", "cities", *home]) == 0
    assert f"replaced {ours.head.hash}" in capsys.readouterr().out
