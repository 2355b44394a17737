"""The node itself: who it is to others, what was done with it, what it rejected."""

from odf_node.cli.context import CommandContext
from odf_node.cli.rejection_text import describe_rejection
from odf_protocol.did import DidKey


def show_node(context: CommandContext, *, as_json: bool) -> None:
    """Show who this node is to others."""
    # Made when it is first asked for, so that others can be told before anything was signed.
    identity = str(DidKey(context.node.keys.get_or_create_node_key().public_key()))
    console = context.console
    console.json({"node": identity}) if as_json else console.text(identity)


def show_audit(context: CommandContext, limit: int, *, as_json: bool) -> None:
    """Show what was done with this node, newest first."""
    entries = [
        {
            "at": str(entry.at),
            "actor": entry.actor,
            "command": entry.command,
            "subject": entry.subject,
            "outcome": entry.outcome.value,
            "detail": entry.detail,
        }
        for entry in context.node.store.iter_audit(limit=limit)
    ]
    columns = {
        "at": "AT",
        "actor": "BY",
        "command": "COMMAND",
        "subject": "ON",
        "outcome": "OUTCOME",
        "detail": "DETAIL",
    }
    context.console.result(entries, columns, as_json=as_json, empty="nothing was changed in this node so far")


def show_rejections(context: CommandContext, rejection_id: str | None, *, as_json: bool) -> None:
    """Show one rejection with its evidence, or list them all.

    Raises:
        UnknownDatasetError: No rejection, or more than one, has an id that begins so.
    """
    console, refusals = context.console, context.node.refusals
    if rejection_id:
        report = refusals.get_report(rejection_id)
        if as_json:
            console.json(report)
            return
        for line in describe_rejection(report):
            console.line(line)
        return
    reports = list(refusals.iter_reports())
    columns = {
        "id": "ID",
        "refusedAt": "REJECTED AT",
        "dataset": "DATASET",
        "source": "OFFERED BY",
        "block": ">BLOCK",
        "rule": "RULE",
    }
    console.result(reports, columns, as_json=as_json, empty="nothing was rejected so far")
    if reports and not as_json:
        console.note("'odf-node inspect refusals ID' shows one with its evidence")
