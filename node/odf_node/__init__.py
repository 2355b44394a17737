"""odf-node: the I/O shell around the Open Data Fabric protocol and its engines.

``odf_node.open(home_or_url)`` is Python's way in; see ``odf_node.front``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odf_node.front import OpenNode
    from odf_node.front.spark_sessions import SessionTables

__version__ = "0.1.0"


def open(home_or_url: "str | Path | None" = None) -> "OpenNode":  # noqa: A001 - as gzip.open, and read with its module
    """Open a node: its home's folder (None: the default one), or another node's address; see ``front.open_front``."""
    from odf_node.front import open_front  # here: every module of the package comes after this one

    return open_front(home_or_url)


def spark_tables(session: "SparkSession", *names: str, home: "str | Path | None" = None) -> "SessionTables":
    """Make the datasets of a home tables of a Spark session; see ``front.spark_sessions.make_spark_tables``."""
    from pathlib import Path

    from odf_node.front.spark_sessions import make_spark_tables

    return make_spark_tables(session, None if home is None else Path(home).expanduser(), names)
