"""The contract of converters: one class a plug-in, parameters as a dataclass, rows as Arrow record batches.

A package of its own names its class under the entry point group ``odf_converters``. A converter gives for each row one
row, in the same order, with columns that it names beforehand, and says what is wrong with those that it could not
convert. It keeps nothing from one call to the next, as rows come in subsets of any size. One that leaves rows out is a
``Selection``, which sees them all. It runs in the engine's sandbox: no network, no files, the standard library, numpy,
pyarrow, msgspec and its own package.

Source: clauses CONV-1 to CONV-4 and CONV-7 in ``spec/conversion.md``.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from odf_engines.records.referenced_rows import ReferencedRows
from odf_engines.validation.contract import Fault, ParameterError

__all__ = ["ColumnsUnknownError", "Converted", "Converter", "ConverterContext", "Fault", "ParameterError", "Selection"]


class ColumnsUnknownError(Exception):
    """Which columns a converter gives follows from a dataset that is not there, or never had rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverterContext:
    """What a converter knows beside its parameters.

    Attributes:
        schema: Columns of the rows that it is given; types of slices.
        secret: What its parameter ``secret`` names; None where it has none, and where a manifest is only checked.
        rows: Of the dataset that its parameter ``dataset`` names; None where it has none, and where a manifest is only
            checked and the dataset is not there yet.
    """

    schema: pa.Schema
    secret: bytes | None = field(default=None, repr=False)
    rows: ReferencedRows | None = None


@dataclass(frozen=True, slots=True)
class Converted:
    """What became of some rows.

    Attributes:
        rows: As many as there were, in their order, with the columns of ``Converter.schema``; a value that could not
            be converted is null.
        faults: What is wrong, each about some of the rows that were given.
    """

    rows: pa.RecordBatch
    faults: tuple[Fault, ...] = ()


class Converter(ABC):
    """Turns rows into rows of another schema.

    Attributes:
        Parameters: A frozen dataclass of plain values (texts, numbers, booleans, lists and maps of them); what has no
            default must be declared. A JSON schema is made from it. One called ``secret`` is the name of a secret of
            the node, one called ``dataset`` the name of a dataset of it.
    """

    Parameters: ClassVar[type]

    def __init__(self, parameters: Any, context: ConverterContext) -> None:  # noqa: ARG002 - for those who need it
        """Take the declaration.

        Raises:
            ParameterError: It cannot be followed, such as a column that is not there.
            ColumnsUnknownError: The columns that it gives follow from a dataset that is not there.
        """
        self.parameters = parameters

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Columns of the rows that it gives; types of slices."""

    @abstractmethod
    def convert(self, rows: pa.RecordBatch) -> Converted:
        """Convert some rows.

        An error that it raises is the fault of the rows that make it raise.

        Args:
            rows: With all columns of the context's schema.
        """


class Selection(Converter):
    """Looks at all rows of a batch at once and leaves some out, which are counted; it changes none."""

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        """Take the declaration; see ``Converter``."""
        super().__init__(parameters, context)
        self._schema = context.schema

    @property
    def schema(self) -> pa.Schema:
        """See ``Converter``: the columns that it is given."""
        return self._schema

    def convert(self, rows: pa.RecordBatch) -> Converted:
        """See ``Converter``: the rows as they are."""
        return Converted(rows)

    @property
    @abstractmethod
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns that ``leave_out`` reads."""

    @abstractmethod
    def leave_out(self, rows: pa.Table) -> pa.Array:
        """Say which rows are left out.

        An error that it raises fails the batch.

        Args:
            rows: All without an error so far, in their order: the columns of ``column_names``, in the types of the
                schema.

        Returns:
            Their positions, from 0, each once.
        """
