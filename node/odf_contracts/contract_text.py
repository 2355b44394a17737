"""A suggestion as a contract file, with what was seen and how sure each bound is, as comments (CONTRACT-13)."""

import json
from collections.abc import Iterator, Sequence

from odf_contracts.bounds import number_text
from odf_contracts.quality import ENGINE
from odf_contracts.rules import MeasureKind
from odf_contracts.suggesting import LearnedBound, Suggestion
from odf_contracts.wording import name_measure, time_text
from odf_node.wording import count_of
from odf_protocol.names import DatasetName


def write_contract(suggestion: Suggestion, name: str, learned_from: Sequence[int]) -> str:
    """Write a contract file.

    Args:
        suggestion: What was learned.
        name: Of the dataset.
        learned_from: The numbers of the first and the last version that it was learned from.
    """
    first, *_, last = [*learned_from[:1], *learned_from]
    lines = [
        f"# Learned from versions {first} to {last} of {DatasetName.parse(name)}. Comments have what was seen, and how",
        "# probable it is that a further version of this kind stays within that: n / (n + 1). Bounds have more room.",
    ]
    lines += [
        f"# Suspicious, nothing was learned from it: version {each.number}: {why}."
        for each, why in suggestion.suspicious
    ]
    lines += [
        "apiVersion: v3.1.0",
        "kind: DataContract",
        f"id: {_text(f'suggested-{name}')}",
        "version: 1.0.0",
        "status: draft",
        "schema:",
        f"  - name: {_text(name)}",
        "    properties:",
    ]
    of_column: dict[str, list[LearnedBound]] = {}
    for each in suggestion.bounds:
        columns = each.rule.measure.columns
        if columns and each.rule.measure.kind is not MeasureKind.DUPLICATES:
            of_column.setdefault(columns[0], []).append(each)
    has_key = any(each.rule.measure.kind is MeasureKind.DUPLICATES for each in suggestion.bounds)
    for column, logical in suggestion.columns:
        lines.append(f"      - name: {_text(column)}")
        if logical is not None:
            lines.append(f"        logicalType: {logical}")
        if has_key and column in suggestion.key:
            lines.append(f"        primaryKey: true\n        primaryKeyPosition: {suggestion.key.index(column) + 1}")
        for each in of_column.get(column, ()):
            lines += _iter_column_lines(each)
    rest = [each for each in suggestion.bounds if each.rule.measure.kind in _OF_TABLE]
    lines += ["    quality:"] if rest else []
    lines += [line for each in rest for line in _iter_own(each, "      ", {})]
    levels = [each for each in suggestion.bounds if each.rule.measure.kind is MeasureKind.LATENCY]
    lines += ["slaProperties:"] if levels else []
    for each in levels:
        days = each.rule.bound.tests[0].numbers[0] / 86_400
        lines.append(f"  - {{property: latency, value: {days:.4g}, unit: d}}  # {describe_seen(each)}; warns")
    return "\n".join(lines) + "\n"


_OF_TABLE = (MeasureKind.AHEAD, MeasureKind.DAYS_MISSING, MeasureKind.OF_PREVIOUS, MeasureKind.REWRITTEN)


def describe_seen(each: LearnedBound) -> str:
    """Say what was seen of a rule, and how sure its bound is."""
    show = time_text if each.rule.measure.kind is MeasureKind.LATENCY else number_text
    seen = show(each.lowest) if each.lowest == each.highest else f"{show(each.lowest)} to {show(each.highest)}"
    said = f"{name_measure(each.rule)}: {seen} in {count_of(each.versions, 'version')}, {100 * each.confidence:.0f} %"
    # A name of a column is the publisher's to choose, and a line break would end the comment.
    return said if said.isprintable() else ascii(said)


def _iter_column_lines(each: LearnedBound) -> Iterator[str]:
    match each.rule.measure.kind:
        case MeasureKind.NULLS:
            yield f"        required: true  # {describe_seen(each)}"
        case MeasureKind.INVALID:
            yield f"        logicalTypeOptions: {{minimum: 0}}  # below 0: {describe_seen(each)}"
        case MeasureKind.FALLS:
            yield "        quality:"
            by = each.rule.measure.columns[1:]
            yield from _iter_own(each, "          ", {"by": [*by]} if by else {})


def _iter_own(each: LearnedBound, indent: str, more: dict[str, object]) -> Iterator[str]:
    fields: dict[str, object] = {"metric": each.rule.measure.kind.value, **more}
    fields |= {test.operator: test.numbers[0] for test in each.rule.bound.tests}
    written = ", ".join(
        f"{key}: {json.dumps(value, ensure_ascii=not str(value).isprintable())}" for key, value in fields.items()
    )
    yield f"{indent}# {describe_seen(each)}"
    yield f"{indent}- {{type: custom, engine: {ENGINE}, implementation: {{{written}}}}}"


def _text(text: str) -> str:
    """Write a text of the data as YAML: JSON's quotes are YAML's."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
