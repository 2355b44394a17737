"""``odf-node new``: write a manifest to begin with."""

import argparse
from pathlib import Path
from shlex import quote
from typing import Final

from odf_drafts.drafting import Draft, Drafting
from odf_drafts.samples import SampleReader
from odf_node.cli.context import CommandContext
from odf_node.errors import UsageError
from odf_node.sources import limit_sources
from odf_node.wording import count_of

TOPIC: Final = "make and read datasets"
HELP: Final = "write a manifest to begin with: a template, or guessed from a file"
EXAMPLES: Final = """\
new sales --from sales.csv -o sales.yaml
new sales -o sales.yaml
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME", help="what the dataset shall be called")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FILE|URL",
        help="guess format, columns, types and key from the beginning of a file of CSV, JSON, GeoJSON, Excel (.xlsx), "
        "XML, Avro, Parquet, or a Shapefile in a zip; plain, gzip or zip (default: a template)",
    )
    parser.add_argument("--encoding", metavar="NAME", help="of the text in it, where that is guessed wrong")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="MANIFEST", help="write to this new file (default: standard output)"
    )


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Write it; nothing in the node changes."""
    if arguments.encoding and not arguments.source:
        raise UsageError("--encoding is of the data that --from names")
    if arguments.output is not None and arguments.output.exists():
        raise UsageError(f"{arguments.output} is there already; name a new file")
    drafting = Drafting(SampleReader(limit_sources(context.node.home.folder)))
    if arguments.source:
        draft = await drafting.draft_from(arguments.name, arguments.source, encoding=arguments.encoding)
    else:
        draft = drafting.draft_template(arguments.name)
    if arguments.output is None:
        context.console.raw(draft.text)
    else:
        with arguments.output.open("x", encoding="utf-8") as file:
            file.write(draft.text)
    _report_next(context, arguments, draft)
    return 0


def _report_next(context: CommandContext, arguments: argparse.Namespace, draft: Draft) -> None:
    if draft.doubts:
        context.console.note(f"{count_of(draft.doubts, 'line')} marked '# ?': guesses that the data could not settle")
    manifest = quote(str(arguments.output or f"{arguments.name}.yaml"))
    source = quote(arguments.source) if arguments.source else "FILE"
    fill = f"pull {arguments.name}" if draft.is_polled else f"ingest {arguments.name} {source}"
    first = "" if arguments.output else f"the same with -o {manifest}, then "
    context.console.note(f"next: {first}odf-node add {manifest} && odf-node {fill}")
