import pytest

from odf_protocol.errors import OdfError, RejectedError
from odf_protocol.key_events import KeyChange, decode_key_event, sign_event
from odf_protocol.key_history import KeyHistory
from odf_protocol.key_logs import sign_rotation
from support.signing import DATASET_KEY, NEW_KEY, NOON, OTHER_KEY, dataset_of, did_key_of

DATASET = dataset_of(DATASET_KEY)
START = KeyHistory.start(DATASET)


def rotate(history: KeyHistory, old: bytes, new: bytes, number: int) -> bytes:
    return sign_rotation(old, history, new_key=did_key_of(new), first_sequence_number=number, time=NOON)


def test_dataset_begins_with_the_key_that_is_its_identity() -> None:
    assert START.current_key.public_key == DATASET.public_key
    assert START.key_at(0) == START.key_at(10**9) == START.current_key


def test_each_key_speaks_for_its_own_blocks() -> None:
    history = START.extend(rotate(START, DATASET_KEY, OTHER_KEY, 10))
    history = history.extend(rotate(history, OTHER_KEY, NEW_KEY, 20))
    assert [history.key_at(n) for n in (9, 10, 19, 20)] == [
        did_key_of(DATASET_KEY),
        did_key_of(OTHER_KEY),
        did_key_of(OTHER_KEY),
        did_key_of(NEW_KEY),
    ]
    assert history.current_key == did_key_of(NEW_KEY)


def test_event_signed_by_a_key_that_is_not_in_force_is_rejected() -> None:
    history = START.extend(rotate(START, DATASET_KEY, OTHER_KEY, 10))
    with pytest.raises(ValueError, match="KEY-4 signed-by-the-key-in-force"):
        rotate(history, DATASET_KEY, NEW_KEY, 20)
    raw = sign_event(
        DATASET_KEY,
        KeyChange.ROTATION,
        DATASET,
        index=1,
        previous=history.last_event,
        new_key=did_key_of(NEW_KEY),
        first_sequence_number=30,
        time=NOON,
    )
    with pytest.raises(RejectedError, match="KEY-4"):
        history.extend(raw)


def test_event_of_another_dataset_is_rejected() -> None:
    with pytest.raises(RejectedError, match="KEY-2"):
        KeyHistory.start(dataset_of(OTHER_KEY)).extend(rotate(START, DATASET_KEY, NEW_KEY, 1))


def test_event_taken_twice_or_out_of_turn_is_rejected() -> None:
    first = rotate(START, DATASET_KEY, OTHER_KEY, 10)
    history = START.extend(first)
    second = rotate(history, OTHER_KEY, NEW_KEY, 20)
    with pytest.raises(RejectedError, match="KEY-3"):
        history.extend(first)
    with pytest.raises(RejectedError, match="KEY-3"):
        START.extend(second)


def test_event_that_continues_another_log_is_rejected() -> None:
    here = START.extend(rotate(START, DATASET_KEY, OTHER_KEY, 10))
    there = START.extend(rotate(START, DATASET_KEY, OTHER_KEY, 11))
    with pytest.raises(RejectedError, match="KEY-3"):
        there.extend(rotate(here, OTHER_KEY, NEW_KEY, 20))


@pytest.mark.parametrize("number", [0, 9])
def test_periods_that_do_not_ascend_are_rejected(number: int) -> None:
    history = START.extend(rotate(START, DATASET_KEY, OTHER_KEY, 10))
    with pytest.raises(ValueError, match="KEY-5"):
        rotate(history, OTHER_KEY, NEW_KEY, number)
    with pytest.raises(ValueError, match="KEY-5"):
        rotate(START, DATASET_KEY, NEW_KEY, 0)


def test_key_that_was_given_up_does_not_return() -> None:
    history = START.extend(rotate(START, DATASET_KEY, OTHER_KEY, 10))
    with pytest.raises(ValueError, match="KEY-6"):
        rotate(history, OTHER_KEY, DATASET_KEY, 20)


def test_event_keeps_its_bytes_and_flipped_ones_are_rejected() -> None:
    raw = rotate(START, DATASET_KEY, OTHER_KEY, 10)
    event = decode_key_event(raw)
    assert (event.index, event.previous, event.new_key, event.raw) == (0, None, did_key_of(OTHER_KEY), raw)
    for position in range(0, len(raw), 5):
        broken = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        with pytest.raises(OdfError):
            decode_key_event(broken)
