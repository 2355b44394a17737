"""``odf-node log``: the metadata chain of a dataset."""

import argparse

from odf_node.cli.context import Context
from odf_node.cli.parsing import add_output_format, whole_number


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="name or identity")
    parser.add_argument(
        "-n", "--limit", type=whole_number(1), metavar="N", help="only the newest N blocks (default: all)"
    )
    add_output_format(parser, "yaml", "json", "oneline")


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Print blocks, newest first, with who signed them."""
    import json
    from itertools import islice

    from odf_node.datasets.naming import get_dataset
    from odf_node.datasets.presence import Presence
    from odf_protocol.block import decode_block
    from odf_protocol.exchange.wanted import iter_wanted
    from odf_protocol.manifest import block_to_json, iter_log_yaml

    store = context.node.store
    record = get_dataset(store, arguments.dataset)
    absent = Presence(store, context.node.objects).find_absent(record)
    for stored in islice(store.iter_blocks_backwards(record.id), arguments.limit):
        block = decode_block(stored.raw, expected_hash=stored.hash)
        signed = "signed by the dataset's key" if stored.signature else "not signed"
        lacks_files = any(item.hash in absent for item in iter_wanted(block.event))
        if arguments.output_format == "json":
            plain = json.loads(block_to_json(block))
            shown = {"blockHash": str(block.hash), "signed": stored.signature is not None}
            shown |= ({"filesAbsent": True} if lacks_files else {}) | plain
            context.console.json(shown, indent=None)
        elif arguments.output_format == "oneline":
            context.console.text(
                f"{block.sequence_number:>6}  {block.hash.short}  {block.system_time}  {describe_event(block.event)}"
                f"{'  (not here)' if lacks_files else ''}"
            )
        else:
            # As it is, line ends and all: they may belong to a text of the block.
            signed += ", its files are not here" if lacks_files else ""
            context.console.raw(f"# Block {block.sequence_number} ({signed})\n" + "".join(iter_log_yaml([block])))
    return 0


def describe_event(event: object) -> str:
    """Give the kind of an event, and how many rows it adds."""
    new_data = getattr(event, "new_data", None)
    kind = type(event).__name__
    if new_data is None:
        return kind
    return f"{kind}  +{new_data.offset_interval.row_count:,} rows"
