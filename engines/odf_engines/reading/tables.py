"""Rows on their way out of the sandbox: Arrow's stream format, every cell checked where it comes in.

It is what a decoder outside of the sandbox has to do with: fixed layouts without encodings, which Arrow verifies.
"""

import pyarrow as pa


def table_bytes(table: pa.Table) -> bytes:
    """Write a table."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def table_of(body: bytes) -> pa.Table:
    """Read what ``table_bytes`` wrote, or somebody in its place.

    Raises:
        ValueError: It is no table whose cells are of their columns' types.
    """
    try:
        table = pa.ipc.open_stream(body).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"no table: {error}") from error
    return table
