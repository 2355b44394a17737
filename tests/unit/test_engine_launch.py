"""ENGINE-23: which of Spark's archives Java is given, and in which order."""

import zipfile

from odf_engines.spark import launch
from odf_engines.spark.launch import class_archives
from odf_engines.spark.runtime import find_runtime

# Of the two that share classes of programs, and not only a description of their module, the one that is found first.
FIRST_OF_TWO = ("parquet-column-", "parquet-hadoop-1"), ("orc-core-", "orc-mapreduce-")


def test_archives_are_all_but_one_and_the_large_ones_stand_first():
    folder = find_runtime().jars
    found = class_archives(folder)
    assert {path.name for path in folder.glob("*.jar")} - {path.name for path in found} == {
        path.name for path in folder.glob("spark-mllib_*")
    }
    assert len(list(folder.glob("spark-mllib_*"))) == 1
    first = [path.name for path in found[: len(launch._FIRST_ARCHIVES)]]
    assert all(name.startswith(start) for name, start in zip(first, launch._FIRST_ARCHIVES, strict=True))
    rest = [path.name for path in found[len(first) :]]
    assert rest == sorted(rest)


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
