"""The one error of reading manifests: it points at a character and says what would have been right."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from odf_protocol.errors import MalformedError, shown

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
