"""Queries that were written for another engine, as Spark reads them (PLAN-17).

The dialect is translated by a library; what it does not know, windows of streams, is in ``queries``. Nothing is run:
what comes out is graded like any other query, and who adds it sees what was changed and what to look at.

Found by entry points of the group ``odf_dialects``, one for each engine in ``DIALECTS``.
"""

from dataclasses import replace
from difflib import unified_diff
from typing import Final

from odf_engines.translation import Translation
from odf_protocol.events import SqlQueryStep, TransformSql
from odf_spark.dialects import ENGINE
from odf_spark.dialects.queries import lay_out, translate_query

_ENGINE_DOUBTS: Final = {
    "datafusion": "DataFusion sees the new rows of each step alone; here groups and joins are over whole inputs",
    "flink": "Flink leaves late rows out without counting them, and closes a window a millisecond earlier",
    "risingwave": "RisingWave's rows are in force at once; here a window is given when a watermark closes it",
}


def translate_transform(transform: TransformSql, *, where: str, is_preprocess: bool = False) -> Translation:
    """Translate a transform of an engine in ``DIALECTS``; see ``odf_engines.translation``."""
    engine = transform.engine.lower()
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
