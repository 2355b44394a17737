"""Dates and times that a source writes in its own way (ING-16)."""

import datetime as dt

import pytest

from odf_engines.errors import InvalidSourceError
from odf_engines.records.time_patterns import parse_pattern
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import DataTypeDate, DataTypeTimestamp, ReadStepCsv, ReadStepNdJson
from support.ingests import RootDataset, quarantined, rows_of, schema

UTC = dt.UTC


def days_of(pattern: str, *texts: str) -> tuple[list[dt.date], list[str]]:
    """Read texts as days; give those that are one, and what is wrong with the others."""
    lines = "".join(f'"{text}"\n' for text in texts)
    dataset = RootDataset(ReadStepCsv(header=True, schema=schema(day=DataTypeDate()), date_format=pattern))
    response = dataset.ingest(f"day\n{lines}")
    errors = [f"{error['value']}: {error['message']}" for row in quarantined(response) for error in row["errors"]]
    return [row["day"] for row in rows_of(response.data_path)], errors


@pytest.mark.spark
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("%Y-%d-%m", "2020-09-02"),
        ("%d/%m/%Y", "9/2/2020"),
        ("%m/%d/%y", "2/9/20"),
        ("%d.%m.%Y", "09.02.2020"),
        ("%Y%m%d", "20200209"),
        ("day '%d' of %m, %Y %%", "day '9' of 2, 2020 %"),
    ],
)
def test_day_is_read_as_its_pattern_says(pattern: str, text: str) -> None:
    assert days_of(pattern, text) == ([dt.date(2020, 2, 9)], [])


@pytest.mark.spark
def test_text_that_is_no_day_of_the_pattern_goes_to_quarantine_with_the_pattern() -> None:
    found, errors = days_of("%d/%m/%Y", "31/12/2020", "31/02/2020", "2020-12-31", "1/1/20", " 1/1/2020", "1/13/2020")
    assert found == [dt.date(2020, 12, 31)]
    assert errors == [
        "31/02/2020: no such day",
        "2020-12-31: not a day written as %d/%m/%Y",
        "1/1/20: not a day written as %d/%m/%Y",
        " 1/1/2020: not a day written as %d/%m/%Y",
        "1/13/2020: no such day",
    ]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("%d/%m/%Y %H:%M", "9/2/2020 7:05", dt.datetime(2020, 2, 9, 7, 5, tzinfo=UTC)),
        ("%Y%m%dT%H%M%S%z", "20200209T070500+0200", dt.datetime(2020, 2, 9, 5, 5, tzinfo=UTC)),
        ("%Y-%m-%d %H:%M:%S.%f", "2020-02-09 07:05:01.25", dt.datetime(2020, 2, 9, 7, 5, 1, 250000, tzinfo=UTC)),
        ("%m/%d/%y", "2/9/99", dt.datetime(1999, 2, 9, tzinfo=UTC)),
    ],
)
def test_timestamp_is_read_as_its_pattern_says(pattern: str, text: str, expected: dt.datetime) -> None:
    columns = schema(at=DataTypeTimestamp(), day=DataTypeDate())
    dataset = RootDataset(ReadStepNdJson(schema=columns, timestamp_format=pattern))
    response = dataset.ingest(f'{{"at": "{text}", "day": "2020-02-09"}}\n')
    (row,) = rows_of(response.data_path)
    assert (row["at"], row["day"]) == (expected, dt.date(2020, 2, 9))


@pytest.mark.parametrize(
    ("pattern", "has_time", "expected"),
    [
        ("%Y-%j", False, "a pattern of %Y, %m"),
        ("%Y-%m", False, "one year"),
        ("%m-%d", True, "one year"),
        ("%Y-%m-%d %H", False, "timestampFormat"),
        ("%Y-%m-%d %M", True, "a hour before the minute"),
        ("%Y-%m-%d %d", False, "not %d twice"),
        ("yyyy-MM-dd", False, "one year"),
    ],
)
def test_pattern_that_is_none_is_rejected_with_what_would_be_one(pattern: str, has_time: bool, expected: str) -> None:
    with pytest.raises(UnsupportedError, match=expected):
        parse_pattern(pattern, has_time=has_time)


@pytest.mark.spark
def test_source_with_a_pattern_that_is_none_is_rejected_before_a_row_is_read() -> None:
    with pytest.raises(InvalidSourceError, match="dateFormat"):
        days_of("%Y-%j", "2020-001")
