"""Whether the result of an analysed query follows from its rows alone, and from what else it follows if not.

That may be the engine's build. Names of functions, and literals that name a time zone, are judged as they are written.
In the analysed query is judged what follows from the types that a function is given, and what is written with no name
at all: casts, ``ILIKE``, ``RLIKE``. Collations are rejected.

Source: clauses GATE-5, GATE-6 and GATE-17; what pins was measured against a live engine.
"""

import json
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, Final

from odf_engines.contract import Finding
from odf_engines.errors import NotReproducibleError
from odf_spark.gate.functions import FUNCTIONS, FunctionUse
from odf_spark.gate.statement import ParsedQuery
from odf_spark.gate.trees import (
    class_name,
    items,
    iter_expressions,
    iter_plan,
    operands_of,
    shown,
    simple_name,
)

_KNOWN_PACKAGE = "org.apache.spark.sql.catalyst.expressions."
_DATED_TEXT = re.compile(r"\s*[+-]?\d{4}.*", re.DOTALL)

_CLOCK = ("it reads the clock", "a time from the rows, such as the event time column")
_RANDOM = ("every run gives another value", "a value computed from the row, such as xxhash64(column)")
_ENGINE_STATE = ("it depends on how the engine cut the rows", "a value computed from the row")
_WHO = ("it depends on who runs the query, and where", "a constant")

_IMPURE = {
    "CurrentBatchTimestamp": _CLOCK, "CurrentDate": _CLOCK, "CurrentTime": _CLOCK, "CurrentTimestamp": _CLOCK,
    "LocalTimestamp": _CLOCK, "LocalTime": _CLOCK, "Now": _CLOCK, "UnixTimestampNow": _CLOCK,
    "Rand": _RANDOM, "Randn": _RANDOM, "RandStr": _RANDOM, "Uniform": _RANDOM, "Uuid": _RANDOM, "Shuffle": _RANDOM,
    "AesEncrypt": _RANDOM,
    "InputFileBlockLength": _ENGINE_STATE, "InputFileBlockStart": _ENGINE_STATE, "InputFileName": _ENGINE_STATE,
    "MonotonicallyIncreasingID": _ENGINE_STATE, "SparkPartitionID": _ENGINE_STATE,
    "CurrentCatalog": _WHO, "CurrentDatabase": _WHO, "CurrentPath": _WHO, "CurrentTimeZone": _WHO, "CurrentUser": _WHO,
    "SparkVersion": _WHO, "VariableReference": _WHO,
    "CallMethodViaReflection": ("it calls Java code", "a built-in function"),
    "PythonUDF": ("it calls code from outside the query", "a built-in function"),
    "ScalaUDF": ("it calls code from outside the query", "a built-in function"),
}  # fmt: skip

_UNDATED = (
    "a text without a date, such as '12:30', becomes that time of the day on which the query runs",
    "to_timestamp(column, 'yyyy-MM-dd HH:mm:ss') or try_to_timestamp with the format that the column has",
)


_COLLATION = ("texts that a collation takes for equal differ, so the one that is met first wins", "lower(column)")

_TYPED_BY_TEXT = frozenset({"Cast", "Collate", "JsonToStructs"})  # a query names the type of what they give

_RECURSION = Finding(
    expression="WITH RECURSIVE",
    reason="how deep it may go, and how many rows it may give, is the engine's own",
    rewrite="pin the engine's digest",
)
_SUBQUERIES = ("Exists", "InSubquery", "ListQuery", "Subquery")


def check_purity(plan: Any, inputs: Collection[str]) -> tuple[Finding, ...]:
    """Check every expression of an analysed plan.

    Args:
        plan: Analysed.
        inputs: Names of the views that are inputs; what they are made of is ours.

    Returns:
        What is right only under one engine digest, each once; empty if the result follows from the rows.

    Raises:
        NotReproducibleError: The first expression whose result nobody could repeat.
    """
    pinned: dict[str, Finding] = {}
    for node in iter_plan(plan, inputs):
        if simple_name(node) == "UnionLoop":
            pinned.setdefault(_RECURSION.expression, _RECURSION)
        for expression in iter_expressions(node):
            _reject_impure(expression)
            for finding in find_pinned(expression):
                pinned.setdefault(finding.expression, finding)
    return tuple(pinned.values())


def _reject_impure(expression: Any) -> None:
    name = simple_name(expression)
    if name in _IMPURE:
        reason, rewrite = _IMPURE[name]
        raise NotReproducibleError(shown(expression), reason, rewrite)
    if name in _TYPED_BY_TEXT and " collate " in str(expression.dataType().catalogString()).lower():
        raise NotReproducibleError(shown(expression), *_COLLATION)
    match name:
        case "Cast":
            _check_cast(expression)
        case "JsonToStructs":
            if "timestamp" in str(expression.dataType().catalogString()):
                raise NotReproducibleError(
                    shown(expression), _UNDATED[0], "read the field as STRING, then to_timestamp"
                )
    if not class_name(expression).startswith((_KNOWN_PACKAGE, "org.apache.spark.sql.catalyst.plans.")):
        raise NotReproducibleError(shown(expression), "it was not examined", "a built-in function")
    # Asked last, since functions of a whole group answer it for all below them, and subqueries for a plan that is
    # looked at by itself.
    if not name.endswith(_SUBQUERIES) and not operands_of(expression) and not expression.deterministic():
        raise NotReproducibleError(shown(expression), *_RANDOM)


def _check_cast(cast: Any) -> None:
    """Reject casts of text to times that read the clock (special words, times without a date)."""
    target = str(cast.dataType().typeName())
    child = cast.child()
    if target not in ("date", "timestamp", "timestamp_ntz") or not str(child.dataType().typeName()).startswith(
        "string"
    ):
        return
    if simple_name(child) == "Literal":
        if child.value() is not None and not _DATED_TEXT.fullmatch(str(child.toString())):
            raise NotReproducibleError(shown(cast), "it may depend on the moment it is run", "a date with a year")
    elif child.foldable():
        raise NotReproducibleError(shown(cast), "it may depend on the moment it is run", "a literal date with a year")
    elif target != "date":
        raise NotReproducibleError(shown(cast), *_UNDATED)


PIN = "pin the engine's digest"
ZONE = "it uses the table of time zones"

_QUOTED = re.compile(r"""(?s)['"](.*)['"]""")
_WORD = re.compile(r"[A-Za-z]{2,}")
_FIXED_ZONES = frozenset({"UTC", "GMT", "UT"})


def find_written(query: ParsedQuery) -> Iterator[Finding]:
    """Yield what is right only under one engine digest."""
    for name in sorted(query.functions):
        grade = FUNCTIONS[name]
        if grade.use is FunctionUse.PINNED:
            yield Finding(expression=name, reason=grade.reason, rewrite=PIN)
    for written in query.times:
        if (quoted := _QUOTED.search(written)) is None or names_a_zone(quoted[1]):
            yield Finding(expression=written, reason=ZONE, rewrite="the time in UTC, with Z at its end")


def names_a_zone(text: str) -> bool:
    """Whether the text of a time names a zone, whose offset a table says; escapes could hide one."""
    return "\\" in text or any(word.upper() not in _FIXED_ZONES for word in _WORD.findall(text))


_DIGITS: Final = "how many digits a floating-point number is written with depends on the version of Java"
_DECIMALS: Final = (
    "it goes by the digits that a floating-point number is written with, which depend on the version of Java"
)
_NESTED: Final = "how nested values are written is the engine's own"
_VARIANT: Final = "how a variant holds a value is the engine's own"
_LETTERS: Final = "it uses the table of letters"
_PATTERN: Final = "its pattern is read by the Java runtime"
_NAMES: Final = "its pattern may read the calendar's names"
_BITS: Final = "how 0.0 and -0.0, and what is no number, are taken together is the engine's own"

# Where the pattern stands among the children.
_SEARCHES: Final = {
    "RLike": (1,), "RegExpReplace": (1,), "RegExpExtract": (1,), "RegExpExtractAll": (1,), "RegExpInStr": (1,),
    "StringSplit": (1,), "StringToMap": (1, 2),
}  # fmt: skip
_TIME_READERS: Final = frozenset({"GetTimestamp", "ToUnixTimestamp", "UnixTimestamp"})

# A text that stands for itself in every language of patterns: no sign of a pattern but as an escaped one.
_PLAIN_PATTERN: Final = re.compile(r"(?:[^\\^$.|?*+()\[\]{}]|\\[\\^$.|?*+()\[\]{}])*")
# Years, months, days, hours, minutes, seconds and fractions in digits.
_DIGITS_PATTERN: Final = re.compile(r"(?:'[^']*'|(?<!M)MM?(?!M)|[yudHmsS]|[^A-Za-z'])*")

_FLOATS: Final = ("float", "double")
_NESTED_TYPES: Final = ("array", "map", "struct")


def find_pinned(expression: Any) -> Iterator[Finding]:
    """Yield what pins one expression; what is inside of it is judged by itself."""
    match simple_name(expression):
        case "Cast":
            yield from _in_cast(expression)
        case "Lower" | "Upper" as name:
            yield Finding(expression=name.lower(), reason=_LETTERS, rewrite=PIN)
        case "Round" | "BRound" if _kind(expression.children().apply(0)) in _FLOATS:
            yield Finding(expression=shown(expression), reason=_DECIMALS, rewrite="rounding of DECIMAL, or " + PIN)
        case "Murmur3Hash" | "XxHash64" if any(_holds(_kind(each), _FLOATS) for each in items(expression.children())):
            yield Finding(expression=shown(expression), reason=_BITS, rewrite="a hash of DECIMAL, or " + PIN)
        case name if name in _SEARCHES:
            if not all(_is_literal(expression, at, _PLAIN_PATTERN) for at in _SEARCHES[name]):
                rewrite = "a text without signs of a pattern, or " + PIN
                yield Finding(expression=shown(expression), reason=_PATTERN, rewrite=rewrite)
        case name if name in _TIME_READERS and not _is_literal(expression, 1, _DIGITS_PATTERN):
            rewrite = "a pattern of digits, such as yyyy-MM-dd HH:mm:ss, or " + PIN
            yield Finding(expression=shown(expression), reason=_NAMES, rewrite=rewrite)


def _in_cast(cast: Any) -> Iterator[Finding]:
    child = cast.child()
    source, target = _kind(child), _kind(cast)
    rewrite = PIN
    if source == "string" and target in ("timestamp", "timestamp_ntz"):
        if simple_name(child) != "Literal" or child.value() is None or not names_a_zone(str(child.toString())):
            return
        reason, rewrite = ZONE, "the time in UTC, with Z at its end"
    else:
        found = _reason_of_cast(source, target)
        if found is None:
            return
        reason = found
        if reason in (_DIGITS, _DECIMALS):
            rewrite = "the same over DECIMAL, or " + PIN
    yield Finding(expression=shown(cast), reason=reason, rewrite=rewrite)


def _reason_of_cast(source: Any, target: Any) -> str | None:
    """Find what of a cast rests on the engine, looking into both types side by side; None if nothing does."""
    if _holds(source, ("variant",)) or _holds(target, ("variant",)):
        return _VARIANT
    if target == "string":
        if _holds(source, _FLOATS):
            return _DIGITS
        return _NESTED if isinstance(source, dict) and source["type"] in _NESTED_TYPES else None
    if str(target).startswith("decimal") and source in _FLOATS:
        return _DECIMALS
    if isinstance(source, dict) and isinstance(target, dict) and source.get("type") == target.get("type"):
        pairs = zip(_inner(source), _inner(target), strict=False)
        return next((reason for pair in pairs if (reason := _reason_of_cast(*pair)) is not None), None)
    return None


def _is_literal(expression: Any, at: int, pattern: re.Pattern[str]) -> bool:
    """Whether a child is a text that stands in the query and is all of ``pattern``."""
    child = expression.children().apply(at)
    if simple_name(child) != "Literal":
        return False
    return child.value() is None or pattern.fullmatch(str(child.toString())) is not None


def _kind(expression: Any) -> Any:
    """Return the type of an expression as Spark's JSON says it: a word, or a tree."""
    return _parsed(str(expression.dataType().json()))


@lru_cache(256)
def _parsed(text: str) -> Any:
    return json.loads(text)


def _holds(kind: Any, words: tuple[str, ...]) -> bool:
    return any(_holds(each, words) for each in _inner(kind)) if isinstance(kind, dict) else kind in words


def _inner(kind: dict[str, Any]) -> list[Any]:
    """Return the types inside of one."""
    match kind["type"]:
        case "array":
            return [kind["elementType"]]
        case "map":
            return [kind["keyType"], kind["valueType"]]
        case "struct":
            return [each["type"] for each in kind["fields"]]
        case _:
            return []
