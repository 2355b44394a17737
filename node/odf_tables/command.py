"""``odf-node diff``: how the current rows of two versions of a dataset differ.

Source: clause TABLE-14 in ``spec/plug-ins/tables.md``.
"""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_output_format, whole_number
from odf_node.cli.rows import write_rows
from odf_node.datasets.naming import get_dataset
from odf_node.datasets.row_files import plain_rows
from odf_node.wording import count_of
from odf_tables.changes import VersionChanges
from odf_tables.queries import Relations
from odf_tables.versions import find_before_newest_rows

TOPIC: Final = "make and read datasets"
HELP: Final = "show how two versions of a dataset differ"
EXAMPLES: Final = """\
diff sales
diff sales 12
diff sales 12 15 --rows 100 -o json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="name or identity")
    parser.add_argument(
        "since",
        type=whole_number(0),
        nargs="?",
        metavar="A",
        help="a version: the number of a block ('log'; default: the one before the newest rows)",
    )
    parser.add_argument(
        "until",
        type=whole_number(0),
        nargs="?",
        metavar="B",
        help="the version that it is compared with (default: newest)",
    )
    parser.add_argument(
        "--rows", type=whole_number(0), default=10, metavar="N", help="how many rows are shown, by key (default: 10)"
    )
    add_output_format(parser, "text", "json")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Count what came, changed and went, and show the first rows, by key."""
    context.load_settings()
    record = get_dataset(context.node.store, arguments.dataset)
    with context.console.progress(f"{record.name}: comparing"):
        changes = VersionChanges(Relations(context.node, record))
        since = find_before_newest_rows(context.node, record) if arguments.since is None else arguments.since
        found = changes.compare(since, arguments.until, max_rows=arguments.rows)
    changed = found.changed
    if arguments.output_format == "json":
        context.console.json(
            {
                "dataset": record.name,
                "since": found.since,
                "until": found.until,
                "key": [*found.key],
                "added": changed.added,
                "corrected": changed.corrected,
                "retracted": changed.retracted,
                "rows": [*plain_rows(found.rows.to_batches())],
            }
        )
        return 0
    by_key = f", by {', '.join(found.key)}" if found.key else ""
    context.console.text(
        f"versions {found.since} and {found.until} of {record.name}{by_key}: {count_of(changed.added, 'row')} added, "
        f"{changed.corrected:,} corrected, {changed.retracted:,} retracted"
    )
    if found.rows.num_rows:
        write_rows(context.console, found.rows, "table")
    shown = changed.added + 2 * changed.corrected + changed.retracted
    if shown > found.rows.num_rows:
        context.console.note(f"{found.rows.num_rows:,} of {shown:,} rows are shown; --rows N shows more")
    return 0
