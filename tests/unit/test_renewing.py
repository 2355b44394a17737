"""Heads of own datasets that the daemon signs again, and those that it must not sign."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.key_files import FOLDER_VARIABLE, write_mark
from odf_node.composition import Node
from odf_node.home_folder import HomeFolder
from odf_node.keys.disputes import Disputes
from odf_node.keys.renewing import AFTER_FAILURE_S, HeadRenewal
from odf_protocol.equivocation import EquivocationKind, prove_equivocation
from odf_protocol.heads import Renewal, SignedHead, verify_head
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.offers import NOW, Judge, PeerChain, PublisherHome, root_chain

RULE = Renewal(every_s=3_600, valid_s=36_000)


def later(seconds: int) -> Timestamp:
    return Timestamp(NOW.seconds + seconds, NOW.nanoseconds)


@dataclass
class Publishing:
    """A publisher's node that holds a chain of its own."""

    node: Node
    chain: PeerChain
    renewal: HeadRenewal

    def names_renewed(self, seconds: int, rule: Renewal = RULE) -> list[str]:
        """Names of what is signed so many seconds later; nothing may have been in the way."""
        done = self.renewal.renew_due(rule, later(seconds))
        assert [one.problem for one in done] == [None] * len(done)
        return [one.name for one in done]

    def head(self) -> SignedHead:
        found = self.node.store.find_signed_head(self.chain.id)
        assert found is not None
        return verify_head(found.raw, self.chain.id)


@pytest.fixture
def publishing(tmp_path: Path) -> Iterator[Publishing]:
    chain = root_chain(tmp_path)
    judge = Judge.create(tmp_path / "home")
    PublisherHome(judge).keep(chain)
    node = Node(HomeFolder(judge.home.path), FixedClock(NOW))
    yield Publishing(node, chain, HeadRenewal(node.home))
    node.close()


def test_head_without_an_end_is_signed_at_once_and_then_at_intervals(publishing: Publishing) -> None:
    assert publishing.head().expires is None
    assert publishing.names_renewed(60) == ["cities"]
    head = publishing.head()
    assert (head.time, head.expires) == (later(60), later(60 + 36_000))
    assert head.block_hash == publishing.chain.head.hash
    assert publishing.names_renewed(60 + 3_599) == []
    assert publishing.names_renewed(60 + 3_600) == ["cities"]
    assert publishing.head().time == later(60 + 3_600)


def test_shorter_interval_counts_at_once(publishing: Publishing) -> None:
    publishing.names_renewed(60)
    assert publishing.names_renewed(120, Renewal(every_s=60, valid_s=120)) == ["cities"]


def test_restarted_daemon_does_not_sign_what_is_fresh(publishing: Publishing) -> None:
    publishing.names_renewed(60)
    node = publishing.node
    assert HeadRenewal(node.home).renew_due(RULE, later(120)) == []


def test_head_that_is_dated_ahead_a_little_is_left_alone(publishing: Publishing) -> None:
    """HEAD-11: a clock that was set back, and a head that still holds."""
    publishing.names_renewed(60)
    assert publishing.names_renewed(60 - 36_000) == []


@pytest.mark.parametrize("ahead_s", [86_400, 10 * 365 * 86_400])
def test_head_that_a_clock_far_ahead_has_signed_is_signed_again_when_it_is_right_head_11(
    publishing: Publishing, ahead_s: int
) -> None:
    """HEAD-11: for as long as the clock had been ahead no head was signed, and nobody took the one there was."""
    assert publishing.names_renewed(ahead_s) == ["cities"]
    assert publishing.names_renewed(120) == ["cities"]
    assert publishing.head().time == later(120)
    assert publishing.names_renewed(180) == []


@pytest.mark.parametrize("back_s", [3_600, 86_400, NOW.seconds])
def test_renewal_that_failed_waits_no_longer_where_the_clock_is_set_back(
    publishing: Publishing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back_s: int
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "marks"))
    chain, ahead_s = publishing.chain, 7_200
    write_mark(chain.id, chain.head.sequence_number + 1, Multihash.of_sha3_256(b"lost"))
    for at_s in (ahead_s, ahead_s + back_s):  # a clock that is ahead, or is right, when it fails
        (done,) = publishing.renewal.renew_due(RULE, later(at_s))
        assert done.problem is not None
    write_mark(chain.id, chain.head.sequence_number, chain.head.hash)
    assert publishing.names_renewed(ahead_s) == ["cities"]


def test_dataset_that_nobody_sees_is_left_alone(publishing: Publishing) -> None:
    publishing.node.store.set_published(publishing.chain.id, False)
    assert publishing.names_renewed(60) == []


def test_restored_backup_signs_no_head(publishing: Publishing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "marks"))
    chain = publishing.chain
    write_mark(chain.id, chain.head.sequence_number + 1, Multihash.of_sha3_256(b"lost"))

    (done,) = publishing.renewal.renew_due(RULE, later(60))

    assert done.problem is not None
    assert "restored backup" in done.problem
    assert publishing.head().expires is None
    assert publishing.renewal.renew_due(RULE, later(60 + AFTER_FAILURE_S - 1)) == []
    write_mark(chain.id, chain.head.sequence_number, chain.head.hash)
    assert publishing.names_renewed(60 + AFTER_FAILURE_S) == ["cities"]


def test_frozen_dataset_gets_no_newer_head(publishing: Publishing) -> None:
    chain, node = publishing.chain, publishing.node
    other = chain.signed_head(block_hash=Multihash.of_sha3_256(b"other"))
    proof = prove_equivocation(EquivocationKind.HEADS, chain.signed_head(), other)
    Disputes(node.store).learn([proof.raw], chain.id, now=NOW)

    (done,) = publishing.renewal.renew_due(RULE, later(60))

    assert "frozen" in str(done.problem)
    assert publishing.head().expires is None


@pytest.mark.parametrize(("every_s", "valid_s"), [(0, 1), (5, 5), (6, 5)])
def test_heads_that_would_run_out_before_they_are_renewed_are_no_rule(every_s: int, valid_s: int) -> None:
    with pytest.raises(ValueError, match="hold longer"):
        Renewal(every_s, valid_s)
