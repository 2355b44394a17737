"""Files that a user takes in by command: which file is read, what preprocess sees, and how failure is told."""

import json
import os
from pathlib import Path

import pytest

from odf_engines.errors import EngineMissingError
from odf_protocol.events import ReadStepCsv, SqlQueryStep, TransformSql
from support.command_line import list_kept, run_command
from support.ingests import RootDataset
from support.nodes import RealNode

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("light_engines")]

PUSHED = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {read}
      {preprocess}
      merge: {{kind: Append}}
"""
CSV = "{kind: Csv, header: true}"
TYPED = "{kind: Csv, header: true, ddlSchema: [event_time TIMESTAMP, n BIGINT]}"
GOOD = "event_time,n\n2024-01-01T00:00:00Z,1\n"
BAD = "event_time,n\n01/02/2024,1\n02/02/2024,2\n2024-01-03,x\n"


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    return RealNode(tmp_path / "home", has_engine=True)


def add(node: RealNode, name: str, read: str, *, query: str = "", engine: str = "spark") -> None:
    path = node.home.with_name(f"{name}.yaml")
    preprocess = f"preprocess: {{kind: Sql, engine: {engine}, query: {json.dumps(query)}}}" if query else ""
    path.write_text(PUSHED.format(name=name, read=read, preprocess=preprocess), encoding="utf-8")
    node.must("add", str(path))


def rows(node: RealNode, name: str) -> list[dict]:
    return [json.loads(line) for line in node.must("tail", name, "-n", "100", "-o", "ndjson").out.splitlines()]


def test_relative_path_is_the_file_where_the_command_was_typed_not_where_the_engine_is(
    node: RealNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed_in, engine_in = tmp_path / "typed", tmp_path / "engine"
    for folder, value in ((typed_in, 1), (engine_in, 666)):
        folder.mkdir()
        (folder / "data.csv").write_text(f"event_time,n\n2024-01-01T00:00:00Z,{value}\n")
    add(node, "pushed", TYPED)
    # This process, whose folder has another file of that name, is not the one that reads.
    monkeypatch.chdir(engine_in)
    home = os.path.relpath(node.home, typed_in)
    ran = run_command(Path(home), "ingest", "pushed", "data.csv", around=("env", f"--chdir={typed_in}"))
    assert ran.returncode == 0, ran.stderr
    assert [row["n"] for row in rows(node, "pushed")] == [1]


def test_pipe_that_only_the_command_can_read_is_taken_in(node: RealNode, tmp_path: Path) -> None:
    add(node, "piped", TYPED)
    (tmp_path / "data.csv").write_text(GOOD)
    script = f'exec "$@" <(cat {tmp_path}/data.csv)'
    ran = run_command(node.home, "ingest", "piped", around=("bash", "-c", script, "bash"))
    assert ran.returncode == 0, ran.stderr
    assert [row["n"] for row in rows(node, "piped")] == [1]


def test_preprocess_of_a_source_without_schema_sees_the_texts_of_the_file(node: RealNode, tmp_path: Path) -> None:
    source = tmp_path / "days.csv"
    source.write_text("event_time,n\n01/02/2024,1\n2/2/2024,2\n,3\n2024-01-04,4\n")
    query = (
        "SELECT try_to_timestamp(event_time, 'dd/MM/yyyy') AS event_time, event_time AS said, typeof(n) AS t FROM input"
    )
    add(node, "days", CSV, query=query)
    node.must("ingest", "days", str(source), "--event-time", "2024-03-01T00:00:00Z")
    found = rows(node, "days")
    assert sorted(str(row["said"]) for row in found) == ["01/02/2024", "2/2/2024", "2024-01-04", "None"]
    assert {row["t"] for row in found} == {"string"}
    assert "nothing was ever set aside" in node.must("quarantine", "list", "days").err


def test_file_without_a_readable_row_fails_says_why_and_changes_nothing(node: RealNode, tmp_path: Path) -> None:
    source = tmp_path / "bad.csv"
    source.write_text(BAD)
    add(node, "strict", TYPED)
    before = list_kept(node.home)["datasets"]
    for _ in range(2):
        ran = node.run("ingest", "strict", str(source))
        assert ran.code == 7
        assert "none of 3 rows" in ran.err
        assert (
            "2 rows: event_time: not an RFC 3339 time such as 2020-12-31T23:59:59Z (first '01/02/2024' in line 2)"
            in ran.err
        )
        assert "timestampFormat" in ran.err
        assert "quarantine show strict" in ran.err
        assert "up to date" not in ran.out
    assert list_kept(node.home)["datasets"] == before
    # Kept, and once: the second attempt found the same.
    assert len(json.loads(node.must("quarantine", "show", "strict", "-o", "json").out)) == 3


def test_file_of_which_some_rows_fail_is_taken_and_says_why(node: RealNode, tmp_path: Path) -> None:
    source = tmp_path / "some.csv"
    source.write_text(GOOD + "2024-01-02T00:00:00Z,2\n2024-01-03T00:00:00Z,x\n")
    add(node, "some", TYPED)
    ran = node.must("ingest", "some", str(source))
    assert "1 row could not be taken: kept aside (1 row: n: not a whole number (first 'x' in line 4))" in ran.out
    assert [row["n"] for row in rows(node, "some")] == [1, 2]


@pytest.mark.parametrize("engine", ["flink", "risingwave", "foo"])
def test_preprocess_for_an_engine_that_is_not_here_is_rejected_by_add(node: RealNode, engine: str) -> None:
    path = node.home.with_name("elsewhere.yaml")
    preprocess = f"preprocess: {{kind: Sql, engine: {engine}, query: SELECT * FROM input}}"
    path.write_text(PUSHED.format(name="elsewhere", read=TYPED, preprocess=preprocess), encoding="utf-8")
    ran = node.run("add", str(path))
    assert ran.code == 7
    assert "elsewhere.yaml:11:39: content.metadata[0].preprocess.engine: expected an engine that is here" in ran.err
    assert list_kept(node.home)["datasets"] == ()


def test_preprocess_for_an_engine_that_is_not_here_is_not_run_on_another() -> None:
    """As of a dataset that an earlier version of this program made."""
    preprocess = TransformSql(engine="flink", queries=(SqlQueryStep(query="SELECT * FROM input"),))
    dataset = RootDataset(ReadStepCsv(header=True), preprocess=preprocess)
    with pytest.raises(
        EngineMissingError, match=r"'flink' is not installed \(installed for preprocess: datafusion, spark"
    ):
        dataset.ingest(GOOD)


def test_changelog_whose_operations_may_be_null_is_taken(node: RealNode, tmp_path: Path) -> None:
    path, source = node.home.with_name("changes.yaml"), tmp_path / "changes.csv"
    read = "{kind: Csv, header: true, ddlSchema: [op INT, id INT, x STRING]}"
    text = PUSHED.format(name="changes", read=read, preprocess="")
    path.write_text(text.replace("{kind: Append}", "{kind: ChangelogStream, primaryKey: [id]}"), encoding="utf-8")
    source.write_text("op,id,x\n0,1,a\n0,2,b\n1,1,a\n")
    node.must("add", str(path))
    node.must("ingest", "changes", str(source))
    assert [(row["op"], row["id"]) for row in rows(node, "changes")] == [(0, 1), (1, 1), (0, 2)]
    node.must("verify", "changes")


def test_columns_called_like_system_columns_are_renamed_where_no_odf_schema_says_otherwise(
    node: RealNode, tmp_path: Path
) -> None:
    source = tmp_path / "reserved.csv"
    source.write_text("offset,op,system_time,x\n5,7,q,1\n")
    add(node, "reserved", CSV)
    node.must("ingest", "reserved", str(source))
    (row,) = rows(node, "reserved")
    assert (row["offset"], row["op"], row["_offset"], row["_op"], row["_system_time"], row["x"]) == (
        0,
        0,
        "5",
        "7",
        "q",
        "1",
    )
