"""What the core finds: tables of a home for a Spark session. Nothing of Spark is imported before it is asked for.

Source: clause SPARKTABLE-1 in ``spec/plug-ins/spark-tables.md``.
"""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from odf_node.errors import UsageError
from odf_node.front.spark_sessions import SessionTables, SparkSessions

_PACKAGE: Final = "pyspark"
_FIRST: Final = (4, 3)
"""The first version of Spark that has all that is used: SQL functions of tables, streams of Python sources in Arrow."""


class PySparkSessions(SparkSessions):
    """Makes the datasets of a home tables of a session."""

    def make_tables(self, session: object, home: Path | None, names: Sequence[str]) -> SessionTables:
        """See ``SparkSessions``."""
        found = version(_PACKAGE)
        if tuple(int(part) for part in found.split(".")[:2] if part.isdigit()) < _FIRST:
            first = ".".join(map(str, _FIRST))
            raise UsageError(
                f"tables of Spark need {_PACKAGE} {first} or later, found {found}: pip install 'odf-node[spark]'"
            )
        from pyspark.sql import SparkSession

        from odf_spark_tables.session import SparkTables

        if not isinstance(session, SparkSession):
            raise UsageError(f"expected a SparkSession, found {type(session).__name__}")
        return SparkTables(session, home, names)


SESSIONS: Final = PySparkSessions()
