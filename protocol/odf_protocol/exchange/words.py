"""Words that are looked for in what datasets say of themselves, and the texts in which they occur.

Source: clause EX-89 in ``spec/extensions/exchange.md``.
"""

from collections.abc import Iterable, Sequence

from odf_protocol.errors import MalformedError
from odf_protocol.exchange.limits import MAX_REPORTED_CHARACTERS, MAX_SEARCH_WORDS


def fold(words: Sequence[str]) -> list[str]:
    """Make words comparable, whatever their case.

    Raises:
        MalformedError: None, too many, or one that is empty or too long.
    """
    if not 0 < len(words) <= MAX_SEARCH_WORDS or not all(0 < len(word) <= MAX_REPORTED_CHARACTERS for word in words):
        expected = f"1 to {MAX_SEARCH_WORDS} words of 1 to {MAX_REPORTED_CHARACTERS} characters"
        raise MalformedError(
            "search", expected=expected, found=f"{len(words)} of up to {max(map(len, words), default=0)}"
        )
    return [word.casefold() for word in words]


def match_texts(words: Sequence[str], texts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Say in which texts the words occur, in the order of texts; nothing where one of them is in none.

    Args:
        words: Case-folded.
        texts: What each is, and it.
    """
    folded = [(what, text.casefold()) for what, text in texts]
    if not all(any(word in text for _, text in folded) for word in words):
        return ()
    return tuple(what for what, text in folded if any(word in text for word in words))
