"""The driver's side of a cluster, inside the sandbox: it connects, and finds out whether executors are as it is.

Source: clauses CLUSTER-5 and CLUSTER-6 in ``spec/extensions/engine-cluster.md``.
"""

import shutil
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from odf_engines.errors import ClusterUnavailableError
from odf_spark.connection import connect_java, start_spark
from odf_spark.java_side import analysed_plan, java_class, java_context, rows_of_plan, scala_object, scala_sequence
from odf_spark.masters import parse_masters

if TYPE_CHECKING:
    import subprocess

    from pyspark.sql import DataFrame, SparkSession

_TAKEN_S = 90.0  # guess: Java starts in seconds, and Spark itself asks a master three times in a minute
_EXECUTORS_S = 75.0  # guess: workers start Java within seconds, on a machine that is busy in most of a minute
_LATER_S = 5.0  # guess: how much later the others start than the first
_POLL_S = 0.1
_MASTER = "Master"  # what Spark calls the part of a master that applications speak to

_JAVA_VERSION = "java.version"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"


def connect_cluster(java: "subprocess.Popen[bytes]", arguments: dict[str, Any], output: Path) -> "SparkSession":
    """Return the root session of a driver whose executors were tried.

    Args:
        java: The driver, which was started.
        arguments: ``master`` and how many ``executors`` are asked of it.
        output: Folder that executors can write to, if the cluster is set up as it should be.

    Raises:
        ClusterUnavailableError: It takes no application, gives no executor, or one that would compute otherwise.
    """
    master = arguments["master"]
    patience = threading.Timer(_TAKEN_S, java.kill)
    patience.start()
    try:
        connect_java(java)
        _ask_masters(master)
        root = start_spark()
    except Exception as error:
        traceback.print_exc()  # for the log
        reason = "the master takes no application; its secret, its encryption or its version"
        raise ClusterUnavailableError(master, f"{reason} of Spark may be another (see its log)") from error
    finally:
        patience.cancel()
    executors = _wait_for_executors(root, arguments["executors"])
    if not executors:
        reason = f"no worker gives an executor within {_EXECUTORS_S:.0f} s; too few cores or too little memory are free"
        raise ClusterUnavailableError(master, reason)
    _check_executors(root, master, executors, output / ".executors")
    return root


def _ask_masters(master: str) -> None:
    """Speak to each master as an application does that is about to register, until one answers.

    Spark itself asks again after 20 s and 40 s whoever rejects it, whatever the reason.

    Raises:
        Py4JJavaError: None answers; why the last one does not.
    """
    settings = java_class("org.apache.spark.SparkConf")(True)
    of_security = java_class("org.apache.spark.SecurityManager")
    defaults = [getattr(of_security, f"$lessinit$greater$default${place}")() for place in (2, 3)]
    host = str(settings.get("spark.driver.bindAddress"))
    asking = scala_object("org.apache.spark.rpc.RpcEnv$").create(
        "asking", host, 0, settings, of_security(settings, *defaults), True
    )
    rejection: Py4JJavaError | None = None
    try:
        for name, port in parse_masters(master):
            try:
                asking.setupEndpointRef(java_class("org.apache.spark.rpc.RpcAddress")(name, port), _MASTER)
            except Py4JJavaError as error:
                rejection = error
            else:
                return
    finally:
        asking.shutdown()
    assert rejection is not None
    raise rejection


def _wait_for_executors(root: "SparkSession", wanted: int) -> int:
    """Wait for the first executor, and a little for the others; return how many there are."""
    tracker = java_context(root).statusTracker()
    deadline, found = time.monotonic() + _EXECUTORS_S, 0
    while found < wanted and time.monotonic() < deadline:
        now = len(tracker.getExecutorInfos()) - 1  # the driver is among them
        if now > found:
            found, deadline = now, time.monotonic() + _LATER_S
        time.sleep(_POLL_S)
    return found


def _check_executors(root: "SparkSession", master: str, executors: int, folder: Path) -> None:
    """Let each executor say what it is in a file, and read that here."""
    try:
        _java_versions(root, executors).write.parquet(str(folder))
        stated = [each for path in sorted(folder.glob("part-*.parquet")) for each in _read_facts(path)]
    except (PySparkException, OSError) as error:
        traceback.print_exc()  # for the log
        cause = str(error).splitlines()[0][:300]
        raise ClusterUnavailableError(master, f"executors cannot write to the shared folder: {cause}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    here = root.version, str(java_class("java.lang.System").getProperty(_JAVA_VERSION))
    check_facts(master, stated, [here] * executors)


def check_facts(master: str, stated: Sequence[tuple[str, str]], expected: Sequence[tuple[str, str]]) -> None:
    """Compare what was read in the shared folder with what executors should have written there.

    Args:
        master: Address of the cluster.
        stated: Versions of Spark and Java.
        expected: The same of this machine, once for each executor.

    Raises:
        ClusterUnavailableError: They differ.
    """
    if len(stated) != len(expected):
        raise ClusterUnavailableError(master, "what executors write to the shared folder is not seen here")
    for there, here in zip(stated, expected, strict=True):
        if there != here:
            found = "an executor has Spark {} on Java {}; expected Spark {} on Java {}".format(*there, *here)
            raise ClusterUnavailableError(master, f"{found}, as this node has")


def _read_facts(path: Path) -> list[tuple[str, str]]:
    """Return versions of Spark, which whoever wrote the file says in it, and of Java, for each row."""
    with pq.ParquetFile(path) as file:
        spark = (file.metadata.metadata or {}).get(b"org.apache.spark.version", b"unknown").decode()
        return [(spark, str(java)) for java in file.read().column(0).to_pylist()]


def _java_versions(root: "SparkSession", rows: int) -> "DataFrame":
    """Return the version of Java where each row is computed, one in each task.

    Functions of SQL that would say it are off (SANDBOX-15), so the expression is made and not written.
    """
    of_class = java_class("java.lang.Class").forName
    text = java_class("org.apache.spark.sql.types.ObjectType")(of_class("java.lang.String"))
    string = scala_object("org.apache.spark.sql.types.StringType$")
    none, nothing = java_class("scala.Option").empty(), scala_sequence([])

    def call(place: str, kind: Any, name: str, argument: Any) -> Any:
        # As one whose result may differ from call to call, so that it is not computed once and here.
        invoke = java_class(f"{_EXPRESSIONS}.objects.StaticInvoke")
        return invoke(of_class(place), kind, name, scala_sequence([argument]), nothing, True, True, False, none)

    name = java_class(f"{_EXPRESSIONS}.Literal")(_JAVA_VERSION, text)
    version = call("java.lang.System", text, "getProperty", name)
    version = call("org.apache.spark.unsafe.types.UTF8String", string, "fromString", version)
    number = scala_object(f"{_EXPRESSIONS}.NamedExpression$").newExprId()
    column = java_class(f"{_EXPRESSIONS}.Alias")(version, "java", number, nothing, none, nothing)
    project = java_class("org.apache.spark.sql.catalyst.plans.logical.Project")
    return rows_of_plan(root, project(scala_sequence([column]), analysed_plan(root.range(0, rows, 1, rows))))
