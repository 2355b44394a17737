"""When a subscription that failed is tried again."""

from dataclasses import replace

from odf_gossip.following import Attempts, Circumstances
from odf_protocol.accept_policies import NO_POLICIES
from support.signing import DATASET_KEY, OTHER_KEY, dataset_of, some_hash

DATASET, OTHER = dataset_of(DATASET_KEY), dataset_of(OTHER_KEY)
BEFORE = Circumstances(head=b"head", policies=NO_POLICIES)


def test_what_never_failed_is_due() -> None:
    assert Attempts().is_due(DATASET, BEFORE, 0.0)


def test_unchanged_failure_waits_twice_as_long_each_time_up_to_an_hour() -> None:
    attempts, now_s, waits = Attempts(), 0.0, []
    for _ in range(14):
        waits.append(attempts.fail(DATASET, BEFORE, now_s))
        assert not attempts.is_due(DATASET, BEFORE, now_s + waits[-1] - 0.1)
        now_s += waits[-1]
        assert attempts.is_due(DATASET, BEFORE, now_s)
    assert waits[:4] == [5.0, 10.0, 20.0, 40.0]
    assert waits[-2:] == [3600.0, 3600.0]


def test_new_statement_of_an_auditor_ends_a_long_wait_within_seconds() -> None:
    attempts = Attempts()
    for _ in range(10):
        attempts.fail(DATASET, BEFORE, 0.0)
    after = replace(BEFORE, statements=frozenset({some_hash("statement")}))
    assert not attempts.is_due(DATASET, after, 1.9)
    assert attempts.is_due(DATASET, after, 2.0)
    assert attempts.fail(DATASET, after, 2.0) == 5.0


def test_success_and_other_datasets_have_no_wait() -> None:
    attempts = Attempts()
    attempts.fail(DATASET, BEFORE, 0.0)
    assert attempts.is_due(OTHER, BEFORE, 0.0)
    attempts.succeed(DATASET)
    assert attempts.is_due(DATASET, BEFORE, 0.0)
