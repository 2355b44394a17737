"""What a program reads and writes through tables of its Spark session is found in the audit log."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.audited_homes import AuditedHome

pytestmark = pytest.mark.spark

JOB = """\
import sys
import odf_node
from pyspark.sql import SparkSession

told = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.warehouse.dir": sys.argv[1],
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
session = SparkSession.builder.master("local[1]").config(map=told).getOrCreate()
tables = odf_node.spark_tables(session, "cities", "totals")
assert session.table("cities").count() == 2
assert session.read.format("odf").load("cities").count() == 2
assert tables.table("cities", as_of="2020-01-01").count() == 0
session.sql("INSERT INTO totals__insert SELECT 'all', sum(people) FROM cities")
assert session.table("totals").count() == 1
print(session.sparkContext.applicationId)
tables.close()
session.stop()
"""


def test_tables_of_a_session_are_recorded_with_the_application(tmp_path: Path) -> None:
    """AUDIT-1, AUDIT-2: the version that the session shows, what is read as files or by the format, and the write.

    AUDIT-13, AUDIT-14: what Spark writes follows from what its application read, whichever of its processes did so.
    """
    audited = AuditedHome.create(tmp_path / "home")
    script = tmp_path / "job.py"
    script.write_text(JOB)
    application = audited.run_script(script, str(tmp_path / "warehouse")).split()[-1]

    reads = audited.audit("who-read", "cities")
    assert {(read["door"], read["sparkApplication"], read["version"]) for read in reads} == {("spark", application, 3)}
    (head,) = {row["head"] for row in audited.audit("who-wrote", "cities", "3")}
    assert {read["head"] for read in reads} == {head}
    (shown,) = [read for read in reads if read["what"] == "table"]
    assert (shown["program"], shown["times"]) == ("job.py", 1)
    of_rows = [read for read in reads if read["what"] == "rows"]
    assert sorted(read["asOf"] or "" for read in of_rows) == ["", "2020-01-01T00:00:00Z"]
    assert {read["program"] for read in of_rows if read["asOf"]} == {"job.py"}

    write = audited.audit("who-wrote", "totals")[-1]
    assert (write["door"], write["sparkApplication"], write["version"]) == ("spark", application, 3)
    assert {(read["what"], read["version"]) for read in audited.audit("who-read", "totals")} == {
        ("table", 1),  # when the session began
        ("table", 3),
    }
    given = {(each["dataset"], each["version"], each["asOf"]) for each in audited.audit("inputs-of", "totals")}
    assert given == {("cities", 3, None), ("cities", 3, "2020-01-01T00:00:00Z"), ("totals", 1, None)}
    impact = audited.audit("impact-of", "cities", "3")
    assert [row["version"] for row in impact if (row["does"], row["dataset"]) == ("write", "totals")] == [3]
    (event,) = exported(audited, tmp_path / "events.ndjson", write["run"])
    assert {each["name"] for each in event["inputs"]} == {"cities", "totals"}
    assert "whole" in audited.run("audit", "check")


def exported(audited: AuditedHome, target: Path, run: str) -> list[Any]:
    audited.run("audit", "export", target)
    events = [json.loads(line) for line in target.read_text().splitlines()]
    ended = [each for each in events if each["eventType"] == "COMPLETE"]
    return [each for each in ended if each["run"]["runId"].replace("-", "") == run]
