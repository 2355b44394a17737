"""``odf-node restore``: make a node of a backup."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Final

from odf_node.adapters.home_backup import BackupReport, restore
from odf_node.adapters.key_backup import find_node_key, restore_keys
from odf_node.adapters.key_files import KeyFiles
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format
from odf_node.errors import RestoredBackupError, UsageError
from odf_node.keys.freshness import require_newest
from odf_node.records.datasets import Origin
from odf_node.wording import count_of
from odf_protocol.did import DidKey
from odf_protocol.errors import MalformedError, RejectedError

TOPIC: Final = "care for this node"
HELP: Final = "fill a new --home from a backup"
EXAMPLES: Final = """\
restore /media/stick/node --keys keys.tar
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "source",
        nargs="?",
        type=Path,
        metavar="FOLDER|FILE.tar",
        help="what 'odf-node backup' wrote; without, --keys are put into the node that is there",
    )
    parser.add_argument("--keys", type=Path, metavar="FILE", help="take the private keys from there")
    parser.add_argument(
        "--signed-by",
        metavar="did:key:…",
        help="the node that made the backup, as 'backup' and 'inspect node' name it; with --keys it is known",
    )
    add_output_format(parser, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Fill an empty home; every object is compared with its name."""
    home, console = context.node.home, context.console
    if arguments.source is None and (arguments.keys is None or not home.folder.exists()):
        raise UsageError("name the backup; without one, --keys FILE puts keys into a node that is there")
    report = None
    if arguments.source is not None:
        makers = _find_makers(context, arguments)
        with console.progress(f"{home.folder.path}: restoring") as progress:
            report = restore(home.folder, arguments.source, progress.advance, makers=makers)
    keys = None if arguments.keys is None else restore_keys(home.folder, arguments.keys)
    if arguments.output_format == "json":
        console.json(({} if report is None else _to_json(report)) | {"keys": keys})
    else:
        if report is not None:
            what = f"{count_of(report.datasets, 'dataset')} and {count_of(report.objects, 'object')}"
            console.text(f"{home.folder.path}: {what} are back")
        if keys is not None:
            console.text(f"{home.folder.path}: {count_of(keys, 'private key')} put back; those that were there stay")
    if report is not None and report.signer is None:
        console.note(
            "nothing shows that this node made the backup, so only what proves itself is back: chains, rows, signed "
            "heads, evidence. Left out are trust in datasets of others ('odf-node pull NAME' verifies them), which "
            "datasets are published, access tokens, repositories, subscriptions and peers. To keep them restore into "
            "an empty --home with --keys FILE, or with --signed-by and the name that 'odf-node backup' printed"
        )
    if keys is None:
        console.note("without --keys FILE this node cannot continue its own datasets")
    elif report is not None:
        _warn(context)
    return 0


def _find_makers(context: CommandContext, arguments: argparse.Namespace) -> frozenset[DidKey]:
    """Find out who may have made the backup: whoever is named, or else the node whose keys come along or are here."""
    if arguments.signed_by is not None:
        try:
            return frozenset({DidKey.parse(arguments.signed_by)})
        except (MalformedError, RejectedError) as error:
            raise UsageError(f"--signed-by: {error}") from error
    here = KeyFiles(context.node.home.folder).find_node_key()
    brought = None if arguments.keys is None else find_node_key(arguments.keys)
    return frozenset({*([] if here is None else [DidKey(here.public_key())]), *([] if brought is None else [brought])})


def _to_json(report: BackupReport) -> dict[str, object]:
    return asdict(report) | {"signer": None if report.signer is None else str(report.signer)}


def _warn(context: CommandContext) -> None:
    """Tell the operator before an old state signs anything (HOME-55)."""
    node, console = context.node, context.console
    own = [record for record in node.store.list_datasets() if record.origin is Origin.OWN]
    for record in own:
        try:
            require_newest(node.store, node.keys, record.id, record.head)
        except RestoredBackupError as behind:
            console.note(f"{record.name}: {behind}")
    if own:
        console.note(
            f"{count_of(len(own), 'dataset')} of this node's own may be older than what was published: before anything "
            "is written, 'odf-node evidence recover NAME --from URL' takes newer blocks and changes of keys back from "
            "whoever pulled them. To write on without them is to sign a second history, which readers reject and can "
            "prove"
        )
