"""The operation ``check``: a grade for a transform, before it is published.

Source: clauses ENGINE-7, GATE-6 and GATE-13.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from odf_engines.contract import GradeLevel, Lookback, TransformClass
from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_engines.host.arrow_texts import schema_text
from odf_engines.host.event_times import NoEventTimeError, suggest_query
from odf_spark import as_of_join, closed_sessions, closed_windows
from odf_spark.known_transforms import (
    Known,
    KnownAsOf,
    KnownAsOfView,
    KnownMap,
    KnownSessions,
    KnownView,
    KnownWindows,
    find_examination,
)

_CLASSES = {
    KnownAsOf: TransformClass.FINAL,
    KnownAsOfView: TransformClass.MAINTAINED,
    KnownMap: TransformClass.MAP,
    KnownView: TransformClass.MAINTAINED,
    KnownSessions: TransformClass.FINAL,
    KnownWindows: TransformClass.FINAL,
}


def run(spark: SparkSession, request: dict[str, Any], _folder: Path) -> dict[str, object]:
    """Grade the transform of a request; see ``worker`` for what goes in and out."""
    try:
        found = find_examination(spark, request["transform"], request["inputs"], request["vocabulary"])
    except NotReproducibleError as error:
        return _rejection(error.expression, error.reason, error.rewrite)
    except NoEventTimeError as error:
        inputs, vocabulary, absent = request["inputs"], request["vocabulary"], error.absent
        query = suggest_query(
            request["transform"],
            {each.name: each.vocabulary.event_time for each in inputs},
            absent.name,
            lambda transform: find_examination(spark, transform, inputs, vocabulary),
        )
        rejection = _rejection("query", error.message, query or absent.ways_out)
        return rejection | {"time_columns": list(absent.times)}
    except InvalidQueryError as error:
        return _rejection(error.position or "query", error.message, "a query that can be run")
    obstacle = found.obstacle
    return {
        "level": (GradeLevel.PINNED if found.findings else GradeLevel.REPRODUCIBLE).value,
        "findings": [asdict(each) for each in found.findings],
        "class": None if found.known is None else _CLASSES[type(found.known)].value,
        "schema": None if found.known is None else schema_text(found.known.schema),
        "obstacle": None
        if obstacle is None
        else {"expression": obstacle.expression, "reason": obstacle.reason, "rewrite": obstacle.rewrite},
        "stages": list(found.stages),
        "key": _key_of(found.known),
        "follows_watermarks": _follows_watermarks(found.known),
        "lookbacks": {
            alias: {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(each).items()}
            for alias, each in _lookbacks_of(found.known).items()
        },
    }


def _lookbacks_of(known: Known | None) -> dict[str, Lookback]:
    match known:
        case KnownWindows():
            return closed_windows.list_lookbacks(known)
        case KnownSessions():
            return closed_sessions.list_lookbacks(known)
        case KnownAsOf():
            return as_of_join.list_lookbacks(known)
    return {}


def _follows_watermarks(known: Known | None) -> bool | None:
    """Say whether steps state a watermark as their inputs do (MAP-8, VIEW-8, WINDOW-6, ASOF-8)."""
    match known:
        case None:
            return None
        case KnownView():
            return known.kept_times is not None
        case KnownAsOfView():
            return known.view.kept_times is not None
        case KnownMap() | KnownAsOf():
            return known.query.passes_event_time
    return True


def _key_of(known: Known | None) -> list[str] | None:
    """Return the columns by which changes of a view are told to be corrections (VIEW-6)."""
    view = known.view if isinstance(known, KnownAsOfView) else known
    if not isinstance(view, KnownView) or view.query.key is None:
        return None
    return [view.result.names[position] for position in view.query.key]


def _rejection(expression: str, reason: str, rewrite: str) -> dict[str, object]:
    finding = {"expression": expression, "reason": reason, "rewrite": rewrite}
    return {"level": GradeLevel.REJECTED.value, "findings": [finding], "class": None, "schema": None, "obstacle": None}
