"""How a file is to be read, and its records as texts.

Source: clause ING-24 in ``spec/plug-ins/drafts.md``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from odf_engines.readers.contract import BrokenRecordError, Reader

Texts = Sequence[str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """How a file is to be read.

    Attributes:
        names: Of the columns, as the read step calls them.
        iter_texts: Gives the texts of each record in the order of ``names``, or why a record
            cannot be read.
        types: ODF types of the columns whose type the file itself says.
        parameters: Of the reader.
        doubts: What is uncertain.
    """

    names: tuple[str, ...]
    iter_texts: Callable[[BinaryIO], Iterator[Texts | BrokenRecordError]]
    types: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()


def texts_of(reader: Reader, file: BinaryIO) -> Iterator[Texts | BrokenRecordError]:
    """Give the texts of each record, as the reader will when the file is taken in."""
    for record in reader.iter_records(file):
        try:
            texts = reader.take_apart(record.raw)
        except BrokenRecordError as error:
            yield error
        else:
            yield [texts.get(name) for name in reader.names]
