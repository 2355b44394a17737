"""SQL of other engines, as Spark reads it; runs beside the node, and in no engine."""

from typing import Final

ENGINE: Final = "spark"
"""Whose SQL comes out."""

DIALECTS: Final = frozenset({"datafusion", "flink", "risingwave"})
"""Engines whose SQL can be translated."""
