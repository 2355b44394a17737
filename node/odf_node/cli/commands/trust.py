"""``odf-node trust``: what data rest on, by which rule, and what other policies would change."""

import argparse
from pathlib import Path
from typing import Any, Final

from odf_node.adapters.policy_file import read_policies
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format
from odf_node.datasets.naming import get_dataset
from odf_node.errors import UnknownDatasetError, UsageError

TOPIC: Final = "check and trust"
HELP: Final = "show what data rest on, by which rule, and what other policies would change"
EXAMPLES: Final = """\
trust
trust totals
trust --with policies.yaml
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "subject",
        nargs="?",
        metavar="DATASET|URL|AUDITOR",
        help="a dataset, a peer's address, or an auditor (its name in the policies, or did:key); default: all datasets",
    )
    parser.add_argument(
        "--with", dest="other", metavar="FILE", help="show what these policies would change instead of those in force"
    )
    add_output_format(parser, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Show it; nothing is changed."""
    node, as_json = context.node, arguments.output_format == "json"
    report = node.trust
    if arguments.other is not None:
        if arguments.subject is not None:
            raise UsageError("--with compares all datasets; name none")
        try:
            other = read_policies(Path(arguments.other), must_exist=True)
        except FileNotFoundError as error:
            raise UsageError(f"--with {arguments.other}: there is no such file") from error
        changes = [change.to_json() for change in report.list_changes(other)]
        _show(context, changes, as_json, _show_changes)
    elif arguments.subject is None:
        standings = [report.stand(record).to_json() for record in node.store.list_datasets()]
        _show(context, standings, as_json, _show_standings)
    elif "://" in arguments.subject:
        _show(context, report.describe_peer(arguments.subject), as_json, _show_peer)
    elif auditor := report.find_auditor(arguments.subject):
        _show(context, report.describe_auditor(auditor), as_json, _show_auditor)
    else:
        try:
            record = get_dataset(node.store, arguments.subject)
        except UnknownDatasetError as error:
            raise UnknownDatasetError(f"{error}; nor do the policies name an auditor so") from error
        _show(context, report.describe_dataset(record), as_json, _show_dataset)
    return 0


def _show(context: CommandContext, value: Any, as_json: bool, as_text: Any) -> None:
    if as_json:
        context.console.json(value)
    else:
        as_text(context, value)


def _show_standings(context: CommandContext, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        row["today"] = row["wouldRestOn"] if row["accepted"] else "would be rejected"
    columns = {"dataset": "NAME", "restsOn": "RESTS ON", "today": "RULE SAYS TODAY", "rule": "RULE", "reason": "WHY"}
    context.console.table(rows, columns, empty="this node has no datasets yet")


def _show_changes(context: CommandContext, rows: list[dict[str, Any]]) -> None:
    shown = [
        {
            "dataset": row["dataset"],
            "now": row["now"]["wouldRestOn"] or "refused",
            "then": row["then"]["wouldRestOn"] or "refused",
            "why": f"{row['then']['rule']}: {row['then']['reason']}",
        }
        for row in rows
    ]
    context.console.table(
        shown, {"dataset": "NAME", "now": "NOW", "then": "THEN", "why": "WHY"}, empty="nothing would change"
    )


def _show_dataset(context: CommandContext, found: dict[str, Any]) -> None:
    console = context.console
    console.line(f"{found['dataset']} rests on: {found['restsOn']}")
    console.line(f"  identity    {found['id']}")
    console.line(f"  from        {found['origin'] or 'here'}")
    console.line(f"  rule        {found['rule']}")
    verdict = f"accepted as {found['wouldRestOn']}" if found["accepted"] else "would be rejected"
    console.line(f"  today       {verdict}: {found['reason']}")
    if found["query"]:
        console.line(f"  query       {found['query']}")
    for warning in found["keyWarnings"]:
        console.line(f"  WARNING     {warning}")
    rows = [{**row, "blocks": "{} to {}".format(*row["blocks"])} for row in found["acceptances"]]
    if rows:
        console.text("")
        console.table(rows, {"blocks": "BLOCKS", "trust": "ON", "rule": "BY", "at": "ACCEPTED", "reason": "GROUNDS"})
    _show_statements(context, found["statements"])


def _show_auditor(context: CommandContext, found: dict[str, Any]) -> None:
    console = context.console
    console.line(f"{found['auditor']}  {found['key']}")
    console.line(f"  counts in   {', '.join(found['rules']) or 'no rule'}")
    lost = [row["dataset"] for row in found["withoutIt"]]
    console.line(f"  without it  {'would be judged otherwise: ' + ', '.join(lost) if lost else 'nothing would change'}")
    _show_statements(context, found["statements"])


def _show_statements(context: CommandContext, statements: list[dict[str, Any]]) -> None:
    rows = [
        {**row, "blocks": "{} to {}".format(*row["blocks"]), "by": row["by"] or f"...{row['key'][-8:]}"}
        for row in statements
    ]
    if rows:
        context.console.text("")
        context.console.table(rows, {"dataset": "DATASET", "blocks": "BLOCKS", "by": "NODE", "says": "STATES"})


def _show_peer(context: CommandContext, found: dict[str, Any]) -> None:
    console = context.console
    console.line(found["peer"])
    for peer in found["known"]:
        console.line(f"  {peer['url']}: node {peer['nodeKey'] or 'unknown'}, first seen {peer['firstSeen']}")
    columns = {"dataset": "TAKEN", "trust": "ON", "at": "AT", "reason": "GROUNDS"}
    if found["taken"]:
        console.text("")
        console.table(found["taken"], columns)
    if found["refused"]:
        console.text("")
        console.table(found["refused"], {"dataset": "REJECTED", "refusedAt": "AT", "rule": "RULE", "id": "EVIDENCE"})
