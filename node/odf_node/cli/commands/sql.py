"""``odf-node sql``: ask questions of the datasets of this node."""

import argparse
import shlex
import sys
from pathlib import Path
from typing import Final

from odf_node.cli.asking.asker import Asker, read_script, run_script
from odf_node.cli.asking.shell import Shell
from odf_node.cli.context import CommandContext, parse_time
from odf_node.cli.parsing import add_output_format, whole_number
from odf_node.cli.row_formats import FILE_FORMATS, FORMATS, check_output_path
from odf_node.errors import UsageError

TOPIC: Final = "make and read datasets"
HELP: Final = "query datasets, as they are or as they were known at a time"
EXAMPLES: Final = """\
sql
sql -c "SELECT count(*) FROM sales__state"
sql --as-of 2024-05-01 -o csv -c "SELECT * FROM sales" --output-path sales.csv
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = (
        "Without -c and --script: a shell on a terminal (.help explains it), else the statements on standard input."
    )
    parser.add_argument("strays", nargs="*", metavar="QUERY", help=argparse.SUPPRESS)
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument(
        "-c",
        "--command-text",
        metavar="QUERY",
        dest="query",
        help="one query, in DataFusion's SQL or that of --engine; datasets are tables, also those of other nodes "
        'behind FROM or JOIN as "http://host/name"; NAME__state has the current rows,'
        " NAME__quarantine what ingests did not take, with all its errors",
    )
    asked.add_argument(
        "--script", type=Path, metavar="FILE", help="answer the statements of a file, up to the first that fails"
    )
    parser.add_argument(
        "--engine",
        metavar="ENGINE",
        help="which answers, in its own SQL (default: datafusion; spark takes some seconds to start)",
    )
    parser.add_argument("--as-of", metavar="T", help="answer as of this system time: later rows are not seen")
    add_output_format(parser, *FORMATS)
    parser.add_argument(
        "--output-path", type=Path, metavar="FILE", help="write the answer there (needed for parquet and arrow)"
    )
    parser.add_argument(
        "--max-rows",
        type=whole_number(0),
        default=100_000,
        metavar="N",
        help="cut the answer after N rows (default: 100000; 0: never)",
    )


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Answer read-only, in a sandboxed engine."""
    if arguments.strays:
        raise UsageError(f"a query follows -c: odf-node sql -c {shlex.quote(' '.join(arguments.strays))}")
    path: Path | None = arguments.output_path
    as_of = parse_time(arguments.as_of, option="--as-of") if arguments.as_of else None
    context.load_settings()
    with Asker(context, arguments.engine, as_of, arguments.max_rows or None) as asker:
        return _run(asker, arguments, path)


def _run(asker: Asker, arguments: argparse.Namespace, path: Path | None) -> int:
    if arguments.query is None and arguments.script is None and sys.stdin.isatty():
        return _run_shell(asker, arguments.output_format, path)
    if arguments.output_format in FILE_FORMATS and path is None:
        raise UsageError(f"{arguments.output_format} is written to a file; name it with --output-path")
    if path is not None:
        check_output_path(path)
    if arguments.query is None:
        return run_script(asker, read_script(arguments.script), arguments.output_format, path)
    asker.write(asker.ask(arguments.query), arguments.output_format, path)
    return 0


def _run_shell(asker: Asker, output_format: str, path: Path | None) -> int:
    if not sys.stdout.isatty():
        raise UsageError("a shell needs a terminal; ask with -c, --script or on standard input")
    if path is not None or output_format in FILE_FORMATS:
        raise UsageError("in the shell, .format FORMAT FILE writes an answer to a file")
    return Shell(asker, output_format).run()
