"""Sources with more than one file, batches that are rejected as a whole, and manifests that are fixed."""

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.command_line import list_kept
from support.nodes import RealNode

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("light_engines")]

GLOB = """
kind: DatasetSnapshot
version: 1
content:
  name: days
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: "${{ env.DAYS }}/day-*.csv", order: ByName}
      read: {kind: Csv, header: true, ddlSchema: [event_time TIMESTAMP, n BIGINT]}
      merge: {kind: Append}
"""


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    return RealNode(tmp_path / "home", has_engine=True)


def add(node: RealNode, text: str, *words: str) -> None:
    path = node.home.with_name("manifest.yaml")
    path.write_text(text, encoding="utf-8")
    node.must("add", *words, str(path))


def rows(node: RealNode, name: str) -> list[dict]:
    return [json.loads(line) for line in node.must("tail", name, "-n", "100", "-o", "ndjson").out.splitlines()]


def write_days(folder: Path, **days: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    for name, lines in days.items():
        (folder / f"day-{name}.csv").write_text(f"event_time,n\n{lines}")
    return {"DAYS": str(folder)}


def test_pull_takes_every_file_of_a_pattern_in_order_of_names_each_in_a_commit(node: RealNode, tmp_path: Path) -> None:
    add(node, GLOB)
    environment = write_days(
        tmp_path / "in", b="2024-01-02T00:00:00Z,2\n", a="2024-01-01T00:00:00Z,1\n", c="2024-01-03T00:00:00Z,3\n"
    )
    ran = node.must("pull", "days", environment=environment)
    assert "days: 3 rows added" in ran.out
    assert "from 3 files, a commit each" in ran.out
    assert [(row["offset"], row["n"]) for row in rows(node, "days")] == [(0, 1), (1, 2), (2, 3)]
    log = node.must("log", "days", "--output-format", "yaml").out
    assert log.count("kind: AddData") == 3
    assert "up to date" in node.must("pull", "days", environment=environment).out

    # Exactly once, also when more come; and nothing is asked twice.
    write_days(tmp_path / "in", d="2024-01-04T00:00:00Z,4\n")
    (report,) = node.must("pull", "days", "-o", "json", environment=environment).json()
    assert (report["newRows"], report["batches"], report["hasMore"]) == (1, 1, False)
    assert [row["n"] for row in rows(node, "days")] == [1, 2, 3, 4]


def test_file_that_fails_among_others_stops_there_and_what_was_taken_is_told(node: RealNode, tmp_path: Path) -> None:
    add(node, GLOB)
    environment = write_days(
        tmp_path / "in", a="2024-01-01T00:00:00Z,1\n", b="01/02/2024,2\n", c="2024-01-03T00:00:00Z,3\n"
    )
    ran = node.run("pull", "days", environment=environment)
    assert ran.code == 7
    assert "days: 1 row added" in ran.out
    assert "none of 1 row of" in ran.err
    assert "day-b.csv" in ran.err
    assert [row["n"] for row in rows(node, "days")] == [1]

    # Fixed, it and those behind it follow.
    write_days(tmp_path / "in", b="2024-01-02T00:00:00Z,2\n")
    assert "2 rows added" in node.must("pull", "days", environment=environment).out
    assert [row["n"] for row in rows(node, "days")] == [1, 2, 3]


@pytest.mark.parametrize(("share", "code"), [("0.2", 7), ("0.25", 0), ("1", 0)])
def test_manifest_says_which_share_of_rows_may_fail(node: RealNode, tmp_path: Path, share: str, code: int) -> None:
    limits = f"""    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - {{path: odf-node/ingest.yaml, content: "largestBadShare: {share}"}}
"""
    add(node, GLOB + limits)
    good = "".join(f"2024-01-0{day}T00:00:00Z,{day}\n" for day in (1, 2, 3))
    environment = write_days(tmp_path / "in", a=f"{good}x,4\n")
    before = list_kept(node.home)["datasets"]
    ran = node.run("pull", "days", environment=environment)
    assert ran.code == code, ran.err
    if code:
        assert "only 3 of 4 rows" in ran.err
        assert "at most 20% may fail" in ran.err
        assert list_kept(node.home)["datasets"] == before
    else:
        assert [row["n"] for row in rows(node, "days")] == [1, 2, 3]


def test_limits_that_cannot_be_read_are_rejected_by_add_with_their_place(node: RealNode) -> None:
    path = node.home.with_name("wrong.yaml")
    path.write_text(
        GLOB + "    - kind: SetAttachments\n      attachments:\n        kind: Embedded\n        items:\n"
        '          - {path: odf-node/ingest.yaml, content: "largestBadShare: 20"}\n'
    )
    ran = node.run("add", str(path))
    assert ran.code == 7
    assert "largestBadShare: 0.1" in ran.err
    assert "found 20" in ran.err


def test_day_on_which_a_publisher_swapped_day_and_month_is_rejected_whole_fixed_and_healed(
    node: RealNode, tmp_path: Path
) -> None:
    """The example, real files: in one of them 38 % of the rows have a day that can be read, and is the wrong one."""
    root = Path(__file__).parents[2]

    def run_step(step: str) -> str:
        ran = subprocess.run(
            [root / "examples/dirty-day/run.sh", step],
            env=os.environ | {"ODF_NODE_HOME": str(node.home), "ODF_NODE_PROGRESS_S": "0"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout
        return ran.stdout

    run_step("added")
    before = list_kept(node.home)["datasets"]
    refused = run_step("refused")
    assert "only 15,980 of 42,112 rows" in refused
    assert "26,132 rows: Date: no such day (first '2020-22-01' in line 2)" in refused
    assert "dateFormat" in refused
    assert list_kept(node.home)["datasets"] == before

    # The manifest says how dates are written: the same file goes through, the dataset is the same.
    assert "42,112 rows added" in run_step("mended")
    assert [record.id for record in list_kept(node.home)["datasets"]] == [record.id for record in before]

    # The publisher is right again, and so is the manifest: a day more and a few corrections, no other day.
    assert "0,188,2020-09-02\n" in run_step("healed").replace('"', "")
    source = tmp_path / "countries.csv.gz"
    shutil.copy(root / "examples/covid/data/countries-aggregated-2020-10-01.csv.gz", source)
    words = ("pull", "countries.daily", "--system-time", "2020-10-01T12:00:00Z")
    node.must(*words, environment={"COVID_SOURCE": source.as_uri()})
    with gzip.open(root / "examples/covid/data/countries-aggregated-2020-10-01.csv.gz", "rt") as file:
        published = [line.rstrip("\n").split(",") for line in file][1:]
    state = node.must(
        "sql", "-o", "json", "-c",
        "SELECT count(*) AS n, sum(confirmed) AS c, sum(deaths) AS d, count(DISTINCT event_time) AS days "
        "FROM `countries.daily__state`",
    ).json()  # fmt: skip
    expected = {
        "n": len(published),
        "c": sum(int(row[-3]) for row in published),
        "d": sum(int(row[-1]) for row in published),
        "days": len({row[0] for row in published}),
    }
    assert state == [expected]


FILE = GLOB.replace(
    'fetch: {kind: FilesGlob, path: "${{ env.DAYS }}/day-*.csv", order: ByName}',
    "fetch: {kind: Url, url: '${{ env.DAY }}'}",
)


def test_another_file_of_the_same_time_is_another_source(node: RealNode, tmp_path: Path) -> None:
    """Clause ING-26: files that one command unpacked often have one time."""
    add(node, FILE)
    write_days(tmp_path / "in", a="2024-01-01T00:00:00Z,1\n", b="2024-01-02T00:00:00Z,2\n")
    for name in ("a", "b"):
        path = tmp_path / "in" / f"day-{name}.csv"
        os.utime(path, ns=(1_700_000_000_123_000_000, 1_700_000_000_123_000_000))
        environment = {"DAY": path.as_uri()}
        assert "1 row added" in node.must("pull", "days", environment=environment).out
        assert "up to date" in node.must("pull", "days", environment=environment).out
    assert [row["n"] for row in rows(node, "days")] == [1, 2]
