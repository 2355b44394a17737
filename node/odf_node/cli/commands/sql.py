"""``odf-node sql``: ask questions of the datasets of this node."""

import argparse
from pathlib import Path

from odf_node.cli.context import Context, parse_time
from odf_node.cli.missing_files import bring_files
from odf_node.cli.parsing import add_output_format, whole_number
from odf_node.cli.rows import check_output_path, write_rows
from odf_node.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "-c",
        "--command-text",
        metavar="QUERY",
        required=True,
        dest="query",
        help="one query, in the engine's SQL; datasets are tables, NAME__state is the newest state of each primary key",
    )
    parser.add_argument("--engine", metavar="ENGINE", help="which answers (default: engines.query of the settings)")
    parser.add_argument("--as-of", metavar="T", help="answer as of this system time: later rows are not seen")
    add_output_format(parser, "table", "csv", "json", "ndjson", "parquet")
    parser.add_argument("--output-path", type=Path, metavar="FILE", help="write the answer there (needed for parquet)")
    parser.add_argument(
        "--max-rows",
        type=whole_number(0),
        default=100_000,
        metavar="N",
        help="cut the answer after N rows (default: 100000; 0: never)",
    )


def run(context: Context, arguments: argparse.Namespace) -> int:
    """Run the query read-only in the sandboxed engine."""
    if arguments.output_format == "parquet" and arguments.output_path is None:
        raise UsageError("parquet is written to a file; name it with --output-path")
    if arguments.output_path is not None:
        check_output_path(arguments.output_path)
    as_of = parse_time(arguments.as_of, option="--as-of") if arguments.as_of else None
    with context.console.progress("running the query") as progress:
        needed = context.node.queries.list_absent(arguments.query, as_of=as_of)
        bring_files(context, needed, progress)
        rows = context.node.queries.run(
            arguments.query, as_of=as_of, max_rows=arguments.max_rows or None, engine=arguments.engine
        )
    write_rows(context.console, rows, arguments.output_format, path=arguments.output_path)
    return 0
