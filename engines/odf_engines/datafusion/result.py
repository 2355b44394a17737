"""Computing a query's rows in the order, and with the columns, that the other implementation gets.

Rows are numbered on top of the query, as they are there: sorts on which nothing depends are then left out of the plan.
Which columns may be null follows from the plan that runs, not from the query; a plan that gives no rows states its
columns only in a file.

Source: clauses FUSION-2 and FUSION-6 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import DataFrameWriteOptions, functions, literal

from odf_engines.datafusion.context import query_errors
from odf_engines.errors import LimitExceededError
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    from datafusion import DataFrame


class Result:
    """Rows of a query, computed as they are asked for.

    Args:
        rows: In the types of a slice, without the columns that a node adds.
        vocabulary: Of the output.
        folder: Existing folder for a file.

    Attributes:
        schema: Columns of the query.

    Raises:
        InvalidQueryError: The query fails on a value.
        MemoryError: Memory did not suffice.
    """

    schema: pa.Schema

    def __init__(self, rows: "DataFrame", vocabulary: Vocabulary, folder: Path) -> None:

        self._op, self._offset = vocabulary.op, vocabulary.offset
        with query_errors():
            number = functions.row_number(order_by=[literal(None).sort(ascending=True, nulls_first=False)])
            numbered = rows.with_column(self._offset, number)
            batches = (each.to_pyarrow() for each in numbered.execute_stream())
            first = next(batches, None)
            found = _schema_in_file(numbered, folder / "columns.parquet") if first is None else first.schema
        self._batches = chain([] if first is None else [first], batches)
        self.schema = found.remove(found.get_field_index(self._offset)).remove_metadata()

    def iter_pieces(self, most_rows: int) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
        """Give the rows in order, and the operation of each: an append where the query says none.

        Raises:
            InvalidQueryError, MemoryError: As above.
            LimitExceededError: More rows than allowed.
        """
        count = 0
        with query_errors():
            for batch in self._batches:
                table = pa.Table.from_batches([batch]).drop_columns([self._offset])
                if (count := count + table.num_rows) > most_rows:
                    raise LimitExceededError("output_rows", allowed=most_rows, found=count)
                operations = np.zeros(table.num_rows, np.int64)
                if self._op in table.column_names:
                    operations = table.column(self._op).cast(pa.int64()).to_numpy()
                if table.num_rows:
                    yield table, operations


def _schema_in_file(rows: "DataFrame", path: Path) -> pa.Schema:

    rows.write_parquet(path, write_options=DataFrameWriteOptions(single_file_output=True))
    return pq.read_schema(path)
