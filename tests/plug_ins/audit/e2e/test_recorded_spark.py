"""What a program reads and writes through tables of its Spark session is found in the audit log."""

from pathlib import Path

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
    """AUDIT-1, AUDIT-2: the version that the session shows, what is read as files or by the format, and the write."""
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
    assert "whole" in audited.run("audit", "check")
