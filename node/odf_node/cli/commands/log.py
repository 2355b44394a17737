"""``odf-node log``: the metadata chain of a dataset."""

import argparse

from odf_node.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dataset", metavar="DATASET")
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="only the newest N blocks")
    parser.add_argument("-o", "--output-format", choices=["yaml", "json", "oneline"], default="yaml")


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Print blocks, newest first, with who signed them."""
    import json
    from itertools import islice

    from odf_node.services.naming import get_dataset
    from odf_protocol.block import decode_block
    from odf_protocol.manifest import block_to_json, block_to_yaml

    store = context.node.store
    record = get_dataset(store, arguments.dataset)
    for stored in islice(store.iter_blocks_backwards(record.id), arguments.limit):
        block = decode_block(stored.raw, expected_hash=stored.hash)
        signed = "signed by the dataset's key" if stored.signature else "not signed"
        if arguments.output_format == "json":
            context.console.text(
                json.dumps(
                    {
                        "blockHash": str(block.hash),
                        "signed": stored.signature is not None,
                        **json.loads(block_to_json(block)),
                    }
                )
            )
        elif arguments.output_format == "oneline":
            context.console.text(
                f"{block.sequence_number:>6}  {block.hash.short}  {block.system_time}  {type(block.event).__name__}"
            )
        else:
            context.console.text(
                f"# Block {block.sequence_number}: {block.hash} ({signed})\n---\n{block_to_yaml(block).strip()}\n"
            )
    return 0
