"""Comparing the log that is kept with what others show (KEY-7 to KEY-9)."""

from itertools import permutations

import pytest

from odf_protocol.errors import RejectedError
from odf_protocol.key_logs import compare_key_log, excuses, fold_kept_events
from support.key_logs import KeyLog
from support.signing import DATASET_KEY, NEW_KEY, NODE_KEY, OTHER_KEY, did_key_of, some_hash

KEPT = some_hash("kept")
LOG = KeyLog(DATASET_KEY).prepare()
THIEF = LOG.rotate(OTHER_KEY, 5).rotate(b"\x0b" * 32, 6)
OWNER = LOG.recover(NEW_KEY, 5, stolen_from=4, keeps=KEPT)


def test_longer_log_is_taken_and_a_shorter_one_is_noticed() -> None:
    found = compare_key_log(LOG.history, THIEF.raws)
    assert (found.new, found.hidden) == (THIEF.raws[1:], 0)
    assert found.history == THIEF.history
    assert [compare_key_log(THIEF.history, THIEF.raws[:n]).hidden for n in (0, 1, 2, 3)] == [3, 2, 1, 0]


def test_part_of_a_log_is_taken_where_it_continues_and_rejected_where_it_leaves_a_gap() -> None:
    assert compare_key_log(LOG.history, THIEF.raws[1:]).history == THIEF.history
    with pytest.raises(RejectedError, match="KEY-3"):
        compare_key_log(LOG.history, THIEF.raws[2:])


def test_two_rotations_by_one_key_are_proved_and_change_nothing() -> None:
    other = LOG.rotate(NEW_KEY, 5)
    found = compare_key_log(THIEF.history, other.raws)
    assert (found.history, found.new) == (THIEF.history, ())
    assert [(proof.signer, proof.position) for proof in found.proofs] == [(did_key_of(DATASET_KEY), 1)]
    assert not excuses(found.history, found.proofs[0])


def test_recovery_outranks_the_rotations_of_a_thief() -> None:
    found = compare_key_log(THIEF.history, OWNER.raws)
    assert (found.history, found.new, found.proofs) == (OWNER.history, OWNER.raws[1:], ())
    alone = compare_key_log(THIEF.history, OWNER.raws[1:])
    assert alone.history == OWNER.history


def test_thief_who_has_not_heard_of_the_recovery_changes_nothing() -> None:
    found = compare_key_log(OWNER.history, THIEF.raws)
    assert (found.history, found.new, found.hidden) == (OWNER.history, (), 1)


def test_owner_who_rotated_before_recovering_outranks_a_contradicting_thief() -> None:
    owner = LOG.rotate(NODE_KEY, 5).recover(NEW_KEY, 8, stolen_from=4, keeps=KEPT)
    found = compare_key_log(THIEF.history, owner.raws)
    assert found.history == owner.history
    assert len(found.proofs) == 1
    assert excuses(found.history, found.proofs[0])


def test_recovery_is_not_outranked_by_another_one() -> None:
    other = LOG.recover(NODE_KEY, 5, stolen_from=4, keeps=KEPT)
    found = compare_key_log(OWNER.history, other.raws)
    assert found.history == OWNER.history
    assert not excuses(OWNER.history, found.proofs[0])
    later = LOG.rotate(OTHER_KEY, 5).recover(NODE_KEY, 7, stolen_from=6, keeps=KEPT)
    with pytest.raises(RejectedError, match="KEY-9 recovery-stands"):
        compare_key_log(OWNER.history, later.raws)


def test_recovery_by_a_recovery_key_that_was_replaced_is_rejected() -> None:
    replaced = LOG.prepare(NODE_KEY, signer=LOG.recovery_key)
    with pytest.raises(RejectedError, match="KEY-9 recovery-outranks-rotations-only"):
        compare_key_log(replaced.history, OWNER.raws)


def test_log_without_end_is_rejected_before_it_is_read() -> None:
    with pytest.raises(RejectedError, match="KEY-8"):
        compare_key_log(LOG.history, [b"not even an event"] * 1001)


def test_event_of_another_dataset_is_rejected() -> None:
    with pytest.raises(RejectedError, match="KEY-2"):
        compare_key_log(LOG.history, KeyLog(OTHER_KEY).prepare().raws)


def test_kept_events_give_one_log_in_whichever_order_they_came() -> None:
    kept = dict.fromkeys(THIEF.raws + OWNER.raws)
    assert {fold_kept_events(LOG.id, order) for order in permutations(kept)} == {OWNER.history}


def test_outranked_log_of_the_owner_is_found_among_what_is_kept() -> None:
    owner = LOG.rotate(NODE_KEY, 5).recover(NEW_KEY, 8, stolen_from=4, keeps=KEPT)
    assert fold_kept_events(LOG.id, list(dict.fromkeys(THIEF.raws + owner.raws))) == owner.history
