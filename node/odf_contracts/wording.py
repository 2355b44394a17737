"""What a rule found, in words that a person understands without the contract at hand."""

from typing import Final

from odf_contracts.bounds import number_text
from odf_contracts.rules import ContractRule, MeasureKind

_UNITS: Final = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"))


def describe_value(rule: ContractRule, value: float | None, problem: str) -> str:
    """Say what was measured and what is allowed.

    Args:
        rule: Of the contract.
        value: What was measured; None: it could not be.
        problem: Why not.
    """
    what = f"{name_measure(rule)}: "
    if value is None:
        return f"{what}{problem}" if rule.measure.kind is MeasureKind.COLUMN else f"{what}cannot be checked: {problem}"
    of_time = rule.measure.kind in {MeasureKind.LATENCY, MeasureKind.GAP}
    unit = " %" if rule.is_percent else ""
    if of_time:
        seconds = " and ".join(time_text(number) for test in rule.bound.tests for number in test.numbers)
        return f"{what}{time_text(value)}, allowed is at most {seconds}"
    return f"{what}{number_text(value)}{unit}, allowed is {rule.bound.describe()}{unit}"


def name_measure(rule: ContractRule) -> str:
    """Say what a rule measures."""
    measure = rule.measure
    column = measure.columns[0] if measure.columns else ""
    match measure.kind:
        case MeasureKind.ROW_COUNT:
            return "rows"
        case MeasureKind.NULLS:
            return f"{column} without a value"
        case MeasureKind.MISSING:
            return f"{column} missing"
        case MeasureKind.INVALID:
            return f"{column} not valid"
        case MeasureKind.DUPLICATES:
            return f"rows beyond the first with equal {', '.join(measure.columns)}"
        case MeasureKind.AHEAD:
            more = f" by more than {time_text(measure.number)}" if measure.number else ""
            return f"event times in the future of their publication{more}"
        case MeasureKind.DAYS_MISSING:
            return "days of the calendar missing between the first and the last"
        case MeasureKind.FALLS:
            by = f" within {', '.join(measure.columns[1:])}" if measure.columns[1:] else ""
            return f"cumulative {column} falls against the row before{by}"
        case MeasureKind.OF_PREVIOUS:
            return "rows against the version before"
        case MeasureKind.REWRITTEN:
            return "earlier rows that are gone or rewritten"
        case MeasureKind.LATENCY:
            return f"newest {column or 'event time'} before its publication"
        case MeasureKind.GAP:
            return "time since the version before"
        case MeasureKind.DRIFT:
            return f"drift of {column} ({measure.values[0]})"
        case MeasureKind.COLUMN:
            return "columns"
        case MeasureKind.QUERY:
            return rule.description or f"the query in line {rule.line}"


def time_text(seconds: float) -> str:
    """Write a time span for people."""
    for unit, name in _UNITS:
        if abs(seconds) >= unit:
            return f"{number_text(round(seconds / unit, 2))} {name}"
    return f"{number_text(round(seconds, 3))} seconds"
