"""The contract of validators: one class a plug-in, parameters as a dataclass, rows as Arrow, faults as values.

A package of its own names its class under the entry point group ``odf_validators``. A validator sees converted rows in
the order of the source and gives back what is wrong with them; it may keep nothing from one call to the next, as rows
come in subsets of any size. It runs in the engine's sandbox: no network, no files, the standard library, numpy,
pyarrow, msgspec and its own package.

Source: clauses VALID-1 to VALID-4 in ``spec/validation.md``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from odf_engines.records.referenced_rows import ReferencedRows

__all__ = ["Context", "Fault", "ParameterError", "Validator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a validator knows beside its parameters.

    Attributes:
        schema: Columns of the rows; types of slices.
        now_ms: System time of the ingest, milliseconds since 1970 in UTC.
        rows: Of the dataset that its parameter ``dataset`` names; None where it has none, and where a manifest is only
            checked and the dataset is not there yet.
    """

    schema: pa.Schema
    now_ms: int
    rows: ReferencedRows | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong, with some rows or with the batch as a whole.

    Attributes:
        code: A short word for programs, such as ``range``; limits count by it.
        message: For people; the same for all rows.
        column: Whose values are at fault, None for rows as a whole. A path into a struct is joined by dots.
        rows: Positions of the rows in the table that was checked, from 0, whole numbers; None: the batch as a whole.
        columns: As ``column``, but one for each of ``rows``; for elements of lists, ``items[3].price``.
        values: The values at fault, one for each of ``rows``; without them they are taken from ``column``.
        messages: As ``message``, but one for each of ``rows``.
    """

    code: str
    message: str
    column: str | None = None
    rows: pa.Array | None = None
    columns: pa.Array | None = None
    values: pa.Array | None = None
    messages: pa.Array | None = None


class ParameterError(ValueError):
    """A parameter of a declaration cannot be what is written.

    Attributes:
        parameter: Its name.
        expected: What would be right.
        found: What is there.
        known: Words that the author may have meant.
    """

    def __init__(self, parameter: str, *, expected: str, found: str, known: Iterable[str] = ()) -> None:
        self.parameter = parameter
        self.expected = expected
        self.found = found
        self.known = tuple(known)
        super().__init__(f"{parameter}: expected {expected}, found {found}")


class Validator(ABC):
    """Looks at rows and names faults.

    Attributes:
        Parameters: A frozen dataclass of plain values (texts, numbers, booleans, lists of them); what has no default
            must be declared. A JSON schema is made from it. One called ``dataset`` is the name of a dataset of the
            node.
        sees_whole_batch: ``check`` gets all rows at once, with the columns of ``column_names`` alone; otherwise it gets
            some rows at a time, as often as it takes.
    """

    Parameters: ClassVar[type]
    sees_whole_batch: ClassVar[bool] = False

    def __init__(self, parameters: Any, context: Context) -> None:  # noqa: ARG002 - for those who need it
        """Take the declaration.

        Raises:
            ParameterError: It cannot be followed, such as a column that is not there.
        """
        self.parameters = parameters

    @property
    @abstractmethod
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns that ``check`` reads."""

    @abstractmethod
    def check(self, rows: pa.Table) -> Iterable[Fault]:
        """Name what is wrong.

        An error that it raises is the fault of the rows that make it raise; of all, if it sees the whole batch.

        Args:
            rows: The columns of ``column_names``, in the types of the schema.
        """
