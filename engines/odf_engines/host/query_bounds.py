"""How long and how deep a query may be: said of its text in one pass, before any engine reads it.

What parsers and analysers do is worse than linear in the depth of a text, and ends at the stack of their threads: deep
queries came back as failures of the engine, or took all the time there was.

Source: clause GATE-15 in ``spec/extensions/engine-contract.md``.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from odf_engines.contract import Limits
from odf_engines.errors import EngineError, InvalidQueryError, LimitExceededError
from odf_protocol.events import TransformSql

MAX_CHARACTERS: Final = 200_000  # guess: two hundred times a long query
MAX_TOKENS: Final = 10_000  # guess: a list of 5,000 values; the gate looks at some 2,000 nodes of a plan in a second
MAX_LEVELS: Final = 100  # guess: ten times the deepest seen; Spark's parser ends between 200 and 500
MAX_STEPS: Final = 100  # guess: ten times the longest seen
ANALYSIS_S: Final = 60.0
"""What the analysis of a declared query may take.  # guess: one of 22 tables takes some seconds on a busy machine"""

# Words and signs as Spark's lexer tells them apart; ``/*+`` opens a hint, whose content is read as any other. What is
# open to the end is in no query, so nobody has to agree on where it would have ended. Repetitions are possessive: no
# character is read twice.
_TOKEN = re.compile(
    r"""
    (?P<nothing>\s++ | --(?:\\\n|[^\r\n])*+)
    | (?P<comment>/\*(?!\+))
    | [rR]'[^']*+' | [rR]"[^"]*+"
    | '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+" | `(?:[^`]|``)*+`
    | (?P<open>['"`]|[rR]['"]|\$\w*+\$)
    | (?P<word>\w++)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
# The same where a quote is doubled and nothing else takes its meaning away, as in standard SQL. A text that does not
# end is left to the engine.
_STANDARD_TOKEN = re.compile(
    r"""
    (?P<nothing>\s++ | --[^\n]*+)
    | (?P<comment>/\*)
    | '(?:[^']|'')*+' | "(?:[^"]|"")*+"
    | (?P<word>\w++)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # also what stands for bytes of a command line that are no UTF-8
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_LEVELS = {"(": 1, "[": 1, "case": 1, ")": -1, "]": -1, "end": -1}


def check_transform_bounds(transform: TransformSql, *, has_escapes: bool = True) -> None:
    """Check all queries of a transform together.

    Raises:
        InvalidQueryError: Too many, too long or too deep.
    """
    steps = [each.query for each in transform.queries or ()]
    if transform.query is not None:
        steps.append(transform.query)
    if len(steps) > MAX_STEPS:
        raise InvalidQueryError(f"a transform has at most {MAX_STEPS} queries, found {len(steps)}")
    check_query_bounds(*steps, has_escapes=has_escapes)


def check_query_bounds(*queries: str, has_escapes: bool = True) -> None:
    """Check queries, of which the lengths count together.

    Args:
        queries: Their texts.
        has_escapes: Whether a backslash in a quoted text takes its meaning from the next character, as in Spark.

    Raises:
        InvalidQueryError: Too long or too deep, which says the bound; or a text or comment in it does not end.
    """
    if (characters := sum(map(len, queries))) > MAX_CHARACTERS:
        raise InvalidQueryError(f"expected at most {MAX_CHARACTERS} characters of SQL, found {characters}")
    left = MAX_TOKENS
    for sql in queries:
        if (half := _HALF_CHARACTER.search(sql)) is not None:
            raise InvalidQueryError(f"half a character, {half[0]!a}, at character {half.start() + 1}")
        left -= _count_tokens(sql, left, _TOKEN if has_escapes else _STANDARD_TOKEN)


def _count_tokens(sql: str, most: int, token: re.Pattern[str]) -> int:
    count = level = place = 0
    while found := token.match(sql, place):
        place = found.end()
        match found.lastgroup:
            case "nothing":
                continue
            case "comment":
                place = _end_of_comment(sql, place)
                continue
            case "open":
                raise InvalidQueryError(f"{found[0]} opens something at character {place} that does not end")
            case "word" | "sign":
                level = max(0, level + _LEVELS.get(found[0].lower(), 0))
                _check_level(level, place)
        count += 1
        if count > most:
            raise InvalidQueryError(
                f"expected at most {MAX_TOKENS} words and signs, found more at character {place}; "
                "lists of values belong into a dataset to join with"
            )
    return count


def _end_of_comment(sql: str, place: int) -> int:
    """Return where a comment ends, with those inside of it."""
    start, level = place, 1
    while level:
        edge = _COMMENT_EDGE.search(sql, place)
        if edge is None:
            raise InvalidQueryError(f"/* opens a comment at character {start} that does not end")
        place = edge.end()
        level += 1 if edge[0] == "/*" else -1
        _check_level(level, place)
    return place


def _check_level(level: int, place: int) -> None:
    if level > MAX_LEVELS:
        raise InvalidQueryError(
            f"expected at most {MAX_LEVELS} brackets, CASEs or comments inside each other, found more at character "
            f"{place}; write it in several steps"
        )


def limits_of_analysis(session: Limits) -> Limits:
    """Return what the analysis of a declared query may cost: the session's limits, and less time (SANDBOX-18)."""
    return replace(session, wall_s=min(session.wall_s, ANALYSIS_S))


def blame_analysis(_folder: Path, error: EngineError) -> EngineError:
    """Say of a limit that was reached that the analysis of the query reached it."""
    if not isinstance(error, LimitExceededError):
        return error
    return LimitExceededError(error.limit, allowed=error.allowed, found=error.found, where="the analysis of the query")
