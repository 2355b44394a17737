"""Executing in one fixed order: one ordered partition, and nothing that depends on how much memory there is.

A sum of floating-point numbers is the same wherever it is added up in the same order. Reading inputs as one ordered
partition and exchanging rows in one partition fixes that order, for any number of cores and any cut of files. Memory is
what remains: an aggregation or a sort that outgrows it writes parts to disk and merges them in another order. So
where the order matters, a query that spilled has no result but a limit.

Source: clause ENGINE-18 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from py4j.protocol import Py4JJavaError

from odf_engines.errors import LimitExceededError, NotReplayableError
from odf_engines.spark.gate.row_order import find_order_dependence
from odf_engines.spark.java_classes import java_class
from odf_engines.spark.plans import analysed_plan

_ONE_PARTITION = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.maxPartitionBytes": str(2**50),
    "spark.sql.files.minPartitionNum": "1",
}
_numbers = count()


def depends_on_order(result: Any, inputs: Collection[str]) -> bool:
    """Whether the result of a query over these views follows from its rows only in one fixed order of execution."""
    try:
        return bool(find_order_dependence(analysed_plan(result), inputs))
    except NotReplayableError:
        return False  # a person may ask at random; no order would make the answer the same


@contextmanager
def in_one_partition(spark: Any) -> Iterator[None]:
    """Plan what is planned inside with one partition, in a session whose own settings differ."""
    before = {name: spark.conf.get(name) for name in _ONE_PARTITION}
    for name, value in _ONE_PARTITION.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@contextmanager
def unspilled(spark: Any, *, matters: bool) -> Iterator[None]:
    """Refuse the result of what is executed inside if it did not fit into memory.

    Args:
        spark: Session.
        matters: Whether the query depends on the order of rows; if not, nothing is checked.

    Raises:
        LimitExceededError: Rows were spilled to disk.
    """
    if not matters:
        yield
        return
    context = spark.sparkContext
    group = f"fixed order {next(_numbers)}"
    context.setJobGroup(group, group)
    try:
        yield
    finally:
        context._jsc.sc().clearJobGroup()  # noqa: SLF001
    spilled = _spilled_bytes(context, group)
    if spilled:
        heap = int(java_class("java.lang.Runtime").getRuntime().maxMemory())
        raise LimitExceededError(
            "memory_bytes",
            allowed=heap,
            found=heap + spilled,
            where="a query whose result depends on the order of rows",
        )


def _spilled_bytes(context: Any, group: str) -> int:
    java = context._jsc.sc()  # noqa: SLF001
    # What tasks report arrives by a queue.
    java.listenerBus().waitUntilEmpty()
    tracker, store = context.statusTracker(), java.statusStore()
    stages = {
        stage
        for job in tracker.getJobIdsForGroup(group)
        if (info := tracker.getJobInfo(job))
        for stage in info.stageIds
    }
    return sum(_spilled_in(store, stage) for stage in stages)


def _spilled_in(store: Any, stage: int) -> int:

    try:
        data = store.lastStageAttempt(stage)
    except Py4JJavaError:
        return 0  # it was skipped: its rows were there already
    return int(data.memoryBytesSpilled()) + int(data.diskBytesSpilled())
