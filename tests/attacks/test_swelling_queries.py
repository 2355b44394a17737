"""Queries of few characters that swell where they are read: in the engine's sandbox, and never in the node.

Source: clause QUERY-14 in ``spec/query.md``.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def doubled(step: str, count: int) -> str:
    """A query of few words in which each named query stands twice in the next one."""
    named = ", ".join(f"t{number} AS ({step.format(f't{number - 1}')})" for number in range(1, count))
    return f"WITH t0 AS (SELECT 1 AS a), {named} SELECT * FROM t{count - 1}"


def nested(step: str, count: int) -> str:
    """An expression that stands several times in the next one."""
    text = "1"
    for _ in range(count):
        text = step.format(text)
    return text


WIDE = ", ".join(f"{number} AS c{number}" for number in range(1000))
MANY = "".join(f" CROSS JOIN t AS x{number}" for number in range(1, 700))
SWELLING = {
    "joins": doubled("SELECT x.a FROM {0} AS x CROSS JOIN {0} AS y", 60),
    "unions": doubled("SELECT a FROM {0} UNION ALL SELECT a FROM {0}", 60),
    "columns": doubled("SELECT * FROM {0} AS x CROSS JOIN {0} AS y", 40),
    "stars": doubled("SELECT *, * FROM {0}", 40),
    "wide": f"WITH t AS (SELECT {WIDE}) SELECT x0.c0 FROM t AS x0{MANY}",
    "cases": f"SELECT {nested('CASE {0} IN (1, 2) WHEN true THEN 1 END', 30)}",
    "lists": f"SELECT {nested('CASE WHEN {0} IN (1, 2, 3) THEN 1 ELSE 2 END', 40)}",
    "betweens": f"SELECT {nested('CASE WHEN {0} BETWEEN 1 AND 2 THEN 1 ELSE 2 END', 40)}",
    "between-itself": f"SELECT {nested('(1 BETWEEN CAST({0} AS INT) AND 2)', 40)}",
    "case-in-itself": f"SELECT {nested('CASE WHEN ({0}) IN ({0}) THEN 1 END', 9)}",
    "brackets": "SELECT " + "(" * 32_000 + ")" * 32_000,
    "sum": f"SELECT 1{' + 1' * 4_900}",
    "not": f"SELECT {'NOT ' * 9_000}true",
    "casts": f"SELECT 1{'::int' * 3_000}",
    "conditions": f"SELECT true{' AND true' * 4_900}",
    "quotes": "SELECT " + "\"`'" * 21_000,
    "comments": "SELECT " + "/*" * 32_000,
    "dots": "SELECT * FROM " + "a." * 32_000,
    "long": "SELECT " + "x" * 64_000,
}

ASK = """
import json, resource, sys, time
from pathlib import Path
from odf_engines.contract import Limits
from odf_engines.errors import EngineError
from odf_node.composition import open_node

def measure(sql):
    started_s = time.process_time()
    try:
        outcome = str(len(node.queries.run(sql, as_of=None, max_rows=10, limits=limits).rows))
    except EngineError as error:
        outcome = type(error).__name__
    node.engines.renew()
    most_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return outcome, time.process_time() - started_s, most_bytes

node = open_node(Path(sys.argv[1]))
limits = Limits(wall_s=5.0, cpu_s=10, memory_bytes=1 << 30)
_, _, before_bytes = measure("SELECT 1 AS a")
for name, sql in json.load(sys.stdin).items():
    outcome, cpu_s, most_bytes = measure(sql)
    print(json.dumps([name, outcome, cpu_s, most_bytes - before_bytes]))
node.close()
"""


def test_query_that_swells_costs_the_node_no_memory_and_no_time_query_14(tmp_path: Path) -> None:
    assert max(map(len, SWELLING.values())) <= 65_536
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(tmp_path / "home")],
        input=json.dumps(SWELLING), capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [name for name, *_ in found] == [*SWELLING]
    assert [each for each in found if each[2] > 1.0] == []
    assert [each for each in found if each[3] > 200_000_000] == []


TELL = """
import sys
from pathlib import Path
from odf_spark.dialects.queries import translate_query
from odf_engines.errors import EngineError
from odf_node.composition import open_node
from odf_protocol.errors import OdfError

node = open_node(Path(sys.argv[2]))
for read in (
    lambda: node.queries.run(sys.argv[1], as_of=None, max_rows=1),
    lambda: translate_query(sys.argv[1], "flink", where="q"),
):
    try:
        read()
    except (OdfError, EngineError):
        pass
node.close()
"""


@pytest.mark.parametrize(
    "sql", ["SHOW \x1b[2J", 'EXPLAIN SELECT 1\n{"event": "push", "outcome": "accepted"}', "SET a=b"]
)
def test_text_of_a_query_is_not_written_among_the_lines_of_the_daemon_query_14(sql: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TELL, sql, str(tmp_path / "home")],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("", "")
