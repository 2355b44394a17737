"""The converter that takes values from another dataset of the node, by a key.

Source: clauses CONV-5 in ``spec/plug-ins/quality.md`` and CONV-8 in ``spec/conversion.md``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.conversion.contract import (
    ColumnsUnknownError,
    Converted,
    Converter,
    ConverterContext,
    Fault,
    ParameterError,
)
from odf_quality.keys import KeyTable, check_alike, check_key_columns, find_plain_columns, read_keyed

_MISSING: Final = ("Null", "Refuse", "Keep")


class Lookup(Converter):
    """Takes values from the row with the same key of another dataset, as it was known when the batch came."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``dataset``: its name or DID; ``on``: columns of its key by columns of the rows; ``take``: new names by its.

        ``missing``: what a row gets whose key is not there: ``Null``, an error (``Refuse``), or what it has (``Keep``).
        """

        dataset: str
        on: dict[str, str]
        take: dict[str, str]
        missing: str = "Null"

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        schema, on, take = context.schema, parameters.on, parameters.take
        check_key_columns(schema, [*on], "on")
        if not take or not all(take.values()) or len(set(take.values())) != len(take):
            raise ParameterError("take", expected="different names of columns, one at least", found=str(take))
        if parameters.missing not in _MISSING:
            found = parameters.missing
            raise ParameterError("missing", expected=" or ".join(_MISSING), found=found, known=_MISSING)
        if parameters.missing == "Keep" and (new := [name for name in take.values() if name not in schema.names]):
            raise ParameterError("take", expected="columns that rows have, to keep their values", found=new[0])
        if context.rows is None:
            raise ColumnsUnknownError(parameters.dataset)
        wanted = {**dict.fromkeys(take, "take"), **dict.fromkeys(on.values(), "on")}
        theirs = find_plain_columns(context.rows, parameters.dataset, wanted)
        self._rows, self._theirs = context.rows, theirs
        for own, other in on.items():
            check_alike("on", own, schema.field(own).type, other, theirs.field(other).type)
        if parameters.missing == "Keep":
            for other, own in take.items():
                if (kind := schema.field(own).type) != (found := theirs.field(other).type):
                    raise ParameterError("take", expected=f"{own} to be {found}, as {other} is", found=str(kind))
        self._schema = schema
        for other, own in take.items():
            field = pa.field(own, theirs.field(other).type, nullable=True)
            place = schema.get_field_index(own)
            self._schema = self._schema.append(field) if place < 0 else self._schema.set(place, field)

    @property
    def schema(self) -> pa.Schema:
        """See ``Converter``."""
        return self._schema

    def convert(self, rows: pa.RecordBatch) -> Converted:
        """See ``Converter``."""
        keys = [rows.column(name) for name in self.parameters.on]
        places = self._table.find(keys)
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        has_key = keys[0].is_valid()
        for key in keys[1:]:
            has_key = pc.and_(has_key, key.is_valid())
        is_missing = pc.and_(has_key, places.is_null())
        for other, own in self.parameters.take.items():
            found = self._table.values.column(other).combine_chunks().take(places)
            if self.parameters.missing == "Keep":
                found = pc.if_else(places.is_null(), columns[own], found)
            columns[own] = found
        made = pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)
        return Converted(made, (self._fault(keys, is_missing),) if self.parameters.missing == "Refuse" else ())

    def _fault(self, keys: list[pa.Array], is_missing: pa.BooleanArray) -> Fault:
        bad = pa.array(np.flatnonzero(is_missing.to_numpy(zero_copy_only=False)))
        message = f"{self.parameters.dataset} has no row with this {', '.join(self.parameters.on.values())}"
        if len(keys) > 1:
            return Fault(code="missing", message=message, rows=bad)
        (column,) = self.parameters.on
        return Fault(code="missing", message=message, column=column, rows=bad, values=keys[0].take(bad))

    @cached_property
    def _table(self) -> KeyTable:
        return read_keyed(self._rows, self._theirs, [*self.parameters.on.values()], [*self.parameters.take])
