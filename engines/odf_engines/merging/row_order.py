"""What a merge asks of an engine: rows of files in one order, however many they are.

Source: clause ENGINE-25 in ``spec/extensions/engine-contract.md``; spec/ingest.md ING-8 to ING-12.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa

SIDE: Final = "side"
"""The column that says which input a row is of."""

ORD: Final = "ord"
"""The column by which rows of one side and key are ordered."""


@dataclass(frozen=True, slots=True)
class Input:
    """Rows that are ordered together with others.

    Attributes:
        path: Parquet file.
        side: Value of ``SIDE`` in all its rows.
        names: Names in the file of the columns that it has, by the names that they get; others are null.
        number: Name of the column with the numbers that become ``ORD``; None: it is 0.
        is_descending: Later numbers come first: ``ORD`` is the number negated.
        is_sorted: Its rows ascend by key already, unless a key has floats or nulls.
    """

    path: Path
    side: int
    names: Mapping[str, str]
    number: str | None = None
    is_descending: bool = False
    is_sorted: bool = False


class RowOrder(Protocol):
    """Orders rows by value: the two zeros are one value, and so is all that is no number; nulls come first."""

    def order_file(
        self, records: Path, names: tuple[str, ...], stand_ins: Mapping[str, pa.Scalar]
    ) -> Iterator[pa.RecordBatch]:
        """Give the rows of a Parquet file by columns, ascending.

        Args:
            records: The file.
            names: Of the columns; no two rows are alike in all of them.
            stand_ins: Values of columns by which rows are ordered where they have none.

        Raises:
            MemoryError: There is too little.
        """
        ...

    def order_inputs(
        self, inputs: Sequence[Input], types: Mapping[str, pa.DataType], keys: tuple[str, ...]
    ) -> Iterator[pa.RecordBatch]:
        """Give the rows of all inputs by key, ``SIDE`` (int64) and ``ORD`` (int64), with these columns before theirs.

        Args:
            inputs: The rows.
            types: Of the columns that all rows get, by name.
            keys: Names of those by which they are ordered.

        Raises:
            MemoryError: There is too little.
        """
        ...
