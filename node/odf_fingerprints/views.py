"""Fingerprints as plain values, for people and programs.

Source: clause FP-15 in ``spec/plug-ins/fingerprints.md``.
"""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from odf_fingerprints.documents import PROBABILITIES, ColumnFingerprint, RowsFingerprint
from odf_fingerprints.drift import (
    entropy_change,
    jensen_shannon,
    kolmogorov_smirnov,
    kolmogorov_smirnov_error,
    population_stability_index,
)
from odf_fingerprints.histograms import EMPTY
from odf_fingerprints.reading import VersionFingerprint
from odf_fingerprints.sparklines import categories, draw, spread_bins

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OPERATIONS: Final = ("append", "retract", "correctFrom", "correctTo")
_DAY_MS: Final = 86_400_000
_MAX_SHOWN_MS: Final = 1e18  # guess: beyond all years; up to 309 digits would be shown


def version_values(version: VersionFingerprint) -> dict[str, Any]:
    """Give a version as JSON."""
    fingerprint = version.fingerprint
    return {
        "version": version.sequence,
        "block": fingerprint.block,
        "systemTime": fingerprint.system_time,
        "origin": version.origin.value,
        "signer": str(version.signer),
        "operations": dict(zip(_OPERATIONS, fingerprint.operations, strict=True)),
        "added": rows_values(version.added),
        "removed": rows_values(version.removed),
        "current": rows_values(version.current),
    }


def rows_values(rows: RowsFingerprint) -> dict[str, Any]:
    """Give rows as JSON."""
    days = rows.day_counts
    return {
        "rows": rows.rows,
        "days": {_date(day << days.shift): count for day, count in days.counts},
        "daysAtOnce": 1 << days.shift,
        "delayMs": None if not rows.delay else {str(p): rows.delays.quantile(p) for p in (0.5, 0.99)},
        "columns": [column_values(each) for each in rows.columns],
    }


def column_values(column: ColumnFingerprint) -> dict[str, Any]:
    """Give a column as JSON."""
    histogram = column.histogram
    return {
        "name": column.name,
        "type": column.type,
        "values": column.values,
        "nulls": column.nulls,
        "notFinite": column.not_finite,
        "distinct": column.distinct_values(),
        "isDistinctExact": column.distinct is not None,
        "min": column.minimum,
        "max": column.maximum,
        "quantiles": {str(p): column.quantile(p) for p in PROBABILITIES} if column.is_ordered else None,
        "entropyBits": round(column.entropy_bits, 4),
        "histogram": [
            [*histogram.edges(key), count] if column.is_ordered else [key, count] for key, count in histogram.counts
        ],
        "shapes": [list(each) for each in column.shapes],
        "top": [list(each) for each in column.top],
    }


def drift_values(one: ColumnFingerprint, other: ColumnFingerprint) -> dict[str, float | None]:
    """Give all measures of two columns; None where one means nothing."""
    first, second = one.histogram, other.histogram
    is_ordered = one.is_ordered and other.is_ordered
    found = {
        "populationStabilityIndex": population_stability_index(first, second),
        "jensenShannon": jensen_shannon(first, second),
        "kolmogorovSmirnov": kolmogorov_smirnov(first, second) if is_ordered else math.nan,
        "kolmogorovSmirnovError": kolmogorov_smirnov_error(first, second) if is_ordered else math.nan,
        "entropyChangeBits": entropy_change(one, other),
        "nullShareChange": other.null_share - one.null_share,
    }
    return {name: None if math.isnan(value) else round(value, 4) for name, value in found.items()}


def draw_together(columns: Sequence[ColumnFingerprint | None]) -> list[str]:
    """Draw the histograms of one column of several versions over the same bins."""
    ordered = [each.histogram if each is not None and each.is_ordered else EMPTY for each in columns]
    drawn = map(draw, spread_bins(ordered))
    return [
        "" if each is None or each.kind == "other" else line if each.is_ordered else draw(categories(each))
        for each, line in zip(columns, drawn, strict=True)
    ]


def show_number(column: ColumnFingerprint, value: float | None) -> str:
    """Write a number or time of a column for people."""
    if value is None:
        return ""
    if column.kind == "time" and abs(value) >= _MAX_SHOWN_MS:
        return f"{value:.6g} ms"
    if column.kind == "time":
        return _date(int(value // _DAY_MS)) if value % _DAY_MS == 0 else _moment(value)
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def _moment(milliseconds: float) -> str:
    try:
        return f"{_EPOCH + timedelta(milliseconds=milliseconds):%Y-%m-%dT%H:%M:%SZ}"
    except OverflowError:
        return f"{milliseconds:.0f} ms"


def _date(day: int) -> str:
    try:
        return f"{_EPOCH + timedelta(days=day):%Y-%m-%d}"
    except OverflowError:
        return f"day {day}"
