"""What the data of a dataset rest on."""

from typing import Any

from odf_node.cli.context import CommandContext
from odf_node.datasets.chains import describe_acceptance
from odf_node.datasets.presence import describe_remedy
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.trust.grounds import TrustGrounds
from odf_node.wording import count_of


def show_trust(context: CommandContext, record: DatasetRecord, *, as_json: bool) -> None:
    """Show every acceptance with its grounds, who attests what, and what to worry about."""
    grounds = context.node.read_models.grounds.read(record)
    if as_json:
        context.console.json(_to_json(grounds))
    else:
        _report_trust(context, grounds)


def _to_json(grounds: TrustGrounds) -> dict[str, Any]:
    record = grounds.record
    return {
        "dataset": record.name,
        "id": str(record.id),
        "trust": grounds.ground,
        "query": grounds.reach,
        "partial": grounds.partial or None,
        "absentFiles": grounds.absent_files,
        "notChecked": list(grounds.not_checked),
        "pinnedKey": str(record.pinned_key) if record.pinned_key else None,
        "keyWarnings": list(grounds.key_warnings),
        "acceptances": [
            {
                "block": item.head.sequence_number,
                "head": item.head.hash.short,
                "source": item.source_url,
                **describe_acceptance(item),
            }
            for item in grounds.acceptances
        ],
        "attestations": [
            {
                "attester": str(item.attester),
                "blocks": [item.first_sequence_number, item.last_sequence_number],
                "says": says,
                "id": item.id.short,
            }
            for item, says in grounds.statements
        ],
    }


def _report_trust(context: CommandContext, grounds: TrustGrounds) -> None:
    console, record = context.console, grounds.record
    console.line(f"{record.name} rests on: {grounds.ground}")
    console.line(f"  identity    {record.id}")
    if record.origin is not Origin.OWN:
        console.line(f"  pinned key  {record.pinned_key or 'none: no signature'}")
    if grounds.reach is not None:
        console.line(f"  query       {grounds.reach}")
    for warning in grounds.key_warnings:
        console.line(f"  WARNING     {warning}")
    if grounds.absent_files:
        console.line(f"  not here    {count_of(grounds.absent_files, 'file')}; {describe_remedy(record)}")
    if grounds.not_checked:
        left = ", ".join(grounds.not_checked)
        console.line(f"  unchecked   {left} when it was taken; 'odf-node pull {record.name}' checks them")
    console.text("")
    rows = [
        {**describe_acceptance(item), "blocks": _span(item.grounds.first, item.grounds.last)}
        for item in grounds.acceptances
    ]
    columns = {
        "at": "ACCEPTED AT",
        "blocks": "BLOCKS",
        "replayedSteps": ">STEPS RE-EXECUTED",
        "policy": "POLICY",
        "reason": "ON WHAT GROUNDS",
    }
    console.table(rows, columns, empty="written in this node; nothing was accepted from others")
    for item, says in grounds.statements:
        first, last = item.first_sequence_number, item.last_sequence_number
        console.text("")
        console.line(f"{item.attester} states:")
        noun = "block" if first == last else "blocks"
        console.line(f"  {noun} {_span(first, last)} {says} (statement {item.id.short})")


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def show_histories(context: CommandContext, record: DatasetRecord, *, as_json: bool) -> None:
    """Show each, with its blocks, and what it was replaced by."""
    commits, console = context.node.store, context.console
    found: list[dict[str, Any]] = [
        {
            "replacedAt": str(history.replaced_at),
            "by": history.source_url,
            "after": history.after,
            "head": str(history.head.hash),
            "replacedBy": str(history.replaced_by.hash),
            "blocks": [str(block.hash) for block in commits.iter_replaced_blocks(history)],
        }
        for history in commits.list_replaced_histories(record.id)
    ]
    if as_json:
        console.json(found)
        return
    if not found:
        console.line(f"{record.name}: no history was replaced")
    for entry in found:
        console.line(f"{entry['replacedAt']}  replaced behind block {entry['after']} by what {entry['by']} offered")
        console.line(f"  now      {entry['replacedBy']}")
        for block in reversed(entry["blocks"]):
            console.line(f"  replaced {block}")
