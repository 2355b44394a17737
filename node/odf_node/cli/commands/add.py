"""``odf-node add``: create datasets from manifests."""

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from odf_node.cli.context import CommandContext
from odf_node.cli.input_files import read_input
from odf_node.cli.parsing import add_evolve, add_output_format
from odf_node.datasets.chains import load_view
from odf_node.derive.grading import with_event_time
from odf_node.derive.translation import translate_snapshot
from odf_node.errors import UsageError
from odf_node.ingest.relative_patterns import list_patterns, place_files
from odf_node.wording import count_of
from odf_protocol.errors import MalformedError
from odf_protocol.events import SetDataSchema
from odf_protocol.manifest import DatasetSnapshot, parse_snapshots
from odf_protocol.schema_compat import describe_type

if TYPE_CHECKING:
    from odf_node.datasets.creation import Added
    from odf_node.derive.grading import GradedTransform
    from odf_node.derive.translation import TranslatedDataset
    from odf_node.records.datasets import DatasetRecord

TOPIC: Final = "make and read datasets"
HELP: Final = "create datasets from manifests"
EXAMPLES: Final = """\
add sales.yaml totals.yaml
add --replace sales.yaml
"""

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
    add_evolve(parser)
    parser.add_argument(
        "--as-spark",
        action="store_true",
        help="translate queries that name another engine (flink, risingwave, datafusion) into Spark's SQL, show the "
        "difference and what may mean something else, and add them for the engine spark",
    )
    add_output_format(parser, "table", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Create every dataset that the manifests describe, or none where a mistake can be seen beforehand."""
    context.load_settings()
    node = context.node
    snapshots = _read_manifests(context, arguments)
    translated = _translate(context, snapshots) if arguments.as_spark else {}
    node.sweeper.clean_up()
    node.creator.check_all(snapshots, replaces=arguments.replace)
    if arguments.evolve and not arguments.replace:
        raise UsageError("--evolve changes datasets that are there: give --replace as well")
    for place, snapshot in enumerate(snapshots if arguments.replace else ()):
        if (record := node.creator.redefiner.find(snapshot)) is not None:
            if arguments.evolve:
                snapshots[place] = _evolved(context, record, snapshot)
            node.ingestor.check_changes(record, snapshots[place].metadata)
    with context.console.progress("looking at the queries"):
        graded = {each.dataset: each for each in node.grader.grade_all(snapshots)}
    snapshots = [with_event_time(each, graded.get(str(each.name))) for each in snapshots]
    added = node.creator.add_all(
        snapshots, node.clock, replaces=arguments.replace, block_version=arguments.block_version
    )
    for before, record in added.changed:
        if record.head != before.head:
            node.record("replace", record.name, f"block {record.head.sequence_number}")
    for record in added.created:
        node.record("add", record.name, str(record.id))
    if arguments.output_format == "json":
        records = (*(record for _, record in added.changed), *added.created)
        context.console.json([_to_json(each, graded.get(each.name), translated.get(each.name)) for each in records])
    else:
        _report(context, added, graded)
    return os.EX_OK


def _evolved(context: CommandContext, record: "DatasetRecord", snapshot: DatasetSnapshot) -> DatasetSnapshot:
    """Let a dataset have the columns that a manifest has more than it, and say which."""
    node = context.node
    events = node.ingestor.evolve(record, snapshot.metadata)
    known = load_view(node.store, record.id).schema
    for event in events:
        if isinstance(event, SetDataSchema) and event.schema is not None and known is not None:
            held = {field.name for field in known.fields}
            new = [field for field in event.schema.fields if field.name not in held]
            described = ", ".join(f"{each.name} ({describe_type(each.type)})" for each in new)
            context.console.note(f"{record.name}: new columns, null in rows that are there: {described}")
    return replace(snapshot, metadata=events)


def _read_manifests(context: CommandContext, arguments: argparse.Namespace) -> list[DatasetSnapshot]:
    """Read all manifests before they are checked, as sources may look into datasets that another one makes."""
    for name in arguments.manifests:
        if Path(name).suffix.lower() in _DATA and Path(name).is_file():
            draft = f"odf-node new NAME --from {quote(name)} -o NAME.yaml"
            raise UsageError(f"{name}: a manifest is wanted here, not data; '{draft}' writes one")
    texts = [("standard input" if name == "-" else name, read_input(name)) for name in arguments.manifests]
    named = [each for shown_as, text in texts for each in parse_snapshots(text, source_name=shown_as)]
    check: Callable[[DatasetSnapshot], None] = partial(context.node.ingestor.check_manifest, added=named)
    check = _check_translated(check) if arguments.as_spark else check
    snapshots: list[DatasetSnapshot] = []
    for name, (shown_as, text) in zip(arguments.manifests, texts, strict=True):
        # A later pull runs in any folder, so a pattern that is relative to its manifest is made absolute.
        place = partial(place_files, folder=None if name == "-" else Path(name).absolute().parent)
        found = parse_snapshots(text, source_name=shown_as, check=_check_placed(check, place))
        if not found:
            raise MalformedError("manifest", where=shown_as, expected="a DatasetSnapshot", found="nothing")
        for before in found:
            snapshots.append(after := place(before))
            for pattern in list_patterns(after) if after is not before else ():
                context.console.note(f"{after.name}: files are looked for as {pattern}")
    return snapshots


def _check_placed(
    check: Callable[[DatasetSnapshot], None], place: Callable[[DatasetSnapshot], DatasetSnapshot]
) -> Callable[[DatasetSnapshot], None]:
    """Check manifests as they will be once their patterns of files are absolute."""
    return lambda snapshot: check(place(snapshot))


def _check_translated(check: Callable[[DatasetSnapshot], None]) -> Callable[[DatasetSnapshot], None]:
    """Check manifests as they will be once their queries are translated."""
    return lambda snapshot: check(translate_snapshot(snapshot)[0])


def _translate(context: CommandContext, snapshots: list[DatasetSnapshot]) -> "dict[str, TranslatedDataset]":
    """Put translated queries in place of those for other engines, and show what was changed."""
    found = {}
    for position, snapshot in enumerate(snapshots):
        snapshots[position], translation = translate_snapshot(snapshot)
        if translation is not None:
            found[translation.dataset] = translation
            for line in translation.describe():
                context.console.note(line)
    return found


def _to_json(
    record: "DatasetRecord", grade: "GradedTransform | None", translation: "TranslatedDataset | None"
) -> dict[str, Any]:
    return {
        "name": record.name,
        "id": str(record.id),
        "kind": record.kind.text,
        "grade": grade.to_json() if grade is not None else None,
        **({"translated": translation.to_json()} if translation is not None else {}),
    }


def _report(context: CommandContext, added: "Added", graded: Mapping[str, "GradedTransform"]) -> None:
    for before, record in added.changed:
        blocks = record.head.sequence_number - before.head.sequence_number
        reported = f"changed by {count_of(blocks, 'new block')}" if blocks else "unchanged"
        context.console.text(f"{record.name}: {reported} ({record.id})")
    for record in added.created:
        context.console.text(f"added {record.kind.text.lower()} dataset {record.name} ({record.id})")
        if record.name in graded:
            for line in graded[record.name].describe():
                context.console.note(line)
