"""Batches of rows that wait on disk until others are written.

Source: ENGINE-16 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.ipc


class KeptRows:
    """A file of batches, written within a ``with`` and read afterwards.

    Args:
        path: Of a file that is not there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pa.ipc.RecordBatchFileWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_stream(str(self._path), batch.schema, options=options)
        if batch.num_rows:
            self._writer.write_batch(batch)

    def iter_batches(self) -> Iterator[pa.RecordBatch]:
        """Give them back."""
        if self._path.exists():
            with pa.ipc.open_stream(str(self._path)) as reader:
                yield from reader
