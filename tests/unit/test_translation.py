"""Manifests for other engines, translated: windows, names and dialects, and what may mean something else (PLAN-17)."""

import pytest

from odf_node.derive.translation import translate_snapshot
from odf_protocol.errors import MalformedError
from odf_protocol.events import SetTransform
from odf_protocol.manifest import DatasetSnapshot, parse_snapshots

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: made
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: in.put, alias: in.put}}]
      transform:
        kind: Sql
        engine: {engine}
        version: "1.16"
        temporalTables: [{{name: rates, primaryKey: [k]}}]
        query: |
          {query}
"""


def snapshot_of(engine: str, query: str) -> DatasetSnapshot:
    (snapshot,) = parse_snapshots(MANIFEST.format(engine=engine, query=query).encode(), source_name="made.yaml")
    return snapshot


def translated(engine: str, query: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The query on one line, the difference, and the doubts."""
    before = snapshot_of(engine, query)
    after, translation = translate_snapshot(before)
    (event,) = after.metadata
    assert isinstance(event, SetTransform)
    assert translation is not None
    transform = event.transform
    assert (transform.engine, transform.version, transform.query) == ("spark", None, None)
    assert transform.temporal_tables
    assert (after.name, after.kind, translation.translation.engine) == (
        before.name,
        before.kind,
        engine.lower(),
    )
    (step,) = transform.queries or ()
    return " ".join(step.query.split()), translation.translation.difference, translation.translation.doubts


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            (
                "SELECT TUMBLE_START(t, INTERVAL '1' DAY) AS s, `k` FROM `in.put` "
                "GROUP BY TUMBLE(t, INTERVAL '1' DAY), `k`"
            ),
            "SELECT window.start AS s, `k` FROM `in.put` GROUP BY WINDOW(t, '1 DAY'), `k`",
        ),
        (
            (
                "SELECT HOP_END(t, INTERVAL '1' HOUR, INTERVAL '1' DAY) AS e FROM i "
                "GROUP BY HOP(t, INTERVAL '1' HOUR, INTERVAL '1' DAY)"
            ),
            "SELECT window.end AS e FROM i GROUP BY WINDOW(t, '1 DAY', '1 HOUR')",
        ),
        (
            "SELECT SESSION_END(t, INTERVAL '30' MINUTE) AS e FROM i GROUP BY SESSION(t, INTERVAL '30' MINUTE)",
            "SELECT session_window.end AS e FROM i GROUP BY SESSION_WINDOW(t, '30 MINUTE')",
        ),
        (
            (
                "SELECT window_start AS t, window_end, `k`, SUM(a) AS a FROM TABLE(TUMBLE(TABLE `in.put`, "
                "DESCRIPTOR(`at`), INTERVAL '10' MINUTES)) WHERE a > 1 GROUP BY window_start, window_end, `k` "
                "HAVING MAX(window_end) > 1"
            ),
            (
                "SELECT window.start AS t, window.end AS window_end, `k`, SUM(a) AS a FROM `in.put` WHERE a > 1 "
                "GROUP BY WINDOW(`at`, '10 MINUTES'), `k` HAVING MAX(window.end) > 1"
            ),
        ),
        (
            (
                "SELECT w.window_end FROM TABLE(HOP(DATA => TABLE i, TIMECOL => DESCRIPTOR(t), "
                "SIZE => INTERVAL '1' DAY, SLIDE => INTERVAL '1' HOUR)) AS w GROUP BY w.window_end"
            ),
            "SELECT window.end AS window_end FROM i AS w GROUP BY WINDOW(t, '1 DAY', '1 HOUR')",
        ),
        (
            (
                "SELECT n FROM (SELECT window_end, COUNT(*) AS n FROM SESSION(TABLE i, DESCRIPTOR(t), "
                "INTERVAL '5' MINUTE) GROUP BY window_end) WHERE window_end > 1"
            ),
            (
                "SELECT n FROM ( SELECT session_window.end AS window_end, COUNT(*) AS n FROM i "
                "GROUP BY SESSION_WINDOW(t, '5 MINUTE') ) WHERE window_end > 1"
            ),
        ),
        (
            "SELECT o.t FROM o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.t AS r ON o.k = r.k",
            "SELECT o.t FROM o LEFT JOIN rates TIMESTAMP AS OF o.t AS r ON o.k = r.k",
        ),
    ],
)
def test_flinks_windows_become_sparks(before: str, after: str) -> None:
    query, difference, doubts = translated("Flink", before)
    assert query == after
    assert difference[:2] in ((), ("--- flink: 1", "+++ spark: 1"))
    assert any(line.startswith("-") and "TUMBLE(" in line for line in difference) == ("TUMBLE" in before)
    assert "without counting" in doubts[0]


def test_tables_of_windows_of_risingwave_become_groups() -> None:
    query, difference, _ = translated(
        "risingwave",
        "SELECT window_start, x.k, COUNT(*) AS n FROM "
        "HOP(taxi, t, INTERVAL '1 DAY', INTERVAL '2 DAY') AS x GROUP BY x.k, window_start",
    )
    assert query == (
        "SELECT window.start AS window_start, x.k, COUNT(*) AS n FROM taxi AS x "
        "GROUP BY WINDOW(t, '2 DAY', '1 DAY'), x.k"
    )
    assert any(line.startswith("-") and "HOP(" in line for line in difference)


@pytest.mark.parametrize("engine", ["datafusion", "risingwave"])
def test_names_in_double_quotes_and_casts_become_sparks(engine: str) -> None:
    query, difference, doubts = translated(engine, 'SELECT "a.b".x::INT / y AS z FROM "a.b" WHERE odd(x) > 1')
    assert query == "SELECT CAST(`a.b`.x AS INT) / y AS z FROM `a.b` WHERE ODD(x) > 1"
    assert any(line.startswith("-") and '"a.b"' in line for line in difference)
    assert [doubt.split(":")[0] for doubt in doubts[1:]] == ["CAST(`a.b`.x AS INT) / y", "odd"]


def test_manifest_for_spark_stays_as_it_is() -> None:
    snapshot = snapshot_of("spark", "SELECT TUMBLE(t, INTERVAL '1' DAY) FROM i")
    assert translate_snapshot(snapshot) == (snapshot, None)


@pytest.mark.parametrize(
    ("engine", "query", "reported"),
    [
        ("flink", "SELECT TUMBLE_ROWTIME(t, INTERVAL '1' DAY) FROM i", "expected TUMBLE_START or TUMBLE_END"),
        ("flink", "SELECT 1 FROM i GROUP BY TUMBLE(t, 5)", r"expected TUMBLE\(event_time, INTERVAL"),
        ("flink", "SELECT 1 FROM i GROUP BY HOP(t, INTERVAL '1' DAY)", "expected HOP"),
        ("risingwave", "SELECT 1 FROM TUMBLE(i, t, INTERVAL '1 DAY')", "in GROUP BY"),
        ("flink", "SELECT 1 FROM TABLE(TUMBLE(TABLE i, DESCRIPTOR(t), INTERVAL '1' DAY))", "GROUP BY window_start"),
        ("flink", "SELECT 1 FROM TABLE(TUMBLE(TABLE i, DESCRIPTOR(t))) GROUP BY window_end", "TUMBLE.DATA, TIMECOL"),
        (
            "flink",
            "SELECT k FROM TABLE(SESSION(TABLE i, DESCRIPTOR(t), INTERVAL '1' DAY)) GROUP BY window_end, k",
            "SESSION over all that GROUP BY has",
        ),
        (
            "flink",
            "SELECT 1 FROM TABLE(CUMULATE(TABLE i, t, INTERVAL '1' HOUR, INTERVAL '1' DAY)) GROUP BY window_end",
            "expected TUMBLE, HOP or SESSION, found CUMULATE",
        ),
        (
            "flink",
            "SELECT window_time FROM TABLE(TUMBLE(TABLE i, DESCRIPTOR(t), INTERVAL '1' DAY)) GROUP BY window_end",
            "expected window_start or window_end",
        ),
        (
            "flink",
            "SELECT 1 FROM TABLE(TUMBLE(TABLE i, 1 + 1, INTERVAL '1' DAY)) GROUP BY window_end",
            "the name of a table and of its time column",
        ),
        ("flink", "SELEC 1", "expected SQL of flink, found '1' in line 1, column 7"),
        ("flink", "SELECT 1; SELECT 2", "expected one query, found 2"),
        ("flink", "SELECT " + "(" * 100_000, "expected SQL of flink"),
    ],
)
def test_what_spark_has_nothing_for_is_rejected_with_its_place(engine: str, query: str, reported: str) -> None:
    with pytest.raises(MalformedError, match=reported):
        translate_snapshot(snapshot_of(engine, query))


def test_engine_of_an_unknown_dialect_is_named() -> None:
    with pytest.raises(MalformedError, match=r"\(datafusion, flink, risingwave\), found cobol"):
        translate_snapshot(snapshot_of("cobol", "SELECT 1"))
