"""Whether a text is one query over declared relations and known functions; for any query, reproducible or not.

Names are checked before analysis, and after it what they became: rows of declared relations, and Spark's own
expressions. Nothing should get there that is rejected there: it is the net below a name that the analyser resolves in a
way nobody thought of.

Source: clauses GATE-1 to GATE-4 and GATE-10.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from odf_engines.errors import InvalidQueryError
from odf_spark.gate.functions import FUNCTIONS, FunctionUse
from odf_spark.gate.temporal_joins import put_versions, take_times
from odf_spark.gate.trees import class_name, items, iter_expressions, iter_plan, shown, simple_name, view_name
from odf_spark.java_side import java_class, java_session, resolve_plan
from odf_spark.launch import EXCLUDED_RULES, SETTINGS

# Plans that only compute rows from rows. Everything else is a command, a script, a setting, or new and not looked at.
_QUERY_PLAN_NAMES = """
    Aggregate AsOfJoin CTERelationDef CTERelationRef Deduplicate Distinct Except Filter Generate GlobalLimit
    Intersect Join LateralJoin LocalLimit LocalRelation Offset OneRowRelation PipeOperator Pivot Project Sample
    Sort SubqueryAlias Union UnresolvedHaving UnresolvedInlineTable UnresolvedRelation
    UnresolvedSubqueryColumnAliases UnresolvedTableValuedFunction UnresolvedWith Unpivot Window WithCTE
    WithWindowDefinition
"""
_QUERY_PLANS = frozenset(_QUERY_PLAN_NAMES.split())

_NAMED = {
    "CompoundBody": "a script (BEGIN ... END)",
    "RelationTimeTravel": "a table as of a fixed time",
    "ScriptTransformation": "TRANSFORM ... USING runs a program",
    "UnresolvedExecuteImmediate": "EXECUTE IMMEDIATE",
    "UnresolvedHint": "a hint",
    "SetCommand": "SET",
    "SetVariable": "SET VARIABLE",
}

# Spark 4.3 would filter by the end of a session below the group, where each row still is a session of its own, and give
# parts of sessions.
_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
_RULES_WRONG_FOR_SESSIONS = f"{_OPTIMIZER}.PushDownPredicates,{_OPTIMIZER}.PushPredicateThroughNonJoin"

TOO_DEEP = "its parts stand deeper inside each other than the engine's stack is high; write it in several steps"
_REPORTED_CHARACTERS = 300  # guess: two lines
_LISTED_NAMES = 10  # guess: a line
_COMPARED_CHARACTERS = 100  # NAME-2
_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)|line (\d+) pos (\d+)")

# DATE '...' and TIMESTAMP '...' with an explicit year; 'now', 'today' and a time without a date read the clock.
_FIXED_LITERAL = re.compile(r"(?is)\s*\w+\s*(?:/\*.*?\*/\s*)*['\"]\s*[+-]?\d{4}.*")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A text that is a query.

    Attributes:
        plan: What the parser made of it, a Java object.
        functions: That it calls, in small letters.
        times: Literals of times, as they are written.
    """

    plan: Any
    functions: frozenset[str]
    times: tuple[str, ...]


def parse_query(
    spark: Any,
    sql: str,
    relations: Collection[str],
    *,
    known: Collection[str] = (),
    temporal: Collection[str] | None = None,
) -> ParsedQuery:
    """Parse a text and check that it is a query.

    Args:
        spark: Session.
        sql: One query.
        relations: Names it may read besides those it defines itself.
        known: Names that it could have meant where it reads another one; more than `relations`, for the message alone.
        temporal: Of `relations`, those that are temporal tables; None where a query cannot ask as of a time.

    Raises:
        NotReproducibleError: A temporal table is read otherwise.
        InvalidQueryError: Not a query, or it names a relation, a function or a literal that it must not.
    """
    plan = _parse(spark, sql, temporal)
    nodes = list(iter_plan(plan))
    for node in nodes:
        name = simple_name(node)
        if name not in _QUERY_PLANS:
            raise InvalidQueryError(f"only a query is allowed, found {_NAMED.get(name, name)}")
    defined = {each for node in nodes if simple_name(node) == "UnresolvedWith" for each in _defined_names(node)}
    functions, times = set(), []
    for node in nodes:
        _check_relation(node, {*relations, *defined}, known)
        if simple_name(node) == "UnresolvedTableValuedFunction":
            functions.add(_called_function(items(node.name())))
        for expression in iter_expressions(node):
            match simple_name(expression):
                case "UnresolvedFunction":
                    functions.add(_called_function(items(expression.nameParts())))
                case "Literal" if str(expression.dataType().typeName()) in ("date", "timestamp", "timestamp_ntz"):
                    times.append(_fixed_time(expression))
                case "UnresolvedIdentifier" | "ExpressionWithUnresolvedIdentifier" | "PlanWithUnresolvedIdentifier":
                    raise InvalidQueryError("IDENTIFIER(...) is not allowed; write the name itself")
    return ParsedQuery(plan, frozenset(functions), tuple(times))


def parse_again(spark: Any, query: ParsedQuery, sql: str, reached_us: Mapping[str, int | None]) -> ParsedQuery:
    """Parse a text that passed as a query, for other times up to which its temporal tables are known."""
    return replace(query, plan=_parse(spark, sql, reached_us))


def _parse(spark: Any, sql: str, temporal: Mapping[str, int | None] | Collection[str] | None) -> Any:
    sql, asked = (sql, {}) if temporal is None else take_times(sql)
    try:
        plan = java_session(spark).sessionState().sqlParser().parsePlan(sql)
    except PySparkException as error:
        raise invalid_query(error) from error
    except Py4JJavaError as error:
        # Scripts are switched off; the parser has no error of its own for that.
        if "SQL_SCRIPTING" in str(error.java_exception.getMessage()):
            raise InvalidQueryError(f"only a query is allowed, found {_NAMED['CompoundBody']}") from error
        raise _beyond_engine(error) from error
    return put_versions(plan, asked, temporal or ()) if asked or temporal else plan


def analyse_query(spark: Any, query: ParsedQuery) -> Any:
    """Resolve all names and types of a query; nothing is executed, but the session is made to execute it right.

    Returns:
        A Java ``Dataset`` with the analysed plan.

    Raises:
        InvalidQueryError: An unknown name or a type that does not fit.
    """
    if "session_window" in query.functions:
        spark.conf.set(EXCLUDED_RULES, f"{SETTINGS[EXCLUDED_RULES]},{_RULES_WRONG_FOR_SESSIONS}")
    try:
        return resolve_plan(spark, query.plan)
    except PySparkException as error:
        _check_slides(query.plan)
        raise invalid_query(error) from error
    except Py4JJavaError as error:
        raise _beyond_engine(error) from error


def _check_slides(plan: Any) -> None:
    """Say of a query that cannot be resolved where that is for a slide: Spark would miss the window's columns.

    Raises:
        InvalidQueryError: A window's slide is longer than its size.
    """
    calls = [each for node in iter_plan(plan) for each in iter_expressions(node)]
    for call in calls:
        if simple_name(call) != "UnresolvedFunction" or str(call.nameParts().last()).lower() != "window":
            continue
        try:
            made = java_class("org.apache.spark.sql.catalyst.expressions.TimeWindow")(*items(call.arguments()))
            is_longer = int(made.slideDuration()) > int(made.windowDuration())
        except (Py4JError, PySparkException):
            continue  # what is no window is said as Spark says it
        if is_longer:
            raise InvalidQueryError(
                f"the slide of {shown(call)} is longer than its size, so rows between two windows would be in none; "
                "write window(event_time, size, slide), the size before the slide"
            )


def invalid_query(error: Exception) -> InvalidQueryError:
    """Map what Spark says about a query to our error, without Spark's plans and stack traces."""
    text = str(error).split("\nJVM stacktrace")[0].split("\n== SQL")[0]
    found = _POSITION.search(text)
    position = None if found is None else ":".join(part for part in found.groups() if part is not None)
    message = re.sub(r";?\s*line \d+ pos \d+;?.*", "", text, flags=re.DOTALL)
    message = re.sub(r"\s*(?:SQLSTATE: \w+|\(line \d+, pos \d+\))", "", message).replace("\n", " ").strip()
    return InvalidQueryError(message or type(error).__name__, position=position)


def _beyond_engine(error: Any) -> InvalidQueryError:
    """Say where Spark has no error of its own for a query that it cannot take in; rows have no part in it yet."""
    reported = str(error.java_exception.toString()).split("\n")[0]
    if "StackOverflowError" in reported:
        return InvalidQueryError(TOO_DEEP)
    return InvalidQueryError(f"the engine cannot take it in: {reported[:_REPORTED_CHARACTERS]}")


def _defined_names(node: Any) -> list[str]:
    return [str(pair.productElement(0)) for pair in items(node.cteRelations())]


def _check_relation(node: Any, allowed: set[str], known: Collection[str]) -> None:
    if simple_name(node) == "UnresolvedRelation":
        parts = [str(part) for part in items(node.multipartIdentifier())]
        if len(parts) != 1 or parts[0] not in allowed:
            raise _unknown_relation(".".join(parts), {*allowed, *known})


def _unknown_relation(name: str, known: Collection[str]) -> InvalidQueryError:
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name[:_COMPARED_CHARACTERS].lower(), by_lower, n=1)
    if near:
        hint = f"did you mean {by_lower[near[0]]}?"
    elif known:
        shown_names = sorted(known)[:_LISTED_NAMES]
        more = len(known) - len(shown_names)
        hint = f"known are: {', '.join(shown_names)}{f' and {more} more' if more else ''}"
    else:
        hint = "nothing is known that has rows"
    return InvalidQueryError(f"unknown relation {name}; {hint}")


_WINDOWS_OF_OTHERS = {
    "TUMBLE": "GROUP BY window(event_time, '1 day')",
    "HOP": "GROUP BY window(event_time, '1 day', '1 hour'), the size before the slide",
    "SESSION": "GROUP BY session_window(event_time, '30 minutes')",
}


def _called_function(parts: list[Any]) -> str:
    name = ".".join(map(str, parts))
    grade = FUNCTIONS.get(name.lower())
    if len(parts) != 1 or grade is None:
        instead = _WINDOWS_OF_OTHERS.get(name.upper().partition("_")[0])
        raise InvalidQueryError(f"function {name} is not allowed{f'; write {instead}' if instead else ''}")
    if grade.use is FunctionUse.REJECTED:
        raise InvalidQueryError(f"function {name} is not allowed: {grade.reason}")
    return name.lower()


def _fixed_time(literal: Any) -> str:
    """Return a literal of a time as it is written; raises InvalidQueryError where it says no year."""
    origin = literal.origin()
    text, start, stop = origin.sqlText(), origin.startIndex(), origin.stopIndex()
    written = str(text.get())[start.get() : stop.get() + 1] if text.isDefined() and start.isDefined() else ""
    if not _FIXED_LITERAL.fullmatch(written):
        raise InvalidQueryError(
            f"{written or shown(literal)} depends on the moment it is run; write a date with a year of four digits"
        )
    return written


# Relations that hold no rows but those in the text of the query, or none at all.
_OWN_ROWS = frozenset({"CTERelationRef", "LocalRelation", "OneRowRelation", "Range", "EmptyRelation"})

_KNOWN_PACKAGES = ("org.apache.spark.sql.catalyst.expressions.", "org.apache.spark.sql.catalyst.plans.")

# In a known package, and yet code from outside the query.
_FOREIGN_CODE = frozenset(
    {"CallMethodViaReflection", "TryReflect", "ScalaUDF", "PythonUDF", "PythonUDAF", "PythonUDTF", "ScalaUDAF"}
)


def check_analysed(plan: Any, relations: Collection[str]) -> None:
    """Check an analysed plan down to the declared relations.

    Args:
        plan: Analysed; its views are not yet replaced by what they stand for.
        relations: Names of views that it may read; what is below them is ours.

    Raises:
        InvalidQueryError: It reads something else, or runs code that is not Spark's own.
    """
    for node in iter_plan(plan, relations):
        view, name = view_name(node), simple_name(node)
        if view in relations:
            continue
        if view is not None or (name not in _OWN_ROWS and not items(node.children())):
            raise InvalidQueryError(f"it reads {view or name}, which is no declared relation")
        for expression in iter_expressions(node):
            if simple_name(expression) in _FOREIGN_CODE or not class_name(expression).startswith(_KNOWN_PACKAGES):
                raise InvalidQueryError(f"{shown(expression)} runs code that is not the engine's own")
