"""``odf-node change``: make of a dataset what a manifest says now."""

import argparse
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from odf_node.cli.context import CommandContext, report_writing_time
from odf_node.cli.input_files import read_input
from odf_node.cli.parsing import add_dry_run, add_evolve, add_output_format
from odf_node.datasets.naming import get_dataset
from odf_node.datasets.redefinition import DefinitionChange, require_changeable
from odf_node.wording import count_of
from odf_protocol.errors import MalformedError
from odf_protocol.events import SetTransform
from odf_protocol.manifest import (
    DatasetSnapshot,
    SnapshotError,
    manifest_to_plain,
    manifest_to_yaml,
    normalize_added_event,
    parse_manifests,
)

if TYPE_CHECKING:
    from odf_node.records.datasets import DatasetRecord

TOPIC: Final = "make and read datasets"
HELP: Final = "make of a dataset what its manifest says now, as new blocks; shows the difference"
EXAMPLES: Final = """\
change sales sales.yaml --dry-run
change sales sales.yaml
"""

_AROUND: Final = 3
"""Lines that stay as they are which are shown on each side of one that changes."""

_ENVELOPE_LINES = 3  # kind, version, content


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="name or identity of a dataset of this node's own")
    parser.add_argument(
        "manifest",
        metavar="FILE",
        help="what it shall be: its manifest (DatasetSnapshot), or single changes (MetadataEvent) "
        "('-': standard input)",
    )
    add_evolve(parser)
    add_dry_run(parser)
    add_output_format(parser, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Show what changes, and write it as new blocks in one commit; what the chain says already is no change."""
    context.load_settings()
    node, console = context.node, context.console
    node.sweeper.clean_up()
    record = get_dataset(node.store, arguments.dataset)
    require_changeable(record)
    wanted, is_all = _read(context, record, arguments.manifest, evolves=arguments.evolve)
    redefiner = node.creator.redefiner
    system_time = report_writing_time(context, record)
    planned = redefiner.plan(
        record, wanted.metadata, node.creator.resolve_inputs, system_time=system_time, is_all=is_all
    )
    if arguments.output_format == "text":
        for change in planned.changes:
            console.text("\n".join(_describe(change)))
    if any(isinstance(each.after, SetTransform) for each in planned.changes):
        _report_grade(context, wanted)
    blocks = count_of(len(planned.changes), "new block")
    if not planned.changes:
        stated = f"{record.name}: unchanged"
    elif arguments.dry_run:
        stated = f"{record.name}: would be changed by {blocks}"
    else:
        changed = redefiner.apply(planned)
        node.record("change", record.name, f"block {changed.head.sequence_number}")
        stated = f"{record.name}: changed by {blocks}"
    if arguments.output_format == "json":
        console.json([_to_json(each) for each in planned.changes])
    else:
        console.text(stated)
    return 0


def _report_grade(context: CommandContext, wanted: DatasetSnapshot) -> None:
    """Reject a query that nobody could repeat; say what is to be known of another."""
    with context.console.progress("looking at the query"):
        graded = context.node.grader.grade_all([wanted])
    for line in (line for each in graded for line in each.describe()):
        context.console.note(line)


def _read(
    context: CommandContext, record: "DatasetRecord", name: str, *, evolves: bool
) -> tuple[DatasetSnapshot, bool]:
    """Read what the dataset shall be; and whether that is its whole definition."""
    shown_as = "standard input" if name == "-" else name
    found = parse_manifests(read_input(name), source_name=shown_as)
    snapshots = [each for each in found if isinstance(each, DatasetSnapshot)]
    if not found or (snapshots and len(found) > 1):
        expected = "one DatasetSnapshot, or MetadataEvents"
        raise MalformedError("manifest", where=shown_as, expected=expected, found=count_of(len(found), "document"))
    try:
        if snapshots:
            require_changeable(record, snapshots[0].kind)
            wanted = snapshots[0]
            if wanted.name.lower() != record.name.lower():
                context.console.note(f"{shown_as} calls it {wanted.name}; its name here stays {record.name}")
        else:
            events = tuple(normalize_added_event(each, record.kind) for each in found)  # type: ignore[arg-type]
            wanted = DatasetSnapshot(name=record.name, kind=record.kind, metadata=events)
        context.node.ingestor.check_manifest(replace(wanted, name=record.name))
        if evolves:
            wanted = replace(wanted, metadata=context.node.ingestor.evolve(record, wanted.metadata))
        context.node.ingestor.check_changes(record, wanted.metadata)
    except SnapshotError as error:
        where = f"{shown_as}: {'.'.join(map(str, error.path))}"
        raise MalformedError("manifest", where=where, expected=error.expected, found=error.found) from error
    return wanted, bool(snapshots)


def _describe(change: DefinitionChange) -> Iterator[str]:
    """Write a change as people read differences."""
    after = _lines(change.after)
    kind = type(change.after).__name__
    if change.before is None:
        yield f"{kind} is new:"
        yield from (f"  + {line}" for line in after)
        return
    yield f"{kind} changes:"
    lines = [line for line in difflib.ndiff(_lines(change.before), after) if not line.startswith("?")]
    shown = _find_shown(lines)
    for place, line in enumerate(lines):
        if place in shown:
            yield f"  {line}".rstrip()
        elif place == 0 or place - 1 in shown:
            yield "    ..."


def _find_shown(lines: Sequence[str]) -> set[int]:
    """Return the places of lines that changed, of some around each, and of those that say in what it stands."""
    shown: set[int] = set()
    for place in (place for place, line in enumerate(lines) if not line.startswith(" ")):
        shown.update(range(max(place - _AROUND, 0), min(place + _AROUND + 1, len(lines))))
        depth = _depth_of(lines[place])
        for above in range(place - 1, -1, -1):
            if _depth_of(lines[above]) < depth:
                depth = _depth_of(lines[above])
                shown.add(above)
    # A mark in the place of a single line would save nothing.
    ends = shown | {-1, len(lines)}
    return shown | {place for place in range(len(lines)) if {place - 1, place + 1} <= ends}


def _depth_of(line: str) -> int:
    """Say how deep a line stands; items of a list are in what stands above them, not further in."""
    text = line[2:]
    return len(text) - len(text.lstrip()) + text.lstrip().startswith("- ")


def _lines(event: object) -> list[str]:
    return [line.removeprefix("  ") for line in manifest_to_yaml(event).splitlines()[_ENVELOPE_LINES + 1 :]]  # type: ignore[arg-type]


def _to_json(change: DefinitionChange) -> dict[str, object]:
    return {
        "event": type(change.after).__name__,
        "before": None if change.before is None else manifest_to_plain(change.before)["content"],
        "after": manifest_to_plain(change.after)["content"],
    }
