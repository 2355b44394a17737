"""The contract of converters: one class a plug-in, parameters as a dataclass, rows as Arrow record batches.

A package of its own names its class under the entry point group ``odf_converters``. A converter gives for each row one
row, in the same order, with columns that it names beforehand, and says what is wrong with those that it could not
convert. It keeps nothing from one call to the next, as rows come in portions of any size. It runs in the engine's
sandbox: no network, no files, the standard library, numpy, pyarrow, msgspec and its own package.

Source: clauses CONV-1 to CONV-4 in ``spec/conversion.md``.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from odf_engines.validation.contract import Fault, ParameterError

__all__ = ["Converted", "Converter", "ConverterContext", "Fault", "ParameterError"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverterContext:
    """What a converter knows beside its parameters.

    Attributes:
        schema: Columns of the rows that it is given; types of slices.
        secret: What its parameter ``secret`` names; None where it has none, and where a manifest is only checked.
    """

    schema: pa.Schema
    secret: bytes | None = field(default=None, repr=False)


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
            the node.
    """

    Parameters: ClassVar[type]

    def __init__(self, parameters: Any, context: ConverterContext) -> None:  # noqa: ARG002 - for those who need it
        """Take the declaration.

        Raises:
            ParameterError: It cannot be followed, such as a column that is not there.
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
