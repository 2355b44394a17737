"""Token buckets under a clock that the test turns."""

from odf_node.token_buckets import MAX_BUCKETS, TokenBuckets


def test_bucket_is_empty_after_its_window_and_fills_again() -> None:
    buckets = TokenBuckets(10, window_s=1)
    for _ in range(10):
        assert buckets.find_wait_s("a", now_s=0) == 0
        buckets.take("a", 1, now_s=0)
    assert 0 < buckets.find_wait_s("a", now_s=0) <= 0.1
    assert buckets.find_wait_s("b", now_s=0) == 0
    assert buckets.find_wait_s("a", now_s=0.2) == 0


def test_taking_more_than_a_bucket_is_paid_for_by_waiting() -> None:
    buckets = TokenBuckets(10, window_s=1)
    buckets.take("a", 110, now_s=0)
    assert 10 < buckets.find_wait_s("a", now_s=0) <= 10.1
    assert buckets.find_wait_s("a", now_s=10.2) == 0


def test_no_rate_is_no_limit() -> None:
    buckets = TokenBuckets(0, window_s=1)
    buckets.take("a", 10**12, now_s=0)
    assert buckets.find_wait_s("a", now_s=0) == 0


def test_clock_that_jumps_gives_and_takes_nothing() -> None:
    buckets = TokenBuckets(10, window_s=1)
    buckets.take("a", 10, now_s=1000)
    assert buckets.find_wait_s("a", now_s=0) > 0
    assert buckets.find_wait_s("a", now_s=1e9) == 0
    buckets.take("a", 11, now_s=1e9)
    assert buckets.find_wait_s("a", now_s=1e9) > 0


def test_keys_beyond_the_limit_push_out_the_oldest() -> None:
    buckets = TokenBuckets(1, window_s=1)
    for number in range(MAX_BUCKETS + 5):
        buckets.take(str(number), 1, now_s=0)
    assert len(buckets._buckets) == MAX_BUCKETS
