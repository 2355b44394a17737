"""What is said of a long step is true: rates, time left, stalls, plain lines."""

import io
import threading
from collections.abc import Callable

import pytest

from odf_node.cli.console import Console
from odf_node.cli.progress import Meter, describe, format_bytes, format_seconds, plain_seconds
from odf_node.ports.progress import Count

MB = 1_000_000


def meter(total_bytes: int | None = 100 * MB) -> Meter:
    return Meter(total=total_bytes, now_s=0.0)


def test_rate_is_that_of_the_last_seconds() -> None:
    running = meter()
    for second in range(21):
        running.advance(MB if second <= 10 else 5 * MB, float(second))
    assert running.find_rate(20.0) == pytest.approx(5 * MB)
    assert running.find_left_s(20.0) == pytest.approx((100 - 61) / 5)


def test_what_was_here_already_is_done_and_is_no_rate() -> None:
    running = meter()
    running.advance(90 * MB, 0.0)
    assert running.find_rate(0.5) is None
    running.advance(1 * MB, 1.0)
    running.advance(1 * MB, 2.0)
    assert (running.done, running.find_rate(2.0)) == (92 * MB, pytest.approx(MB))
    assert running.find_left_s(2.0) == pytest.approx(8.0)


def test_transfer_that_stands_still_has_no_rate_and_no_end() -> None:
    running = meter()
    for second in range(5):
        running.advance(MB, float(second))
    rates = [running.find_rate(float(second)) or 0.0 for second in (4, 8, 12)]
    assert rates == sorted(rates, reverse=True)
    assert running.find_rate(40.0) == 0.0
    assert running.find_left_s(40.0) is None
    assert describe("pulling", running, 40.0, bar=False) == "pulling: 5.0 MB of 100 MB, 0 B/s"


def test_line_that_is_too_wide_keeps_its_figures() -> None:
    running = meter()
    running.advance(MB, 0.0)
    line = describe(f"taking in /{'long/' * 30}", running, 0.5, bar=False, width=60)
    assert line.startswith("taking in /long/")
    assert line.endswith("...: 1.0 MB of 100 MB")
    assert len(line) == 60
    assert describe("taking in", running, 0.5, bar=False, width=5) == "taking in: 1.0 MB of 100 MB"


def test_transfer_that_begins_again_is_not_more_than_done() -> None:
    running = meter()
    for second, size in enumerate((10 * MB, 10 * MB, -20 * MB, 5 * MB)):
        running.advance(size, float(second))
    assert running.done == 5 * MB
    assert running.find_rate(3.0) == 0.0
    assert running.find_left_s(3.0) is None


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: meter(), "x [........................] 0 B of 100 MB"),
        (lambda: meter(None), "x, 30 s so far"),
        (lambda: moved(meter(None)), "x, 3.0 MB, 100 kB/s, 30 s so far"),
        (lambda: moved(meter()), "x [........................] 3.0 MB of 100 MB, 100 kB/s, 16 min left"),
        (lambda: moved(meter(2 * MB)), "x [########################] 3.0 MB of 2.0 MB, 100 kB/s, 0 s left"),
    ],
)
def test_line_says_what_is_known_and_no_more(make: Callable[[], Meter], text: str) -> None:
    assert describe("x", make(), 30.0, bar=True) == text


def moved(running: Meter) -> Meter:
    for second in (0.0, 20.0, 30.0):
        running.advance(MB, second)
    return running


def counted(unit: str, total: int | None, *at: tuple[float, int]) -> Meter:
    running = Meter(total=total, now_s=0.0, unit=unit)
    for now_s, done in at:
        running.advance(done - running.done, now_s)
    return running


@pytest.mark.parametrize(
    ("make", "now_s", "text"),
    [
        pytest.param(
            lambda: counted("steps", 12, (0.0, 0), (60.0, 1), (120.0, 2)),
            150.0,
            "x: 2 of 12 steps, 0.013 steps/s, 12 min left",
            id="steps-longer-than-any-window-have-a-mean-rate",
        ),
        pytest.param(
            lambda: counted("rows", 39_529, (0.0, 0)),
            30.0,
            "x: 0 of 39,529 rows, 30 s so far",
            id="nothing-done-yet-has-no-rate",
        ),
        pytest.param(
            lambda: counted("rows", None, (1.0, 1_000_000), (2.0, 3_000_000)),
            3.0,
            "x, 3,000,000 rows, 1,000,000 rows/s, 3 s so far",
            id="without-a-total-nothing-is-left",
        ),
        pytest.param(
            lambda: counted("rows", None, (1.0, 1_000_000), (2.0, 3_000_000)),
            60.0,
            "x, 3,000,000 rows, 60 s so far",
            id="reading-that-has-ended-has-no-rate",
        ),
    ],
)
def test_what_is_counted_has_a_rate_and_time_left_where_they_are_known(
    make: Callable[[], Meter], now_s: float, text: str
) -> None:
    assert describe("x", make(), now_s, bar=False) == text


def test_counted_step_goes_on_where_it_was_after_something_else_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_NODE_PROGRESS_S", "0")
    clock = iter(float(second) for second in range(100))
    monkeypatch.setattr("odf_node.cli.progress.time.monotonic", lambda: next(clock))
    with Console(out=io.StringIO(), err=io.StringIO()).progress("verifying") as shown:
        shown.on_progress("a: checking rows", Count(0, 100, "rows"))
        shown.on_progress("b: checking rows", Count(5, 10, "rows"))
        shown.on_progress("starting")
        shown.on_progress("a: checking rows", Count(30, 100, "rows"))
        assert shown._meter.find_rate(next(clock)) == pytest.approx(30 / 4, rel=0.3)
        shown.on_progress("a: checking rows", Count(0, 50, "rows"))
        assert (shown._meter.done, shown._meter.total) == (0, 50)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (99, "99 s"), (720, "12 min"), (12_000, "3 h 20 min"), (360_000, "100 h 0 min")]
)
def test_times_are_said_as_people_say_them(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (123_456, "123 kB"), (2_500_000_000, "2.5 GB"), (10**15, "1000 TB")],
)
def test_sizes_have_a_unit_and_few_digits(size: int, text: str) -> None:
    assert format_bytes(size) == text


def test_log_gets_a_plain_line_now_and_then_also_while_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_NODE_PROGRESS_S", "0.01")
    err = io.StringIO()
    with Console(out=io.StringIO(), err=err).progress("pulling\x1b[2J") as shown:
        shown.expect(10 * MB)
        shown.advance(MB)
        # The first lines may come before the bytes.
        while err.getvalue().count("1.0 MB of 10.0 MB") < 3:
            pass
    lines = err.getvalue().splitlines()
    assert r"pulling\x1b[2J: 1.0 MB of 10.0 MB" in lines[-1]
    assert "\r" not in err.getvalue()
    stated = err.getvalue()
    shown.on_progress("afterwards")
    assert err.getvalue() == stated


@pytest.mark.parametrize(
    ("stated", "each_s"),
    [(None, 60), ("5", 5), ("0.5", 0.5), ("0", 0), ("-1", 0), ("", 60), ("often", 60), ("nan", 60), ("inf", 60)],
)
def test_environment_says_how_often_a_log_hears_of_a_step(stated: str | None, each_s: float) -> None:
    assert plain_seconds({} if stated is None else {"ODF_NODE_PROGRESS_S": stated}) == each_s


def test_log_hears_of_no_step_where_it_is_to_hear_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_NODE_PROGRESS_S", "0")
    before = set(threading.enumerate())
    with Console(out=io.StringIO(), err=io.StringIO()).progress("pulling"):
        assert set(threading.enumerate()) <= before


def test_quiet_command_says_nothing_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_NODE_PROGRESS_S", "0.001")
    err = io.StringIO()
    with Console(quiet=True, out=io.StringIO(), err=err).progress("pulling") as shown:
        for _ in range(1000):
            shown.advance(1)
    assert err.getvalue() == ""
