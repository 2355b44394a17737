"""The contract of readers: one class a plug-in, parameters as a dataclass, a file as records, a record as texts.

A package of its own names its class under the entry point group ``odf_readers``. It runs in the engine's sandbox: no
network, no files but the one that it is given, the standard library, numpy, pyarrow, msgspec and its own package.

Source: clauses READ-1 to READ-3 in ``spec/readers.md``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar

from odf_engines.validation.contract import ParameterError

__all__ = ["BrokenFileError", "BrokenRecordError", "ParameterError", "RawRecord", "Reader"]


class BrokenFileError(ValueError):
    """No record of a file can be trusted; the text says why."""


class BrokenRecordError(ValueError):
    """One record cannot be taken apart; the text says why."""


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A record as it stands in the file.

    Attributes:
        raw: Its bytes, without what ends it.
        line: The line that it begins on, from 1; None where the format has no lines.
    """

    raw: bytes
    line: int | None = None


class Reader(ABC):
    """Takes a file apart.

    Attributes:
        Parameters: A frozen dataclass of plain values (texts, numbers, booleans, lists and maps of them); what has no
            default must be declared. A JSON schema is made from it.
    """

    Parameters: ClassVar[type]

    def __init__(self, parameters: Any, names: tuple[str, ...]) -> None:
        """Take the declaration.

        Args:
            parameters: What is declared.
            names: Of the columns that the read step declares.

        Raises:
            ParameterError: It cannot be followed.
        """
        self.parameters = parameters
        self.names = names

    @abstractmethod
    def iter_records(self, file: BinaryIO) -> Iterator[RawRecord]:
        """Yield the records of a file, in their order, the same at each call.

        Raises:
            BrokenFileError: No record can be trusted.
        """

    @abstractmethod
    def take_apart(self, raw: bytes) -> Mapping[str, str | None]:
        """Give the texts of a record by column; what is not there is null.

        Raises:
            BrokenRecordError: It cannot be taken apart.
        """
