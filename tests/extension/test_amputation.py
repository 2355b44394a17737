"""The core stands without any of its plug-ins: each is cut out of a copy in turn, with its entry points (PLUG-1)."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.amputated import list_plug_in_packages, make_amputated
from support.daemons import wait_until

PACKAGES = list_plug_in_packages()
MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Csv, header: true, ddlSchema: ["city STRING", "people BIGINT"]}
      merge: {kind: Append}
"""
DERIVATIVE = """\
kind: DatasetSnapshot
version: 1
content:
  name: large.{engine}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: cities, alias: c}}]
      transform: {{kind: Sql, engine: {engine}, query: 'SELECT event_time, city FROM c WHERE people > 15'}}
"""
ROWS = "city,people\nLima,10\nOslo,20\n"
COMMAND_S = 120


class Program:
    """The copy, on one home."""

    def __init__(self, interpreter: Path, home: Path) -> None:
        self.command = [str(interpreter), "-m", "odf_node"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ODF_NODE_", "PYTHON"))}
        self.environment = kept | {"ODF_NODE_HOME": str(home)}
        self.home = home

    def run(self, *words: str | Path) -> str:
        done = self._end(words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fail(self, code: int, *words: str | Path) -> str:
        done = self._end(words)
        assert done.returncode == code, done.stderr
        return done.stderr

    def reject(self, *words: str | Path) -> str:
        """Run what cannot be done here; give the one line that reports it."""
        (line,) = self.fail(8, *words).splitlines()
        return line

    def _end(self, words: Sequence[str | Path]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self.command, *words],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S,
        )

    @contextmanager
    def serving(self) -> Iterator[str]:
        ready, log = self.home.with_suffix(".ready"), self.home.with_suffix(".log")
        words = ["serve", "--http-port", "0", "--ready-file", str(ready)]
        with log.open("wb") as stream:
            process = subprocess.Popen([*self.command, *words], env=self.environment, stderr=stream)
        try:
            yield wait_until(lambda: ready.read_text().strip() if ready.exists() else None, log.read_text)
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(COMMAND_S)
        assert code == 0, log.read_text()


def test_there_are_plug_ins_to_cut_out() -> None:
    assert PACKAGES


@pytest.mark.parametrize("without", [[name] for name in PACKAGES], ids=PACKAGES)
def test_core_works_without(without: list[str], tmp_path: Path) -> None:
    interpreter = make_amputated(tmp_path / "program", without)
    publisher = Program(interpreter, tmp_path / "publisher")
    reader = Program(interpreter, tmp_path / "reader")
    for name in without:
        absent = [str(interpreter), "-c", f"import {name}"]
        assert subprocess.run(absent, env=publisher.environment, capture_output=True, check=False).returncode == 1
    (tmp_path / "cities.yaml").write_text(MANIFEST)
    (tmp_path / "cities.csv").write_text(ROWS)

    assert publisher.run("--version").startswith("odf-node ")
    publisher.run("add", tmp_path / "cities.yaml")
    publisher.run("ingest", "cities", tmp_path / "cities.csv")
    query = 'SELECT city, people FROM "cities" ORDER BY city'
    rows = [{"city": "Lima", "people": 10}, {"city": "Oslo", "people": 20}]
    assert json.loads(publisher.run("sql", "-c", query, "-o", "json")) == rows
    (tmp_path / "large.yaml").write_text(DERIVATIVE.format(engine="datafusion"))
    publisher.run("add", tmp_path / "large.yaml")
    publisher.run("pull", "large.datafusion")
    publisher.run("publish", "cities", "large.datafusion")
    with publisher.serving() as url:
        reader.run("pull", f"{url}/cities")
        reader.run("pull", f"{url}/large.datafusion")
    reader.run("verify", "cities")
    assert "1 step re-executed with an equal result" in reader.run("verify", "large.datafusion")
    assert json.loads(reader.run("sql", "-c", query, "-o", "json")) == rows
    assert "cities" in reader.run("list")

    if "odf_spark" in without:
        (tmp_path / "spark.yaml").write_text(DERIVATIVE.format(engine="spark"))
        missing = (
            "engine 'spark' is not installed (installed: arrow, datafusion); pip install 'odf-node[spark]' brings it"
        )
        assert reader.reject("add", tmp_path / "spark.yaml") == f"odf-node add: {missing}"
        assert reader.reject("sql", "--engine", "spark", "-c", "SELECT 1") == f"odf-node sql: {missing}"
        translated = reader.fail(7, "add", "--as-spark", tmp_path / "large.yaml")  # PLAN-17
        assert "those of odf-node are in its plug-in odf_spark, which is not installed here" in translated

    if "odf_foreign" in without:  # FOREIGN-1
        (tmp_path / "flink.yaml").write_text(DERIVATIVE.format(engine="flink"))
        missing = (
            "engine 'flink' is not installed (installed: arrow, datafusion, spark); 'odf-node engine add flink FILE' "
            "of the plug-in odf_foreign, which is not installed here, brings it"
        )
        assert reader.reject("add", tmp_path / "flink.yaml") == f"odf-node add: {missing}"
        container = MANIFEST.replace("AddPushSource", "SetPollingSource").replace("name: cities", "name: fetched")
        container = container.replace("sourceName: default", "fetch: {kind: Container, image: fetcher}")
        (tmp_path / "container.yaml").write_text(container)
        brought_by = "Container is brought by the plug-in odf_foreign, which is not installed here"
        assert brought_by in reader.fail(7, "add", tmp_path / "container.yaml")

    if "odf_corrections" in without:  # CORRECT-1
        rejected = reader.fail(2, "quarantine", "fix", "cities", "--set", "people=1")
        assert "invalid choice: 'fix'" in rejected
        assert "quarantine fix" not in reader.run("quarantine", "--help")


def test_node_without_the_plug_in_for_corrections_keeps_bad_rows_and_sends_them_again(tmp_path: Path) -> None:
    """CORRECT-1: what a node with it declared and fixed; sinks wait."""
    node = Program(Path(sys.executable), tmp_path / "home")
    lacking = Program(make_amputated(tmp_path / "program", ["odf_corrections"]), tmp_path / "home")
    sinks = [
        "    - kind: SetAttachments",
        "      attachments:",
        "        kind: Embedded",
        "        items: [{path: odf-node/ingest.yaml, content: 'sinks: [{kind: File, name: bad.ndjson}]'}]",
    ]
    (tmp_path / "cities.yaml").write_text(MANIFEST + "\n".join(sinks) + "\n")
    (tmp_path / "cities.csv").write_text(ROWS + "Bonn,many\nKiel,few\n")
    brought_by = "those of odf-node are in its plug-in odf_corrections, which is not installed here"

    assert brought_by in lacking.fail(7, "add", tmp_path / "cities.yaml")
    node.run("add", tmp_path / "cities.yaml")
    lacking.run("ingest", "cities", tmp_path / "cities.csv")
    assert "Bonn" in lacking.run("quarantine", "show", "cities")
    node.run("quarantine", "fix", "cities", "1.1", "--set", "people='30'")
    lacking.run("quarantine", "resend", "cities", "1.1")
    lacking.run("quarantine", "drop", "cities", "1.2")
    query = 'SELECT city FROM "cities" ORDER BY city'
    found = [row["city"] for row in json.loads(lacking.run("sql", "-c", query, "-o", "json"))]
    assert found == ["Bonn", "Lima", "Oslo"]
    assert "done" in node.run("quarantine", "deliver", "cities")


def test_manifest_that_names_a_converter_says_which_plug_in_brings_it(tmp_path: Path) -> None:
    """QUALITY-2: by ``add``, and by an ingest of a dataset that a node with the plug-in made."""
    node = Program(Path(sys.executable), tmp_path / "home")
    lacking = Program(make_amputated(tmp_path / "program", ["odf_quality"]), tmp_path / "home")
    rules = [
        "    - kind: SetAttachments",
        "      attachments:",
        "        kind: Embedded",
        "        items:",
        "          - path: odf-node/ingest.yaml",
        "            content: |",
        "              converters: [{kind: Trim, columns: [city]}]",
        "              validators: [{kind: Required, columns: [city]}]",
    ]
    (tmp_path / "cities.yaml").write_text(MANIFEST + "\n".join(rules) + "\n")
    (tmp_path / "cities.csv").write_text(ROWS)
    (tmp_path / "cities.xml").write_text("<all><city name='Lima'/><city name='Oslo'/></all>")
    brought_by = "those of odf-node are in its plug-in odf_quality, which is not installed here"

    assert brought_by in lacking.fail(7, "add", tmp_path / "cities.yaml")
    assert "XmlRows" in node.run("new", "towns", "--from", tmp_path / "cities.xml")
    assert brought_by in lacking.fail(8, "new", "villages", "--from", tmp_path / "cities.xml")
    node.run("add", tmp_path / "cities.yaml")
    assert brought_by in lacking.fail(8, "ingest", "cities", tmp_path / "cities.csv")
    node.run("ingest", "cities", tmp_path / "cities.csv")
    assert len(json.loads(lacking.run("tail", "cities", "-o", "json"))) == 2
