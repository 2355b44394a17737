"""Settings of a session for rows of a source: those of an ingest's query, and of its merge on a cluster.

Source: spec/ingest.md ING-7, ING-8.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from odf_spark.fixed_order import allow_any_order
from odf_spark.java_side import is_on_cluster, java_class, java_session, tasks_at_once

_BYTES_PER_PARTITION: Final = 64 * 1024 * 1024  # guess: sorts within a 1 GiB heap
_MIN_PARTITION_BYTES: Final = 1024 * 1024  # guess: less takes no longer than to send the task


@contextmanager
def set_for_rows(spark: Any, source_bytes: int) -> Iterator[None]:
    """Set a session, which is of one request alone, up for rows of so many bytes."""
    # On a cluster every core has its part, also of a source that one core would manage.
    max_bytes = source_bytes // tasks_at_once(spark) if is_on_cluster(spark) else _BYTES_PER_PARTITION
    partition_bytes = max(_MIN_PARTITION_BYTES, min(_BYTES_PER_PARTITION, max_bytes))
    partitions = max(1, source_bytes // partition_bytes)
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        # Columns of data differ by case.
        "spark.sql.caseSensitive": "true",
        # Whole files of Spark are only read by Arrow here, which takes INT96 for nanoseconds.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Every order that matters is sorted for, so files may be read and rows exchanged in parallel.
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.files.maxPartitionBytes": str(partition_bytes),
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    allow_any_order(spark)
    # A parser that is asked directly looks for settings in the session of its thread.
    sessions = java_class("org.apache.spark.sql.classic.SparkSession")
    sessions.setActiveSession(java_session(spark))
    try:
        yield
    finally:
        sessions.clearActiveSession()
