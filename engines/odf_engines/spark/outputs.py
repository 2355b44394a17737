"""Taking files over from a sandbox, and checking them as hostile before anybody else reads them.

Source: clauses ENGINE-5 and ENGINE-6 in ``spec/extensions/engine-contract.md``.
"""

import base64
import binascii
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_protocol.events import OffsetInterval
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["Answer", "OutputFolder", "check_rows"]

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}(\.[a-z0-9]{1,10})?")
_COPY_BYTES = 64 * 1024 * 1024

_TAIL_BYTES = 8  # length of the footer and "PAR1"
_MOST_FOOTER_BYTES = 64 * 1024 * 1024  # guess: a thousand columns in a thousand row groups are 50 MiB

# At most about twenty bytes from one; others turn a small file into one that no memory holds.
_CODECS = ("SNAPPY", "UNCOMPRESSED")

_LARGEST_OP = 3  # ODF "Operation types": append, retract, correct-from, correct-to


class Answer:
    """What an operation answered: plain values that nobody has checked yet, read through typed questions."""

    def __init__(self, values: object, seconds: float) -> None:
        if not isinstance(values, dict):
            raise EngineFailureError("an answer is not a dictionary")
        self._values: dict[str, Any] = values
        self.seconds = seconds

    def find_number(self, name: str) -> int | None:
        """Return a whole number, or None where there is none."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**63:
            raise EngineFailureError(f"answer.{name}: expected a whole number")
        return value

    def get_count(self, name: str) -> int:
        """Return a number that must be there and not negative."""
        value = self.find_number(name)
        if value is None or value < 0:
            raise EngineFailureError(f"answer.{name}: expected a count, found {value}")
        return value

    def find_text(self, name: str) -> str | None:
        """Return a text, or None where there is none."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, str):
            raise EngineFailureError(f"answer.{name}: expected text")
        return value

    def find(self, name: str) -> Any:
        """Return a value as unchecked as the whole, None where there is none."""
        return self._values.get(name)

    def get_list(self, name: str) -> list[Any]:
        """Return a list, whose items are as unchecked as the whole."""
        value = self._values.get(name)
        if not isinstance(value, list):
            raise EngineFailureError(f"answer.{name}: expected a list")
        return value

    def get_schema(self, name: str = "schema") -> "pa.Schema":
        """Return an Arrow schema from ``worker.schema_text``."""
        import pyarrow as pa

        try:
            raw = base64.b64decode(self.find_text(name) or "", validate=True)
            return pa.ipc.read_schema(pa.BufferReader(raw)).remove_metadata()
        except (binascii.Error, pa.ArrowException, OSError) as error:
            raise EngineFailureError(f"answer.{name}: expected an Arrow schema ({error})") from error


class OutputFolder:
    """The folder one request wrote to, and the one its files are taken over into.

    Args:
        source: Written by the sandbox, which may still be writing.
        target: Existing folder that only the host can write to.
        limits: ``output_bytes`` bounds each file.
    """

    def __init__(self, source: Path, target: Path, limits: Limits) -> None:
        self._source = source
        self._target = target
        self._limits = limits

    def take(self, name: str) -> Path:
        """Copy a file out of reach of the sandbox, which could otherwise change it after it was checked.

        Returns:
            Path of the copy, a file system that can do so shares its blocks.

        Raises:
            EngineFailureError: The name leaves the folder, or it is a link, a folder, a pipe or absent.
            LimitExceededError: It is too large.
        """
        if not _NAME.fullmatch(name):
            raise EngineFailureError(f"output has an impossible name: {name[:80]!r}")
        target = self._target / name
        try:
            folder = os.open(self._source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                descriptor = os.open(name, flags, dir_fd=folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise EngineFailureError(f"output {name} cannot be opened as a plain file ({error.strerror})") from error
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise EngineFailureError(f"output {name} is not a plain file")
            if found.st_nlink != 1:
                raise EngineFailureError(f"output {name} has {found.st_nlink} names")
            if found.st_size > self._limits.output_bytes:
                raise LimitExceededError("output_bytes", allowed=self._limits.output_bytes, found=found.st_size)
            _copy(descriptor, target, found.st_size)
        finally:
            os.close(descriptor)
        return target

    def find(self, answer: Answer, name: str) -> Path | None:
        """Take the file that the answer names in the field ``name``, None if it names none."""
        file = answer.find_text(name)
        return None if file is None else self.take(file)


def check_rows(
    path: Path,
    schema: "pa.Schema",
    vocabulary: Vocabulary,
    interval: OffsetInterval,
    system_time_ms: int,
    limits: Limits,
) -> None:
    """Check that a Parquet file is a slice: exactly these columns and rows, and system columns as they must be.

    Args:
        path: A file out of reach of the sandbox.
        schema: Of the dataset, system columns first.
        vocabulary: Names of the system columns.
        interval: Offsets of its rows.
        system_time_ms: What every row must carry.
        limits: ``output_rows`` bounds its rows.

    Raises:
        EngineFailureError: It is not; says which column or row.
        LimitExceededError: Too many rows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rows = interval.end - interval.start + 1
    if rows > limits.output_rows:
        raise LimitExceededError("output_rows", allowed=limits.output_rows, found=rows)
    _check_footer_length(path)
    try:
        with pq.ParquetFile(path, memory_map=False) as file:
            _check_layout(file.metadata, rows)
            if not file.schema_arrow.remove_metadata().equals(schema):
                raise EngineFailureError("output has other columns than the schema that was answered")
            if file.metadata.num_rows != rows:
                raise EngineFailureError(f"output: expected {rows} rows, found {file.metadata.num_rows}")
            next_offset = interval.start
            columns = [vocabulary.offset, vocabulary.op, vocabulary.system_time]
            for batch in file.iter_batches(columns=columns):
                if not batch.num_rows:
                    continue
                if not batch.column(0).equals(_count_from(next_offset, len(batch))):
                    raise EngineFailureError(f"output: offsets do not count from {next_offset}")
                next_offset += len(batch)
                operations = pc.min_max(batch.column(1)).as_py()
                if batch.column(1).null_count or not 0 <= operations["min"] <= operations["max"] <= _LARGEST_OP:
                    raise EngineFailureError(f"output: operations {operations} are not 0 to {_LARGEST_OP}")
                times = pc.min_max(batch.column(2).cast(pa.int64())).as_py()
                if batch.column(2).null_count or times != {"min": system_time_ms, "max": system_time_ms}:
                    raise EngineFailureError(f"output: expected system time {system_time_ms} ms, found {times}")
            if next_offset != interval.end + 1:
                raise EngineFailureError(f"output: expected {rows} rows, found {next_offset - interval.start}")
    except (pa.ArrowException, OSError) as error:
        raise EngineFailureError(f"output is not readable as Parquet ({error})") from error


def _check_footer_length(path: Path) -> None:
    """Refuse a footer that costs gigabytes to parse, before anything parses it (Parquet format, "File layout")."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        length = int.from_bytes(file.read(4), "little")
    if length > _MOST_FOOTER_BYTES:
        raise EngineFailureError(f"output has a footer of {length} bytes, more than {_MOST_FOOTER_BYTES}")


def _check_layout(metadata: "pq.FileMetaData", rows: int) -> None:
    """Refuse what an honest engine does not write: compression that can swell a thousandfold, floods of row groups."""
    groups = metadata.num_row_groups
    if groups > max(rows, 1):
        raise EngineFailureError(f"output has {groups} row groups for {rows} rows")
    for group in range(groups):
        for column in range(metadata.num_columns):
            if (codec := metadata.row_group(group).column(column).compression) not in _CODECS:
                raise EngineFailureError(f"output is compressed with {codec}, expected one of {', '.join(_CODECS)}")


def _count_from(start: int, length: int) -> "pa.Array":
    import numpy as np
    import pyarrow as pa

    return pa.array(np.arange(start, start + length, dtype=np.int64))


def _copy(descriptor: int, target: Path, size_bytes: int) -> None:
    """Copy at most the size that was checked; a file that grows or shrinks meanwhile is a failure."""
    with target.open("xb") as file:
        copied = 0
        while copied < size_bytes:
            try:
                moved = os.copy_file_range(descriptor, file.fileno(), min(_COPY_BYTES, size_bytes - copied))
            except OSError:
                moved = os.sendfile(file.fileno(), descriptor, None, min(_COPY_BYTES, size_bytes - copied))
            if moved == 0:
                raise EngineFailureError(f"output {target.name} shrank while it was taken over")
            copied += moved
