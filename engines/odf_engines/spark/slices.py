"""The columns of a transform's slices, from what Spark calls its result's.

Source: clause ENGINE-12; MAP-7 in ``spec/extensions/changelog-maps.md``.
"""

import pyarrow as pa

from odf_engines.errors import InvalidQueryError
from odf_engines.host.slices import slice_schema
from odf_protocol.errors import UnsupportedError
from odf_protocol.schema_spark import parse_spark_schema
from odf_protocol.vocabulary import Vocabulary


def output_schema(spark_schema: str, vocabulary: Vocabulary) -> pa.Schema:
    """Return the schema of the slices of a transform, see ``slice_schema``.

    Every row has an event time (CHAIN-45), also where Spark cannot tell that it has, as of a group's maximum.

    Args:
        spark_schema: JSON of the query's own columns.
        vocabulary: Of the output.

    Raises:
        InvalidQueryError: A type that no slice can hold.
    """
    try:
        fields = parse_spark_schema(spark_schema).fields
    except UnsupportedError as error:
        raise InvalidQueryError(str(error)) from error
    schema = slice_schema(fields, vocabulary)
    position = schema.get_field_index(vocabulary.event_time)
    return schema.set(position, schema.field(position).with_nullable(False))
