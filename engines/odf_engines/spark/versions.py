"""Rows of a temporal table as versions: each says from when and until when it was the newest one of its key.

Source: clauses ASOF-2 and ASOF-5 in ``spec/extensions/as-of-joins.md``.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql.functions import col, lead

from odf_engines.spark.folded_rows import OFFSET
from odf_engines.spark.gate.temporal_joins import FROM, UNTIL
from odf_protocol.schema_spark import quote_spark_name


def with_versions(rows: DataFrame, event_time: str, key: Sequence[str]) -> DataFrame:
    """Add to the rows of a temporal table from when and until when each is the newest of its key.

    Args:
        rows: The last column is ``OFFSET``, which is taken away.
        event_time: Name of its event time.
        key: Names of the columns of its primary key.
    """
    time = col(quote_spark_name(event_time)).cast("timestamp")
    # Of versions of one time, all but the one given last are in force for no time at all.
    in_order = Window.partitionBy(*(quote_spark_name(each) for each in key)).orderBy(time, f"`{OFFSET}`")
    return rows.withColumns({FROM: time, UNTIL: lead(time).over(in_order)}).drop(OFFSET)
