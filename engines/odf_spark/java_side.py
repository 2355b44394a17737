"""Spark's Java side: classes by name, and plans, where Spark's Python names have no way in and ours go around them.

A plan, analysed, is an object of Java's that says what a query means; rows are a data frame of Python's. The gate and
the order of rows are decisions about plans, so one is made of the other here and there, and only here. No other module
uses a private name of Spark's.
"""

import os
from collections.abc import Iterable
from functools import cache
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark import SparkContext
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as JavaDataFrame
from pyspark.util import _load_from_socket


def connect_to_java() -> None:
    """Connect to the Java that the environment names; Spark need not be up there."""
    SparkContext._ensure_initialized()  # noqa: SLF001 - has no public name


def is_java_reachable() -> bool:
    """Ask Java for the time, and say whether it answers."""
    try:
        java_class("java.lang.System").nanoTime()
    except Exception:  # noqa: BLE001 - whatever the pipe to Java says when its other end is gone
        return False
    return True


def is_java_instance(value: Any, name: str) -> bool:
    """Say whether an object of Java's is of a class, or of one derived from it."""
    return bool(is_instance_of(SparkContext._gateway, value, name))  # noqa: SLF001 - has no public name


@cache
def java_class(name: str) -> Any:
    """Return a Java class by its full name, looked up once: every dot costs a question to Java.

    Call it to make an object, or call its static methods.
    """
    found: Any = SparkContext._jvm  # noqa: SLF001 - has no public name
    for part in name.split("."):
        found = getattr(found, part)
    return found


def scala_object(name: str) -> Any:
    """Return the one instance of an object of Scala, which stands in a field of its class; the name ends in ``$``."""
    return getattr(java_class(name), "MODULE$")


def scala_sequence(values: Iterable[Any]) -> Any:
    """Return values as a sequence of Scala's."""
    joined = java_class("java.util.ArrayList")()
    for value in values:
        joined.add(value)
    return java_class("org.apache.spark.api.python.PythonUtils").toSeq(joined)


_CLUSTER_CORES = "spark.cores.max"  # which is set for clusters alone


def query_execution(rows: DataFrame) -> Any:
    """Return Java's side of how rows are computed: plans, and what was observed."""
    return rows._jdf.queryExecution()  # noqa: SLF001 - has no public name


def analysed_plan(rows: DataFrame) -> Any:
    """Return what the rows are computed by, all names and types resolved."""
    return query_execution(rows).analyzed()


def arrow_batches(rows: DataFrame, max_rows: int) -> Any:
    """Return Java's partitions of the rows, as messages of Arrow with times in UTC; nothing is computed yet.

    Args:
        rows: A query.
        max_rows: Of one message.
    """
    return rows._jdf.toArrowBatchRdd(max_rows, "UTC", False, False)  # noqa: SLF001 - has no public name


def collect_partition(spark: SparkSession, batches: Any, number: int) -> list[bytes]:
    """Compute one of the partitions that ``arrow_batches`` gave, as a job of its own.

    Raises:
        PySparkException, Py4JError: Of computing it.
    """
    partitions = java_class("java.util.ArrayList")()
    partitions.add(number)
    run = java_class("org.apache.spark.api.python.PythonRDD").runJob
    served = run(java_context(spark), batches.toJavaRDD(), partitions)
    with _load_from_socket(served, NoOpSerializer()) as messages:
        return list(messages)


def java_context(spark: SparkSession) -> Any:
    """Return Java's side of the context of a session, as Scala has it."""
    return spark.sparkContext._jsc.sc()  # noqa: SLF001 - has no public name


def java_session(spark: SparkSession) -> Any:
    """Return Java's side of a session."""
    return spark._jsparkSession  # noqa: SLF001 - has no public name


def resolve_plan(spark: SparkSession, plan: Any) -> Any:
    """Resolve all names and types of a plan; nothing is executed.

    Returns:
        A Java ``Dataset`` with the analysed plan.

    Raises:
        PySparkException: A name is unknown or a type does not fit.
    """
    return java_class("org.apache.spark.sql.classic.Dataset").ofRows(java_session(spark), plan)


def rows_of(spark: SparkSession, dataset: Any) -> DataFrame:
    """Return a Java ``Dataset`` as Python has it."""
    return JavaDataFrame(dataset, spark)


def tasks_at_once(spark: SparkSession) -> int:
    """Return how many tasks can run at once: on the cores of this machine, or of the cluster that there is."""
    cores = spark.conf.get(_CLUSTER_CORES, None)
    return (os.cpu_count() or 1) if cores is None else int(cores)


def is_on_cluster(spark: SparkSession) -> bool:
    """Say whether tasks run on executors elsewhere."""
    return spark.conf.get(_CLUSTER_CORES, None) is not None


def rows_of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """Return what a plan computes; raises what ``resolve_plan`` does."""
    return rows_of(spark, resolve_plan(spark, plan))
