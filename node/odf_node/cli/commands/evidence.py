"""``odf-node evidence``: what is proved against datasets, and what an owner does about it."""

import argparse
import shutil
import textwrap
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from odf_node.acceptance.histories import lay_side_by_side
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_actions, add_output_format
from odf_node.datasets.naming import get_dataset
from odf_node.datasets.writer import find_writing_time
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.keys.disputes import Disputes
from odf_node.keys.renewing import renew_head
from odf_node.trust.bundles import Bundles
from odf_node.trust.recovery import RecoveryReport
from odf_protocol.judging import encode_bundle
from odf_protocol.timestamp import Timestamp

TOPIC: Final = "check and trust"
HELP: Final = "show what is proved against datasets; settle, export, recover"
EXAMPLES: Final = """\
evidence show prices
evidence export 8c1d3f --to evidence.json
evidence settle prices --reason "the publisher lost the newer chain and said so"
evidence recover prices --from http://peer.example:8080/prices
evidence renew prices
"""

_WIDE: Final = 160
"""Columns where nothing says how wide it is: a file, a pipe."""


_ACTIONS: Final = {
    "show": "show the two histories of a frozen dataset side by side",
    "settle": "as its owner, stand by the history held here; the proof stays",
    "export": "write a bundle that 'odf-node judge' reads: about a dataset, or a rejection by its id",
    "recover": "after a restored backup, take our own newer blocks back from a peer",
    "renew": "sign the heads of own datasets anew, with an expiry",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    for name, child in add_actions(parser, _ACTIONS).items():
        if name == "export":
            subject = "DATASET|ID", "name or identity, or the id of a rejection ('odf-node inspect refusals')"
        else:
            subject = "DATASET", "name or identity"
        child.add_argument("subject", metavar=subject[0], help=subject[1])
        if name == "show":
            add_output_format(child, "text", "json")
        if name == "settle":
            child.add_argument("--reason", required=True, metavar="TEXT", help="what happened, for those who follow")
        if name == "export":
            child.add_argument("--to", required=True, metavar="FILE", help="where to write it")
        if name == "recover":
            child.add_argument("--from", dest="source", required=True, metavar="URL", help="who holds them")
            child.add_argument(
                "--lost-keys",
                action="store_true",
                help="also changes to keys that are not in this home: you made them, and the keys are lost",
            )
        if name == "renew":
            child.add_argument(
                "--valid-days",
                type=int,
                default=7,
                metavar="N",
                help="days after which readers are warned that newer blocks may be withheld (default: 7)",
            )


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do it."""
    node = context.node
    if arguments.action == "export":
        return _export(context, arguments)
    record = get_dataset(node.store, arguments.subject)
    match arguments.action:
        case "show":
            _show(context, record, as_json=arguments.output_format == "json")
        case "settle":
            _settle(context, record, arguments.reason)
        case "recover":
            async with await node.outgoing.open_peer(arguments.source) as peer:
                recovered = await RecoveryReport(node.home).recover(
                    record, peer, now=node.now(), lost_keys=arguments.lost_keys
                )
            node.record("evidence recover", record.name, f"block {recovered.head.sequence_number}")
            context.console.text(f"{record.name}: recovered up to block {recovered.head.sequence_number}")
        case "renew":
            _renew(context, record, arguments.valid_days)
    return 0


def _settle(context: CommandContext, record: Any, reason: str) -> None:
    node = context.node
    for settlement in Disputes(node.store).settle(record, node.keys, reason=reason, now=node.now()):
        node.record("evidence settle", record.name, str(settlement.proof))
        context.console.text(
            f"{record.name}: stands by block {settlement.position} {settlement.keeps}; the proof stays"
        )


def _renew(context: CommandContext, record: Any, days: int) -> None:
    if days < 1:
        raise UsageError("--valid-days is at least 1")
    node = context.node
    now, valid_s = find_writing_time(node.store, node.clock, record.id), days * 86_400
    renew_head(node.store, node.keys, record, now=now, valid_s=valid_s)
    expires = Timestamp(now.seconds + valid_s, now.nanoseconds)
    node.record("evidence renew", record.name, str(expires))
    context.console.text(f"{record.name}: block {record.head.sequence_number} is signed as the newest until {expires}")


def _show(context: CommandContext, record: Any, *, as_json: bool) -> None:
    node, console = context.node, context.console
    found = [
        lay_side_by_side(node.store, node.refusals, record, dispute)
        for dispute in Disputes(node.store).list_disputes(record.id)
    ]
    if as_json:
        console.json(found)
        return
    if not found:
        console.text(f"nothing is proved against {record.name}")
    for dispute in found:
        console.line(f"{dispute['explanation']} (seen {dispute['since']})")
        console.line(f"  {_standing_of(dispute)}")
        if dispute["shared"]:
            console.line(f"  shared up to block {dispute['shared']['block']}: {dispute['shared']['is']}")
        columns = {"block": ">BLOCK", "first": "ONE HISTORY", "second": "THE OTHER"}
        console.table([line for row in dispute["rows"] for line in _fold(row)], columns)
    if found:
        export = f"odf-node evidence export {record.name} --to evidence.json"
        console.note(f"next: {export} writes what anybody can check with 'odf-node judge evidence.json'")


def _fold(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Break what would make a row wider than the terminal."""
    # Number and gaps first, then two histories of equal width.
    width = max((shutil.get_terminal_size((_WIDE, 1)).columns - len(str(row["block"])) - 10) // 2, 20)
    sides = (textwrap.wrap(row[side], width) for side in ("first", "second"))
    return [
        {"block": "" if number else row["block"], "first": first, "second": second}
        for number, (first, second) in enumerate(zip_longest(*sides, fillvalue=""))
    ]


def _standing_of(dispute: dict[str, Any]) -> str:
    if dispute["isVoid"]:
        return "void: the key did not speak there, or was stolen by then; not frozen"
    return f"settled: the owner stands by {dispute['kept']}" if dispute["kept"] else "not settled: frozen"


def _export(context: CommandContext, arguments: argparse.Namespace) -> int:
    node = context.node
    bundles = Bundles(node.store)
    try:
        documents = bundles.about_dataset(get_dataset(node.store, arguments.subject))
    except UnknownDatasetError:
        report = node.refusals.get_report(arguments.subject)
        documents = bundles.about_rejection(Path(report["folder"]))
    Path(arguments.to).write_bytes(encode_bundle(documents))
    context.console.text(f"{len(documents)} documents written to {arguments.to}; 'odf-node judge {arguments.to}'")
    return 0
