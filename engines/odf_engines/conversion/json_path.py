"""The converter that takes a value out of JSON texts.

Source: clause CONV-5 in ``spec/conversion.md``.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa

from odf_engines.conversion.column_converters import check_new_names
from odf_engines.conversion.contract import Converted, Converter, ConverterContext, ParameterError
from odf_engines.conversion.value_converters import text_at
from odf_engines.validation.columns import ColumnPath
from odf_engines.validation.text_values import Bad, judge_each

_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[([0-9]{1,9})\]", re.ASCII)


class JsonPath(Converter):
    """Makes a column of texts of the values at a path in JSON; what is not there is null, and so is null."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``column`` of JSON texts, which stays; ``path``: ``$.address.zip``, ``$.items[0].price``; ``into``."""

        column: str
        path: str
        into: str

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        schema = context.schema
        found = text_at(schema, parameters.column)
        if found.steps:
            raise ParameterError("column", expected="a whole column, not values inside it", found=found.text)
        steps = parameters.path.removeprefix("$")
        self._steps = [int(index) if index else name for name, index in _STEP.findall(steps)]
        if not self._steps or _STEP.sub("", steps):
            raise ParameterError("path", expected="a path such as $.items[0].price", found=parameters.path)
        check_new_names(schema, [], [parameters.into], "into")
        self._schema = schema.append(pa.field(parameters.into, pa.string()))

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def convert(self, rows: pa.RecordBatch) -> Converted:
        judged = judge_each(rows.column(self.parameters.column), pa.string(), self._take, {"json": "not JSON"})
        found = ColumnPath.find(rows.schema, self.parameters.column).read(pa.Table.from_batches([rows]))
        faults = tuple(found.fault(is_bad, code=code, message=said) for code, said, is_bad in judged.faults)
        return Converted(pa.RecordBatch.from_arrays([*rows.columns, judged.values], schema=self._schema), faults)

    def _take(self, text: str) -> Any:
        try:
            # Each value is its text as it stands there (ING-3), and only what the path leads through is decoded.
            here = msgspec.Raw(text.encode())
            for step in self._steps:
                whole = msgspec.json.decode(here, type=list[msgspec.Raw] | dict[str, msgspec.Raw] | _SCALAR)
                inner = _inner(whole, step)
                if inner is None:
                    return None
                here = inner
            found = bytes(here).strip()
            if found.startswith(b'"'):
                return msgspec.json.decode(found, type=str)
        except (msgspec.DecodeError, RecursionError):
            return Bad("json")
        return None if found == b"null" else found.decode()


_SCALAR: Final = str | int | float | bool | None


def _inner(whole: Any, step: str | int) -> msgspec.Raw | None:
    if isinstance(step, int):
        return whole[step] if isinstance(whole, list) and step < len(whole) else None
    return whole.get(step) if isinstance(whole, dict) else None
