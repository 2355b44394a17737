"""What datasets are called in a Spark session.

Spark's own catalogue has schemas of one part and names of letters, digits and underscores. Names that fit are views of
that catalogue; all others are temporary views, which have any name in back-ticks.

Source: clause SPARKTABLE-2 in ``spec/plug-ins/spark-tables.md``.
"""

import re
from dataclasses import dataclass
from typing import Final

from odf_protocol.schema_spark import quote_spark_name

CHANGES: Final = "__changes"
"""Behind a name: every row that was ever written."""
AS_OF: Final = "__as_of"
"""Behind a name: the function of what was known at a time."""
INSERT: Final = "__insert"
"""Behind a name: the table that takes rows in."""

_PART: Final = re.compile(r"\w+", re.ASCII)  # Source: Spark's SessionCatalog, names of tables and schemas
_MAX_PARTS: Final = 2


@dataclass(frozen=True, slots=True)
class SparkName:
    """The name of a table in a session.

    Attributes:
        sql: As SQL writes it, quoted.
        schema: Its schema in the catalogue; None: the one that is current.
        is_temporary: It fits no catalogue, and lives with the session.
    """

    sql: str
    schema: str | None
    is_temporary: bool


def spark_name_of(dataset: str, suffix: str = "") -> SparkName:
    """Say what a dataset, or what belongs to it, is called in a session.

    Args:
        dataset: The dataset's name.
        suffix: ``CHANGES``, ``AS_OF`` or ``INSERT``; empty for its current rows.
    """
    parts = dataset.split(".")
    if len(parts) > _MAX_PARTS or not all(_PART.fullmatch(part) for part in parts):
        return SparkName(quote_spark_name(dataset + suffix), None, is_temporary=True)
    parts[-1] += suffix
    schema = parts[0] if len(parts) == _MAX_PARTS else None
    return SparkName(".".join(map(quote_spark_name, parts)), schema, is_temporary=False)
