"""``odf-node key``: show and change who speaks for a dataset."""

import argparse
from pathlib import Path
from typing import Any, Final

from odf_node.adapters.recovery_key_files import (
    find_unfinished_key,
    forget_unfinished_key,
    keep_recovery_key,
    read_recovery_key,
)
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_actions, add_output_format, whole_number
from odf_node.datasets.naming import get_dataset
from odf_node.keys.changing import KeyChanging
from odf_node.keys.reports import KeyReports
from odf_node.records.errors import HomeFullError, HomeReadOnlyError
from odf_protocol.did import DidKey

TOPIC: Final = "check and trust"
HELP: Final = "show and change who speaks for a dataset; recover from a stolen key"
EXAMPLES: Final = """\
key show sales
key rotate sales
key prepare sales --to /media/stick/sales.pem
key recover sales --with /media/stick/sales.pem --stolen-from 41
"""

_ACTIONS: Final = {
    "show": "show who speaks for a dataset, since when, and what stolen keys signed",
    "rotate": "let a new key sign from the next block on; the old one says so",
    "prepare": "make a recovery key: written to a file, to be kept offline, and announced",
    "recover": "take a dataset back from a stolen key, by its recovery key",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    for name, child in add_actions(parser, _ACTIONS).items():
        child.add_argument("subject", metavar="DATASET", help="name or identity")
        if name == "show":
            add_output_format(child, "text", "json")
        if name == "prepare":
            child.add_argument("--to", required=True, metavar="FILE", help="where the private key is written, once")
            child.add_argument("--with", dest="recovery_key", metavar="FILE", help="the recovery key it replaces")
        if name == "recover":
            child.add_argument("--with", dest="recovery_key", required=True, metavar="FILE", help="the recovery key")
            child.add_argument(
                "--stolen-from",
                required=True,
                type=whole_number(0),
                metavar="BLOCK",
                help="the first block that the thief may have signed; from there on everybody sees that",
            )
            child.add_argument("--next", metavar="FILE", help="make the next recovery key, and write it there")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do it; works beside a running node, which signs with the new key at its next block."""
    if arguments.action == "show":
        record = get_dataset(context.node.store, arguments.subject)
        _show(context, record, as_json=arguments.output_format == "json")
        return 0
    try:
        record = get_dataset(context.node.store, arguments.subject)
        match arguments.action:
            case "rotate":
                event = _changing(context).rotate(record, now=context.node.now())
                _report(context, record, event)
            case "prepare":
                _prepare(context, record, arguments)
            case _:
                _recover(context, record, arguments)
    except (HomeFullError, HomeReadOnlyError):
        # Also a write that failed may come true, where its log was written and could not be made durable.
        context.console.note(
            f"no key is lost; 'odf-node key show {arguments.subject}' says whether it was changed, and once there is "
            "room to write, the same command may be given again"
        )
        raise
    return 0


def _changing(context: CommandContext) -> Any:
    return KeyChanging(context.node.home)


def _prepare(context: CommandContext, record: Any, arguments: argparse.Namespace) -> None:
    node = context.node
    before = None if arguments.recovery_key is None else read_recovery_key(_path(arguments.recovery_key))
    if not _path(arguments.to).exists():
        _changing(context).require_preparable(record, signed_with=before)
    key = keep_recovery_key(node.home.folder, _path(arguments.to), record.id, generate=node.keys.generate)
    event = _changing(context).prepare(record, DidKey(key.public_key()), signed_with=before, now=node.now())
    _report(context, record, event)
    context.console.text(f"its private half is in {arguments.to} and nowhere else: keep it away from this machine")
    forget_unfinished_key(record.id, key)


def _recover(context: CommandContext, record: Any, arguments: argparse.Namespace) -> None:
    node = context.node
    recovery_key, following = read_recovery_key(_path(arguments.recovery_key)), None
    if arguments.next is not None:
        if not _path(arguments.next).exists():
            _changing(context).require_recoverable(record, recovery_key, stolen_from=arguments.stolen_from)
        following = keep_recovery_key(node.home.folder, _path(arguments.next), record.id, generate=node.keys.generate)
    event = _changing(context).recover(
        record,
        recovery_key,
        stolen_from=arguments.stolen_from,
        next_recovery_key=None if following is None else DidKey(following.public_key()),
        now=node.now(),
    )
    _report(context, record, event)
    if following is None:
        context.console.note("the recovery key has been on this machine now: 'odf-node key prepare' replaces it")
    else:
        forget_unfinished_key(record.id, following)


def _report(context: CommandContext, record: Any, event: Any) -> None:
    # Said before it is noted down: the key is changed, whether there is room for a line about it or not.
    context.console.text(f"{record.name}: key event {event.index} {event.explain()}")
    context.node.record(f"key {event.change.value}", record.name, str(event.hash))


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _show(context: CommandContext, record: Any, *, as_json: bool) -> None:
    console = context.console
    found = KeyReports(context.node.store).describe(record, context.node.keys)
    unfinished = find_unfinished_key(record.id)
    if as_json:
        waiting = None if unfinished is None else {"key": str(unfinished.key), "file": unfinished.file}
        console.json(found | {"unfinished": waiting})
        return
    console.text(f"{found['dataset']}  {found['id']}")
    console.text(f"  signs        {found['key']}")
    console.text(f"  recovery key {found['recoveryKey'] or 'none: a stolen key could not be replaced'}")
    rows = [
        {
            "key": period["key"],
            "blocks": _range_of(period["firstBlock"], period["lastBlock"]),
            "stolen": "" if period["stolenFrom"] is None else f"from block {period['stolenFrom']}",
            "here": "yes" if period["isHere"] else "no",
        }
        for period in found["keys"]
    ]
    console.table(rows, {"key": "KEY", "blocks": "SPEAKS FOR", "stolen": "STOLEN", "here": "IN THIS HOME"})
    if unfinished is not None:
        console.text(
            f"  the command that wrote the recovery key {unfinished.key} to {unfinished.file} was ended: give it again "
            "with the same file"
        )
    for event in found["events"]:
        console.text(f"  event {event['index']}, {event['at']}: {event['says']}")
    for event in found["outranked"]:
        console.text(f"  void, {event['at']}: {event['by']} {event['says']}")
    for window in found["stolen"]:
        console.text(f"  blocks {window['from']} to {window['until']}: signed by a stolen key, kept by the owner")
        for block in window["blocks"]:
            console.text(f"    {block['block']:>6}  {block['event']}  {block['hash']}")
    if found["disownedFrom"] is not None:
        console.text(
            f"  block {found['disownedFrom']} held here is not of the history that the owner keeps (KEY-12): "
            "'odf-node pull --force' takes that"
        )


def _range_of(first: int, last: int | None) -> str:
    if last is None:
        return f"{first} to ..."
    # The next key came before any block was written.
    return "no block" if last < first else f"{first} to {last}"
