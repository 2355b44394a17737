"""Pulling: which copy an offer is about, races between pulls, and in which order datasets are brought up to date."""

import asyncio
import signal
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from odf_engines.confined.process import SandboxedProcess
from odf_node.acceptance import row_checks
from odf_node.acceptance.offers import AcceptanceReport
from odf_node.composition import Node
from odf_node.errors import FrozenDatasetError, ProposalRejectedError, UnknownDatasetError, UsageError
from odf_node.exchange.pulling import name_in_url
from odf_node.exchange.receiving import PushJudge
from odf_node.exchange.taking import PullRequest
from odf_node.ports.peer_client import PeerHead
from odf_node.records.access import READS_EVERYTHING
from odf_node.store.object_names import open_arrivals
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.events import DatasetKind, Seed, SetInfo
from support.offering_peer import OfferingPeer
from support.offers import Judge, PeerChain, PublisherHome, root_chain, select
from support.signing import NEW_KEY, NODE_KEY, OTHER_KEY, dataset_of
from support.slice_reader import OwnReader

FIRST_SLICE, SECOND_SLICE = 2, 3


async def take(
    node: Node, peer: OfferingPeer, *, name: str = "cities", expected_id: DatasetId | None = None, **options: Any
) -> AcceptanceReport:
    pull_request = PullRequest(url="http://peer.example/cities", name=name, expected_id=expected_id, **options)
    return await node.taking.take(peer, pull_request)


def pull(node: Node, chain: PeerChain, **options: Any) -> AcceptanceReport:
    return asyncio.run(take(node, OfferingPeer(chain), **options))


def reject(node: Node, judge: Judge, peer: OfferingPeer, rule: str, **options: Any) -> dict[str, Any]:
    """Check that a pull is rejected with evidence and changes nothing."""
    before = judge.snapshot()
    with pytest.raises(ProposalRejectedError) as caught:
        asyncio.run(take(node, peer, **options))
    assert judge.snapshot() == before
    assert rule in caught.value.rule, caught.value
    assert set(node.objects.iter_hashes()) == set(node.store.list_referenced_objects())
    return node.refusals.get_report(caught.value.report["id"])


def test_pulled_twice_is_up_to_date(node: Node, chain: PeerChain) -> None:
    assert pull(node, chain).new_blocks == 4
    assert pull(node, chain).new_blocks == 0


@pytest.mark.parametrize("honest", [True, False])
def test_pull_ends_the_reader_of_slices_that_it_started(
    node: Node, chain: PeerChain, monkeypatch: pytest.MonkeyPatch, honest: bool
) -> None:
    started: list[SandboxedProcess] = []

    class NotedReader(OwnReader):
        def close(self) -> None:
            if self._reader._process is not None:
                started.append(self._reader._process)
            super().close()

    monkeypatch.setattr(row_checks, "SliceProcess", NotedReader)
    if not honest:
        chain.files[chain.blocks[SECOND_SLICE].event.new_data.physical_hash] += b"!"  # type: ignore[union-attr]

    with nullcontext() if honest else pytest.raises(ProposalRejectedError):
        pull(node, chain)

    assert [process.exit_code for process in started] == [-signal.SIGKILL]


def test_peer_that_lags_behind_is_no_reason_to_go_back(node: Node, chain: PeerChain) -> None:
    pull(node, chain)

    assert pull(node, chain.up_to(FIRST_SLICE)).new_blocks == 0
    assert node.store.get_head(chain.id) == chain.head


def test_only_what_is_new_is_asked_for(node: Node, chain: PeerChain) -> None:
    early = chain.up_to(FIRST_SLICE)
    pull(node, early)
    peer = OfferingPeer(chain)

    assert asyncio.run(take(node, peer)).new_blocks == 1
    assert peer.asked_after == [early.head]


@pytest.mark.parametrize("states_identity", [True, False])
@pytest.mark.parametrize("grown", [True, False])
def test_dataset_held_under_another_name_is_continued_there(
    node: Node, chain: PeerChain, states_identity: bool, grown: bool
) -> None:
    """Plain servers do not say whose dataset it is: then the Seed does."""
    pull(node, chain.up_to(FIRST_SLICE) if grown else chain, name="towns")

    report = asyncio.run(take(node, OfferingPeer(chain, states_identity=states_identity), name="cities"))

    assert (report.new_blocks, report.record.name) == (int(grown), "towns")
    assert [record.name for record in node.store.list_datasets()] == ["towns"]


def test_plain_peer_that_lags_behind_under_another_name_is_up_to_date(node: Node, chain: PeerChain) -> None:
    pull(node, chain, name="towns")
    peer = OfferingPeer(chain.up_to(FIRST_SLICE), states_identity=False)

    assert asyncio.run(take(node, peer)).new_blocks == 0


@pytest.mark.parametrize("states_identity", [True, False])
@pytest.mark.parametrize("longer", [True, False])
def test_another_dataset_under_a_held_name_is_rejected(
    node: Node, judge: Judge, chain: PeerChain, tmp_path: Path, states_identity: bool, longer: bool
) -> None:
    pull(node, chain)
    other = root_chain(tmp_path, key=OTHER_KEY)
    if longer:
        other.add(SetInfo(description="more")).add(SetInfo(description="and more"))

    # Without identity a longer chain is asked for from our head on: its link gives it away.
    rule = "ACCEPT-8" if states_identity or not longer else ""
    reject(node, judge, OfferingPeer(other, states_identity=states_identity), rule)


def test_identity_that_the_user_named_is_checked_also_when_nothing_is_new(
    node: Node, judge: Judge, chain: PeerChain
) -> None:
    pull(node, chain, expected_id=chain.id)

    reject(node, judge, OfferingPeer(chain), "ACCEPT-8", expected_id=dataset_of(OTHER_KEY))
    assert pull(node, chain, expected_id=chain.id).new_blocks == 0


def test_fork_is_rejected_with_proof_whatever_its_length(node: Node, judge: Judge, chain: PeerChain) -> None:
    shorter = chain.up_to(1).add_rows([("Atlantis", 1)])
    longer = shorter.copy().add_rows([("Atlantis", 2)]).add_rows([("Atlantis", 3)])

    for number, fork in enumerate((shorter, longer)):
        pull(node, chain)
        with pytest.raises(ProposalRejectedError) as caught:
            pull(node, fork)
        assert "equivocation" in node.refusals.get_report(caught.value.report["id"])
        with pytest.raises(FrozenDatasetError, match="frozen"):
            pull(node, chain)
        with closing(sqlite3.connect(judge.home.database)) as connection, connection:
            assert connection.execute("DELETE FROM documents").rowcount == 1, number


def test_object_with_other_bytes_is_rejected_and_nothing_of_the_others_stays(
    node: Node, judge: Judge, chain: PeerChain
) -> None:
    second = chain.blocks[SECOND_SLICE].event.new_data.physical_hash  # type: ignore[union-attr]
    lying = chain.copy()
    lying.files[second] += b"!"

    report = reject(node, judge, OfferingPeer(lying), "EX-12 object-hash")

    assert report["expected"] == str(second)
    assert list(node.objects.iter_hashes()) == []


def test_own_dataset_is_never_taken_from_others(node: Node, judge: Judge, chain: PeerChain) -> None:
    PublisherHome(judge).keep(chain)
    objects = set(node.objects.iter_hashes())
    longer = chain.copy().add(SetInfo(description="from elsewhere"))
    for peer, name in (
        (OfferingPeer(chain), "cities"),
        (OfferingPeer(longer), "cities"),
        (OfferingPeer(longer, states_identity=False), "other.name"),
        (OfferingPeer(longer), "other.name"),
    ):
        with pytest.raises((UsageError, ProposalRejectedError)):
            asyncio.run(take(node, peer, name=name))
    (record,) = node.store.list_datasets()
    assert (record.name, record.head, set(node.objects.iter_hashes())) == ("cities", chain.head, objects)


# Races


def test_two_first_pulls_at_once_both_succeed(node: Node, chain: PeerChain) -> None:
    async def both() -> list[AcceptanceReport]:
        met = asyncio.Barrier(2)

        async def wait() -> None:
            # Both have seen that the dataset is not here; whoever tries again later comes alone.
            if not peers_met.is_set():
                await met.wait()
                peers_met.set()

        peers_met = asyncio.Event()
        peers = [OfferingPeer(chain, before_objects=wait) for _ in range(2)]
        return list(await asyncio.gather(*(take(node, peer) for peer in peers)))

    reports = asyncio.run(both())

    assert sorted(report.new_blocks for report in reports) == [0, 4]
    assert node.store.get_head(chain.id) == chain.head
    assert set(node.objects.iter_hashes()) == set(chain.files)
    assert list(node.refusals.iter_reports()) == []


@pytest.mark.parametrize("moment", ["before_blocks", "before_objects"])
@pytest.mark.parametrize("first_contact", [True, False])
def test_pull_that_is_overtaken_by_another_looks_again(
    node: Node, chain: PeerChain, moment: str, first_contact: bool
) -> None:
    early = chain.up_to(FIRST_SLICE)
    if not first_contact:
        pull(node, chain.up_to(1))

    async def overtaken() -> AcceptanceReport:
        overtook = False

        async def overtake() -> None:
            nonlocal overtook
            if not overtook:
                overtook = True
                assert (await take(node, OfferingPeer(early))).record.head == early.head

        return await take(node, OfferingPeer(chain, **{moment: overtake}))

    report = asyncio.run(overtaken())

    assert report.record.head == chain.head
    assert node.store.get_head(chain.id) == chain.head
    assert list(node.refusals.iter_reports()) == []


def test_dataset_deleted_during_a_pull_ends_it_without_a_trace(node: Node, judge: Judge, chain: PeerChain) -> None:
    pull(node, chain.up_to(FIRST_SLICE))

    async def delete() -> None:
        node.store.delete_dataset(chain.id)

    with pytest.raises(Exception, match="no dataset"):
        asyncio.run(take(node, OfferingPeer(chain, before_objects=delete)))

    assert node.store.list_datasets() == ()
    assert pull(node, chain).new_blocks == 4


# Planning


def own(judge: Judge, folder: Path, name: str, key: bytes, *inputs: DatasetId) -> DatasetId:
    chain = PeerChain(folder, key=key, name=name)
    kind = DatasetKind.DERIVATIVE if inputs else DatasetKind.ROOT
    chain.add(Seed(dataset_id=chain.id, dataset_kind=kind))
    if inputs:
        chain.add(select("SELECT * FROM in0", *inputs))
    return PublisherHome(judge).keep(chain).id


@pytest.fixture
def three(judge: Judge, tmp_path: Path) -> None:
    """A root and two derivatives in a row, whose names sort the other way round."""
    root = own(judge, tmp_path, "z.root", OTHER_KEY)
    middle = own(judge, tmp_path, "m.derived", NEW_KEY, root)
    own(judge, tmp_path, "a.derived", NODE_KEY, middle, root)


@pytest.mark.parametrize(
    ("sources", "everything"),
    [(["a.derived", "m.derived", "z.root"], False), (["%"], False), ([], True), (["%derived", "Z.ROOT"], False)],
)
def test_inputs_come_before_what_is_derived_from_them(
    node: Node, three: None, sources: list[str], everything: bool
) -> None:
    planned = [target.label for target in node.planner.plan(sources, everything=everything)]

    # A root without a source is left out where it was not named.
    assert planned == [*([] if everything else ["z.root"]), "m.derived", "a.derived"]


def test_what_is_not_named_is_not_planned(node: Node, three: None) -> None:
    assert [target.label for target in node.planner.plan(["a.derived"])] == ["a.derived"]


def test_urls_are_planned_as_they_are(node: Node, three: None) -> None:
    targets = node.planner.plan(["http://peer.example/x", "z.root"])

    assert [(t.label, t.record is None, t.url) for t in targets] == [
        ("http://peer.example/x", True, "http://peer.example/x"),
        ("z.root", False, None),
    ]


def test_name_that_is_not_here_is_an_error_before_anything_is_pulled(node: Node, three: None) -> None:
    with pytest.raises(UnknownDatasetError, match=r"did you mean 'z\.root'"):
        node.planner.plan(["a.derived", "z.roof"])


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://peer.example/cities", "cities"),
        ("http://peer.example/a/b/cities/", "cities"),
        ("file:///data/large.cities", "large.cities"),
    ],
)
def test_name_is_the_last_segment_of_the_address(url: str, name: str) -> None:
    assert name_in_url(url) == name


@pytest.mark.parametrize("url", ["http://peer.example/not%20a%20name", "file:///", "http://[broken/x y"])
def test_address_without_a_name_asks_for_one(url: str) -> None:
    with pytest.raises(UsageError, match="--as"):
        name_in_url(url)


# What a push is told before it is sent


def consider(node: Node, chain: PeerChain, *, name: str, states_identity: bool = True) -> None:
    proposed = PeerHead(head=chain.head, name=name, dataset_id=chain.id if states_identity else None)
    judge = PushJudge(node.store, node.taking)
    asyncio.run(judge.consider(proposed, actor="token", reads=READS_EVERYTHING))


def test_push_of_what_is_new_or_held_is_considered(node: Node, chain: PeerChain) -> None:
    consider(node, chain, name="cities")
    pull(node, chain)
    consider(node, chain, name="cities")
    consider(node, chain, name="cities", states_identity=False)


def test_push_to_an_own_dataset_is_rejected_under_every_name(node: Node, judge: Judge, chain: PeerChain) -> None:
    PublisherHome(judge).keep(chain)

    for name, states_identity in (("cities", True), ("other", True), ("CITIES", False)):
        with pytest.raises(RejectedError, match="own-datasets"):
            consider(node, chain, name=name, states_identity=states_identity)


def test_push_of_another_dataset_under_a_held_name_is_rejected(node: Node, chain: PeerChain, tmp_path: Path) -> None:
    pull(node, chain)

    with pytest.raises(RejectedError, match="ACCEPT-8 name-keeps-its-identity"):
        consider(node, root_chain(tmp_path, key=OTHER_KEY), name="Cities")


# What is told of it afterwards


def audited(node: Node) -> list[tuple[str, str, str, str]]:
    return [(e.actor, e.command, e.subject, e.detail) for e in node.store.iter_audit(limit=9)]


def test_pull_that_brings_nothing_leaves_no_line_in_the_audit_log(node: Node, chain: PeerChain) -> None:
    pull(node, chain)
    pull(node, chain)
    assert audited(node) == [("cli", "pull", "cities", f"block {chain.head.sequence_number}")]


def test_rejected_pull_leaves_no_line_in_the_audit_log(node: Node, judge: Judge, chain: PeerChain) -> None:
    """ACCEPT-6: a rejection changes nothing."""
    reject(node, judge, OfferingPeer(chain, has_signatures=False), "ACCEPT-3")
    assert audited(node) == []


def test_push_is_told_to_the_audit_log_with_who_pushed(node: Node, chain: PeerChain) -> None:
    judge = PushJudge(node.store, node.taking)

    async def push() -> None:
        peer = OfferingPeer(chain)
        files = chain.files
        with open_arrivals(node.store, node.objects, chain.id, "push:token") as arrivals:
            for object_hash, content in files.items():
                with arrivals.stage() as staged:
                    staged.write(content)
                    arrivals.put(staged, object_hash)
            peer.arrivals = arrivals
            await judge.receive(peer, actor="token-7", reads=READS_EVERYTHING)  # type: ignore[arg-type]

    with node.objects.writing():
        asyncio.run(push())
    assert audited(node) == [("token-7", "push", "cities", f"block {chain.head.sequence_number}")]
