"""The guide on forms of the existing network that are not taken: each is tried, and its message says the way.

Clauses ING-55 and PLAN-17.
"""

import re
from pathlib import Path

import pytest

from support.nodes import RealNode

PAGE = Path(__file__).parents[2] / "spec" / "guides" / "existing-manifests.md"
ROOT = """
kind: DatasetSnapshot
version: 1
content:
  name: rows
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: FETCH
      prepare: PREPARE
      read: READ
      merge: {kind: Append}
"""
DERIVATIVE = """
kind: DatasetSnapshot
version: 1
content:
  name: view
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: rows}]
      transform: {kind: Sql, engine: ENGINE, query: "QUERY"}
"""
READ = "{kind: NdJson, ddlSchema: ['event_time TIMESTAMP', 'id BIGINT']}"


def root(*, fetch: str = "{kind: Url, url: 'https://example.org/a'}", prepare: str = "[]", read: str = READ) -> str:
    return ROOT.replace("FETCH", fetch).replace("PREPARE", prepare).replace("READ", read)


def view(engine: str, query: str) -> str:
    return root() + "---" + DERIVATIVE.replace("ENGINE", engine).replace("QUERY", query)


WINDOW = "TABLE r, DESCRIPTOR(event_time), INTERVAL '1' HOUR, INTERVAL '1' DAY"
CASES = {
    "`fetch: {kind: Container}`": root(fetch="{kind: Container, image: 'a/b:1'}"),
    "`prepare: [{kind: Pipe}]`": root(prepare="[{kind: Pipe, command: [cat]}]"),
    "`fetch: {kind: EthereumLogs}`": root(fetch="{kind: EthereumLogs, chainId: 1}"),
    "`fetch: {kind: FilesGlob}` with a relative path, from standard input": root(
        fetch="{kind: FilesGlob, path: 'data/*.json'}"
    ),
    "`read: {kind: JsonLines}`": root(read="{kind: jsonLines}"),
    "`schema: [id BIGINT]`": root(read="{kind: NdJson, schema: ['id BIGINT']}"),
    "`schema: [{name: id, type: BIGINT}]`": root(read="{kind: NdJson, schema: [{name: id, type: BIGINT}]}"),
    "`LATERAL TABLE(t(time))` (flink)": view(
        "flink", "SELECT r.event_time, x.a FROM rows AS r, LATERAL TABLE(rates(r.event_time)) AS x WHERE x.k = r.id"
    ),
    "`CUMULATE` (flink)": view(
        "flink", f"SELECT window_start, count(*) AS n FROM TABLE(CUMULATE({WINDOW})) GROUP BY window_start"
    ),
    "`UNION` below `LIMIT` or windows (datafusion)": view(
        "datafusion", "(SELECT event_time, id FROM rows UNION ALL SELECT event_time, id FROM rows) LIMIT 3"
    ),
    "`SELECT ID` of a column `id` (spark)": view("spark", "SELECT event_time, ID FROM rows"),
}  # fmt: skip


def ways() -> dict[str, str]:
    page = PAGE.read_text().partition("\n## ")[0]
    lines = [line.strip("| \n").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return {form: way.strip("`") for form, _, way in lines}


def test_the_page_has_each_form_that_is_tried() -> None:
    assert ways().keys() == CASES.keys()


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=[pytest.mark.spark] if "(spark)" in form else []) for form in CASES]
)
def test_each_form_of_the_page_is_rejected_and_told_the_way(form: str, tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home", has_engine="(spark)" in form)
    translates = ["--as-spark"] if "flink" in form else []
    text = CASES[form]
    if "datafusion" in form or "(spark)" in form:
        # What a query may be shows when its input has columns.
        (tmp_path / "1.json").write_text('{"event_time": "2024-01-01T00:00:00Z", "id": 1}\n')
        (tmp_path / "rows.yaml").write_text(root(fetch="{kind: FilesGlob, path: '*.json', order: ByName}"))
        node.must("add", str(tmp_path / "rows.yaml"))
        node.must("pull", "rows")
        text = text.partition("---")[2]
    ran = node.run("add", "-", *translates, standard_input=text)
    reported = re.sub(r"\s+", " ", ran.out + ran.err)
    assert ways()[form] in reported, reported
    assert ran.code != 0, reported


def test_relative_pattern_is_looked_for_beside_the_manifest(tmp_path: Path) -> None:
    folder = tmp_path / "a[b] c"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "1.json").write_text('{"event_time": "2024-01-01T00:00:00Z", "id": 1}\n')
    (folder / "rows.yaml").write_text(root(fetch="{kind: FilesGlob, path: './in/*.json', order: ByName}"))
    node = RealNode(tmp_path / "home")
    added = node.must("add", str(folder / "rows.yaml"))
    assert "files are looked for as" in added.out + added.err
    assert "1 row" in node.must("pull", "rows").out


def test_windows_that_are_given_when_they_close_are_translated(tmp_path: Path) -> None:
    query = (
        "SELECT window_start, count(*) AS n FROM TUMBLE(rows, event_time, INTERVAL '1 day') "
        "GROUP BY window_start EMIT ON WINDOW CLOSE"
    )
    node = RealNode(tmp_path / "home")
    ran = node.run("add", "-", "--as-spark", standard_input=view("risingwave", query))
    assert ran.code == 0, ran.err
    assert "window" in ran.out + ran.err
