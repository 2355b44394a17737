"""Taking answers and files over from a sandbox, as hostile as they may be.

What Parquet files hold is looked at by ``output_rows``, in the sandbox of the reader where there is one
(``output_reader``).

Source: clauses ENGINE-5, ENGINE-6 and ENGINE-19 in ``spec/extensions/engine-contract.md``.
"""

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.host.arrow_texts import schema_from_text
from odf_engines.host.output_checks import RowsCheck, RowsFound, SizeCheck
from odf_engines.host.output_rows import check_file, copy_first

if TYPE_CHECKING:
    import pyarrow as pa

    from odf_engines.host.output_reader import OutputReader

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}(\.[a-z0-9]{1,10})?")
_COPY_BYTES = 64 * 1024 * 1024


class OperationOutput:
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

    def get_schema(self) -> "pa.Schema":
        """Return an Arrow schema from ``arrow_texts.schema_text``."""
        try:
            return schema_from_text(self.find_text("schema") or "")
        except ValueError as error:
            raise EngineFailureError(f"answer.schema: expected an Arrow schema ({error})") from error


class OutputFolder:
    """The folder one request wrote to, and the one its files are taken over into.

    Args:
        source: Written by the sandbox, which may still be writing.
        target: Existing folder that only the host can write to.
        limits: ``output_bytes`` bounds each file.
        reader: Reads what was taken; None: it is read in this process.
    """

    def __init__(self, source: Path, target: Path, limits: Limits, reader: "OutputReader | None" = None) -> None:
        self._source = source
        self._target = target
        self._limits = limits
        self._reader = reader

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

    def find(self, answer: OperationOutput, name: str) -> Path | None:
        """Take the file that the answer names in the field ``name``, None if it names none."""
        file = answer.find_text(name)
        return None if file is None else self.take(file)

    def check(self, path: Path, check: RowsCheck | SizeCheck) -> RowsFound:
        """Look at all rows of a file that was taken.

        Raises:
            EngineFailureError: It is not what it has to be; says where.
            LimitExceededError: Rows, values or the memory to read them are too many.
        """
        if self._reader is None:
            return check_file(path, check)
        return self._reader.check(path, check, wall_s=self._limits.wall_s)

    def copy(self, path: Path, target: BinaryIO, most: int | None = None) -> None:
        """Write the rows of a file that was checked, or the first ones, as ``host.tables.read_rows`` reads them.

        Raises:
            EngineFailureError, LimitExceededError: As ``check``.
        """
        if self._reader is None:
            copy_first(path, target, most)
        else:
            self._reader.copy(path, target, most, wall_s=self._limits.wall_s)


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
