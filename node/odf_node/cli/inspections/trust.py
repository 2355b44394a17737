"""What the data of a dataset rest on."""

from typing import Any

from odf_node.acceptance.attesting import describe_attestation
from odf_node.acceptance.unchecked import find_unchecked
from odf_node.cli.context import Context
from odf_node.datasets.grounds import describe_acceptance, describe_ground, find_partial
from odf_node.datasets.presence import Presence, say_how_to_get
from odf_node.keys.reports import KeyReports
from odf_node.ports import DatasetRecord, Origin
from odf_node.wording import count_of


def show_trust(context: Context, record: DatasetRecord, *, as_json: bool) -> None:
    """Show every acceptance with its grounds, who attests what, and what to worry about."""
    node = context.node
    unchecked = find_unchecked(node.commits, record)
    found = {
        "dataset": record.name,
        "id": str(record.id),
        "trust": describe_ground(node.chains, record),
        "partial": find_partial(node.chains, record) or None,
        "absentFiles": len(Presence(node.object_names, node.objects).find_absent(record)),
        "notChecked": list(unchecked.what) if unchecked else [],
        "pinnedKey": str(record.pinned_key) if record.pinned_key else None,
        "keyWarnings": KeyReports(node.chains, node.documents).list_doubts(record),
        "acceptances": _list_acceptances(context, record),
        "attestations": _list_attestations(context, record),
    }
    if as_json:
        context.console.json(found)
    else:
        _tell_trust(context, record, found)


def _list_acceptances(context: Context, record: DatasetRecord) -> list[dict[str, Any]]:
    return [
        {
            "block": item.head.sequence_number,
            "head": item.head.hash.short,
            "source": item.source_url,
            **describe_acceptance(item),
        }
        for item in context.node.commits.iter_acceptances(record.id)
    ]


def _list_attestations(context: Context, record: DatasetRecord) -> list[dict[str, Any]]:
    return [
        {
            "attester": str(item.attester),
            "blocks": [item.first_sequence_number, item.last_sequence_number],
            "says": describe_attestation(item.raw),
            "id": item.id.short,
        }
        for item in context.node.evidence.iter_attestations(record.id)
    ]


def _tell_trust(context: Context, record: DatasetRecord, found: dict[str, Any]) -> None:
    console = context.console
    console.text(f"{record.name} rests on: {found['trust']}")
    console.text(f"  identity    {record.id}")
    if record.origin is not Origin.OWN:
        console.text(f"  pinned key  {found['pinnedKey'] or 'none: nobody signed'}")
    for warning in found["keyWarnings"]:
        console.text(f"  WARNING     {warning}")
    if found["absentFiles"]:
        console.text(f"  not here    {count_of(found['absentFiles'], 'file')}; {say_how_to_get(record)}")
    if found["notChecked"]:
        left = ", ".join(found["notChecked"])
        console.text(f"  unchecked   {left} when it was taken; 'odf-node pull {record.name}' checks them")
    console.text("")
    rows = [{**item, "blocks": f"{item['blocks'][0]} to {item['blocks'][1]}"} for item in found["acceptances"]]
    columns = {
        "at": "ACCEPTED AT",
        "blocks": "BLOCKS",
        "replayedSteps": ">STEPS RE-EXECUTED",
        "policy": "POLICY",
        "reason": "ON WHAT GROUNDS",
    }
    console.table(rows, columns, empty="written in this node; nothing was accepted from others")
    for item in found["attestations"]:
        first, last = item["blocks"]
        console.text(f"\n{item['attester']} states:")
        console.line(f"  blocks {first} to {last} {item['says']} (statement {item['id']})")
