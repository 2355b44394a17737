"""Queries that were written for another engine, as Spark reads them (PLAN-17).

The dialect is translated by a library; what it does not know, windows of streams, is in ``queries``. Nothing is run:
what comes out is graded like any other query, and whoever adds it sees what was changed and what to look at.
"""

from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import Final

from odf_engines.dialects import DIALECTS, ENGINE
from odf_engines.dialects.queries import lay_out, translate_query
from odf_protocol.errors import MalformedError
from odf_protocol.events import SqlQueryStep, TransformSql

_ENGINE_DOUBTS: Final = {
    "datafusion": "DataFusion sees the new rows of each step alone; here groups and joins are over whole inputs",
    "flink": "Flink leaves late rows out without counting them, and closes a window a millisecond earlier",
    "risingwave": "RisingWave's rows are in force at once; here a window is given when a watermark closes it",
}


@dataclass(frozen=True, slots=True)
class Translation:
    """A transform that was translated.

    Attributes:
        transform: For the engine spark.
        engine: That the query was written for.
        difference: Of the queries before and after, line by line, as ``diff -u`` writes it.
        doubts: What may mean something else now.
    """

    transform: TransformSql
    engine: str
    difference: tuple[str, ...]
    doubts: tuple[str, ...]


def translate_transform(transform: TransformSql, *, where: str, is_preprocess: bool = False) -> Translation | None:
    """Translate a transform that names another engine; None: it names this one.

    Args:
        transform: As a manifest declares it.
        where: What it makes, for messages.
        is_preprocess: Its queries prepare an ingest, whose rows both engines see alone.

    Raises:
        MalformedError: The engine's dialect is not known; or a query cannot be read in it, or has a part that Spark has
            nothing for.
    """
    engine = transform.engine.lower()
    if engine == ENGINE:
        return None
    if engine not in DIALECTS:
        known = f"an engine whose SQL is known ({', '.join(sorted(DIALECTS))})"
        raise MalformedError("transform", where=where, expected=known, found=transform.engine)
    steps = transform.queries or (SqlQueryStep(query=transform.query or ""),)
    doubts: dict[str, None] = {} if is_preprocess else {_ENGINE_DOUBTS[engine]: None}
    written: list[SqlQueryStep] = []
    difference: list[str] = []
    for number, step in enumerate(steps, 1):
        query, more = translate_query(step.query, engine, where=f"{where}, query {step.alias or number}")
        doubts |= dict.fromkeys(more)
        written.append(replace(step, query=query))
        names = (f"{engine}: {step.alias or number}", f"{ENGINE}: {step.alias or number}")
        difference += unified_diff(lay_out(step.query, engine), query.splitlines(), *names, lineterm="")
    translated = replace(transform, engine=ENGINE, version=None, query=None, queries=tuple(written))
    return Translation(translated, engine, tuple(difference), tuple(doubts))
