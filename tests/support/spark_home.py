"""A home with datasets for tables of Spark, and a Spark session of a user's, in its own process as theirs are."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from support.nodes import RealNode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: Csv
        header: true
        ddlSchema: ["event_time TIMESTAMP", "city STRING NOT NULL", "people BIGINT"]
      merge: {merge}
"""
APPEND = "{kind: Append}"
SNAPSHOT = "{kind: Snapshot, primaryKey: [city]}"
HEADER = "event_time,city,people\n"
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
MADE = "2024-01-31T00:00:00Z"


def add(node: RealNode, folder: Path, name: str, merge: str = APPEND) -> None:
    """Add a dataset with a push source."""
    path = folder / f"{name}.yaml"
    path.write_text(MANIFEST.format(name=name, merge=merge))
    node.must("add", str(path), "--system-time", MADE)


def ingest(node: RealNode, folder: Path, name: str, rows: str, time: str) -> None:
    """Push lines of CSV into it."""
    path = folder / "rows.csv"
    path.write_text(HEADER + rows)
    node.must("ingest", name, str(path), "--system-time", time)


@contextmanager
def user_session(folder: Path, *, tasks: str = "2,3", java_options: str = SHORT_LIVED) -> Iterator["SparkSession"]:
    """Start the session of a user; ``tasks`` is how many run at once, and how often one is tried."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    told = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": java_options,
    }
    session = SparkSession.builder.master(f"local[{tasks}]").config(map=told).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        yield session
    finally:
        session.stop()
