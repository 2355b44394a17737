"""Keys of rows: the columns they are of, when those of two datasets can be compared, and whether one occurs in another.

Source: clauses CONV-7 and CONV-8 in ``spec/conversion.md``; VALID-6 in ``spec/plug-ins/quality.md``, VALID-9 in
``spec/validation.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.records.current_rows import plain_schema_of, read_current
from odf_engines.records.referenced_rows import ReferencedRows
from odf_engines.validation.columns import ColumnPath, FoundValues
from odf_engines.validation.contract import Context, Fault, ParameterError, Validator

_WIDEST: Final = pa.int64()


def check_key_columns(schema: pa.Schema, names: list[str], parameter: str) -> None:
    """Reject columns that are not there, are there twice, or have no plain values to compare.

    Raises:
        ParameterError: One is.
    """
    known = schema.names
    if not names or len(set(names)) != len(names):
        raise ParameterError(parameter, expected="different columns, one at least", found=", ".join(names) or "none")
    for name in names:
        if name not in known:
            raise ParameterError(parameter, expected=f"columns of the rows ({', '.join(known)})", found=name,
                                 known=known)  # fmt: skip
        if pa.types.is_nested(kind := schema.field(name).type):
            raise ParameterError(parameter, expected="columns of plain values", found=f"{name}: {kind}")


def find_plain_columns(rows: ReferencedRows, dataset: str, names: dict[str, str]) -> pa.Schema:
    """Return the columns of a dataset that can be looked up.

    Args:
        rows: What is known of it.
        dataset: What the declaration calls it.
        names: Columns that have to be among them, each with the parameter that names it.

    Raises:
        ParameterError: One is not.
    """
    theirs = plain_schema_of(rows)
    for name, parameter in names.items():
        if name not in theirs.names:
            expected = f"plain columns of {dataset} ({', '.join(theirs.names)})"
            raise ParameterError(parameter, expected=expected, found=name, known=theirs.names)
    return theirs


def read_keyed(rows: ReferencedRows, theirs: pa.Schema, on: list[str], take: list[str]) -> "KeyTable":
    """Read the current rows that have a key."""
    # By all of their columns: of rows that are alike in these few, the one in force need not be the newest given.
    found = read_current(rows, theirs).select([*dict.fromkeys([*on, *take])])
    for name in on:
        found = found.filter(pc.is_valid(found.column(name)))
    return KeyTable(found, on)


class KeyTable:
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


def check_alike(parameter: str, own: str, kind: pa.DataType, other: str, other_kind: pa.DataType) -> None:
    """Reject to compare values of different types, and numbers that are not exact.

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


class Reference(Validator):
    """Values that stand in a current row of another dataset, as it was known when the batch came."""

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
