"""The converter that takes values from another dataset of the node, by a key.

Source: clauses CONV-5 and CONV-8 in ``spec/conversion.md``.
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
from odf_engines.conversion.deduplicate import check_key_columns
from odf_engines.conversion.referenced_rows import plain_schema_of, read_in_force

__all__ = ["Lookup"]

_MISSING: Final = ("Null", "Refuse", "Keep")
_WIDEST: Final = pa.int64()


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
        theirs = plain_schema_of(context.rows)
        for name, parameter in [*((each, "on") for each in on.values()), *((each, "take") for each in take)]:
            if name not in theirs.names:
                expected = f"plain columns of {parameters.dataset} ({', '.join(theirs.names)})"
                raise ParameterError(parameter, expected=expected, found=name, known=theirs.names)
        self._rows, self._theirs = context.rows, theirs
        for own, other in on.items():
            _check_alike("on", own, schema.field(own).type, other, theirs.field(other).type)
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
    def _table(self) -> "_Table":
        on, take = [*self.parameters.on.values()], [*self.parameters.take]
        wanted = dict.fromkeys([*on, *take])
        # By all of their columns: of rows that are alike in these few, the one in force need not be the newest given.
        rows = read_in_force(self._rows, self._theirs).select([*wanted])
        for name in on:
            rows = rows.filter(pc.is_valid(rows.column(name)))
        return _Table(rows, on)


class _Table:
    """Rows of a dataset by their key; of several with one key the newest.

    Attributes:
        values: The rows.
    """

    def __init__(self, rows: pa.Table, keys: list[str]) -> None:
        self._sets: list[tuple[pa.Array, pa.Array]] = []
        codes: pa.Array | None = None
        for name in keys:
            # A number for each different value, then for each different pair of a number so far and a value's.
            column = _widened(rows.column(name).combine_chunks())
            different = column.unique()
            own = pc.index_in(column, different).cast(_WIDEST)
            pairs = own if codes is None else _paired(codes, own, len(different))
            different_pairs = pairs.unique()
            self._sets.append((different, different_pairs))
            codes = pc.index_in(pairs, different_pairs).cast(_WIDEST)
        assert codes is not None
        _, first = np.unique(codes.to_numpy(zero_copy_only=False), return_index=True)
        self.values = rows.take(pa.array(first))  # the newest come first, and codes count from 0

    def find(self, keys: list[pa.Array]) -> pa.Array:
        """Give the place among ``values`` of the row with each key; null where there is none."""
        codes: pa.Array | None = None
        for column, (different, different_pairs) in zip(keys, self._sets, strict=True):
            own = pc.index_in(_widened(column), different, skip_nulls=True).cast(_WIDEST)
            pairs = own if codes is None else _paired(codes, own, len(different))
            codes = pc.index_in(pairs, different_pairs, skip_nulls=True).cast(_WIDEST)
        assert codes is not None
        return codes


def _paired(codes: pa.Array, own: pa.Array, count: int) -> pa.Array:
    return pc.add(pc.multiply(codes, pa.scalar(max(count, 1), _WIDEST)), own)


def _check_alike(parameter: str, own: str, kind: pa.DataType, other: str, other_kind: pa.DataType) -> None:
    """Refuse to compare values of different types, and numbers that are not exact.

    Raises:
        ParameterError: They are such.
    """
    if pa.types.is_floating(kind) or pa.types.is_floating(other_kind):
        found = f"{own}: {kind}, {other}: {other_kind}"
        raise ParameterError(parameter, expected="columns with exact values", found=found)
    if _key_type(kind) != _key_type(other_kind):
        raise ParameterError(parameter, expected=f"{own} to be {other_kind}, as {other} is (Cast)", found=str(kind))


def _key_type(kind: pa.DataType) -> pa.DataType:
    """Give the type in which values are compared: whole numbers of any width are alike."""
    is_whole = pa.types.is_integer(kind) and kind != pa.uint64()
    return _WIDEST if is_whole else kind


def _widened(column: pa.Array) -> pa.Array:
    return column.cast(_key_type(column.type))
