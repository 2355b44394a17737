"""Files of anybody: blocks and slices, whether or not a dataset of this node has them."""

import json
from pathlib import Path

from odf_node.cli.context import CommandContext
from odf_node.cli.input_files import check_input, read_input
from odf_node.rows.data_files import describe_data_file
from odf_node.wording import count_of
from odf_protocol.annotate import annotate_block
from odf_protocol.block import decode_block
from odf_protocol.errors import OdfError
from odf_protocol.manifest import iter_log_yaml, manifest_to_json
from odf_protocol.multihash import Multihash


def show_blocks(context: CommandContext, files: list[str], *, as_json: bool) -> None:
    """Show block files as annotated bytes and as YAML; a broken one as far as it can be read, and the rest after it.

    Raises:
        OdfError: What is wrong with the first broken one, after all were shown.
    """
    console = context.console
    first_error: OdfError | None = None
    for name in files:
        raw = read_input(name)
        reported = {"file": name, "sizeBytes": len(raw), "blockHash": str(Multihash.of_sha3_256(raw))}
        if not as_json:
            # First the bytes, which can be told of a broken block too.
            console.text(f"# {name}: {len(raw)} bytes, {reported['blockHash']}")
            for note in annotate_block(raw):
                console.text(str(note))
        try:
            block = decode_block(raw, expected_hash=None)
        except OdfError as error:
            first_error = first_error or error
            console.json({**reported, "error": str(error)}, indent=None) if as_json else console.text(f"# {error}\n")
            continue
        if as_json:
            console.json({**reported, **json.loads(manifest_to_json(block))}, indent=None)
        else:
            console.raw("".join(iter_log_yaml([block])))
    if first_error is not None:
        raise first_error


def show_data(context: CommandContext, files: list[str], *, as_json: bool) -> None:
    """Show schema, rows and hashes of Parquet files."""
    console = context.console
    for name in files:
        check_input(name)
    reports = [describe_data_file(Path(name)) for name in files]
    if as_json:
        console.json(reports)
        return
    for report in reports:
        console.text(f"{report['file']}: {count_of(report['rows'], 'row')}, {report['sizeBytes']:,} bytes")
        console.text(f"  physical hash  {report['physicalHash']}")
        console.text(f"  logical hash   {report['logicalHash']}")
        console.text(f"  v1             {report['logicalHashV1']}\n")
        console.table(report["columns"], {"name": "COLUMN", "type": "TYPE"})
