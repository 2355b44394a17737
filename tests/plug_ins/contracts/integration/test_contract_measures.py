"""What is measured of a version, by the real engine, against what Python counts."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.nodes import RealNode

MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: sales
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: Csv
        header: true
        ddlSchema: [event_time TIMESTAMP, id BIGINT, shop STRING, total BIGINT, '`odd."name` STRING']
      merge: {kind: Append}
"""
FIRST = [
    ("2024-03-01T10:00:00Z", 1, "Oslo", 5, "a"),
    ("2024-03-01T11:00:00Z", 2, "Rom", 7, ""),
    ("2024-03-02T10:00:00Z", 3, "Oslo", 9, "N/A"),
    ("2024-03-05T00:00:00Z", 3, "Rom", 4, "b"),
]
SECOND = [
    ("2024-03-06T23:59:59Z", 5, "Oslo", 3, "bb"),
    ("2024-03-09T00:00:00Z", 6, "Lima", 30, "c"),
]
CONTRACT = """\
apiVersion: v3.0.2
kind: DataContract
id: sales
version: 1.0.0
schema:
  - name: sales
    properties:
      - name: id
        logicalType: integer
      - name: total
        logicalType: string
      - name: shop
      - name: odd
        physicalName: 'odd."name'
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> RealNode:
    folder = tmp_path_factory.mktemp("measures")
    node = RealNode(folder / "home", has_engine=True)
    (folder / "sales.yaml").write_text(MANIFEST)
    node.must("add", str(folder / "sales.yaml"), "--system-time", "2024-03-01T00:00:00Z")
    for number, (rows, time) in enumerate(((FIRST, "2024-03-05T12:00:00Z"), (SECOND, "2024-03-08T00:00:00Z"))):
        path = folder / f"{number}.csv"
        lines = [f'{time},{key},{shop},{total},"{odd}"' for time, key, shop, total, odd in rows]
        path.write_text("\n".join(['event_time,id,shop,total,"odd.""name"', *lines]) + "\n")
        node.must("ingest", "sales", str(path), "--system-time", time)
    return node


def measure(node: RealNode, folder: Path, entries: list[tuple[str, str]]) -> list[tuple[Any, str]]:
    """Measure rules, each of a column or (empty) of the table, which no number satisfies, of the newest version."""
    text = CONTRACT
    for column, entry in entries:
        place = f"      - name: {column}\n" if column else "    properties:\n"
        if column:
            head, _, rest = text.partition(place)
            lines = rest.splitlines(keepends=True)
            own = next((n for n, line in enumerate(lines) if line.startswith("      - name")), len(lines))
            quality = "" if any("quality" in line for line in lines[:own]) else "        quality:\n"
            text = head + place + "".join(lines[:own]) + f"{quality}          - {entry}\n" + "".join(lines[own:])
        else:
            quality = "" if "\n    quality:" in text else "    quality:\n"
            text = text.rstrip("\n") + f"\n{quality}      - {entry}\n"
    file = folder / "sales.odcs.yaml"
    file.write_text(text)
    node.must("contract", "add", str(file))
    found = node.must("contract", "explain", "sales", "-o", "json").json()["broken"]
    return [(each["value"], each["says"], each["rows"]) for each in found if each["path"] != "schema[0].properties[1]"]


IMPOSSIBLE = "mustBe: 0.125"


def own(metric: str) -> str:
    return f"{{type: custom, engine: odf-node, implementation: {{{metric}, {IMPOSSIBLE}}}}}"


def test_measures_of_columns(node: RealNode, tmp_path: Path) -> None:
    """CONTRACT-4: an empty text of CSV is one; a share is of all rows; null is never invalid."""
    missing = f"arguments: {{missingValues: [null, '', N/A]}}, {IMPOSSIBLE}"
    found = measure(
        node,
        tmp_path,
        [
            ("id", f"{{metric: nullValues, {IMPOSSIBLE}}}"),
            ("id", f"{{metric: duplicateValues, {IMPOSSIBLE}}}"),
            ("shop", f"{{metric: invalidValues, arguments: {{validValues: [Oslo, Rom]}}, {IMPOSSIBLE}}}"),
            ("shop", f"{{metric: invalidValues, arguments: {{pattern: '^[A-Z]...$'}}, {IMPOSSIBLE}}}"),
            ("shop", f"{{metric: invalidValues, unit: percent, arguments: {{pattern: '^Rom$'}}, {IMPOSSIBLE}}}"),
            ("odd", f"{{metric: missingValues, {missing}}}"),
        ],
    )
    by_value = [value for value, _says, _rows in found]
    assert by_value == [0, 1, 1, 2, pytest.approx(100 * 4 / 6), 2]
    assert [row["shop"] for row in found[2][2]] == ["Lima"]
    assert found[1][2] == [{"id": 3, "rows_of_key": 2}]


def test_measures_of_tables(node: RealNode, tmp_path: Path) -> None:
    """CONTRACT-5, CONTRACT-6: Python counts the same."""
    found = measure(
        node,
        tmp_path,
        [
            ("total", own("metric: cumulativeFalls, by: [shop]")),
            ("", f"{{metric: rowCount, {IMPOSSIBLE}}}"),
            ("", f"{{metric: duplicateValues, arguments: {{properties: [id, shop]}}, {IMPOSSIBLE}}}"),
            ("", own("metric: eventTimeAhead")),
            ("", own("metric: eventTimeAhead, tolerance: 86400")),
            ("", own("metric: calendarDaysMissing")),
            ("", own("metric: rowsOfPrevious")),
            ("", own("metric: rowsRewritten")),
            ("", f"{{type: sql, query: 'SELECT sum(total) FROM sales', {IMPOSSIBLE}}}"),
            ("", f"{{type: sql, query: 'SELECT max(total) > 20 FROM {{object}}', {IMPOSSIBLE}}}"),
        ],
    )
    rows = FIRST + SECOND
    days = {int(time[8:10]) for time, *_ in rows}
    falls = pairs = 0
    for shop in {shop for _, _, shop, _, _ in rows}:
        totals = [total for _, _, of, total, _ in rows if of == shop]
        falls += sum(b < a for a, b in pairwise(totals))
        pairs += len(totals) - 1
    assert [value for value, _says, _rows in found] == [
        pytest.approx(100 * falls / pairs),
        len(rows),
        0,
        1,
        0,
        max(days) - min(days) + 1 - len(days),
        pytest.approx(100 * len(rows) / len(FIRST)),
        0,
        sum(total for _, _, _, total, _ in rows),
        1,
    ]
    assert {row["value_before"] for row in found[0][2]} == {9, 7}
    assert [row["event_time"][:10] for row in found[3][2]] == ["2024-03-09"]
    assert [(row["first_missing_day"], row["days"]) for row in found[5][2]] == [
        ("2024-03-03", 2),
        ("2024-03-07", 2),
    ]


def test_service_levels_are_measured_and_warn(node: RealNode, tmp_path: Path) -> None:
    """CONTRACT-6: published on the 8th at midnight, three days less twelve hours after the version before."""
    file = tmp_path / "levels.odcs.yaml"
    file.write_text(
        CONTRACT.replace("logicalType: string", "logicalType: integer")
        + "slaProperties:\n  - {property: latency, value: 1, unit: s}\n  - {property: frequency, value: 2, unit: d}\n"
    )
    node.must("contract", "add", str(file))
    found = node.must("contract", "explain", "levels", "-o", "json").json()["broken"]
    assert [(each["value"], each["onlyWarns"]) for each in found] == [(2.5 * 86_400, True)]
    assert node.must("contract", "check", "levels", "-o", "json").json()[-1]["standing"] == "good"


def test_column_of_another_type_and_query_that_is_none_break_a_contract(node: RealNode, tmp_path: Path) -> None:
    """CONTRACT-4, CONTRACT-8: what cannot be measured is broken, and a query sees no other dataset."""
    other = tmp_path / "other.yaml"
    other.write_text(MANIFEST.replace("name: sales", "name: secrets"))
    node.must("add", str(other))
    file = tmp_path / "queries.odcs.yaml"
    file.write_text(
        CONTRACT
        + "    quality:\n"
        + "".join(
            f"      - {{type: sql, query: {json.dumps(query)}, mustBe: 6}}\n"
            for query in ("SELECT id FROM {object}", "SELECT count(*) FROM secrets", "SELECT 'x'", "DROP TABLE sales")
        )
    )
    node.must("contract", "add", str(file))
    found = node.must("contract", "explain", "queries", "-o", "json").json()["broken"]
    said = [each["says"] for each in found]
    assert "the column 'total' is int64, no string" in said[0]
    assert [each["value"] for each in found] == [None] * 5
    assert "gives no single number" in said[1]
    assert "secrets" in said[2]
    assert "is no number" in said[3]
    assert node.run("contract", "check", "queries").code == 4


NUMBERS = """\
kind: DatasetSnapshot
version: 1
content:
  name: numbers
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: Csv
        header: true
        ddlSchema: [event_time TIMESTAMP, d DOUBLE, f FLOAT, m 'DECIMAL(10, 2)', i BIGINT, t STRING]
      merge: {kind: Append}
"""
NUMBER_ROWS = """\
event_time,d,f,m,i,t
2024-03-01T00:00:00Z,-0.0,0.1,0.00,0,"0"
2024-03-01T00:00:01Z,1.0,1.0,1.00,1,"1"
2024-03-01T00:00:02Z,1.0,0.1,1.50,2,"1.0"
2024-03-01T00:00:03Z,NaN,0.1,1.00,,
"""


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> RealNode:
    folder = tmp_path_factory.mktemp("numbers")
    node = RealNode(folder / "home", has_engine=True)
    (folder / "numbers.yaml").write_text(NUMBERS.replace("m 'DECIMAL(10, 2)'", "'m DECIMAL(10, 2)'"))
    (folder / "rows.csv").write_text(NUMBER_ROWS)
    node.must("add", str(folder / "numbers.yaml"))
    node.must("ingest", "numbers", str(folder / "rows.csv"))
    return node


def judge_numbers(node: RealNode, file: Path, rules: list[tuple[str, str]]) -> list[float | None]:
    """Measure rules of columns, one of each column at most, which no number satisfies."""
    properties = "".join(f"      - {{name: {name}, quality: [{{{rule}, {IMPOSSIBLE}}}]}}\n" for name, rule in rules)
    head = CONTRACT.split("  - name: sales\n", maxsplit=1)[0]
    file.write_text(f"{head}  - name: numbers\n    properties:\n{properties}")
    node.must("contract", "add", str(file))
    found = node.must("contract", "explain", file.name.split(".")[0], "-o", "json").json()["broken"]
    return [each["value"] for each in found]


def test_values_of_numbers_are_compared_as_numbers(numbers: RealNode, tmp_path: Path) -> None:
    """CONTRACT-4, QUERY-3: whatever their text, and whatever the width of the column."""
    valid = "metric: invalidValues, arguments: {validValues: [%s]}"
    rules = [
        ("d", valid % "0, 1"),
        ("f", valid % "0.1, 1e999"),
        ("m", valid % "0, 1, 1.505, 1e999999999"),
        ("i", valid % "-0, 1.0"),
        ("t", valid % "0, 1"),
    ]
    assert judge_numbers(numbers, tmp_path / "valid.yaml", rules) == [1, 1, 1, 1, 1]
    missing = "metric: missingValues, arguments: {missingValues: [%s]}"
    rules = [
        ("d", missing % "N/A, nan, '0'"),
        ("f", missing % "x"),
        ("m", missing % "'1'"),
        ("i", missing % "null, 2"),
        ("t", missing % "'1.0'"),
    ]
    assert judge_numbers(numbers, tmp_path / "missing.yaml", rules) == [2, 0, 2, 2, 1]


def test_negative_zero_is_within_a_bound_of_zero_and_nan_within_none(numbers: RealNode, tmp_path: Path) -> None:
    """CONTRACT-4, QUERY-3."""
    file = tmp_path / "limits.yaml"
    properties = "".join(f"      - {{name: {name}, logicalTypeOptions: {{minimum: 0}}}}\n" for name in "dfmi")
    file.write_text(
        CONTRACT.split("  - name: sales\n", maxsplit=1)[0] + f"  - name: numbers\n    properties:\n{properties}"
    )
    numbers.must("contract", "add", str(file))
    (found,) = numbers.must("contract", "explain", "limits", "-o", "json").json()["broken"]
    assert (found["value"], [row["event_time"][17:19] for row in found["rows"]]) == (1, ["03"])


def test_queries_have_their_own_common_tables_and_the_placeholders_of_the_standard(
    numbers: RealNode, tmp_path: Path
) -> None:
    """CONTRACT-4."""
    queries = [
        "WITH big AS (SELECT * FROM numbers WHERE i > 0) SELECT count(*) FROM big -- rows",
        "WITH RECURSIVE n AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM n WHERE k < 7) SELECT max(k) FROM n, numbers",
        "SELECT count(${property}) FROM ${object};",
        "WITH big AS (SELECT {property} FROM {object}) SELECT count(*) FROM big",
    ]
    values = [
        judge_numbers(numbers, tmp_path / "own.yaml", [("i", f"type: sql, query: {json.dumps(q)}")]) for q in queries
    ]
    assert values == [[2], [7], [3], [4]]
