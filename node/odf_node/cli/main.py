"""Find the command, run it, answer errors with one line and an exit code.

Only the module of the command that was named is imported, and it imports what it needs when it runs: ``--version``,
``--help`` and ``list`` answer before anything heavy would have been read.
"""

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from odf_node import __version__

COMMANDS: Final[dict[str, str]] = {
    "add": "create datasets from manifests",
    "delete": "delete datasets and their data",
    "doctor": "show what this machine offers, what is missing and how to mend it",
    "engine": "list engines, inspect them, prepare a faster start",
    "ingest": "push files or standard input into a root dataset",
    "inspect": "look closely at a dataset, block, data file, quarantine or refusal",
    "list": "list the datasets of this node",
    "log": "show the metadata chain of a dataset, newest first",
    "publish": "say whether a dataset is served to others",
    "pull": "ingest a root dataset, run a derivative, or bring a dataset from another node",
    "push": "offer a dataset to another node",
    "serve": "run the node: serve datasets, take pushes",
    "sql": "query datasets, as they are or as they were known at a time",
    "tail": "show the newest rows of a dataset",
    "token": "manage the tokens that allow others to push",
    "verify": "check chains, data and derivations again",
}
"""Command and its line in the help; the module of the same name in ``commands`` implements it."""

USAGE_ERROR: Final = 2


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, with the nearest known word."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: {message}\nTry '{self.prog} --help'.\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    command = _find_command(words)
    if command is not None and command not in COMMANDS:
        near = difflib.get_close_matches(command, COMMANDS, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        print(f"odf-node: there is no command '{command}'.{hint}\nTry 'odf-node --help'.", file=sys.stderr)
        return USAGE_ERROR
    parser = build_parser(command)
    arguments = parser.parse_args(words)
    if command is None:
        parser.print_help()
        return USAGE_ERROR
    from odf_node.cli.run import run_command

    return run_command(arguments)


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """Make the parser, with the options of ``command`` alone filled in (others need not be imported)."""
    parser = _Parser(
        prog="odf-node",
        description="Publish, pull and re-verify Open Data Fabric datasets between organisations.",
        epilog="'odf-node COMMAND --help' explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"odf-node {__version__}")
    add_global_options(parser, default=None)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=_Parser)
    for name, line in COMMANDS.items():
        child = commands.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        if name == command:
            importlib.import_module(f"odf_node.cli.commands.{name}").configure(child)
            add_global_options(child, default=argparse.SUPPRESS)
    return parser


def add_global_options(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    """Add the options that stand before or after any command."""
    group = parser.add_argument_group("options of every command")
    group.add_argument(
        "--home",
        metavar="FOLDER",
        default=default or os.environ.get("ODF_NODE_HOME"),
        help="this node's folder (default: $ODF_NODE_HOME, else odf-node in the user's data folder)",
    )
    group.add_argument(
        "--system-time",
        metavar="T",
        default=default,
        help="write with this system time instead of now (RFC 3339), to make a run repeatable",
    )
    group.add_argument("-q", "--quiet", action="store_true", default=default or False, help="say only what went wrong")


def nested_options() -> argparse.ArgumentParser:
    """Make the parent of an action's parser, so that the options of every command may stand behind it too."""
    parent = argparse.ArgumentParser(add_help=False)
    add_global_options(parent, default=argparse.SUPPRESS)
    return parent


def _find_command(words: Sequence[str]) -> str | None:
    takes_value = {"--home", "--system-time"}
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in takes_value:
            skip = True
        elif not word.startswith("-"):
            return word
    return None
