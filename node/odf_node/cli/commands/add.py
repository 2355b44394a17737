"""``odf-node add``: create datasets from manifests."""

import argparse
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from odf_node import derive
from odf_node.cli.context import Context
from odf_node.cli.input_files import read_input
from odf_node.cli.parsing import add_output_format
from odf_node.datasets.writer import find_writing_time
from odf_node.errors import UsageError
from odf_node.wording import count_of
from odf_protocol.errors import MalformedError
from odf_protocol.manifest import DatasetSnapshot, parse_snapshots

if TYPE_CHECKING:
    from odf_node.derive.translation import TranslatedDataset

_DATA: Final = frozenset({".csv", ".tsv", ".ndjson", ".geojson", ".xlsx", ".xml", ".parquet", ".avro", ".zip", ".gz"})
"""Endings of files that are no manifests, but that 'new --from' may make one of."""
BLOCK_VERSIONS = (2, 3)  # Source: SUPPORTED_VERSIONS of the protocol, which help need not load


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "manifests", nargs="+", metavar="FILE", help="DatasetSnapshot manifests, YAML or JSON ('-': standard input)"
    )
    parser.add_argument(
        "--block-version",
        type=int,
        choices=BLOCK_VERSIONS,
        default=max(BLOCK_VERSIONS),
        metavar="N",
        help="format of the blocks, once and for all: 3, or 2 for nodes that know no other (default: 3)",
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="of datasets that are there, change what the manifest says otherwise (source, description, licence; a "
        "query before its first rows); identity and history stay",
    )
    parser.add_argument(
        "--as-spark",
        action="store_true",
        help="translate queries that name another engine (flink, risingwave, datafusion) into Spark's SQL, show the "
        "difference and what may mean something else, and add them for the engine spark",
    )
    add_output_format(parser, "table", "json")


def _translate(context: Context, snapshots: list[DatasetSnapshot]) -> "dict[str, TranslatedDataset]":
    """Put translated queries in place of those for other engines, and show what was changed."""
    found = {}
    for position, snapshot in enumerate(snapshots):
        snapshots[position], translation = derive.translation.translate_snapshot(snapshot)
        if translation is not None:
            found[translation.dataset] = translation
            for line in translation.describe():
                context.console.note(line)
    return found


def _check_translated(check: Callable[[DatasetSnapshot], None]) -> Callable[[DatasetSnapshot], None]:
    """Check manifests as they will be once their queries are translated."""
    return lambda snapshot: check(derive.translation.translate_snapshot(snapshot)[0])


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Create every dataset that the manifests describe, or none where a mistake can be seen beforehand."""
    context.load_settings()
    for name in arguments.manifests:
        if Path(name).suffix.lower() in _DATA and Path(name).is_file():
            draft = f"odf-node new NAME --from {quote(name)} -o NAME.yaml"
            raise UsageError(f"{name}: a manifest is wanted here, not data; '{draft}' writes one")
    snapshots: list[DatasetSnapshot] = []
    texts = [("standard input" if name == "-" else name, read_input(name)) for name in arguments.manifests]
    named = [each for shown_as, text in texts for each in parse_snapshots(text, source_name=shown_as)]
    check: Callable[[DatasetSnapshot], None] = partial(context.node.ingestor.check_manifest, added=named)
    check = _check_translated(check) if arguments.as_spark else check
    for shown_as, text in texts:
        found = parse_snapshots(text, source_name=shown_as, check=check)
        if not found:
            raise MalformedError("manifest", where=shown_as, expected="a DatasetSnapshot", found="nothing")
        snapshots.extend(found)
    translated = _translate(context, snapshots) if arguments.as_spark else {}
    context.node.sweeper.clean_up()
    context.node.creator.check_all(snapshots, replaces=arguments.replace)
    there = [(each, context.node.creator.redefiner.find(each)) for each in snapshots] if arguments.replace else []
    with context.console.progress("looking at the queries"):
        graded = {each.dataset: each for each in context.node.grader.grade_all(snapshots)}
    node = context.node
    known = {record.id: record for _, record in there if record is not None}
    changed = [
        node.creator.redefiner.redefine(
            record,
            snapshot,
            node.creator.resolve_inputs,
            system_time=find_writing_time(node.chains, node.clock, record.id),
        )
        for snapshot, record in there
        if record is not None
    ]
    new = [each for each, record in there if record is None] if arguments.replace else snapshots
    records = node.creator.create_all(new, system_time=node.now(), block_version=arguments.block_version)
    for record in changed:
        if record.head != known[record.id].head:
            node.record("replace", record.name, f"block {record.head.sequence_number}")
    for record in records:
        context.node.record("add", record.name, str(record.id))
    if arguments.output_format == "json":
        context.console.json(
            [
                {
                    "name": record.name,
                    "id": str(record.id),
                    "kind": record.kind.text,
                    "grade": graded[record.name].to_json() if record.name in graded else None,
                    **({"translated": translated[record.name].to_json()} if record.name in translated else {}),
                }
                for record in (*changed, *records)
            ]
        )
        return 0
    for record in changed:
        before = known[record.id].head.sequence_number
        blocks = count_of(record.head.sequence_number - before, "new block")
        told = f"changed by {blocks}" if record.head.sequence_number > before else "unchanged"
        context.console.text(f"{record.name}: {told} ({record.id})")
    for record in records:
        context.console.text(f"added {record.kind.text.lower()} dataset {record.name} ({record.id})")
        if record.name in graded:
            for line in graded[record.name].describe():
                context.console.note(line)
    return os.EX_OK
