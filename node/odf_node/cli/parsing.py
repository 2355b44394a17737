"""The parser: says what is wrong in one line, and offers the nearest word that would have been right."""

import argparse
import difflib
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from odf_protocol.exchange.limits import MAX_PARALLEL_TRANSFERS, MIN_SET_RATE_BYTES_PER_S

USAGE_ERROR: Final = 2
COMMON_OPTIONS: Final = ("--home", "--system-time", "-q", "-v", "--log-file")
"""What every command takes, by the names that its help shows."""

_LONG_COMMON_OPTIONS: Final = ("--quiet", "--verbose", "--help")
HIGHEST_PORT: Final = 65_535
_COLUMN: Final = 14
"""Where the lines of commands begin in the help."""

_OPTION_LINE: Final = re.compile(r"^  (-\S.*?)(?:  |$)", re.MULTILINE)
_OPTION: Final = re.compile(r"(?<!\S)--?[A-Za-z][\w-]*")


class CommandParser(argparse.ArgumentParser):
    """An argument parser that takes options between words, no abbreviations, and offers the nearest option.

    Attributes:
        own_end: Whether its help ends with examples, and the names of options that every command has.
        examples: Lines for its help, as one types them, without the program's name.
    """

    def __init__(self, **settings: Any) -> None:
        self.own_end = True
        self.examples: Sequence[str] = ()
        self._subcommands: Any = None
        self._mixes = False
        # An abbreviation that works today is ambiguous after the next option is added.
        super().__init__(**{"allow_abbrev": False, **settings})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """See ``ArgumentParser``; options may stand between words."""
        words = list(sys.argv[1:] if args is None else args)
        # The second reading of mixed words would take for options what stands behind "--".
        if self._mixes or "--" in words or self._subcommands is not None:
            return super().parse_known_args(words, namespace)
        self._mixes = True  # it is made of two calls of this method
        try:
            return self.parse_known_intermixed_args(words, namespace)
        finally:
            self._mixes = False

    def add_subparsers(self, **settings: Any) -> Any:
        """See ``ArgumentParser``; what is made is remembered, as argparse says of it nowhere else."""
        self._subcommands = super().add_subparsers(**settings)
        return self._subcommands

    def add_action(self, name: str, **settings: Any) -> "CommandParser | None":
        """Declare one more action of a command; None where it has one of this name."""
        if self._subcommands is None or name in self._subcommands.choices:
            return None
        child: CommandParser = self._subcommands.add_parser(name, **settings)
        return child

    def iter_parsers(self) -> "Iterator[CommandParser]":
        """Yield this parser and those of all actions below it."""
        yield self
        if self._subcommands is not None:
            for child in self._subcommands.choices.values():
                yield from child.iter_parsers()

    def format_help(self) -> str:
        """Give the help; of options that every command has no more than the names."""
        return super().format_help() + (self._format_end() if self.own_end else "")

    def _format_end(self) -> str:
        """Give examples, as one types them, and where the options that every command has are explained."""
        program = self.prog.partition(" ")[0]
        lines = [f"  {program} {line}\n" for line in self.examples]
        return "".join(["\n", "examples:\n" if len(lines) > 1 else "example:\n", *lines] if lines else []) + (
            f"\n{', '.join(COMMON_OPTIONS)}: see '{program} --help'.\n"
        )

    def error(self, message: str) -> NoReturn:
        """End the program: what is wrong, and where help is."""
        if (actions := self._subcommands) is not None and message.endswith(f": {actions.metavar}"):
            message = f"say which {actions.metavar}: {', '.join(actions.choices)}"  # the one that is required
        self.exit(USAGE_ERROR, f"{self.prog}: {message}\nTry '{self.prog} --help'.\n")

    def reject_words(self, words: Iterable[str]) -> NoReturn:
        """End the program because of the first word that nothing here takes."""
        word = next(iter(words))
        if word.startswith("-"):
            name = word.partition("=")[0]
            known = [*self._list_options(), *COMMON_OPTIONS, *_LONG_COMMON_OPTIONS]
            if name in known:  # it was read before the word that says the action
                self.error(f"'{name}' stands behind '{self.prog}'")
            self.error(f"there is no option '{name}'.{suggest(name, known)}")
        self.error(f"'{word}' is one word too many")

    def _list_options(self) -> list[str]:
        """List the options that the help explains."""
        return [name for line in _OPTION_LINE.findall(self.format_help()) for name in _OPTION.findall(line)]

    def find_parser(self, arguments: argparse.Namespace) -> "CommandParser":
        """Return the parser of the command, or of the command's action, that ``arguments`` were read with."""
        if (actions := self._subcommands) is not None:
            child: CommandParser | None = actions.choices.get(str(getattr(arguments, actions.dest, None)))
            if child is not None:
                return child.find_parser(arguments)
        return self


def format_topics(topics: Mapping[str, Mapping[str, str]]) -> str:
    """Give the part of a help that has commands by topic, each with its line, as wide as argparse's."""
    width = max(shutil.get_terminal_size().columns - 2, 2 * _COLUMN)
    indent = " " * _COLUMN
    parts = []
    for topic, lines in topics.items():
        reported = [
            textwrap.fill(line, width, initial_indent=f"  {name}".ljust(_COLUMN), subsequent_indent=indent)
            for name, line in lines.items()
        ]
        parts.append("\n".join([f"{topic}:", *reported]))
    return "\n\n".join(parts)


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
    return {name: actions.add_parser(name, help=line, description=as_sentence(line)) for name, line in lines.items()}


def as_sentence(line: str) -> str:
    """Make a sentence of a command's line in the help."""
    return f"{line[0].upper()}{line[1:]}."


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
    least = MIN_SET_RATE_BYTES_PER_S
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
        type=whole_number(1, MAX_PARALLEL_TRANSFERS),
        metavar="N",
        help="move so many objects at once (default: limits.parallel_transfers of the settings, else 4, and 8 with a "
        "bucket; a folder or archive is read one after the other)",
    )


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add ``--dry-run``."""
    parser.add_argument("--dry-run", action="store_true", help="change nothing; say what would be done")


def add_evolve(parser: argparse.ArgumentParser) -> None:
    """Add ``--evolve``."""
    parser.add_argument(
        "--evolve",
        action="store_true",
        help="let the dataset have the new columns of a changed source, as optional ones: rows that are there have "
        "no value in them",
    )


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
