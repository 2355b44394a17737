"""A rejection, told to a person: who offered what, which rule it broke, which cells differ."""

from collections.abc import Mapping
from typing import Any, Final

from odf_node.cli.console import format_table
from odf_node.wording import rule_in_words

SHOWN_CELLS: Final = 10  # guess: the report has up to a hundred


def describe_rejection(report: Mapping[str, Any]) -> list[str]:
    """Say what was rejected, why, what differs, and where the evidence is."""
    block = f", block {report['block']}" if report.get("block") is not None else ""
    lines = [
        f"REJECTED: {report['dataset']}{block}, as offered by {report['source']}",
        f"  broken    {rule_in_words(report['rule'])}",
    ]
    if report.get("divergence"):
        lines.append(f"  differs   {report['reason']}")
        lines += describe_cells(report)
    else:
        if report.get("expected") is not None:
            lines.append(f"  expected  {report['expected']}")
        if report.get("found") is not None:
            lines.append(f"  found     {report['found']}")
        if report.get("expected") is None and report.get("found") is None:
            lines.append(f"  reason    {report['reason']}")
    if report.get("equivocation"):
        lines.append(f"  proved    {report['equivocation']}")
        show = f"odf-node evidence show {report['dataset']}"
        lines.append(f"No data changed. The dataset is frozen here from now on: {show}")
    else:
        lines.append("Nothing in this node changed.")
    if report.get("id"):
        lines.append(f"The evidence is kept: odf-node inspect refusals {report['id']}")
    return lines


def describe_cells(report: Mapping[str, Any]) -> list[str]:
    """Lay out the cells that differ; nothing where the report has none."""
    divergence = report.get("divergence") or {}
    cells = divergence.get("cells")
    if not cells:
        return []
    columns = {
        "offset": ">OFFSET",
        "key": "ROW",
        "column": "COLUMN",
        "published": ">PUBLISHED",
        "recomputed": ">RE-EXECUTED HERE",
    }
    lines = ["", *format_table([_shown(cell) for cell in cells[:SHOWN_CELLS]], columns)]
    if len(cells) > SHOWN_CELLS:
        lines.append(f"... and more; {divergence['differing_rows']:,} rows differ")
    return [f"  {line}".rstrip() for line in [*lines, ""]]


def _shown(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Write a null as ``null``, so that it cannot be taken for an empty text."""
    return {
        key: "null" if value is None and key in {"published", "recomputed"} else value for key, value in cell.items()
    }
