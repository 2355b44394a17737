"""Errors of reading manifests, which point at a character, and of the rules of snapshots, which point at a field."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, NoReturn

from odf_protocol.errors import MalformedError, OdfError, RejectedError, shown
from odf_protocol.manifest.nodes import Node

#: How alike a word must be to be suggested; difflib's own default is 0.6. # guess
_SUGGESTION_CUTOFF: Final = 0.6

#: Words longer than this are not compared: difflib's time grows with the square of the length. # guess
_COMPARED_CHARACTERS: Final = 64

#: How many known words a message lists before it cuts. Every union of ODF but DataType fits. # guess
_LISTED_WORDS: Final = 14


class ManifestError(MalformedError):
    """A manifest does not say what its format asks for.

    Attributes:
        source_name: The file's name, or whatever the reader was told.
        line: From 1.
        column: From 1, in characters.
        path: Field path from the document's root (``content.metadata[2].read.kind``), empty for the text as a whole.
        expected: What would have been right.
        found: What is there.
        nearest: A known word that the author may have meant, or None.
    """

    def __init__(
        self,
        source_name: str,
        line: int,
        column: int,
        *,
        path: str = "",
        expected: str,
        found: str,
        nearest: str | None = None,
    ) -> None:
        super().__init__("manifest", where=f"{source_name}:{line}:{column}", expected=expected, found=found)
        self.source_name = source_name
        self.line = line
        self.column = column
        self.path = path
        self.nearest = nearest
        self.expected: str = expected
        self.found: str = found

    def __str__(self) -> str:
        place = f"{self.source_name}:{self.line}:{self.column}: " + (f"{shown(self.path)}: " if self.path else "")
        hint = f"; did you mean {self.nearest!r}?" if self.nearest is not None else ""
        return f"{place}expected {self.expected}, found {shown(self.found)}{hint}"


def find_nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that looks most like ``word``, ignoring case, or None when none does."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    if len(word) > _COMPARED_CHARACTERS:
        return None
    matches = get_close_matches(word.lower(), by_lower, n=1, cutoff=_SUGGESTION_CUTOFF)
    return by_lower[matches[0]] if matches else None


def list_words(words: Iterable[str]) -> str:
    """Join words for a message, cutting a long list."""
    all_words = list(words)
    shown = ", ".join(all_words[:_LISTED_WORDS])
    return shown if len(all_words) <= _LISTED_WORDS else f"{shown} and {len(all_words) - _LISTED_WORDS} more"


#: Field path as a linked list, newest step first, so that extending one costs a tuple; None is the document's root.
Path = tuple["Path", str | int] | None


@dataclass(frozen=True, slots=True)
class Place:
    """A manifest being read; ``source_name`` is a file's name, for messages."""

    source_name: str

    def fail(self, node: Node, path: Path, expected: str, found: str, nearest: str | None = None) -> NoReturn:
        """Raise the error of a node."""
        raise ManifestError(
            self.source_name,
            node.line,
            node.column,
            path=format_path(path),
            expected=expected,
            found=found,
            nearest=nearest,
        )


#: Turns a node into a value, or fails at its place. The value's type is known to the declaration only.
Reader = Callable[[Node, Path, Place], object]


def format_path(path: Path) -> str:
    """Write a path as ``content.metadata[2].read.kind``."""
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")


Step = str | int


class SnapshotError(RejectedError):
    """A snapshot is well-formed and breaks a rule.

    Attributes:
        path: Steps from the snapshot to the fault, as manifests spell them: ``("metadata", 2, "read")``.
        known: Words that the author may have meant.
    """

    def __init__(self, path: tuple[Step, ...], *, expected: str, found: str, known: Iterable[str] = ()) -> None:
        super().__init__(f"snapshot rules at {'.'.join(map(str, path)) or 'the event'}", expected=expected, found=found)
        self.path = path
        self.known = tuple(known)
        self.expected: str = expected
        self.found: str = found


@dataclass(frozen=True, slots=True)
class At:
    """A place in the snapshot."""

    path: tuple[Step, ...] = ()

    def __truediv__(self, step: Step) -> "At":
        return At((*self.path, step))

    def reject(self, expected: str, found: str, known: Iterable[str] = ()) -> NoReturn:
        """Raise the error of this place; the nearest of the known words is offered."""
        raise SnapshotError(self.path, expected=expected, found=found, known=known)

    def check(self, what: str, check: Callable[[str], object], value: str) -> None:
        """Run a check of another module; its error becomes one of this place."""
        try:
            check(value)
        except OdfError as error:
            raise SnapshotError(self.path, expected=what, found=f"{value!r} ({error})") from error
