"""Readers whom one publisher told different things, in real daemons: what they find out when they meet by gossip.

The publisher serves each reader another history of one dataset, under one key, and is gone when the readers meet.
Neither is subscribed: nobody pulls, so small signed statements are all that they have of each other.

Source: EQUIV-9 and EQUIV-10 in ``spec/extensions/equivocation.md``, GOSSIP-13 in ``spec/plug-ins/gossip.md``,
HEAD-8 in ``spec/extensions/heads.md``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.composition import Node
from odf_node.home_folder import HomeFolder
from odf_node.keys.changing import KeyChanging
from support.gossip_processes import Daemon, stop_all, wait_until
from support.nodes import RealNode
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain
from support.own_datasets import record_of, write
from support.signing import did_key_of

LIMIT_S = 120.0


def show(chain: PeerChain, folder: Path, *readers: RealNode) -> None:
    """Serve a history to some readers, in the publisher's own node."""
    PublisherHome(Judge.create(folder)).keep(chain)
    with RealNode(folder).serving() as url:
        for reader in readers:
            reader.must("pull", f"{url}/cities")


@pytest.fixture
def readers(tmp_path: Path) -> Iterator[list[Daemon]]:
    made = [Daemon(tmp_path / name) for name in ("alice", "bob", "carol")]
    yield made
    assert set(stop_all(made)) <= {0}


def meet(readers: list[Daemon]) -> None:
    for reader in readers:
        reader.bootstrap = "" if reader is readers[0] else readers[0].url()
        reader.start()


def is_frozen(reader: Daemon) -> bool:
    return "FROZEN" in reader.node.must("list").out


@pytest.mark.parametrize("longer_by", [0, 2])
def test_readers_of_two_histories_of_any_lengths_prove_it_when_they_meet_equiv_9(
    tmp_path: Path, readers: list[Daemon], longer_by: int
) -> None:
    """Whoever holds the longer history has a block, with its signature, where the other one's head is."""
    truth = root_chain(tmp_path)
    lie = truth.up_to(2).add_rows([("Atlantis", 1)])
    for number in range(longer_by):
        lie.add_rows([("Atlantis", 2 + number)])
    alice, bob, carol = readers
    show(truth, tmp_path / "to alice", alice.node)
    show(lie, tmp_path / "to bob", bob.node)
    show(truth.up_to(2), tmp_path / "to carol", carol.node)

    meet([alice, bob])
    wait_until(lambda: is_frozen(alice) and is_frozen(bob), LIMIT_S, "both know that two histories are signed")
    # Somebody who has neither block is told by the proof alone, whoever brings it.
    carol.bootstrap = alice.url()
    carol.start()
    wait_until(lambda: is_frozen(carol), LIMIT_S, "the third one knows it too")

    shown = [reader.node.must("evidence", "show", "cities", "-o", "json").json() for reader in readers]
    assert len({(each["first"], each["second"], each["position"]) for (each,) in shown}) == 1
    assert shown[2][0]["position"] == truth.head.sequence_number
    judged = []
    for reader in readers:
        bundle = reader.home.with_suffix(".evidence")
        reader.node.must("evidence", "export", "cities", "--to", str(bundle))
        ran = carol.node.run("judge", str(bundle), "-o", "json")
        judged.append((ran.code, ran.json()["guilty"]))
    assert judged == [(4, [{"key": str(did_key_of(truth.key)), "dataset": str(truth.id)}])] * 3


def test_follower_takes_the_proof_from_another_reader_when_the_publisher_is_gone_equiv_9(
    tmp_path: Path, readers: list[Daemon]
) -> None:
    """A lie that its publisher has built on since: blocks between the two heads are the proof."""
    truth = root_chain(tmp_path)
    lie = truth.up_to(2).add_rows([("Atlantis", 1)]).add_rows([("Atlantis", 2)])
    alice, bob, _ = readers
    show(truth, tmp_path / "to alice", alice.node)
    show(lie, tmp_path / "to bob", bob.node)
    bob.start()
    alice.node.must("peer", "add", bob.url())
    alice.node.must("subscribe", str(truth.id), "--as", "cities")

    alice.start()

    wait_until(lambda: is_frozen(alice) and is_frozen(bob), LIMIT_S, "both know that two histories are signed")
    (dispute,) = alice.node.must("evidence", "show", "cities", "-o", "json").json()
    assert dispute["position"] == truth.head.sequence_number


def test_lie_that_its_publisher_hid_behind_a_new_key_is_proved_from_another_readers_copy_equiv_9(
    tmp_path: Path, readers: list[Daemon]
) -> None:
    """No two heads are by one key. The reader who was never shown the rotation learns of it from the other one."""
    truth = root_chain(tmp_path)
    lie = truth.up_to(2).add_rows([("Atlantis", 1)])
    alice, bob, _ = readers
    show(truth, tmp_path / "to alice", alice.node)
    liar = tmp_path / "to bob"
    PublisherHome(Judge.create(liar)).keep(lie)
    node = Node(HomeFolder(liar), FixedClock(NOW))
    KeyChanging(node.home).rotate(record_of(node), now=NOW)
    write(node, "by the new key")
    node.close()
    with RealNode(liar).serving() as url:
        bob.node.must("pull", f"{url}/cities")
    bob.start()
    alice.node.must("peer", "add", bob.url())
    alice.node.must("subscribe", str(truth.id), "--as", "cities")

    alice.start()

    wait_until(lambda: is_frozen(alice) and is_frozen(bob), LIMIT_S, "both know that two histories are signed")
    for reader in (alice, bob):
        (dispute,) = reader.node.must("evidence", "show", "cities", "-o", "json").json()
        assert dispute["position"] == truth.head.sequence_number
        assert str(did_key_of(truth.key)) in dispute["explanation"]
