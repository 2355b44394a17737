"""The report of a verification as one HTML page that needs nothing else."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3em .6em;border-bottom:1px solid #ccc}"
    "td.n{text-align:right}.bad{color:#a00;font-weight:bold}.good{color:#060}"
)


def render_audit(findings: Sequence[Mapping[str, Any]], at: str) -> str:
    """Write a page from the plain values of findings; every text in it is escaped."""
    bad = sum(not finding["valid"] for finding in findings)
    summary = f"{bad} of {len(findings)} datasets are not what they say" if bad else f"all {len(findings)} are valid"
    rows = "".join(_row(finding) for finding in findings)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Verification</title>'
        f"<style>{_STYLE}</style></head><body><h1>Verification, {escape(at)}</h1>"
        f'<p class="{"bad" if bad else "good"}">{escape(summary)}</p>'
        "<table><tr><th>dataset</th><th>result</th><th>blocks</th><th>rows read</th><th>slices read</th>"
        f"<th>steps re-executed</th><th>what was found</th></tr>{rows}</table></body></html>\n"
    )


def _row(finding: Mapping[str, Any]) -> str:
    result = '<td class="good">valid</td>' if finding["valid"] else '<td class="bad">NOT VALID</td>'
    stated = finding["problem"] or finding["notChecked"] or ("signed" if finding["signed"] else "unsigned")
    steps = "-" if finding["replayedSteps"] is None else f"{finding['replayedSteps']}"
    steps += f"<br><small>partial: {escape(finding['partial'])}</small>" if finding["partial"] else ""
    return (
        f"<tr><td>{escape(finding['dataset'])}<br><small>{escape(finding['id'] or '')}</small></td>{result}"
        f'<td class="n">{finding["blocks"]:,}</td><td class="n">{finding["rows"]:,}</td>'
        f'<td class="n">{finding["slices"]} of {finding["slicesInRange"]}</td><td class="n">{steps}</td>'
        f"<td>{escape(stated)}{_cells(finding)}</td></tr>"
    )


def _cells(finding: Mapping[str, Any]) -> str:
    cells = (finding["divergence"] or {}).get("cells") or ()
    if not cells:
        return ""
    lines = "".join(
        f"<li>row {cell['offset']}, {escape(cell['column'])}: published {escape(str(cell['published']))}, "
        f"re-executed {escape(str(cell['recomputed']))}</li>"
        for cell in cells[:20]
    )
    return f"<ul>{lines}</ul>"
