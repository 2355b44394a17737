"""The parser: says what is wrong in one line, and offers the nearest word that would have been right."""

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

import odf_protocol
from odf_node import cli

USAGE_ERROR: Final = 2
COMMON_OPTIONS: Final = "options of every command"
HIGHEST_PORT: Final = 65_535


class Parser(argparse.ArgumentParser):
    """An argument parser that takes options anywhere, no abbreviations, and offers the nearest option or choice."""

    def __init__(self, **settings: Any) -> None:
        # An abbreviation that works today is ambiguous after the next option is added.
        super().__init__(**{"allow_abbrev": False, **settings})
        self.topics: Mapping[str, Sequence[str]] = {}
        """Headings of the help under which commands stand, where there are too many for one list."""
        self._subcommands: argparse._SubParsersAction[Parser] | None = None
        self._mixes = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """See ``ArgumentParser``; options may stand between words, and before the word that says the action."""
        words = list(sys.argv[1:] if args is None else args)
        # The second reading of mixed words would take for options what stands behind "--".
        if self._mixes or "--" in words:
            return super().parse_known_args(words, namespace)
        if self._subcommands is not None:
            return super().parse_known_args(words if self.topics else self._with_action_first(words), namespace)
        self._mixes = True  # it is made of two calls of this method
        try:
            return self.parse_known_intermixed_args(words, namespace)
        finally:
            self._mixes = False

    def _with_action_first(self, words: list[str]) -> list[str]:
        """Move the word that says the action before the options, all of which are the action's."""
        valued = {name for each in self.iter_parsers() for name in each.iter_options(with_value=True)}
        left = iter(enumerate(words))
        for place, word in left:
            if word in valued:
                next(left, None)
            elif not word.startswith("-"):
                return [word, *words[:place], *words[place + 1 :]]
        return words

    def add_subparsers(self, **settings: Any) -> "argparse._SubParsersAction[Parser]":  # type: ignore[override]
        """See ``ArgumentParser``; what is made is remembered, as argparse says of it nowhere else."""
        self._subcommands = super().add_subparsers(**settings)
        return self._subcommands

    def iter_parsers(self) -> "Iterator[Parser]":
        """Yield this parser and those of all actions below it."""
        yield self
        if (actions := self._subcommands) is not None:
            for child in actions.choices.values():
                yield from child.iter_parsers()

    def format_help(self) -> str:
        """Give the help: commands by topic, examples, and of options that every command has no more than the names."""
        commands = self._subcommands if self.topics else None
        groups = self._own_groups()
        formatter = self._get_formatter()
        self._add_usage(formatter)
        formatter.add_text(self.description)
        if commands is not None:
            lines = {each.dest: each for each in commands._choices_actions}  # noqa: SLF001
            for topic, names in self.topics.items():
                formatter.start_section(topic)
                formatter.add_arguments([lines[name] for name in names if name in lines])
                formatter.end_section()
        for group in groups:
            formatter.start_section(group.title)
            formatter.add_arguments([each for each in group._group_actions if each is not commands])  # noqa: SLF001
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help() + ("" if self.topics else self._format_end())

    def format_usage(self) -> str:
        """Give the first lines of the help; argparse keeps them, too, before it reads mixed words."""
        formatter = self._get_formatter()
        self._add_usage(formatter)
        return formatter.format_help()

    def _add_usage(self, formatter: argparse.HelpFormatter) -> None:
        shown = [each for group in self._own_groups() for each in group._group_actions]  # noqa: SLF001 - nor these
        formatter.add_usage(self.usage, shown, self._mutually_exclusive_groups)

    def _own_groups(self) -> "list[argparse._ArgumentGroup]":
        return [each for each in self._action_groups if self.topics or each.title != COMMON_OPTIONS]

    def _format_end(self) -> str:
        """Give examples, as one types them, and where the options that every command has are explained."""
        program, _, words = self.prog.partition(" ")
        lines = [f"  {program} {line}\n" for line in cli.examples.examples_of(words)]
        common = next((each for each in self._action_groups if each.title == COMMON_OPTIONS), None)
        names = [] if common is None else [each.option_strings[0] for each in common._group_actions]  # noqa: SLF001
        return "".join(["\n", "examples:\n" if len(lines) > 1 else "example:\n", *lines] if lines else []) + (
            f"\n{', '.join(names)}: see '{program} --help'.\n" if names else ""
        )

    def error(self, message: str) -> NoReturn:
        """End the program: what is wrong, and where help is."""
        if (actions := self._subcommands) is not None and message.endswith(f": {actions.metavar}"):
            message = f"say which {actions.metavar}: {', '.join(actions.choices)}"  # the one that is required
        self.exit(USAGE_ERROR, f"{self.prog}: {message}\nTry '{self.prog} --help'.\n")

    def refuse_words(self, words: Iterable[str]) -> NoReturn:
        """End the program because of the first word that nothing here takes."""
        word = next(iter(words))
        if word.startswith("-"):
            name = word.partition("=")[0]
            self.error(f"there is no option '{name}'.{suggest(name, self.iter_options())}")
        self.error(f"'{word}' is one word too many")

    def iter_options(self, *, with_value: bool = False) -> Iterator[str]:
        """Yield the options of this parser; only those that take a value, where that is asked for."""
        for action in self._actions:
            if not with_value or action.nargs != 0:
                yield from action.option_strings

    def find_parser(self, arguments: argparse.Namespace) -> "Parser":
        """Return the parser of the command, or of the command's action, that ``arguments`` were read with."""
        if (actions := self._subcommands) is not None:
            child = actions.choices.get(str(getattr(arguments, actions.dest, None)))
            if child is not None:
                return child.find_parser(arguments)
        return self

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action, f"there is no '{value}'.{suggest(str(value), known)} Known: {', '.join(known)}"
            )


def suggest(word: str, known: Iterable[str]) -> str:
    """Ask for the word that may have been meant; nothing where no known one is like it."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


def whole_number(lowest: int, highest: int | None = None) -> Callable[[str], int]:
    """Make the type of an option that takes a whole number within bounds."""
    bounds = f"from {lowest} to {highest}" if highest is not None else f"of {lowest} or more"

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = lowest - 1
        if value < lowest or (highest is not None and value > highest):
            raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, found '{text}'")
        return value

    return read


def byte_rate(text: str) -> int:
    """Read a rate as ``5M``, ``500k`` or ``250000``: bytes a second; 0: no limit."""
    least = odf_protocol.exchange.limits.LEAST_SET_RATE_BYTES_PER_S
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([kMG]?)", text) or re.fullmatch(r"(\d{1,15})()", text)
    rate = -1 if found is None else int(float(found[1]) * {"": 1, "k": 1_000, "M": 1_000_000, "G": 10**9}[found[2]])
    if rate != 0 and rate < least:
        raise argparse.ArgumentTypeError(
            f"expected {least:,} bytes a second or more (5M, 500k, 250000), or 0 for no limit; found '{text}'"
        )
    return rate


def add_rate_limit(parser: argparse.ArgumentParser) -> None:
    """Add ``--limit-rate``."""
    parser.add_argument(
        "--limit-rate",
        type=byte_rate,
        metavar="RATE",
        help="move at most so many bytes a second to and from other nodes, servers, folders and buckets: 5M, 500k "
        "(default: limits.fetch_bytes_per_second of the settings, else no limit)",
    )


def add_parallel(parser: argparse.ArgumentParser) -> None:
    """Add ``--parallel``."""
    parser.add_argument(
        "--parallel",
        type=whole_number(1, odf_protocol.exchange.limits.MAX_PARALLEL_TRANSFERS),
        metavar="N",
        help="move so many objects at once (default: limits.parallel_transfers of the settings, else 4, and 8 with a "
        "bucket; a folder or archive is read one after the other)",
    )


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add ``--dry-run``."""
    parser.add_argument("--dry-run", action="store_true", help="change nothing; say what would be done")


def add_output_format(parser: argparse.ArgumentParser, *formats: str) -> None:
    """Add ``-o``; the first format is the default."""
    parser.add_argument(
        "-o",
        "--output-format",
        choices=formats,
        default=formats[0],
        metavar="FORMAT",
        help=f"write the result as {', '.join(formats[:-1])} or {formats[-1]} (default: {formats[0]})",
    )
