"""Slices at Spark's two ends: what the footers of those that it reads say, and the columns of those that it makes.

Which row groups a task reads follows from the sizes that a footer states, not from where rows are: a row group that is
said to be larger than its file is read by nobody. And by a word of its metadata Spark takes the days of a file for
those of another calendar. So it would read other rows than whoever checked them (ROWS-1 to ROWS-5). Slices come from
strangers, so both are checked before anything is read.

Source: clauses ENGINE-12 and ENGINE-28 in ``spec/extensions/engine-contract.md``; Parquet "File Metadata"; Spark,
``spark.sql.parquet.datetimeRebaseModeInRead``.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.errors import InvalidQueryError
from odf_engines.host.slices import slice_schema
from odf_protocol.errors import UnsupportedError
from odf_protocol.schema_spark import parse_spark_schema
from odf_protocol.vocabulary import Vocabulary
from odf_spark.java_side import java_class

_WRITER = b"org.apache.spark.version"
_OTHER_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_NEW_CALENDAR_SINCE = b"3.0.0"  # compared as text, as Spark does
_END_BYTES = 8  # of the footer: its length and a magic number


def check_footers(slices: Iterable[Path]) -> None:
    """Check files that Spark is about to read.

    Raises:
        InvalidQueryError: Spark would read other rows of a file than there are.
    """
    for path in dict.fromkeys(slices):
        with pq.ParquetFile(path) as file:
            metadata = file.metadata
        words = metadata.metadata or {}
        is_old = words.get(_WRITER, _NEW_CALENDAR_SINCE) < _NEW_CALENDAR_SINCE
        if is_old or any(each in words for each in _OTHER_CALENDAR):
            raise InvalidQueryError("an input has a slice whose days are said to be of another calendar")
        stated = _stated_sizes(path, metadata.serialized_size)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        starts = [_start_of(group.column(0)) for group in groups]
        ends = [*starts[1:], path.stat().st_size]
        for group, start, end, size in zip(groups, starts, ends, stated, strict=True):
            columns = sum(group.column(number).total_compressed_size for number in range(group.num_columns))
            if start + columns > end or size not in (None, columns):
                raise InvalidQueryError("an input has a slice that states other places of its rows than they have")


def _start_of(column: pq.ColumnChunkMetaData) -> int:
    pages = int(column.data_page_offset)
    return min(pages, int(column.dictionary_page_offset or pages))


def _stated_sizes(path: Path, footer_bytes: int) -> Iterator[int | None]:
    """Yield what the row groups are said to take, which only Java's reader looks at; None where nothing is said."""
    stream = java_class("java.io.FileInputStream")(str(path))
    try:
        stream.skip(path.stat().st_size - _END_BYTES - footer_bytes)
        footer = java_class("org.apache.parquet.format.Util").readFileMetaData(stream)
    finally:
        stream.close()
    groups = footer.getRow_groups()
    for number in range(groups.size()):  # py4j ends an iteration by an error that it asks Java twenty things about
        group = groups.get(number)
        yield int(group.getTotal_compressed_size()) if group.isSetTotal_compressed_size() else None


def output_schema(spark_schema: str, vocabulary: Vocabulary) -> pa.Schema:
    """Return the schema of the slices of a transform, see ``slice_schema``, of Spark's JSON of the query's own columns.

    Every row has an event time (CHAIN-45), also where Spark cannot tell that it has, as of a group's maximum.

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
