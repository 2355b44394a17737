"""What Java does for every first request and could do before: here, by a second thread, while Spark's context starts.

Each call makes Java load classes and fill tables that a first request would wait for; what it returns is not used, and
a failure costs nothing but time. Classes of one family must be initialised by one thread at a time, since Java locks a
class meanwhile and two that need each other would wait for ever. So what is done beside the context belongs to Spark's
SQL, which the context knows nothing of, and what is done beside the first session are libraries that know nothing of
either.
"""

import contextlib
from collections.abc import Callable
from threading import Thread

from py4j.protocol import Py4JError

from odf_spark.java_side import java_class

_COLUMNS = "`a` BIGINT NOT NULL, `b` STRING, `c` TIMESTAMP NOT NULL, `d` DECIMAL(10, 2)"


def load_beside(load: Callable[[], None]) -> Thread:
    """Load something in a thread of its own, which is returned running; a failure is passed over."""

    def run() -> None:
        with contextlib.suppress(Py4JError):
            load()

    thread = Thread(target=run, name=load.__name__, daemon=True)
    thread.start()
    return thread


def load_sql() -> None:
    """Load parser, types, settings, generator and compiler of code; to be over before anything of SQL is asked."""
    _initialise("org.apache.spark.SparkThrowableHelper$")  # reads a megabyte of messages
    columns = java_class("org.apache.spark.sql.types.StructType").fromDDL(_COLUMNS)
    java_class("org.apache.spark.sql.catalyst.expressions.UnsafeProjection").create(columns)


def load_libraries() -> None:
    """Load Arrow's memory, Parquet's metadata and the native code of Snappy."""
    java_class("org.apache.spark.sql.util.ArrowUtils").rootAllocator()
    _initialise("org.apache.arrow.vector.types.pojo.Schema")
    _initialise("org.apache.parquet.hadoop.metadata.ParquetMetadata")
    java_class("org.xerial.snappy.Snappy").maxCompressedLength(1)


def _initialise(name: str) -> None:
    java_class("java.lang.Class").forName(name)
