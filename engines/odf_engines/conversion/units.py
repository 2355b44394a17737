"""The converter of figures that are given in different units.

Source: clause CONV-5 in ``spec/conversion.md``.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.conversion.contract import Converted, Converter, ConverterContext, ParameterError
from odf_engines.conversion.value_converters import text_at
from odf_engines.validation.columns import ColumnPath


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
