"""The parser: says what is wrong in one line, and offers the nearest word that would have been right."""

import argparse
import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NoReturn

USAGE_ERROR: Final = 2
HIGHEST_PORT: Final = 65_535


class Parser(argparse.ArgumentParser):
    """An argument parser that takes no abbreviations and offers the nearest option or choice."""

    def __init__(self, **settings: Any) -> None:
        # An abbreviation that works today is ambiguous after the next option is added.
        super().__init__(**{"allow_abbrev": False, **settings})

    def error(self, message: str) -> NoReturn:
        """End the program: what is wrong, and where help is."""
        self.exit(USAGE_ERROR, f"{self.prog}: {message}\nTry '{self.prog} --help'.\n")

    def refuse_words(self, words: Iterable[str]) -> NoReturn:
        """End the program because of the first word that nothing here takes."""
        word = next(iter(words))
        if word.startswith("-"):
            name = word.partition("=")[0]
            self.error(f"there is no option '{name}'.{suggest(name, self.iter_options())}")
        self.error(f"'{word}' is one word too many")

    def iter_options(self) -> Iterator[str]:
        """Yield the options of this parser."""
        for action in self._actions:
            yield from action.option_strings

    def find_parser(self, arguments: argparse.Namespace) -> "Parser":
        """Return the parser of the command, or of the command's action, that ``arguments`` were read with."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse gives it no public name
                child = (action.choices or {}).get(str(getattr(arguments, action.dest, None)))
                if isinstance(child, Parser):
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
