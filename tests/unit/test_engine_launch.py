"""ENGINE-16 and ENGINE-23: how Java is started: with which archives, in which order, and with which pages."""

import zipfile

import pytest

from odf_spark.launch import class_archives, java_command
from odf_spark.runtime import find_runtime

# Of the two that share classes of programs, and not only a description of their module, the one that is found first.
FIRST_OF_TWO = ("parquet-column-", "parquet-hadoop-1"), ("orc-core-", "orc-mapreduce-")


def test_archives_are_all_but_one_by_name():
    folder = find_runtime().jars
    found = class_archives(folder)
    assert {path.name for path in folder.glob("*.jar")} - {path.name for path in found} == {
        path.name for path in folder.glob("spark-mllib_*")
    }
    assert len(list(folder.glob("spark-mllib_*"))) == 1
    assert found == sorted(found)


def test_archives_that_share_classes_keep_the_order_of_their_names():
    places = {path.name: place for place, path in enumerate(class_archives(find_runtime().jars))}
    for first, second in FIRST_OF_TWO:
        (before,) = (place for name, place in places.items() if name.startswith(first))
        (after,) = (place for name, place in places.items() if name.startswith(second))
        assert before < after


def test_no_archive_of_spark_brings_extensions_to_sessions():
    for path in class_archives(find_runtime().jars):
        if path.name.startswith("spark-"):
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
            assert "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider" not in names, path


@pytest.mark.parametrize("heap_bytes", [2**28, 2**30, 2**37])
def test_little_is_taken_for_few_rows_and_one_task_can_have_all_memory_engine_16(heap_bytes):
    command = java_command(heap_bytes=heap_bytes, cores=2)
    (page,) = [int(each.partition("=")[2].removesuffix("b")) for each in command if "pageSize" in each]
    assert page <= max(2**21, heap_bytes // 4096)
    assert page * 8192 >= heap_bytes  # so many pages a task may have
    on_cluster = java_command(heap_bytes=heap_bytes, cores=2, settings={"spark.master": "spark://h:1"})
    assert not [each for each in on_cluster if "pageSize" in each]
