"""Who speaks for which block, head and event once keys were changed or stolen (KEY-5 to KEY-13)."""

import pytest

from odf_protocol.errors import RejectedError
from odf_protocol.signatures import sign_block
from support.key_logs import RECOVERY_KEY, KeyLog
from support.signing import DATASET_KEY, NEW_KEY, NODE_KEY, OTHER_KEY, did_key_of, some_hash

KEPT, OTHER = some_hash("kept"), some_hash("other")
LOG = KeyLog(DATASET_KEY).prepare()
STOLEN = LOG.rotate(OTHER_KEY, 10).recover(NEW_KEY, 20, stolen_from=15, keeps=KEPT)


def rejection(call: object, *arguments: object) -> str:
    with pytest.raises(RejectedError) as caught:
        call(*arguments)  # type: ignore[operator]
    return caught.value.rule


def test_block_is_judged_by_the_key_in_force_and_the_rejection_says_whose_it_is() -> None:
    history = LOG.rotate(OTHER_KEY, 10).history
    signed = {key: sign_block(key, LOG.id, 10, KEPT) for key in (DATASET_KEY, OTHER_KEY, NODE_KEY)}
    history.require_block(signed[OTHER_KEY], 10, KEPT)
    with pytest.raises(RejectedError, match="KEY-5 block-is-by-the-key-in-force") as caught:
        history.require_block(signed[DATASET_KEY], 10, KEPT)
    assert (caught.value.expected, caught.value.found) == (did_key_of(OTHER_KEY), did_key_of(DATASET_KEY))
    assert rejection(history.require_block, signed[NODE_KEY], 10, KEPT).startswith("SIG-")


def test_later_key_may_vouch_for_an_older_head_and_no_older_key_for_a_later_one() -> None:
    history = LOG.rotate(OTHER_KEY, 10).history
    history.require_head(did_key_of(OTHER_KEY), 3, KEPT)
    history.require_head(did_key_of(DATASET_KEY), 9, KEPT)
    assert rejection(history.require_head, did_key_of(DATASET_KEY), 10, KEPT).startswith("KEY-5")


def test_recovery_ends_every_key_that_spoke_in_the_window() -> None:
    back = LOG.rotate(OTHER_KEY, 10).recover(NEW_KEY, 20, stolen_from=5, keeps=KEPT).history
    assert back.recoveries[0].stolen_keys == (did_key_of(DATASET_KEY), did_key_of(OTHER_KEY))
    assert rejection(back.require_head, did_key_of(DATASET_KEY), 7, OTHER).startswith("KEY-11")
    assert rejection(back.require_head, did_key_of(OTHER_KEY), 12, OTHER).startswith("KEY-11")
    back.require_head(did_key_of(DATASET_KEY), 4, OTHER)


def test_stolen_key_is_believed_about_the_kept_history_alone() -> None:
    history, thief = STOLEN.history, did_key_of(OTHER_KEY)
    history.require_head(thief, 14, OTHER)
    history.require_head(thief, 19, KEPT)
    assert rejection(history.require_head, thief, 19, OTHER).startswith("KEY-12")
    assert rejection(history.require_head, thief, 18, OTHER).startswith("KEY-11")
    assert rejection(history.require_head, thief, 20, OTHER).startswith("KEY-5")
    assert rejection(history.require_kept, 19, OTHER).startswith("KEY-12")


def test_recovery_key_signs_nothing_but_events() -> None:
    assert rejection(STOLEN.history.require_head, did_key_of(RECOVERY_KEY), 5, KEPT).startswith("KEY-5")


def test_contradictions_of_a_stolen_key_count_below_its_window_only() -> None:
    history, thief = STOLEN.history, did_key_of(OTHER_KEY)
    assert not history.excuses(thief, 14, in_key_log=False)
    assert history.excuses(thief, 15, in_key_log=False)
    assert history.excuses(thief, 2, in_key_log=True)
    assert not history.excuses(did_key_of(DATASET_KEY), 3, in_key_log=False)
    assert not history.excuses(did_key_of(NEW_KEY), 25, in_key_log=False)


def test_contradictions_of_keys_that_do_not_speak_there_do_not_count() -> None:
    history = LOG.rotate(OTHER_KEY, 10).history
    assert history.excuses(did_key_of(NODE_KEY), 3, in_key_log=False)
    assert history.excuses(did_key_of(DATASET_KEY), 10, in_key_log=False)
    assert not history.excuses(did_key_of(DATASET_KEY), 9, in_key_log=False)
    assert history.excuses(did_key_of(OTHER_KEY), 1, in_key_log=True)
    assert not history.excuses(did_key_of(OTHER_KEY), 2, in_key_log=True)
    assert not history.excuses(did_key_of(DATASET_KEY), 1, in_key_log=True)


def test_second_window_does_not_reach_into_the_first() -> None:
    with pytest.raises(ValueError, match="KEY-10"):
        STOLEN.recover(NODE_KEY, 30, stolen_from=19, keeps=KEPT)
    assert len(STOLEN.recover(NODE_KEY, 30, stolen_from=20, keeps=KEPT).history.recoveries) == 2


def test_next_recovery_key_takes_the_place_of_the_one_that_was_used() -> None:
    after = LOG.recover(NEW_KEY, 5, stolen_from=5, keeps=KEPT, recovery_key=did_key_of(NODE_KEY))
    assert after.history.recovery_key == did_key_of(NODE_KEY)
    with pytest.raises(ValueError, match="KEY-9"):
        after.recover(OTHER_KEY, 9, stolen_from=9, keeps=KEPT)


def test_recovery_key_is_replaced_by_itself_only() -> None:
    with pytest.raises(ValueError, match="KEY-9"):
        LOG.prepare(NODE_KEY)
    assert LOG.prepare(NODE_KEY, signer=RECOVERY_KEY).history.recovery_key == did_key_of(NODE_KEY)
