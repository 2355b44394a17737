"""What the worker imports while Java starts, when it has nothing else to do, and not during the first request.

It is what a transform imports in the end; a name that is missing here costs time in the first request and nothing else.
"""

import importlib

_PRELOADED = (
    "encodings.idna", "ssl",  # by py4j when it connects
    "numpy.ma", "pyarrow.compute", "pyarrow.parquet",
    "pyspark.sql.classic.column", "pyspark.sql.classic.dataframe", "pyspark.sql.pandas.map_ops",
    "odf_engines.spark.transform",
)  # fmt: skip


def preload() -> None:
    """Import it."""
    for name in _PRELOADED:
        importlib.import_module(name)
