"""``odf-node inspect``: look closely at one thing."""

import argparse
import json
from pathlib import Path
from typing import Any

from odf_node.cli.context import Context
from odf_node.cli.main import nested_options
from odf_node.cli.parsing import add_output_format


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the things that can be looked at."""
    kinds = parser.add_subparsers(dest="kind", metavar="WHAT", required=True, title="what to look at")
    for name, line, argument in (
        ("schema", "the columns of a dataset", "DATASET"),
        ("query", "the declared query of a derivative", "DATASET"),
        ("lineage", "what a dataset is derived from", "DATASET"),
        ("trust", "what the data of a dataset rest on: every acceptance, with its grounds", "DATASET"),
        ("quarantine", "rows that ingests could not read, with all their errors", "DATASET"),
        ("refusals", "what peers offered and this node refused", "ID"),
        ("block", "a block file as annotated bytes and as YAML", "FILE"),
        ("data", "a Parquet file: schema, rows, hashes", "FILE"),
    ):
        child = kinds.add_parser(
            name, help=line, description=line[0].upper() + line[1:] + ".", parents=[nested_options()]
        )
        many = name in {"block", "data"}
        child.add_argument("subject", nargs="+" if many else "?" if name == "refusals" else None, metavar=argument)
        add_output_format(child, "text", "json")


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Show it."""
    as_json = arguments.output_format == "json"
    match arguments.kind:
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
        write_rows(console, node.reader.quarantine(record), "json" if as_json else "table")
        return
    if kind == "trust":
        _show_trust(context, record, as_json=as_json)
        return
    view = load_view(node.store, record.id)
    if kind == "schema":
        from odf_protocol.schema_compat import describe_type

        if view.schema is None:
            raise UsageError(f"'{record.name}' has no schema yet: it has never had data")
        rows = [{"name": field.name, "type": describe_type(field.type)} for field in view.schema.fields]
        console.json(rows) if as_json else console.table(rows, {"name": "COLUMN", "type": "TYPE"})
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


def _show_trust(context: Context, record: Any, *, as_json: bool) -> None:
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
            "id": item.id.short,
        }
        for item in store.iter_attestations(record.id)
    ]
    if as_json:
        console.json(
            {
                "dataset": record.name,
                "id": str(record.id),
                "trust": record.trust.value,
                "pinnedKey": str(record.pinned_key) if record.pinned_key else None,
                "acceptances": acceptances,
                "attestations": attestations,
            }
        )
        return
    console.text(f"{record.name} rests on: {record.trust.value}")
    console.text(f"  identity    {record.id}")
    console.text(f"  pinned key  {record.pinned_key or 'none: nobody signed'}")
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
            f"\nattested by {item['attester']}: "
            f"blocks {item['blocks'][0]} to {item['blocks'][1]} (attestation {item['id']})"
        )


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
    from odf_protocol.manifest import block_to_json, block_to_yaml

    console = context.console
    for name in files:
        raw = read_input(name)
        block = decode_block(raw, expected_hash=None)
        if as_json:
            console.json({"file": name, "blockHash": str(block.hash), **json.loads(block_to_json(block))}, indent=None)
            continue
        console.text(f"# {name}: {len(raw)} bytes, {block.hash}\n---\n{block_to_yaml(block).strip()}\n")
        for line in annotate_block(raw):
            console.text(str(line))


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
        console.text(f"  physical hash  {report['physicalHash']}\n  logical hash   {report['logicalHash']}\n")
        console.table(report["columns"], {"name": "COLUMN", "type": "TYPE"})


def _dataset_id(text: str) -> Any:
    from odf_protocol.did import DatasetId

    return DatasetId.parse(text)
