"""Starting Spark inside the sandbox: the Java process directly, without the launcher's scripts and second process.

Every setting that could change a result is fixed here, so that it is part of the engine's digest and cannot come from
the machine: time zone, locale, error mode, one ordered partition. Memory and the number of cores come from the
caller; results must not depend on them.

Source: clauses ENGINE-9, ENGINE-11 and ENGINE-23 in ``spec/extensions/engine-contract.md``.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

JAVA = "/runtime/java/bin/java"
SPARK_HOME = Path("/runtime/site/pyspark")
LOCAL_FOLDER = "/exchange/out/.spark"
SECRET = "/runtime/cluster-secret"  # noqa: S105 - a path
"""What a cluster asks of its driver; there only where one is used (CLUSTER-5)."""
CONNECTION = "/scratch/connection"
"""Where Java says how to reach it."""

# Reflection that Spark needs into the Java runtime: org.apache.spark.launcher.JavaModuleOptions of Spark 4.3.
_OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip

_JAVA_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    # Transcendental functions by the portable library instead of the processor's: the same bits on every machine.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-UseLibmIntrinsic",
    "-Dfile.encoding=UTF-8",
    "-Djava.io.tmpdir=/tmp",
    "-Djava.net.preferIPv4Stack=true",
    "-Duser.country=US",
    "-Duser.language=en",
    "-Duser.timezone=UTC",
    "-Dio.netty.tryReflectionSetAccessible=true",
)

# The second compiler costs a short session more than it gives: measured 3 s of processor time for a first query. The
# first one alone would get room for 48 MiB of code, and Java collects all garbage whenever a seventh of it is used,
# twice in a first query: a quarter of a second of processor time.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=192m")

# What a sort or an aggregation of ten rows takes. Spark would take 16 MiB of a heap of 1 GiB for each of them, beside
# what Java cleans up often, so that an engine that had done some twenty small steps held half of its memory and was
# started anew. A task has 8,192 of them at most: org.apache.spark.memory.TaskMemoryManager of Spark 4.3.
_PAGE_BYTES = 2 * 1024**2
_PAGES_OF_HEAP = 4096

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
"""Names of rules of the optimiser, with commas between."""

ONE_ORDER = {
    # One ordered partition: order and grouping of rows cannot depend on cores or file sizes.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.maxPartitionBytes": str(2**50),
    "spark.sql.maxSinglePartitionBytes": f"{2**63 - 1}b",
    # The rows of a group are met in the order in which they come, whatever else is computed with them. Else the 129th
    # group makes Spark merge the first rows of each last; a group that finds no place in the first of two maps comes
    # behind those that do; and a null, sorted, changes the places of rows beside it that tie.
    "spark.sql.execution.useObjectHashAggregateExec": "false",
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
    "spark.sql.sort.enableRadixSort": "false",
}
"""What fixes the order in which rows are met. Source: clause SWITCH-2 in ``spec/extensions/engine-switches.md``."""

ANY_ORDER = {
    "spark.sql.maxSinglePartitionBytes": "128m",
    "spark.sql.execution.useObjectHashAggregateExec": "true",
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "true",
    "spark.sql.sort.enableRadixSort": "true",
}
"""What Spark does by itself, up to twice as fast, where a result follows from no order (SWITCH-3)."""

SETTINGS = {
    # What a query means
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    # Letters by the Java runtime, as Spark did before version 4. The tables of ICU take a second to make, in every
    # process that maps a letter.
    "spark.sql.icu.caseMappings.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # What a file says of its rows (extremes, dictionaries, page indexes) is its publisher's word: rows are read.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    **ONE_ORDER,
    "spark.default.parallelism": "1",
    # Which way a query goes, and with it the order of its rows, must not follow from sizes of files.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.join.preferSortMergeJoin": "true",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    # It takes away the order of rows below a join, a DISTINCT or a GROUP BY whose own result has none, though what
    # stands above may have one.
    EXCLUDED_RULES: "org.apache.spark.sql.catalyst.optimizer.EliminateSorts",
    # More rows than these would make of what a recursion begins with a plan instead of rows.
    "spark.sql.cteRecursionAnchorRowsLimitToConvertToLocalRelation": "0",
    # A small table is waited for as long as the request has time.
    "spark.sql.broadcastTimeout": "-1",
    # What a query cannot reach; the gate and the sandbox hold without these too.
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.restrictedMode.enabled": "true",
    "spark.sql.scripting.enabled": "false",
    # Else ${env:NAME} and ${system:os.version} in the text of a query become what the machine has under these names.
    "spark.sql.variable.substitute": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.warehouse.dir": "/scratch/warehouse",
    # How it runs
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.local.dir": LOCAL_FOLDER,
    "spark.log.level": "ERROR",
    "spark.sql.parquet.compression.codec": "lz4_raw",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.ui.enabled": "false",
    # Rows of a task come with its answer, not after it by the network of blocks.
    "spark.task.maxDirectResultSize": "64m",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
}


_NONE: Mapping[str, str] = MappingProxyType({})

# Functions over vectors, which no query can call: every session would register them, and for that alone start the
# reflection of Scala, half a second of processor time.
_LEFT_OUT_ARCHIVE = "spark-mllib_"


def class_archives(folder: Path) -> list[Path]:
    """Return Spark's archives that Java is started with, by name; a wildcard would take the folder's order.

    Of two archives with a class of the same name the first is taken.
    """
    return sorted(path for path in folder.glob("*.jar") if not path.name.startswith(_LEFT_OUT_ARCHIVE))


def java_command(
    *, heap_bytes: int, cores: int, options: Sequence[str] = (), settings: Mapping[str, str] = _NONE
) -> list[str]:
    """Return the command that starts Spark's gateway.

    Args:
        heap_bytes: Size of the Java heap.
        cores: Tasks at the same time.
        options: Further options of the Java runtime, such as a class-data archive.
        settings: Of Spark, for a cluster; none that could change a result.
    """
    if not settings:  # executors of a cluster have memory of their own
        settings = {"spark.buffer.pageSize": f"{max(_PAGE_BYTES, heap_bytes // _PAGES_OF_HEAP)}b"}
    settings = {**SETTINGS, "spark.master": f"local[{cores}]", "spark.app.name": "odf-node", **settings}
    return [
        JAVA, "-cp", ":".join(map(str, class_archives(SPARK_HOME / "jars"))), f"-Xmx{heap_bytes}", *_JAVA_OPTIONS,
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        *(f"-D{name}={value}" for name, value in settings.items()),
        *options,
        "org.apache.spark.api.python.PythonGatewayServer",
    ]  # fmt: skip


def start_java(
    *, heap_bytes: int, cores: int, options: Sequence[str] = (), settings: Mapping[str, str] = _NONE
) -> "subprocess.Popen[bytes]":
    """Start Java and do not wait for it; the process ends when its input closes."""
    return subprocess.Popen(
        java_command(heap_bytes=heap_bytes, cores=cores, options=options, settings=settings),
        stdin=subprocess.PIPE, stdout=sys.stderr, env={**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": CONNECTION},
    )  # fmt: skip


if __name__ == "__main__":
    # Run Java itself with further options and without answering requests: how a class-data archive is made.
    os.execv(JAVA, java_command(heap_bytes=1024**3, cores=1, options=sys.argv[1:]))  # noqa: S606
