"""Find the command, run it, answer errors with one line and an exit code.

Only the module of the command that was named is imported; the help of all commands, and a word that is none, read them
all.
"""

import argparse
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from odf_node import __version__
from odf_node.cli import registry
from odf_node.cli.parsing import USAGE_ERROR, CommandParser, as_sentence, format_topics, suggest

_GLOBAL_VALUES: Final = frozenset({"--home", "--log-file", "--system-time"})
_HELP: Final = frozenset({"-h", "--help"})
_GLOBAL: Final = frozenset({"-q", "--quiet", "-v", "--verbose", *_HELP, "--version", *_GLOBAL_VALUES})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _open_missing_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    command, strange = find_command(words)
    if strange is not None:
        _begin_parser().reject_words([strange])
    while command == "help":
        # 'help sql' is 'sql --help', and 'help' alone is '--help'.
        del words[_find_place(words)]
        words += () if "--help" in words else ("--help",)
        command, _ = find_command(words)
    if command is None and "--version" in words and _HELP.isdisjoint(words):
        _begin_parser().parse_args(words)  # it ends the program; no command is read for it
    if command is not None:
        command = words[_find_place(words)] = _find_name(command)
    # Help that is asked for before the command is about all of them.
    asks_for_all = command is not None and not _HELP.isdisjoint(words[: _find_place(words)])
    parser = build_parser(None if asks_for_all else command)
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        parser.find_parser(arguments).reject_words(unknown)
    if command is None:
        parser.print_help()
        return USAGE_ERROR

    from odf_node.cli.run import run_command  # here: --version and --help need nothing of it

    return run_command(arguments)


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


def build_parser(command: str | None, *, is_whole: bool = False) -> CommandParser:
    """Make the parser of one command, which is all that is loaded and made; None: of all, without their options.

    Args:
        command: Its name.
        is_whole: Of all with their options, for what completes them.

    Raises:
        UnusableCommandError: The command is of another package and cannot be loaded.
    """
    by_topic = {} if command is not None else registry.list_commands()
    if command is not None:
        shown = [found] if (found := registry.find_command(command)) is not None else []
    else:
        shown = [each for commands in by_topic.values() for each in commands]
    parser = _begin_parser(
        description="Publish, pull and re-verify Open Data Fabric datasets between organisations.\n\n"
        + format_topics({topic: {each.name: each.line for each in commands} for topic, commands in by_topic.items()}),
        epilog=_describe_aliases(shown),
    )
    commands = parser.add_subparsers(
        dest="command",
        metavar="COMMAND",
        help=None if is_whole else argparse.SUPPRESS,
        prog=parser.prog,
        parser_class=CommandParser,
    )
    for each in shown:
        child = commands.add_parser(each.name, help=each.line, description=as_sentence(each.line))
        if is_whole or each.name == command:
            _configure(child, each, is_whole=is_whole)
    return parser


def _configure(parser: CommandParser, command: registry.Command, *, is_whole: bool) -> None:
    """Declare what a command takes, and the examples that its help and that of its actions ends with."""
    command.configure(parser)
    for each in parser.iter_parsers():
        each.examples = registry.select_examples(command.examples, each.prog.partition(" ")[2])
        add_global_options(each, default=argparse.SUPPRESS, is_explained=is_whole)


def _begin_parser(**settings: Any) -> CommandParser:
    """Make a parser with the options that stand before any command."""
    parser = CommandParser(
        prog="odf-node",
        usage="odf-node [OPTION ...] COMMAND ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,  # the topics stand as they are
        **settings,
    )
    parser.add_argument("--version", action="version", version=f"odf-node {__version__}")
    parser.own_end = False
    add_global_options(parser, default=None)
    return parser


def _find_name(word: str) -> str:
    """Find the name of the command that a word stands for; end the program where it stands for none."""
    try:
        name = word if registry.find_command(word) is not None else registry.find_alias(word)
    except registry.UnusableCommandError as error:
        _begin_parser().error(str(error))
    if name is None:
        _begin_parser().error(f"there is no command '{word}'.{suggest(word, registry.list_names())}")
    return name


def _describe_aliases(commands: Iterable[registry.Command]) -> str:
    aliases = sorted((alias, each.name) for each in commands for alias in each.aliases)
    reported = ", ".join(f"{alias} is {name}" for alias, name in aliases)
    return textwrap.fill(f"'odf-node help COMMAND' explains a command. {reported}.")


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
