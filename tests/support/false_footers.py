"""Footers of Parquet files that say something else than is so; the rows stay as they are."""

import struct
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

_TAIL_BYTES = 8


def with_footer(content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Change the footer of a file; it may get another length."""
    (length,) = struct.unpack("<I", content[-_TAIL_BYTES:-4])
    footer = content[-_TAIL_BYTES - length : -_TAIL_BYTES]
    changed = change(footer)
    assert changed != footer
    return content[: -_TAIL_BYTES - length] + changed + struct.pack("<I", len(changed)) + content[-4:]


def saying_all_are_appends(content: bytes) -> bytes:
    """Of a file whose largest operation is 1, a retraction: say that it is 0."""
    return with_footer(content, lambda footer: footer.replace(b"\x04\x01\x00\x00\x00", b"\x04\x00\x00\x00\x00"))


def saying_offsets_are_others(content: bytes, last: int) -> bytes:
    """Say that the largest offset is below all that anybody asks for."""
    return with_footer(content, lambda footer: footer.replace(struct.pack("<q", last), struct.pack("<q", -5)))


def saying_rows_are_elsewhere(content: bytes) -> bytes:
    """Say of the one row group that it takes two terabytes, so that its middle is behind the end of the file."""
    group = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0)
    size = sum(group.column(number).total_compressed_size for number in range(group.num_columns))
    starts_at_4 = b"\x26\x08\x16"  # fields 5 (at 4) and 6 of a row group, in Thrift's compact protocol
    return with_footer(
        content, lambda footer: footer.replace(starts_at_4 + _number(size), starts_at_4 + _number(2**41))
    )


def saying_days_are_julian(content: bytes) -> bytes:
    """Say that a Spark wrote it that counted days before 1582 by another calendar."""
    table = pq.read_table(pa.BufferReader(content))
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({"org.apache.spark.version": "2.4.0"}), sink)
    return sink.getvalue().to_pybytes()


def _number(value: int) -> bytes:
    """A signed number of Thrift's compact protocol; not below zero."""
    value, out = value * 2, bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
