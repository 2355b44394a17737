"""When a schedule comes round: intervals, cron expressions, days when clocks change (SCHED-2 to SCHED-4)."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_node.configuration.schedule_times import Every, find_next_ms, parse_cron, parse_every, parse_zone, spread_ms

BERLIN = "Europe/Berlin"
LAST_MS = 253_402_300_800_000

minutes = st.integers(0, 59).map(str) | st.sampled_from(["*", "*/7", "0,30", "5-50/3"])
hours = st.integers(0, 23).map(str) | st.sampled_from(["*", "*/2", "1,2,3"])
days = st.sampled_from(["*", "1", "L", "LW", "29", "*/10"])
weekdays = st.sampled_from(["*", "mon-fri", "7", "0", "sun#2", "5L"])
crons = st.tuples(minutes, hours, days, st.just("*"), weekdays).map(" ".join)
zones = st.sampled_from(["UTC", BERLIN, "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kolkata"])


def ms(text: str, zone: str = "UTC", *, fold: int = 0) -> int:
    at = datetime.fromisoformat(text).replace(tzinfo=parse_zone(zone), fold=fold)
    return round(at.timestamp() * 1000)


def next_of(expression: str, after: str, zone: str = BERLIN, *, fold: int = 0) -> str:
    found = find_next_ms(parse_cron(expression, zone), ms(after, zone, fold=fold))
    assert found is not None
    return datetime.fromtimestamp(found / 1000, parse_zone(zone)).isoformat(timespec="minutes")


@given(crons, zones, st.integers(-62_000_000_000_000, LAST_MS))
def test_next_time_is_always_later(expression: str, zone: str, after_ms: int) -> None:
    found = find_next_ms(parse_cron(expression, zone), after_ms)
    assert found is None or after_ms < found < LAST_MS


@given(st.integers(1, 366 * 86_400), st.integers(-62_000_000_000_000, LAST_MS))
def test_interval_is_counted_from_where_it_began(seconds: int, after_ms: int) -> None:
    found = find_next_ms(Every(seconds), after_ms)
    assert found is None or found == after_ms + seconds * 1000
    assert found is not None or after_ms + seconds * 1000 > LAST_MS - 90_000_000


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("30 4 * * mon-fri", "2024-03-29T05:00", "2024-04-01T04:30+02:00"),
        ("30 2 * * *", "2024-03-30T02:30", "2024-03-31T03:00+02:00"),  # skipped by clocks: right after the gap
        ("30 2 * * *", "2024-10-26T02:30", "2024-10-27T02:30+02:00"),  # shown twice: the first time
        ("*/30 * * * *", "2024-10-27T02:30", "2024-10-27T02:00+01:00"),  # time that passes
        ("0 0 29 2 *", "2024-03-01T00:00", "2028-02-29T00:00+01:00"),
        ("0 12 L * *", "2024-02-01T00:00", "2024-02-29T12:00+01:00"),
    ],
)
def test_cron_goes_by_the_clocks_of_its_zone(expression: str, after: str, expected: str) -> None:
    """SCHED-3."""
    assert next_of(expression, after) == expected


def test_hour_that_comes_twice_gives_a_time_of_day_once() -> None:
    assert next_of("30 2 * * *", "2024-10-27T02:30") == "2024-10-28T02:30+01:00"
    assert next_of("30 2 * * *", "2024-10-27T02:10", fold=1) == "2024-10-28T02:30+01:00"


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1), ("90s", 90), ("15m", 900), ("6h", 21_600), ("366d", 31_622_400)]
)
def test_interval_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    """SCHED-2."""
    assert parse_every(text) == Every(seconds)


@pytest.mark.parametrize(
    "text", ["", "0s", "15", "m", "1.5h", "-1m", "367d", "99999999d", "9" * 500, "1 h", "1w", "\u0661m"]
)
def test_interval_of_another_form_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number with s, m, h or d"):
        parse_every(text)


@pytest.mark.parametrize(
    ("expression", "reported"),
    [
        ("* * * * * *", "expected minute, hour"),
        ("0 0 1 1 * 9999", "expected minute, hour"),
        ("@daily", "expected minute, hour"),
        ("* * * * " + "1," * 200 + "1", "expected minute, hour"),
        ("60 * * * *", "Bad minute"),
        ("*/0 * * * *", "Bad minute"),
        ("* * 30 2 *", "Bad day-of-month"),
        ("0 0 31 4,6 *", "Bad day-of-month"),
        ("x * * * *", "Bad minute"),
    ],
)
def test_cron_expression_that_cannot_be_used_is_an_error(expression: str, reported: str) -> None:
    with pytest.raises(ValueError, match=reported):
        parse_cron(expression, "UTC")


@given(st.text(alphabet="0123456789*/,-#LWmonfri ", max_size=40))
def test_no_expression_ends_in_anything_but_a_time_or_an_error(expression: str) -> None:
    try:
        cron = parse_cron(expression, BERLIN)
    except ValueError:
        return
    assert find_next_ms(cron, ms("2024-01-01T00:00")) is not None


@pytest.mark.parametrize("zone", ["", "Mars/Base", "../../etc/passwd", "/etc/localtime", "Europe", "x" * 300, "a\0b"])
def test_zone_that_nobody_knows_is_an_error(zone: str) -> None:
    with pytest.raises(ValueError, match="expected a zone"):
        parse_cron("0 0 * * *", zone)


def test_utc_needs_no_database_of_zones() -> None:
    assert parse_zone("UTC") is UTC
    assert parse_zone(BERLIN) == ZoneInfo(BERLIN)


@given(st.binary(min_size=2, max_size=8), st.integers(0, 10**12), st.integers(0, 10**9))
def test_spread_is_a_tenth_of_the_time_between_at_most(key: bytes, after_ms: int, gap_ms: int) -> None:
    spread = spread_ms(key, after_ms, after_ms + gap_ms, 60_000)
    assert 0 <= spread <= min(60_000, gap_ms / 10)
    assert spread == spread_ms(key, after_ms, after_ms + gap_ms, 60_000)


def test_spread_differs_between_datasets() -> None:
    assert len({spread_ms(bytes([number, 0]), 0, 900_000, 60_000) for number in range(256)}) == 256
