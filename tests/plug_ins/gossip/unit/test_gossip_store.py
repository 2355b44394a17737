"""What a node keeps of what it heard (GOSSIP-11 to GOSSIP-13 and GOSSIP-19 to GOSSIP-22)."""

from dataclasses import replace

import pytest

from odf_gossip_protocol import GossipSettings, Interests, ItemKind, read_item
from odf_gossip_protocol.settings import Rates, Strikes
from odf_gossip_protocol.store import OWN, ItemStore, ItemVerdict
from odf_protocol.did import DidKey
from odf_protocol.signatures import public_key_of
from support.gossip_items import NOON_MS, attestation, head, key_events, key_of, proof, settlement
from support.key_logs import KeyLog
from support.signing import DATASET_KEY, NEW_KEY, NODE_KEY, OTHER_KEY, dataset_of, did_key_of, some_hash


def make_store(**limits: int) -> ItemStore:
    return ItemStore(GossipSettings(**limits))  # type: ignore[arg-type]


def test_item_is_kept_once() -> None:
    store, item = make_store(), head(DATASET_KEY, 3)
    assert store.admit(item, "a", NOON_MS).verdict is ItemVerdict.NEW
    assert store.admit(item, "b", NOON_MS).verdict is ItemVerdict.KNOWN
    assert (store.find(item.id), len(store), list(store.ids.between(bytes(32), None))) == (item, 1, [item.id])


def test_higher_head_replaces_the_lower_one_and_never_the_other_way_round() -> None:
    store, low, high = make_store(), head(DATASET_KEY, 3), head(DATASET_KEY, 4)
    store.admit(low, "a", NOON_MS)
    assert store.admit(high, "a", NOON_MS).removed == (low.id,)
    assert store.admit(low, "b", NOON_MS).verdict is ItemVerdict.STALE
    assert [item.id for item in store.iter_items()] == [high.id]
    assert not store.is_wanted(low.id)


def test_expired_and_future_items_are_not_taken() -> None:
    store = make_store(future_ms=1_000)
    assert store.admit(head(DATASET_KEY, 1, expires_ms=NOON_MS + 5), "a", NOON_MS + 5).verdict is ItemVerdict.EXPIRED
    ahead = head(DATASET_KEY, 1, time_ms=NOON_MS + 1_001)
    assert store.admit(ahead, "a", NOON_MS).verdict is ItemVerdict.FUTURE
    assert store.is_wanted(ahead.id)
    assert store.admit(ahead, "a", NOON_MS + 1).verdict is ItemVerdict.NEW


def test_items_go_when_they_expire() -> None:
    store, item, lasting = make_store(), head(DATASET_KEY, 1, expires_ms=NOON_MS + 5), head(OTHER_KEY, 1)
    store.admit(item, "a", NOON_MS)
    store.admit(lasting, "a", NOON_MS)
    assert store.expire(NOON_MS + 4) == []
    assert store.expire(NOON_MS + 5) == [item.id]
    assert [one.id for one in store.iter_items()] == [lasting.id]


def test_stranger_may_not_speak_for_a_dataset() -> None:
    store = make_store()
    assert store.admit(head(DATASET_KEY, 1, by=OTHER_KEY), "a", NOON_MS).verdict is ItemVerdict.FOREIGN
    one, other = head(DATASET_KEY, 1, by=OTHER_KEY, text="a"), head(DATASET_KEY, 1, by=OTHER_KEY, text="b")
    assert [store.admit(item, "a", NOON_MS).proofs for item in (one, other)] == [(), ()]
    assert len(store) == 0


def test_key_that_took_over_may_speak_and_its_successor_too() -> None:
    store = make_store()
    first, second = key_events(DATASET_KEY, NEW_KEY, OTHER_KEY)
    assert store.admit(second, "a", NOON_MS).verdict is ItemVerdict.FOREIGN
    assert store.admit(head(DATASET_KEY, 1, by=NEW_KEY), "a", NOON_MS).verdict is ItemVerdict.FOREIGN
    for item in (first, second, head(DATASET_KEY, 1, by=NEW_KEY), head(DATASET_KEY, 2, by=OTHER_KEY)):
        assert store.admit(item, "a", NOON_MS).verdict is ItemVerdict.NEW
    assert store.speaks(dataset_of(DATASET_KEY), did_key_of(OTHER_KEY))
    assert not store.speaks(dataset_of(DATASET_KEY), did_key_of(NODE_KEY))


def test_contradicting_heads_become_a_proof() -> None:
    store = make_store()
    store.admit(head(DATASET_KEY, 3, text="a"), "a", NOON_MS)
    admission = store.admit(head(DATASET_KEY, 3, text="b"), "b", NOON_MS)
    (proof,) = admission.proofs
    assert (proof.kind, proof.signer) == (ItemKind.EQUIVOCATION, did_key_of(DATASET_KEY))
    assert store.admit(proof, "b", NOON_MS).verdict is ItemVerdict.NEW


def test_proofs_of_other_histories_are_kept_beside_each_other_up_to_a_limit() -> None:
    store = make_store()
    proofs = [proof(DATASET_KEY, number, "a", "b") for number in range(17)]
    verdicts = [store.admit(item, "a", NOON_MS).verdict for item in proofs]
    assert verdicts == [ItemVerdict.NEW] * 16 + [ItemVerdict.STALE]
    assert not store.is_wanted(proofs[16].id)
    assert store.admit(proof(OTHER_KEY, 1, "a", "b"), "a", NOON_MS).verdict is ItemVerdict.NEW


def test_settlements_are_kept_beside_each_other_and_strangers_settle_nothing() -> None:
    store, lied = make_store(), proof(DATASET_KEY, 3, "a", "b")
    one, other = (settlement(DATASET_KEY, lied, text) for text in "ab")
    for item in (one, lied, other):  # in whatever order
        assert store.admit(item, "a", NOON_MS).verdict is ItemVerdict.NEW
    of_stranger = settlement(OTHER_KEY, proof(OTHER_KEY, 3, "a", "b"), "a")
    forged = replace(of_stranger, dataset_id=dataset_of(DATASET_KEY))
    assert store.admit(forged, "a", NOON_MS).verdict is ItemVerdict.FOREIGN


def test_same_block_signed_twice_is_no_contradiction() -> None:
    store = make_store()
    store.admit(head(DATASET_KEY, 3), "a", NOON_MS)
    again = store.admit(head(DATASET_KEY, 3, time_ms=NOON_MS + 1), "a", NOON_MS)
    assert (again.verdict, again.proofs) == (ItemVerdict.NEW, ())


def test_contradiction_to_an_older_head_is_found_where_the_dataset_is_of_interest() -> None:
    for interests, found in ((Interests(frozenset({dataset_of(DATASET_KEY)})), 1), (Interests(), 0)):
        store = make_store()
        store.set_interests(interests)
        for number in range(5):
            store.admit(head(DATASET_KEY, number), "a", NOON_MS)
        assert len(store.admit(head(DATASET_KEY, 2, text="other"), "a", NOON_MS).proofs) == found


def test_contradicting_key_events_become_a_proof() -> None:
    store = make_store()
    (one,), (other,) = key_events(DATASET_KEY, NEW_KEY), key_events(DATASET_KEY, OTHER_KEY)
    store.admit(one, "a", NOON_MS)
    assert [proof.kind for proof in store.admit(other, "a", NOON_MS).proofs] == [ItemKind.EQUIVOCATION]


def test_loudest_introducer_loses_its_oldest() -> None:
    store = make_store(max_items=10)
    quiet = [head(key_of(number), 1) for number in range(3)]
    loud = [head(key_of(100 + number), 1) for number in range(20)]
    for item in quiet:
        store.admit(item, "quiet", NOON_MS)
    for item in loud:
        store.admit(item, "loud", NOON_MS)
    kept = {item.id for item in store.iter_items()}
    assert kept == {item.id for item in quiet} | {item.id for item in loud[-7:]}


def test_bytes_are_bounded_too() -> None:
    item = head(key_of(1), 1)
    store = make_store(max_item_bytes=5 * len(item.raw))
    for number in range(20):
        store.admit(head(key_of(number), 1), "a", NOON_MS)
    assert store.passing_bytes <= 5 * len(item.raw)
    assert 3 <= len(store) <= 5


def test_own_and_interesting_items_are_not_counted_and_not_pushed_out() -> None:
    store = make_store(max_items=2)
    store.set_interests(Interests(frozenset({dataset_of(DATASET_KEY)}), frozenset({did_key_of(NODE_KEY)})))
    mine, watched, audit = head(OTHER_KEY, 1), head(DATASET_KEY, 1), attestation(NODE_KEY, OTHER_KEY)
    store.admit(mine, OWN, NOON_MS)
    for item in (watched, audit, *(head(key_of(number), 1) for number in range(9))):
        store.admit(item, "a", NOON_MS)
    assert {mine.id, watched.id, audit.id} <= {item.id for item in store.iter_items()}
    assert len(store) == 5


def test_attestations_of_strangers_about_a_watched_dataset_are_in_passing() -> None:
    store = make_store(max_items=2)
    store.set_interests(Interests(frozenset({dataset_of(DATASET_KEY)})))
    for number in range(9):
        store.admit(attestation(key_of(number), DATASET_KEY), "a", NOON_MS)
    assert len(store) == 2


def test_named_signer_has_a_limit_as_well() -> None:
    store = make_store(max_items=2, signer_items=3)
    store.set_interests(Interests(signers=frozenset({did_key_of(NODE_KEY)})))
    for number in range(9):
        store.admit(attestation(NODE_KEY, DATASET_KEY, number), "a", NOON_MS)
    assert len(store) == 5


def test_change_of_interest_changes_the_class_of_what_is_kept() -> None:
    store, item = make_store(max_items=1), head(DATASET_KEY, 1)
    store.admit(item, "a", NOON_MS)
    store.set_interests(Interests(frozenset({dataset_of(DATASET_KEY)})))
    assert store.passing_bytes == 0
    for number in range(5):
        store.admit(head(key_of(number), 1), "a", NOON_MS)
    assert item.id in store
    store.set_interests(Interests())
    store.admit(head(key_of(50), 1), "b", NOON_MS)
    assert len(store) == 1


def test_memory_of_what_was_forgotten_is_bounded() -> None:
    store = make_store(max_items=1, max_forgotten=5)
    for number in range(50):
        store.admit(head(key_of(number), 1), "a", NOON_MS)
    assert len(store._forgotten) == 5
    assert len(store._ends) <= 2 * 2 + 64


def test_tokens_come_back_with_time_and_never_above_the_burst() -> None:
    rates: Rates[str] = Rates(per_s=2, burst=3, keys=10)
    assert [rates.take("a", 0) for _ in range(4)] == [True, True, True, False]
    assert [rates.take("a", 500) for _ in range(2)] == [True, False]
    assert [rates.take("a", 100_000) for _ in range(4)] == [True, True, True, False]
    assert not rates.take("a", 0)  # a clock that was set back gives nothing
    assert rates.take("b", 0)


def test_counted_senders_are_bounded() -> None:
    rates: Rates[int] = Rates(per_s=1, burst=1, keys=10)
    strikes: Strikes[int] = Strikes(most=1, ban_ms=10, keys=10)
    for number in range(1_000):
        rates.take(number, 0)
        strikes.add(number, 0)
    assert (len(rates), len(strikes)) == (10, 10)


def test_ban_ends() -> None:
    strikes: Strikes[str] = Strikes(most=2, ban_ms=10, keys=10)
    strikes.add("a", 0)
    assert not strikes.is_banned("a", 0)
    strikes.add("a", 1)
    assert strikes.is_banned("a", 10)
    assert not strikes.is_banned("a", 11)
    assert not strikes.is_banned("a", 12)


@pytest.mark.parametrize("signer", [DATASET_KEY, OTHER_KEY])
def test_proof_counts_only_against_a_key_that_speaks_for_the_dataset(signer: bytes) -> None:
    from odf_gossip_protocol import read_item
    from odf_protocol.equivocation import EquivocationKind, prove_equivocation

    pair = [head(DATASET_KEY, 3, text=text, by=signer).raw for text in "ab"]
    proof = read_item(ItemKind.EQUIVOCATION, prove_equivocation(EquivocationKind.HEADS, *pair).raw)
    assert proof.signer == DidKey(public_key_of(signer))
    expected = ItemVerdict.NEW if signer == DATASET_KEY else ItemVerdict.FOREIGN
    assert make_store().admit(proof, "a", NOON_MS).verdict is expected


def test_recovery_is_kept_beside_the_rotation_that_it_outranks_and_its_key_may_speak() -> None:
    log = KeyLog(DATASET_KEY).prepare()
    thief, back = log.rotate(OTHER_KEY, 3), log.recover(NEW_KEY, 3, stolen_from=2, keeps=some_hash("a"))
    prepared, rotation, recovery = (
        read_item(ItemKind.KEY_EVENT, raw) for raw in (log.raws[0], thief.raws[1], back.raws[1])
    )
    store = make_store()
    assert store.admit(recovery, "a", NOON_MS).verdict is ItemVerdict.FOREIGN
    for item in (prepared, rotation, recovery, head(DATASET_KEY, 4, by=NEW_KEY)):
        admission = store.admit(item, "a", NOON_MS)
        assert (admission.verdict, admission.proofs) == (ItemVerdict.NEW, ())
