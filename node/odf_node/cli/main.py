"""Find the command, run it, answer errors with one line and an exit code.

Only the module of the command that was named is imported, and it imports what it needs when it runs: ``--version``,
``--help`` and ``list`` answer before anything heavy would have been read.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from odf_node import __version__, cli
from odf_node.cli.parsing import USAGE_ERROR, Parser, format_topics, suggest

TOPICS: Final[dict[str, dict[str, str]]] = {
    "make and read datasets": {
        "new": "write a manifest to begin with: a template, or guessed from a file",
        "add": "create datasets from manifests",
        "pull": "ingest a root dataset, run a derivative, or bring a dataset from another node",
        "ingest": "push files or standard input into a root dataset",
        "quarantine": "show what ingests could not take; mend it, send it again, give it up",
        "correct": "retract or correct rows of a root dataset by hand, with a reason",
        "list": "list the datasets of this node",
        "search": "find datasets by words in names, descriptions, keywords and columns, here or at other nodes",
        "tail": "show the newest rows of a dataset",
        "sql": "query datasets, as they are or as they were known at a time",
        "log": "show the metadata chain of a dataset, newest first",
        "inspect": "look closely at a dataset, block, data file or refusal",
        "change": "make of a dataset what its manifest says now, as new blocks; shows the difference",
        "rename": "give a dataset another name; its identity stays",
        "delete": "delete datasets and their data",
    },
    "exchange with others": {
        "serve": "run the node: serve datasets, take pushes",
        "push": "offer a dataset to another node",
        "import": "take datasets from files (folders, archives, buckets), verified as if they came from a stranger",
        "export": "write datasets as files that any ODF program reads: folders, archives, buckets",
        "publish": "serve datasets to others again, or with --off no longer (new ones are served)",
        "token": "manage the tokens that allow others to push and to read",
        "login": "keep an access token for another server",
        "logout": "forget an access token for another server",
        "repo": "name repositories; say where datasets are pulled from and pushed to",
        "peer": "name the nodes to gossip with",
        "subscribe": "bring datasets up to date by themselves when there is news of them",
    },
    "check and trust": {
        "verify": "check chains, data and derivations again",
        "trust": "show what data rest on, by which rule, and what other policies would change",
        "locate": "find where a node's slice differs from a file, by a few hashes",
        "evidence": "show what is proved against datasets; settle, export, recover",
        "judge": "say what a bundle of evidence proves, offline",
        "key": "show and change who speaks for a dataset; recover from a stolen key",
    },
    "care for this node": {
        "status": "show what is unsound, failing, stale or waiting, and the command that mends it",
        "schedule": "show which datasets are pulled by themselves, when next, and what became of it",
        "completion": "write a script with which bash, zsh or fish completes commands and options",
        "doctor": "show what this machine offers, what is missing and how to mend it",
        "engine": "list engines, inspect them, prepare a faster start",
        "image": "add container images whose programs fetch rows, and list them",
        "cache": "free what can be had again, and bring it back",
        "gc": "remove files that no dataset needs: of deleted datasets, of refused and stopped transfers",
        "scrub": "read every object again and compare it with its name",
        "repair": "find what is missing or damaged in this node's data, and fetch it again",
        "backup": "copy this node while it runs",
        "restore": "fill a new --home from a backup",
    },
}
"""Commands by what they are for, with their lines in the help; modules of the same names in ``commands`` are they."""

COMMANDS: Final[dict[str, str]] = {name: line for topic in TOPICS.values() for name, line in topic.items()}
"""All of them."""

ALIASES: Final = {"ls": "list", "mv": "rename", "rm": "delete"}
"""Names that a shell has made usual."""

_GLOBAL_VALUES: Final = frozenset({"--home", "--log-file", "--system-time"})
_HELP: Final = frozenset({"-h", "--help"})
_GLOBAL: Final = frozenset({"-q", "--quiet", "-v", "--verbose", *_HELP, "--version", *_GLOBAL_VALUES})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _open_missing_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    command, strange = find_command(words)
    if strange is not None:
        build_parser(None).refuse_words([strange])
    while command == "help":
        # 'help sql' is 'sql --help', and 'help' alone is '--help'.
        del words[_find_place(words)]
        words += () if "--help" in words else ("--help",)
        command, _ = find_command(words)
    if command in ALIASES:
        command = words[_find_place(words)] = ALIASES[command]
    if command is not None and command not in COMMANDS:
        build_parser(None).error(f"there is no command '{command}'.{suggest(command, COMMANDS)}")
    # Help that is asked for before the command is about all of them.
    asks_for_all = command is not None and not _HELP.isdisjoint(words[: _find_place(words)])
    parser = build_parser(None if asks_for_all else command)
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        parser.find_parser(arguments).refuse_words(unknown)
    if command is None:
        parser.print_help()
        return USAGE_ERROR

    return cli.run.run_command(arguments)


def _open_missing_streams() -> None:
    """Stand in for streams that whoever started us has closed (``>&-``): nothing is read, output goes nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - for the whole run


def find_command(words: Sequence[str]) -> tuple[str | None, str | None]:
    """Find the command among the words, before anything of it is loaded.

    Returns:
        The first word that is neither an option nor an option's value; and the first unknown option that stands before
        it. Both None where there is no such word.
    """
    place = _find_place(words)
    options = words[:place]
    strange = next((word for word in _iter_options(options) if word.partition("=")[0] not in _GLOBAL), None)
    if strange is not None:
        return None, strange
    return (words[place] if place < len(words) else None), None


def _find_place(words: Sequence[str]) -> int:
    """Find where the command stands; behind the last word where there is none."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in _GLOBAL_VALUES else 1
    return min(place, len(words))


def _iter_options(words: Sequence[str]) -> Iterator[str]:
    left = iter(words)
    for word in left:
        yield word
        if word in _GLOBAL_VALUES:
            next(left, None)


def build_parser(command: str | None, *, is_whole: bool = False) -> Parser:
    """Make the parser of one command, which is all that is loaded and made; None: of all, without their options.

    ``is_whole``: of all with their options, for what completes them.
    """
    parser = Parser(
        prog="odf-node",
        usage="odf-node [OPTION ...] COMMAND ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,  # the topics stand as they are
        description="Publish, pull and re-verify Open Data Fabric datasets between organisations.\n\n"
        + format_topics(TOPICS),
        epilog="'odf-node help COMMAND' explains a command. ls is list, mv is rename, rm is\ndelete.",
    )
    parser.add_argument("--version", action="version", version=f"odf-node {__version__}")
    parser.own_end = False
    add_global_options(parser, default=None)
    commands = parser.add_subparsers(
        dest="command",
        metavar="COMMAND",
        help=None if is_whole else argparse.SUPPRESS,
        prog=parser.prog,
        parser_class=Parser,
    )
    for name in COMMANDS if command is None else [command]:
        line = COMMANDS[name]
        child = commands.add_parser(name, help=line, description=_sentence(line))
        if is_whole or name == command:
            importlib.import_module(f"odf_node.cli.commands.{name}").configure(child)
            for each in child.iter_parsers():
                add_global_options(each, default=argparse.SUPPRESS, is_explained=is_whole)
    return parser


def add_global_options(parser: argparse.ArgumentParser, *, default: str | None, is_explained: bool = True) -> None:
    """Add the options that stand before or after any command; ``is_explained``: its help has them."""
    group = parser.add_argument_group("options of every command")

    def add(*names: str, line: str, **settings: Any) -> None:
        group.add_argument(*names, help=line if is_explained else argparse.SUPPRESS, **settings)

    add(
        "--home",
        metavar="FOLDER",
        default=default or os.environ.get("ODF_NODE_HOME") or None,
        line="this node's folder (default: $ODF_NODE_HOME, else odf-node in the user's data folder)",
    )
    add(
        "--system-time",
        metavar="T",
        default=default,
        line="write with this system time instead of now (RFC 3339), to make a run repeatable",
    )
    add("-q", "--quiet", action="store_true", default=default or False, line="say only what went wrong")
    add(
        "-v",
        "--verbose",
        action="store_true",
        default=default or False,
        line="say what runs, and what took how long",
    )
    add(
        "--log-file",
        metavar="FILE",
        default=default,
        line="append that to a file, with times, and where in the program an error arose",
    )


def add_actions(
    parser: argparse.ArgumentParser,
    lines: Mapping[str, str],
    *,
    dest: str = "action",
    metavar: str = "ACTION",
    title: str = "actions",
) -> dict[str, argparse.ArgumentParser]:
    """Declare the actions of a command, each by its line in the help."""
    actions = parser.add_subparsers(dest=dest, metavar=metavar, required=True, title=title)
    children = {}
    for name, line in lines.items():
        children[name] = actions.add_parser(name, help=line, description=_sentence(line))
    return children


def _sentence(line: str) -> str:
    return f"{line[0].upper()}{line[1:]}."
