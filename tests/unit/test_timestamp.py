import itertools

import pytest

from odf_protocol.errors import MalformedError
from odf_protocol.timestamp import Timestamp


def test_milliseconds_are_rounded_towards_the_past() -> None:
    """TIME-1."""
    assert Timestamp.parse("1969-12-31T23:59:59.9999Z").unix_ms == -1
    assert Timestamp.parse("1970-01-01T00:00:00.0019Z").unix_ms == 1
    assert Timestamp.from_unix_ms(-1) == Timestamp(-1, 999_000_000)


def test_day_alone_is_its_first_moment_where_people_write_times() -> None:
    assert Timestamp.parse_or_day("2020-10-01") == Timestamp.parse("2020-10-01T00:00:00Z")
    assert Timestamp.parse_or_day("2020-10-01T01:00:00+01:00") == Timestamp.parse("2020-10-01T00:00:00Z")
    for text in ("2020-10-1", "2020-13-01", "01.10.2020", "yesterday!", "\uff12\uff10\uff12\uff10-10-01", ""):
        with pytest.raises(MalformedError):
            Timestamp.parse_or_day(text)


@pytest.mark.parametrize("unix_ms", [0, -1, 1, 1_577_880_000_123, -62_135_596_800_000, 253_402_300_799_999])
def test_milliseconds_are_read_back(unix_ms: int) -> None:
    assert Timestamp.from_unix_ms(unix_ms).unix_ms == unix_ms


def test_truncation_drops_what_the_column_cannot_hold() -> None:
    assert str(Timestamp.parse("2020-01-01T00:00:00.123456789Z").truncated_to_ms()) == "2020-01-01T00:00:00.123Z"


def test_times_are_in_the_order_of_time() -> None:
    texts = ["1969-12-31T23:59:59.5Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000001Z", "1970-01-01T00:00:01Z"]
    times = [Timestamp.parse(text) for text in texts]
    assert all(earlier < later for earlier, later in itertools.pairwise(times))


@pytest.mark.parametrize(("seconds", "nanoseconds"), [(0, -1), (0, 10**9), (-(10**12), 0), (10**12, 0)])
def test_time_out_of_range_cannot_be_made(seconds: int, nanoseconds: int) -> None:
    with pytest.raises(MalformedError, match="years 1 to 9999"):
        Timestamp(seconds, nanoseconds)


@pytest.mark.parametrize(
    "parts",
    [(0, 1, 0, 0), (10_000, 1, 0, 0), (2023, 366, 0, 0), (2024, 367, 0, 0), (2024, 0, 0, 0), (2024, 1, 86_400, 0)],
)
def test_day_that_does_not_exist_is_rejected(parts: tuple[int, int, int, int]) -> None:
    """TIME-2: a leap second would be second 86,400, or a nanosecond beyond the second."""
    with pytest.raises(MalformedError):
        Timestamp.from_day_of_year(*parts)
