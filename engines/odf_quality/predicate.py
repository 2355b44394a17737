"""A validator whose condition is SQL over the columns of a row.

Source: clause VALID-7 in ``spec/plug-ins/quality.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.errors import InvalidQueryError
from odf_engines.validation.contract import Context, Fault, ParameterError, Validator
from odf_quality.row_expressions import RowExpressions

_VERDICT: Final = "condition"
_DIALECT: Final = (
    "in DataFusion's SQL (names in double quotes where Spark's has backticks, texts in single quotes,"
    " regexp_like(a, b) for a RLIKE b)"
)
"""What to change where a manifest of before has its condition in Spark's SQL."""


class Predicate(Validator):
    """A condition that must be true of every row; one that cannot be computed, or gives null, is not true."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``sql``, an expression in DataFusion's SQL over the columns; ``message``, what its failing means."""

        sql: str
        message: str | None = None

    def __init__(self, parameters: Any, context: Context) -> None:
        super().__init__(parameters, context)
        if not parameters.sql.strip():
            raise ParameterError("sql", expected="a condition over the columns of a row", found="nothing")
        try:
            self._condition = RowExpressions(context.schema, {_VERDICT: parameters.sql}, "sql")
        except ParameterError as error:
            expected = f"{error.expected}, {_DIALECT}"
            found = error.found.removeprefix(f"{_VERDICT}: ")
            raise ParameterError("sql", expected=expected, found=found, known=error.known) from error
        kind = self._condition.types[_VERDICT]
        if not pa.types.is_boolean(kind):
            raise ParameterError("sql", expected="a condition, which is true or false", found=f"a value of type {kind}")
        # Whatever column it reads, its text has the name of; a name with quotes is written with twice as many.
        text, names = parameters.sql.casefold(), context.schema.names
        self._names = tuple(name for name in names if name.casefold() in text or '"' in name) or tuple(names[:1])

    @property
    def column_names(self) -> tuple[str, ...]:
        return self._names

    def check(self, rows: pa.Table) -> Iterable[Fault]:
        batch = pa.record_batch([_one(column) for column in rows.columns], schema=rows.schema)
        try:
            (verdicts,) = self._condition.compute(batch)
        except InvalidQueryError:
            verdicts, _ = self._condition.compute_each(batch, _VERDICT)
        is_true = np.asarray(pc.fill_null(verdicts, False))
        message = self.parameters.message or f"not true: {self.parameters.sql}"
        yield Fault(code="predicate", message=message, rows=pa.array(np.flatnonzero(~is_true)))


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
