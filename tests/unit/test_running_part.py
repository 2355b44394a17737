"""Which part of a step a thread of Spark is at (ENGINE-16), by stacks as Spark 4.3 has them."""

import pytest

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.host.step_parts import PARTS, name_part, reported_part
from odf_engines.validation.running_name import RunningName
from odf_spark.running_part import find_part
from support.transforms import transform_request, transform_sql

_ITERATOR = "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage"
_SQL = "org.apache.spark.sql.execution"
_SCAN = f"{_SQL}.datasources.parquet.VectorizedColumnReader.readBatch"
_EXCHANGE = "org.apache.spark.shuffle.sort.BypassMergeSortShuffleWriter.write"
STACKS = {
    "scan": [_SCAN, f"{_ITERATOR}3.columnartorow_nextBatch_0$", f"{_ITERATOR}3.processNext", _EXCHANGE],
    "aggregate": [_SCAN, f"{_ITERATOR}1.hashAgg_doAggregateWithKeys_0$", f"{_ITERATOR}1.processNext", _EXCHANGE],
    "sort": [
        "org.apache.spark.util.collection.unsafe.sort.UnsafeExternalSorter.insertRecord",
        f"{_SQL}.UnsafeExternalRowSorter.insertRow",
        f"{_ITERATOR}4.sort_addToSorter_0$",
        f"{_ITERATOR}5.smj_findNextJoinRows_0$",
    ],
    "join": ["org.apache.spark.unsafe.map.BytesToBytesMap.safeLookup", f"{_SQL}.joins.UnsafeHashedRelation.get"],
    "window": [f"{_SQL}.ExternalAppendOnlyUnsafeRowArray.add", f"{_SQL}.window.WindowEvaluatorFactory$1.next"],
    "compute": ["java.util.regex.Matcher.find", f"{_ITERATOR}2.processNext", _EXCHANGE],
    "write": [f"{_SQL}.datasources.parquet.ParquetOutputWriter.write", f"{_SQL}.datasources.FileFormatWriter$.task"],
    "exchange": ["org.apache.spark.storage.DiskBlockObjectWriter.write", _EXCHANGE],
}


@pytest.mark.parametrize("part", PARTS)
def test_stack_of_a_task_tells_the_part(part: str) -> None:
    frames = [*STACKS[part], "org.apache.spark.executor.Executor$TaskRunner.run", "java.base/java.lang.Thread.run"]
    assert find_part("java.lang.Throwable\n" + "".join(f"\tat {each}(Some.java:1)\n" for each in frames)) == part


def test_thread_without_a_task_tells_nothing() -> None:
    assert (
        find_part("java.lang.Throwable\n\tat java.base/java.util.concurrent.LinkedBlockingQueue.take(X.java:9)\n")
        is None
    )
    assert find_part("") is None


def test_limit_names_the_part_and_the_queries_that_have_one(tmp_path) -> None:
    request = transform_request(transform_sql(("daily", "SELECT 1"), ("ranked", "SELECT 2"), "SELECT 3"))
    reached = LimitExceededError("wall_s", allowed=1.0)
    assert name_part(request, tmp_path, reached) is reached
    RunningName(tmp_path).tell(reported_part("join", [0, 2]))
    named = name_part(request, tmp_path, reached)
    assert str(named) == "limit wall_s reached at a join (as in daily, the last query): allowed 1.0"
    failure = EngineFailureError("it ended")
    assert name_part(request, tmp_path, failure) is failure


@pytest.mark.parametrize(
    "reported", ["", "join 9", "heaven", "join -1", "join 0\n", "scan; join", "\x1b[31m", "join " + "0" * 500]
)
def test_untrusted_word_for_a_part_is_never_shown(tmp_path, reported: str) -> None:
    RunningName(tmp_path).tell(reported)
    error = name_part(transform_request("SELECT 1"), tmp_path, LimitExceededError("cpu_s", allowed=Limits().cpu_s))
    assert isinstance(error, LimitExceededError)
    assert error.where in {"", "a join"}
