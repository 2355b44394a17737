"""Rows of whole files, decoded in the sandbox and read here batch by batch."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from odf_engines.host.reader_process import ReaderProcess
from odf_engines.host.tables import NoRowsError, collect, read_rows
from odf_protocol.errors import MalformedError, UnavailableError

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def opened_rows(
    path: Path, *, columns: Sequence[str] | None = None, most: int | None = None
) -> "Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]":
    """Give columns and rows of a Parquet file, or some of these; they wait on disk meanwhile.

    Args:
        path: The file.
        columns: Names of those that are wanted; None: all.
        most: How many rows; None: all.

    Raises:
        RejectedError, MalformedError, UnsupportedError: They cannot be read at bounded cost.
        UnavailableError: Somebody ended the process.
        SandboxUnavailableError: There is no sandbox to read in.
    """
    asked = {"columns": None if columns is None else [*columns], "most": most}
    with tempfile.TemporaryFile() as file:
        reader = ReaderProcess()
        try:
            reader.ask("copy", asked, [path], lambda *_: None, target=cast("BinaryIO", file))
        except OSError as error:
            place = tempfile.gettempdir()
            raise UnavailableError(f"{place} has no room for the rows of {path.name} ({error.strerror})") from error
        finally:
            reader.close()
        file.seek(0)
        try:
            yield read_rows(file)
        except NoRowsError as error:
            raise MalformedError("Parquet file", where=path.name, found=str(error)) from error


def read_table(path: Path, *, columns: Sequence[str] | None = None, most: int | None = None) -> "pa.Table":
    """Read rows into memory; arguments and errors as ``opened_rows``."""
    with opened_rows(path, columns=columns, most=most) as (schema, batches):
        return collect(schema, batches)
