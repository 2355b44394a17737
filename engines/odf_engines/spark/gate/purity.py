"""Whether the result of an analysed query follows from its rows alone, and from what else it follows if not.

Source: clauses GATE-5, GATE-6 and GATE-17.
"""

import re
from collections.abc import Collection
from typing import Any

from odf_engines.contract import Finding
from odf_engines.errors import NotReplayableError
from odf_engines.spark.gate.pinning import find_pinned
from odf_engines.spark.gate.trees import class_name, iter_expressions, iter_plan, operands_of, shown, simple_name

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
        NotReplayableError: The first expression whose result nobody could repeat.
    """
    pinned: dict[str, Finding] = {}
    for node in iter_plan(plan, inputs):
        if simple_name(node) == "UnionLoop":
            pinned.setdefault(_RECURSION.expression, _RECURSION)
        for expression in iter_expressions(node):
            _refuse_impure(expression)
            for finding in find_pinned(expression):
                pinned.setdefault(finding.expression, finding)
    return tuple(pinned.values())


def _refuse_impure(expression: Any) -> None:
    name = simple_name(expression)
    if name in _IMPURE:
        reason, rewrite = _IMPURE[name]
        raise NotReplayableError(shown(expression), reason, rewrite)
    if name in _TYPED_BY_TEXT and " collate " in str(expression.dataType().catalogString()).lower():
        raise NotReplayableError(shown(expression), *_COLLATION)
    match name:
        case "Cast":
            _check_cast(expression)
        case "JsonToStructs":
            if "timestamp" in str(expression.dataType().catalogString()):
                raise NotReplayableError(shown(expression), _UNDATED[0], "read the field as STRING, then to_timestamp")
    if not class_name(expression).startswith((_KNOWN_PACKAGE, "org.apache.spark.sql.catalyst.plans.")):
        raise NotReplayableError(shown(expression), "nobody has looked at it", "a built-in function")
    # Asked last, since functions of a whole group answer it for all below them, and subqueries for a plan that is
    # looked at by itself.
    if not name.endswith(_SUBQUERIES) and not operands_of(expression) and not expression.deterministic():
        raise NotReplayableError(shown(expression), *_RANDOM)


def _check_cast(cast: Any) -> None:
    """Refuse casts of text to times that read the clock (special words, times without a date)."""
    target = str(cast.dataType().typeName())
    child = cast.child()
    if target not in ("date", "timestamp", "timestamp_ntz") or not str(child.dataType().typeName()).startswith(
        "string"
    ):
        return
    if simple_name(child) == "Literal":
        if child.value() is not None and not _DATED_TEXT.fullmatch(str(child.toString())):
            raise NotReplayableError(shown(cast), "it may depend on the moment it is run", "a date with a year")
    elif child.foldable():
        raise NotReplayableError(shown(cast), "it may depend on the moment it is run", "a literal date with a year")
    elif target != "date":
        raise NotReplayableError(shown(cast), *_UNDATED)
