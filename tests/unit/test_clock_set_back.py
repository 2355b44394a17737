"""Clocks that leap ahead and come back, or are set back: nothing waits for years, and nothing is rejected for ever.

Each part is given the time. Heads: ``test_renewing.py``, ``test_key_changing.py``; signed requests:
``integration/http/test_http_access.py``; schedules and pauses: ``plug_ins/schedules``; daemons:
``fault/test_clock_jumps.py``.
"""

import random

import pytest

from odf_gossip_protocol import GossipSettings
from odf_gossip_protocol.peers import PeerBook
from odf_gossip_protocol.settings import Rates, Strikes
from odf_gossip_protocol.store import OWN, ItemStore, ItemVerdict
from odf_protocol.peer_addresses import PeerAddress
from support.gossip_items import NOON_MS, attestation, head
from support.signing import DATASET_KEY, OTHER_KEY

HOUR_MS = 3_600_000
LEAPS = pytest.mark.parametrize(
    "leap_ms", [HOUR_MS, 24 * HOUR_MS, 10 * 365 * 24 * HOUR_MS, NOON_MS], ids=["hour", "day", "decade", "to-1970"]
)
ADDRESS = PeerAddress.parse("https://8.8.4.4")


@LEAPS
def test_peer_that_failed_while_the_clock_was_ahead_is_asked_again(leap_ms: int) -> None:
    """A peer that the operator named was not asked for ten years, where one answer was missed meanwhile."""
    settings = GossipSettings()
    book = PeerBook(settings, allow_private=False)
    book.pin(ADDRESS)
    source = random.Random(1)
    now_ms = 2 * NOON_MS

    def is_asked(at_ms: int) -> bool:
        return book.pick_pinned(source, at_ms, avoid=()) is not None

    book.failed(ADDRESS.text, now_ms)
    assert not is_asked(now_ms)
    assert is_asked(now_ms - leap_ms)
    book.failed(ADDRESS.text, now_ms - leap_ms)
    assert not is_asked(now_ms - leap_ms)
    assert is_asked(now_ms - leap_ms + settings.max_backoff_rounds * settings.round_ms)


@LEAPS
def test_nobody_is_shut_out_for_longer_because_the_clock_was_ahead(leap_ms: int) -> None:
    strikes: Strikes[str] = Strikes(most=2, ban_ms=600_000, keys=9)
    now_ms = 2 * NOON_MS
    for _ in range(2):
        strikes.add("a", now_ms)
    assert strikes.is_banned("a", now_ms)
    assert strikes.is_banned("a", now_ms - leap_ms)
    assert strikes.is_banned("a", now_ms - leap_ms + 599_999)
    assert not strikes.is_banned("a", now_ms - leap_ms + 600_000)


@LEAPS
def test_rate_goes_on_from_the_clock_that_was_set_back(leap_ms: int) -> None:
    rates: Rates[str] = Rates(per_s=1, burst=1, keys=9)
    now_ms = 2 * NOON_MS
    assert rates.take("a", now_ms)
    assert not rates.take("a", now_ms - leap_ms)
    assert rates.take("a", now_ms - leap_ms + 1_000)


@LEAPS
def test_head_and_finding_of_a_clock_that_was_ahead_give_way_to_those_of_the_right_one(leap_ms: int) -> None:
    """GOSSIP-19: what this node said while its clock was ahead kept it from saying the same rightly."""
    store = ItemStore(GossipSettings())
    for make in (
        lambda at_ms: head(DATASET_KEY, 3, time_ms=at_ms),
        lambda at_ms: attestation(OTHER_KEY, DATASET_KEY, time_ms=at_ms),
    ):
        ahead, right, later = make(NOON_MS + leap_ms), make(NOON_MS), make(NOON_MS + 1_000)
        assert store.admit(ahead, OWN, NOON_MS + leap_ms).verdict is ItemVerdict.NEW
        assert store.admit(right, OWN, NOON_MS).verdict is ItemVerdict.NEW
        assert store.admit(ahead, "a", NOON_MS).verdict is ItemVerdict.FUTURE
        assert store.admit(later, OWN, NOON_MS).verdict is ItemVerdict.NEW
        assert store.admit(right, "a", NOON_MS).verdict is ItemVerdict.STALE


def test_head_of_a_lower_block_or_of_a_clock_that_is_nearly_right_takes_no_place() -> None:
    settings = GossipSettings()
    store = ItemStore(settings)
    high = head(DATASET_KEY, 4, time_ms=NOON_MS + HOUR_MS)
    store.admit(high, "a", NOON_MS + HOUR_MS)
    assert store.admit(head(DATASET_KEY, 3), "a", NOON_MS).verdict is ItemVerdict.STALE
    near = head(OTHER_KEY, 4, time_ms=NOON_MS + settings.future_ms)
    store.admit(near, "a", NOON_MS)
    assert store.admit(head(OTHER_KEY, 4), "a", NOON_MS).verdict is ItemVerdict.STALE


@LEAPS
def test_what_ran_out_by_a_clock_that_was_ahead_is_asked_for_again(leap_ms: int) -> None:
    store = ItemStore(GossipSettings())
    item = head(DATASET_KEY, 1, expires_ms=NOON_MS + 60_000)
    store.admit(item, "a", NOON_MS)
    assert store.expire(NOON_MS + leap_ms) == [item.id]
    assert not store.is_wanted(item.id)
    store.expire(NOON_MS + 2_000)
    assert store.is_wanted(item.id)
    assert store.admit(item, "a", NOON_MS + 2_000).verdict is ItemVerdict.NEW
