"""Files of typed columns: Parquet, and streams of Arrow's IPC format, told apart by their first bytes.

Neither is trusted. What Parquet gives has at least the form of its type; a stream is memory that is mapped, so each
batch of it is validated whole before a value is looked at, and the stream has to have its end.

Source: clause ING-3 in ``spec/ingest.md``; https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.errors import InvalidSourceError
from odf_engines.records.carriers import TIMESTAMP

_CONTINUATION: Final = b"\xff\xff\xff\xff"
_END_BYTES: Final = 8
"""The continuation mark, and a length of 0."""
_MAX_ROWS: Final = 100_000_000
"""As an output has at most (ENGINE-16): columns without buffers cost a stream nothing."""


class ArrowStream:
    """A stream in a file, read from its beginning each time; used by one thread.

    Raises:
        pa.ArrowException, OSError: It is none.
    """

    def __init__(self, path: Path, source_name: str) -> None:
        self._name = source_name
        self._file = pa.memory_map(str(path))
        self.schema_arrow: pa.Schema = pa.ipc.open_stream(self._file).schema

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def iter_batches(self, batch_size: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows in order, at most ``batch_size`` at a time.

        Raises:
            InvalidSourceError: It breaks off, goes on behind its end, or values are not what their types say.
        """
        self._file.seek(0)
        stream, number = pa.ipc.open_stream(self._file), 0
        while True:
            batch = self._read_batch(stream, number)
            if batch is None:
                return
            for first in range(0, batch.num_rows, batch_size):
                rows = batch.slice(first, batch_size)
                yield rows if columns is None else rows.select(list(columns))
            number += batch.num_rows

    def _read_batch(self, stream: pa.RecordBatchReader, number: int) -> pa.RecordBatch | None:
        place = self._file.tell()
        try:
            batch = stream.read_next_batch()
            if batch.num_rows > _MAX_ROWS - number:
                raise InvalidSourceError(self._name, f"an Arrow stream of more than {_MAX_ROWS} rows")
            batch.validate(full=True)
        except StopIteration:
            if self._file.tell() != place + _END_BYTES or self._file.tell() != self._file.size():
                why = "it breaks off before its end mark, or goes on behind it"
                raise InvalidSourceError(self._name, f"not a whole Arrow stream: {why}") from None
            return None
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, MemoryError):
                raise
            text = " ".join(str(error).split())
            raise InvalidSourceError(
                self._name, f"an Arrow stream that is damaged behind row {number}: {text}"
            ) from error
        return batch


def is_stream(source: Path) -> bool:
    """Say whether a file begins as a stream of Arrow's IPC format, which no text in UTF-8 does."""
    with source.open("rb") as file:
        return file.read(len(_CONTINUATION)) == _CONTINUATION


def open_columns(source: Path, source_name: str) -> pq.ParquetFile | ArrowStream:
    """Open a file of typed columns.

    Raises:
        InvalidSourceError: It is neither.
    """
    is_arrow = False
    try:
        is_arrow = is_stream(source)
        if is_arrow:
            found: pq.ParquetFile | ArrowStream = ArrowStream(source, source_name)
        else:
            # As nanoseconds, which Arrow makes of INT96 otherwise, days before 1678 and after 2261 would be others.
            found = pq.ParquetFile(source, memory_map=True, coerce_int96_timestamp_unit=TIMESTAMP.unit)
        _read_names(found.schema_arrow)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, MemoryError):
            raise
        text = "an Arrow stream" if is_arrow else "a readable Parquet file"
        raise InvalidSourceError(source_name, f"not {text}: {error}") from error
    except UnicodeDecodeError as error:
        raise InvalidSourceError(source_name, "a column, or a part of one, whose name is not in UTF-8") from error
    return found


def _read_names(fields: Iterable[pa.Field]) -> None:
    """Ask for all names: of those that are no text Arrow says so only then."""
    for field in fields:
        _ = field.name
        _read_names(field.type.field(place) for place in range(field.type.num_fields))
