"""Converters of single values, wherever they stand: in columns, members of structs, elements of lists.

New values are put in the place of others, which is the way back of ``validation.columns``.

Source: clauses CONV-4 in ``spec/conversion.md`` and CONV-5 in ``spec/plug-ins/quality.md``.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.conversion.contract import Converted, Converter, ConverterContext, ParameterError
from odf_engines.validation.columns import ColumnPath
from odf_quality.text_values import Bad, Judged, find_judge, find_value_type, judge_each


def type_with(outer: pa.DataType, steps: Sequence[str], inner: pa.DataType) -> pa.DataType:
    """Return the type of a column whose values at a path get another type."""
    if not steps:
        return inner
    step, *rest = steps
    if step == "[]":
        return pa.list_(pa.field("item", type_with(outer.value_type, rest, inner), nullable=True))
    name = step.removeprefix(".")
    return pa.struct(
        [
            pa.field(each.name, type_with(each.type, rest, inner), nullable=True) if each.name == name else each
            for each in outer
        ]
    )


def values_put(column: pa.Array, steps: Sequence[str], values: pa.Array) -> pa.Array:
    """Return a column with other values at a path, as many as ``ColumnPath.read`` gives, in their order."""
    if not steps:
        return values
    step, *rest = steps
    if step == "[]":
        if pa.types.is_fixed_size_list(column.type):
            column = column.cast(pa.list_(column.type.value_field))
        inner = values_put(pc.list_flatten(column), rest, values)
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        kind = pa.list_(pa.field("item", inner.type, nullable=True))
        mask = column.is_null() if column.null_count else None
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner, type=kind, mask=mask)
    name = step.removeprefix(".")
    kind = type_with(column.type, steps, values.type if not rest else pa.null())
    children = []
    for member in column.type:
        child = pc.struct_field(column, member.name)
        children.append(values_put(child, rest, values) if member.name == name else child)
    fields = [member.with_type(child.type) for member, child in zip(kind, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())


def text_at(schema: pa.Schema, name: str, *, parameter: str = "column") -> ColumnPath:
    """Find texts in rows.

    Raises:
        ParameterError: There is no such column, or it has no texts.
    """
    path = ColumnPath.find(schema, name, parameter=parameter)
    if not pa.types.is_string(path.type):
        raise ParameterError(parameter, expected="texts (read the column as STRING)", found=f"{name}: {path.type}")
    return path


class TextConverter(Converter):
    """A converter of the texts at some paths, each by itself."""

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        self._paths = [text_at(context.schema, name, parameter=where) for where, name in self.list_paths()]
        schema = context.schema
        for path in self._paths:
            index = schema.get_field_index(path.column)
            before = schema.field(index)
            kind = type_with(before.type, path.steps, self.type)
            schema = schema.set(index, pa.field(path.column, kind, nullable=True))
        self._schema = schema

    def list_paths(self) -> list[tuple[str, str]]:
        """List the paths, each with the parameter that names it."""
        return [("column", self.parameters.column)]

    @property
    def type(self) -> pa.DataType:
        """Of the new values."""
        return pa.string()

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @abstractmethod
    def judge(self, texts: pa.Array) -> Judged:
        """Give the new values."""

    def convert(self, rows: pa.RecordBatch) -> Converted:
        faults = []
        for path in self._paths:
            found = path.read(pa.Table.from_batches([rows]))
            judged = self.judge(found.values)
            faults += [found.fault(is_bad, code=code, message=message) for code, message, is_bad in judged.faults]
            index = rows.schema.get_field_index(path.column)
            column = values_put(rows.column(index), path.steps, judged.values)
            rows = rows.set_column(index, self._schema.field(index).with_type(column.type), column)
        return Converted(rows.cast(self._schema) if rows.schema != self._schema else rows, tuple(faults))


class Trim(TextConverter):
    """Takes white space off both ends; what is empty then, or a word for nothing, is null."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``columns``: paths of texts; ``nulls``: words that mean nothing, such as ``NA``, in this spelling."""

        columns: list[str]
        nulls: list[str] = field(default_factory=list)

    def list_paths(self) -> list[tuple[str, str]]:
        return [("columns", name) for name in self.parameters.columns]

    def judge(self, texts: pa.Array) -> Judged:
        trimmed = pc.utf8_trim_whitespace(texts)
        nothing = pc.is_in(trimmed, pa.array(["", *self.parameters.nulls], pa.string()))
        return Judged(pc.if_else(nothing, pa.scalar(None, pa.string()), trimmed))


class Replace(TextConverter):
    """Puts words in the place of others."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``column``; ``values``: new words by old ones; ``others``: ``Keep``, ``Null`` or ``Refuse`` all others."""

        column: str
        values: dict[str, str]
        others: str = "Keep"

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        known = ("Keep", "Null", "Refuse")
        if parameters.others not in known:
            raise ParameterError("others", expected=" or ".join(known), found=parameters.others, known=known)

    def judge(self, texts: pa.Array) -> Judged:
        return judge_each(texts, pa.string(), self._replace, {"enumeration": "none of the words that are replaced"})

    def _replace(self, text: str) -> Any:
        others = {"Keep": text, "Null": None, "Refuse": Bad("enumeration")}
        return self.parameters.values.get(text, others[self.parameters.others])


class Cast(TextConverter):
    """Makes numbers, days, times and truth values of texts."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """What is made, and how it is written.

        ``column``; ``type`` as in ``ddlSchema`` (``DECIMAL(10,2)``); of numbers ``decimal`` and ``thousands``, the
        marks; of days and times ``formats``, patterns that are tried in order; of ``BOOLEAN`` the words for ``true``
        and ``false``. Of ``TIMESTAMP`` ``zone``, that of times that name none (``Europe/Berlin``), and what is done
        with what its clocks show twice (``ambiguous``) or never (``missing``): ``Reject``, ``Earlier``, ``Later``.
        """

        column: str
        type: str
        decimal: str = "."
        thousands: str | None = None
        formats: list[str] = field(default_factory=list)
        true: list[str] = field(default_factory=list)
        false: list[str] = field(default_factory=list)
        zone: str | None = None
        ambiguous: str = "Reject"
        missing: str = "Reject"

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        self.parameters = parameters
        self._type = find_value_type(parameters.type)
        self._judge, self._faults = find_judge(parameters, self._type)
        super().__init__(parameters, context)

    @property
    def type(self) -> pa.DataType:
        return self._type

    def judge(self, texts: pa.Array) -> Judged:
        return judge_each(texts, self._type, self._judge, self._faults)


class Units(Converter):
    """Gives figures in one unit, by a table of factors; the column with the unit of each row goes."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``column`` of numbers; ``unit``: the column that says theirs; ``factors`` by unit: ``{kg: 1, g: 0.001}``."""

        column: str
        unit: str
        factors: dict[str, str]

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        schema = context.schema
        path, unit = ColumnPath.find(schema, parameters.column), text_at(schema, parameters.unit, parameter="unit")
        types = pa.types
        if not (types.is_integer(path.type) or types.is_floating(path.type) or types.is_decimal(path.type)):
            raise ParameterError("column", expected="numbers (Cast makes them of texts)", found=str(path.type))
        for name, found in (("column", path), ("unit", unit)):
            if found.steps:
                raise ParameterError(name, expected="a whole column, not values inside it", found=found.text)
        self._factors = {name: _read_factor(text) for name, text in parameters.factors.items()}
        self._index = schema.get_field_index(parameters.column)
        fields = [field for field in schema if field.name != parameters.unit]
        number = pa.field(parameters.column, pa.float64())
        self._schema = pa.schema([number if field.name == parameters.column else field for field in fields])

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def convert(self, rows: pa.RecordBatch) -> Converted:
        units = pc.fill_null(rows.column(self.parameters.unit), "")
        factors = pa.array(self._factors.values(), pa.float64())
        factor = factors.take(pc.index_in(units, pa.array(self._factors.keys(), pa.string())))
        figures = rows.column(self._index)
        numbers = pc.multiply(figures.cast(pa.float64()), factor)
        is_bad = pc.and_(figures.is_valid(), factor.is_null())
        arrays = {name: rows.column(name) for name in self._schema.names} | {self.parameters.column: numbers}
        table = pa.Table.from_batches([rows])
        fault = ColumnPath.find(rows.schema, self.parameters.unit).read(table).fault(
            is_bad, code="unit", message=f"expected a unit among {', '.join(self._factors)}"
        )  # fmt: skip
        return Converted(pa.RecordBatch.from_arrays([*arrays.values()], schema=self._schema), (fault,))


def _read_factor(text: str) -> float:
    try:
        number = Decimal(text)
    except ArithmeticError:
        number = Decimal("NaN")
    if not number.is_finite() or number <= 0:
        raise ParameterError("factors", expected="numbers above 0", found=text)
    return float(number)
