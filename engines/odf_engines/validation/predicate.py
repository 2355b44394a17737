"""A validator whose condition is SQL over the columns of a row: Spark computes it, here its verdict is read.

Source: clause VALID-7 in ``spec/validation.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.validation.contract import Context, Fault, ParameterError, Validator

VERDICT = "verdict"
"""The one column that ``check`` gets: what the condition says of each row, null where it says nothing."""


class Predicate(Validator):
    """A condition that must be true of every row; one that cannot be computed, or says null, is not true."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``sql``, an expression in Spark's dialect over the columns; ``message``, what its failing means."""

        sql: str
        message: str | None = None

    def __init__(self, parameters: Any, context: Context) -> None:
        super().__init__(parameters, context)
        if not parameters.sql.strip():
            raise ParameterError("sql", expected="a condition over the columns of a row", found="nothing")

    @property
    def column_names(self) -> tuple[str, ...]:
        return (VERDICT,)

    def check(self, rows: pa.Table) -> Iterable[Fault]:
        is_true = pc.fill_null(rows.column(VERDICT), False).to_numpy()
        message = self.parameters.message or f"not true: {self.parameters.sql}"
        yield Fault(code="predicate", message=message, rows=pa.array(np.flatnonzero(~is_true)))
