"""Flink's SQL for the library that translates queries: Spark's, but that SESSION is a function."""

from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType


class Flink(Spark):  # type: ignore[misc]
    """See the module."""

    class Parser(Spark.Parser):  # type: ignore[misc]
        """Reads ``SESSION(event_time, INTERVAL ...)``."""

        FUNC_TOKENS = Spark.Parser.FUNC_TOKENS | {TokenType.SESSION}
