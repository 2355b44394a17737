"""The validator of values that must occur in another dataset of the node.

Source: clauses VALID-6 and VALID-9 in ``spec/validation.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.validation.columns import ColumnPath, FoundValues
from odf_engines.validation.contract import Context, Fault, ParameterError, Validator
from odf_engines.validation.keys import KeyTable, check_alike, check_key_columns, find_plain_columns, read_keyed


class Reference(Validator):
    """Values that stand in a row in force of another dataset, as it was known when the batch came."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``dataset``: its name or DID; ``on``: its columns by columns of the rows, all in one row of it.

        A column by itself may be a path (``items[].code``); a row with a null among its columns refers to nothing.
        """

        dataset: str
        on: dict[str, str]

    def __init__(self, parameters: Any, context: Context) -> None:
        super().__init__(parameters, context)
        schema, on = context.schema, parameters.on
        self._path = None
        if len(on) == 1:
            self._path = ColumnPath.find(schema, next(iter(on)), parameter="on")
            if pa.types.is_nested(self._path.type):
                found = f"{self._path.text}: {self._path.type}"
                raise ParameterError("on", expected="columns of plain values", found=found)
        else:
            check_key_columns(schema, [*on], "on")
        self._rows = context.rows
        if context.rows is None:
            return
        self._theirs = find_plain_columns(context.rows, parameters.dataset, dict.fromkeys(on.values(), "on"))
        for own, other in on.items():
            kind = schema.field(own).type if self._path is None else self._path.type
            check_alike("on", own, kind, other, self._theirs.field(other).type)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.parameters.on) if self._path is None else (self._path.column,)

    def check(self, rows: pa.Table) -> Iterable[Fault]:
        found = self._read(rows)
        keys = [each.values for each in found]
        is_missing = self._table.find(keys).is_null()
        for key in keys:
            is_missing = pc.and_(is_missing, key.is_valid())
        theirs = ", ".join(self.parameters.on.values())
        message = f"{self.parameters.dataset} has no row with this {theirs}"
        fault = found[0].fault(is_missing, code="reference", message=message)
        yield fault if self._path is not None else Fault(code=fault.code, message=message, rows=fault.rows)

    def _read(self, rows: pa.Table) -> list[FoundValues]:
        paths = (
            [ColumnPath.find(rows.schema, name) for name in self.parameters.on] if self._path is None else [self._path]
        )
        return [path.read(rows) for path in paths]

    @cached_property
    def _table(self) -> KeyTable:
        assert self._rows is not None, "rows of an ingest come with those of the datasets that it looks into"
        return read_keyed(self._rows, self._theirs, [*self.parameters.on.values()], [])
