"""``odf-node inspect``: look closely at one thing."""

import argparse
import json
from pathlib import Path
from typing import Any, Final

from odf_node.cli.context import Context
from odf_node.cli.main import nested_options
from odf_node.cli.parsing import add_output_format, whole_number

SUBJECTS: Final = {
    "DATASET": "name or identity",
    "ID": "one refusal, by the beginning of its id (default: list them all)",
    "FILE": "a file; one after the other where there are several",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the things that can be looked at."""
    kinds = parser.add_subparsers(dest="kind", metavar="WHAT", required=True, title="what to look at")
    for name, line, argument in (
        ("schema", "the columns of a dataset", "DATASET"),
        ("query", "the declared query of a derivative", "DATASET"),
        ("lineage", "what a dataset is derived from", "DATASET"),
        ("trust", "what the data of a dataset rest on: every acceptance, with its grounds", "DATASET"),
        ("histories", "histories of a dataset that were replaced by others, and their blocks", "DATASET"),
        ("quarantine", "rows that ingests could not read, with all their errors", "DATASET"),
        ("refusals", "what peers offered and this node refused", "ID"),
        ("node", "who this node is to others: what they name in their policies", ""),
        ("audit", "what was done with this node, newest first", ""),
        ("block", "a block file as annotated bytes and as YAML", "FILE"),
        ("data", "a Parquet file: schema, rows, hashes", "FILE"),
    ):
        child = kinds.add_parser(
            name, help=line, description=line[0].upper() + line[1:] + ".", parents=[nested_options()]
        )
        if name == "audit":
            child.add_argument(
                "-n", "--limit", type=whole_number(1), default=50, metavar="N", help="the newest N lines (default: 50)"
            )
        elif argument:
            nargs = "+" if argument == "FILE" else "?" if argument == "ID" else None
            child.add_argument("subject", nargs=nargs, metavar=argument, help=SUBJECTS[argument])
        add_output_format(child, "text", "json")
        child.add_argument(
            "--json", dest="output_format", action="store_const", const="json", help="the same as -o json"
        )


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Show it."""
    as_json = arguments.output_format == "json"
    match arguments.kind:
        case "node":
            _show_node(context, as_json=as_json)
        case "audit":
            _show_audit(context, arguments.limit, as_json=as_json)
        case "refusals":
            _show_refusals(context, arguments.subject, as_json=as_json)
        case "block":
            _show_blocks(context, arguments.subject, as_json=as_json)
        case "data":
            _show_data(context, arguments.subject, as_json=as_json)
        case kind:
            _show_dataset(context, kind, arguments.subject, as_json=as_json)
    return 0


def _show_dataset(context: Context, kind: str, name: str, *, as_json: bool) -> None:
    from odf_node.cli.rows import write_rows
    from odf_node.errors import UsageError
    from odf_node.services.chains import load_view
    from odf_node.services.naming import get_dataset

    node, console = context.node, context.console
    record = get_dataset(node.store, name)
    if kind == "quarantine":
        rows = node.reader.quarantine(record)
        write_rows(
            console, rows, "json" if as_json else "table", empty="every row could be read; nothing was set aside"
        )
        return
    if kind == "histories":
        _show_histories(context, record, as_json=as_json)
        return
    if kind == "trust":
        _show_trust(context, record, as_json=as_json)
        return
    view = load_view(node.store, record.id)
    if kind == "schema":
        from odf_protocol.schema_compat import describe_type

        if view.schema is None:
            raise UsageError(f"'{record.name}' has no schema yet: it has never had data")
        fields = [{"name": field.name, "type": describe_type(field.type)} for field in view.schema.fields]
        console.json(fields) if as_json else console.table(fields, {"name": "COLUMN", "type": "TYPE"})
        return
    if view.transform is None and kind == "lineage":
        if as_json:
            console.json({"dataset": record.name, "inputs": []})
        else:
            console.text(f"{record.name} ({record.id})\n  is a root: it is derived from no other dataset")
        return
    if view.transform is None:
        raise UsageError(f"'{record.name}' is no derivative: it declares no query")
    inputs = []
    for item in view.transform.inputs:
        source = node.store.find_dataset(_dataset_id(item.dataset_ref))
        inputs.append({"alias": item.alias, "id": item.dataset_ref, "name": source.name if source else None})
    transform = view.transform.transform
    steps = [{"alias": step.alias or "", "query": step.query} for step in transform.queries or ()]
    if as_json:
        console.json({"dataset": record.name, "engine": transform.engine, "inputs": inputs, "queries": steps})
        return
    console.text(f"{record.name} ({record.id})")
    for source_text in inputs:
        console.text(
            f"  reads {source_text['name'] or 'a dataset that is not in this node'} as {source_text['alias']} "
            f"({source_text['id']})"
        )
    if kind == "query":
        for step in steps:
            console.text(
                f"\n-- {transform.engine}{', ' + step['alias'] if step['alias'] else ''}\n{step['query'].strip()}"
            )


def _show_node(context: Context, *, as_json: bool) -> None:
    from odf_protocol.did import DidKey

    # Made when it is first asked for, so that others can be told before anything was signed.
    identity = str(DidKey(context.node.keys.get_or_create_node_key().public_key()))
    console = context.console
    console.json({"node": identity}) if as_json else console.text(identity)


def _show_histories(context: Context, record: Any, *, as_json: bool) -> None:
    store, console = context.node.store, context.console
    found: list[dict[str, Any]] = [
        {
            "replacedAt": str(history.replaced_at),
            "by": history.source_url,
            "after": history.after,
            "head": str(history.head.hash),
            "replacedBy": str(history.replaced_by.hash),
            "blocks": [str(block.hash) for block in store.iter_replaced_blocks(history)],
        }
        for history in store.list_replaced_histories(record.id)
    ]
    if as_json:
        console.json(found)
        return
    if not found:
        console.text(f"{record.name}: no history was replaced")
    for entry in found:
        console.text(f"{entry['replacedAt']}  replaced behind block {entry['after']} by what {entry['by']} offered")
        console.text(f"  now      {entry['replacedBy']}")
        console.text("\n".join(f"  replaced {block}" for block in reversed(entry["blocks"])))


def _show_trust(context: Context, record: Any, *, as_json: bool) -> None:
    from odf_node.ports import Origin
    from odf_node.services.attesting import describe_attestation
    from odf_node.services.key_reports import KeyReports
    from odf_node.services.presence import Presence, say_how_to_get
    from odf_node.services.unchecked import find_unchecked

    store, console = context.node.store, context.console
    acceptances = [
        {
            "at": str(item.accepted_at),
            "block": item.head.sequence_number,
            "head": item.head.hash.short,
            "trust": item.trust.value,
            "source": item.source_url,
            **json.loads(item.detail),
        }
        for item in store.iter_acceptances(record.id)
    ]
    attestations = [
        {
            "attester": str(item.attester),
            "blocks": [item.first_sequence_number, item.last_sequence_number],
            "says": describe_attestation(item.raw),
            "id": item.id.short,
        }
        for item in store.iter_attestations(record.id)
    ]
    key_warnings = KeyReports(store).list_doubts(record)
    absent = len(Presence(store, context.node.objects).find_absent(record))
    unchecked = find_unchecked(store, record)
    left = list(unchecked.what) if unchecked else []
    if as_json:
        console.json(
            {
                "dataset": record.name,
                "id": str(record.id),
                "trust": record.trust.value,
                "absentFiles": absent,
                "notChecked": left,
                "pinnedKey": str(record.pinned_key) if record.pinned_key else None,
                "keyWarnings": key_warnings,
                "acceptances": acceptances,
                "attestations": attestations,
            }
        )
        return
    console.text(f"{record.name} rests on: {record.trust.value}")
    console.text(f"  identity    {record.id}")
    if record.origin is not Origin.OWN:
        console.text(f"  pinned key  {record.pinned_key or 'none: nobody signed'}")
    for warning in key_warnings:
        console.text(f"  WARNING     {warning}")
    if absent:
        console.text(f"  not here    {absent:,} {'file' if absent == 1 else 'files'}; {say_how_to_get(record)}")
    if left:
        console.text(f"  unchecked   {', '.join(left)} when it was taken; 'odf-node pull {record.name}' checks them")
    for row in acceptances:
        row["blocks"] = f"{row['blocks'][0]} to {row['blocks'][1]}"
    console.text("")
    console.table(
        acceptances,
        {
            "at": "ACCEPTED AT",
            "blocks": "BLOCKS",
            "replayedSteps": ">STEPS RE-EXECUTED",
            "policy": "POLICY",
            "reason": "ON WHAT GROUNDS",
        },
        empty="written in this node; nothing was accepted from others",
    )
    for item in attestations:
        console.text(
            f"\n{item['attester']} states:\n"
            f"  blocks {item['blocks'][0]} to {item['blocks'][1]} {item['says']} (statement {item['id']})"
        )


def _show_audit(context: Context, limit: int, *, as_json: bool) -> None:
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
    if as_json:
        context.console.json(entries)
        return
    columns = {
        "at": "AT",
        "actor": "BY",
        "command": "COMMAND",
        "subject": "ON",
        "outcome": "OUTCOME",
        "detail": "DETAIL",
    }
    context.console.table(entries, columns, empty="nothing was changed in this node so far")


def _show_refusals(context: Context, refusal_id: str | None, *, as_json: bool) -> None:
    from odf_node.cli.refusal_text import describe_refusal

    console, refusals = context.console, context.node.refusals
    if refusal_id:
        report = refusals.get_report(refusal_id)
        console.json(report) if as_json else console.text("\n".join(describe_refusal(report)))
        return
    reports = list(refusals.iter_reports())
    if as_json:
        console.json(reports)
        return
    columns = {
        "id": "ID",
        "refusedAt": "REFUSED AT",
        "dataset": "DATASET",
        "source": "OFFERED BY",
        "block": ">BLOCK",
        "rule": "RULE",
    }
    console.table(reports, columns, empty="nothing was refused so far")
    if reports:
        console.note("'odf-node inspect refusals ID' shows one with its evidence")


def _show_blocks(context: Context, files: list[str], *, as_json: bool) -> None:
    from odf_node.cli.input_files import read_input
    from odf_protocol.annotate import annotate_block
    from odf_protocol.block import decode_block
    from odf_protocol.errors import OdfError
    from odf_protocol.manifest import block_to_json, iter_log_yaml
    from odf_protocol.multihash import Multihash

    console = context.console
    first_error: OdfError | None = None
    for name in files:
        raw = read_input(name)
        told = {"file": name, "sizeBytes": len(raw), "blockHash": str(Multihash.of_sha3_256(raw))}
        if not as_json:
            # First the bytes, which can be told of a broken block too.
            console.text(f"# {name}: {len(raw)} bytes, {told['blockHash']}")
            for note in annotate_block(raw):
                console.text(str(note))
        try:
            block = decode_block(raw, expected_hash=None)
        except OdfError as error:
            first_error = first_error or error
            console.json({**told, "error": str(error)}, indent=None) if as_json else console.text(f"# {error}\n")
            continue
        if as_json:
            console.json({**told, **json.loads(block_to_json(block))}, indent=None)
        else:
            console.raw("".join(iter_log_yaml([block])))
    if first_error is not None:
        raise first_error


def _show_data(context: Context, files: list[str], *, as_json: bool) -> None:
    from odf_node.cli.input_files import check_input
    from odf_node.services.data_files import describe_data_file

    console = context.console
    for name in files:
        check_input(name)
    reports = [describe_data_file(Path(name)) for name in files]
    if as_json:
        console.json(reports)
        return
    for report in reports:
        console.text(f"{report['file']}: {report['rows']:,} rows, {report['sizeBytes']:,} bytes")
        console.text(f"  physical hash  {report['physicalHash']}")
        console.text(f"  logical hash   {report['logicalHash']}")
        console.text(f"  v1             {report['logicalHashV1']}\n")
        console.table(report["columns"], {"name": "COLUMN", "type": "TYPE"})


def _dataset_id(text: str) -> Any:
    from odf_protocol.did import DatasetId

    return DatasetId.parse(text)
