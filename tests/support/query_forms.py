"""Forms of queries, before a merge and in derivatives; see ``manifest_forms``."""

import json
from collections.abc import Mapping
from typing import Final

from support.manifest_forms import CSV, ManifestForm, document


def viewed(query: str, *, transform: str = "", inputs: str = "[{datasetRef: rows, alias: r}]") -> ManifestForm:
    """A derivative of ``rows``, a dataset that stands before it."""
    stated = transform or f"{{kind: Sql, engine: datafusion, query: {json.dumps(query)}}}"
    event = f"{{kind: SetTransform, inputs: {inputs}, transform: {stated}}}"
    return ManifestForm(document("NAME", event, kind="Derivative"), {}, "pull")


_PREPROCESS = (
    "{kind: AddPushSource, sourceName: default, read: {kind: Csv, header: true}, "
    "preprocess: {kind: Sql, engine: datafusion, %s}, merge: {kind: Append}}"
)


def _preprocessed(transform: str) -> ManifestForm:
    return ManifestForm(document("NAME", _PREPROCESS % transform), {"rows": CSV}, "ingest")


_ENGINE = "{kind: Sql, engine: datafusion"
_QUERY = "SELECT event_time, id, name FROM r"
_STEPS = "{kind: Sql, engine: datafusion, queries: [{alias: one, query: %s}, {query: %s}]}"
_RENAMED = "CAST(event_time AS TIMESTAMP) AS event_time, CAST(id AS BIGINT) AS number"

QUERIES: Final[Mapping[str, ManifestForm]] = {
    "preprocess": _preprocessed(f"query: 'SELECT {_RENAMED} FROM input'"),
    "preprocess-of-a-capital": _preprocessed("query: 'SELECT event_time, ID FROM input'"),
    "preprocess-quoted": _preprocessed('query: \'SELECT event_time, "id" FROM "input"\''),
    "preprocess-grouped": _preprocessed(
        "query: 'SELECT max(event_time) AS event_time, count(*) AS n FROM input GROUP BY id'"
    ),
    "preprocess-in-steps": _preprocessed(
        "queries: [{alias: a, query: 'SELECT event_time, id FROM input'}, {query: SELECT * FROM a}]"
    ),
    "preprocess-with-a-version": _preprocessed("version: 1.0.0, query: 'SELECT event_time, id FROM input'"),
    "preprocess-with-a-wrong-column": _preprocessed("query: 'SELECT nothing FROM input'"),
    "projection": viewed(_QUERY),
    "all-columns": viewed("SELECT * FROM r"),
    "filter": viewed(_QUERY + " WHERE id > 1"),
    "expressions": viewed("SELECT event_time, id * 2 AS twice, upper(name) AS name, id / 2 AS half FROM r"),
    "case": viewed("SELECT event_time, CASE WHEN id > 1 THEN 'x' ELSE 'y' END AS c FROM r"),
    "alias-of-the-input": viewed("SELECT r.event_time, r.id FROM r"),
    "no-alias": viewed("SELECT event_time, id FROM rows", inputs="[{datasetRef: rows}]"),
    "name-with-dots": viewed('SELECT event_time, id FROM "rows"', inputs="[{datasetRef: rows}]"),
    "capital-columns": viewed("SELECT EVENT_TIME, ID FROM r"),
    "capital-table": viewed("SELECT event_time, id FROM R"),
    "steps": viewed("", transform=_STEPS % ("SELECT event_time, id FROM r", "SELECT event_time, id + 1 AS n FROM one")),
    "common-table": viewed("WITH a AS (SELECT event_time, id FROM r) SELECT * FROM a"),
    "nested": viewed("SELECT event_time, id FROM (SELECT * FROM r) AS x"),
    "comments": viewed("SELECT event_time, id -- the rows\nFROM r /* all */"),
    "semicolon": viewed("SELECT event_time, id FROM r;"),
    "union": viewed("SELECT event_time, id FROM r UNION ALL SELECT event_time, id + 10 FROM r"),
    "constant": viewed("SELECT event_time, 1 AS one, 'x' AS x, 1.5 AS f, true AS b FROM r"),
    "casts": viewed("SELECT event_time, CAST(id AS INT) AS i, CAST(id AS STRING) AS s, CAST(id AS DOUBLE) AS d FROM r"),
    "times": viewed("SELECT event_time, date_trunc('month', event_time) AS m, date_part('year', event_time) FROM r"),
    "no-event-time": viewed("SELECT id FROM r"),
    "operations": viewed("SELECT op, event_time, id FROM r"),
    "offset-by-name": viewed('SELECT "offset", event_time, id FROM r'),
    "system-time": viewed("SELECT system_time, event_time FROM r"),
    "wrong-column": viewed("SELECT event_time, nothing FROM r"),
    "wrong-table": viewed("SELECT event_time FROM nothing"),
    "broken": viewed("SELEC event_time FROM r"),
    "two-statements": viewed("SELECT event_time FROM r; SELECT 1"),
    "unknown-engine": viewed("", transform="{kind: Sql, engine: duckdb, query: SELECT event_time FROM r}"),
    "unknown-input": viewed("SELECT event_time FROM r", inputs="[{datasetRef: nothing, alias: r}]"),
    "input-twice": viewed(
        "SELECT a.event_time, a.id FROM a", inputs="[{datasetRef: rows, alias: a}, {datasetRef: rows, alias: b}]"
    ),
    "no-inputs": viewed("SELECT 1", inputs="[]"),
    "no-query": viewed("", transform="{kind: Sql, engine: datafusion}"),
    "query-and-queries": viewed(
        "", transform="{kind: Sql, engine: datafusion, query: SELECT 1, queries: [{query: SELECT 1}]}"
    ),
    "version-of-an-engine": viewed("", transform=f"{_ENGINE}, version: '1.0', query: '{_QUERY}'}}"),
    "engine-in-capitals": viewed("", transform=f"{{kind: Sql, engine: DataFusion, query: '{_QUERY}'}}"),
    "temporal-tables": viewed(
        "",
        transform=f"{_ENGINE}, query: '{_QUERY}', temporalTables: [{{name: r, primaryKey: [id]}}]}}",
    ),
    "aggregate": viewed("SELECT max(event_time) AS event_time, count(*) AS n FROM r"),
    "groups": viewed("SELECT event_time, sum(id) AS n FROM r GROUP BY event_time"),
    "order": viewed(_QUERY + " ORDER BY id DESC"),
    "distinct": viewed("SELECT DISTINCT event_time, id FROM r"),
    "window-function": viewed("SELECT event_time, row_number() OVER (ORDER BY id) AS n FROM r"),
    "self-join": viewed("SELECT a.event_time, b.id FROM r AS a JOIN r AS b ON a.id = b.id"),
}
"""Queries before a merge, and queries of derivatives."""
