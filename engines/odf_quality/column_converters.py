"""Converters of whole columns: other names, one column made into several, several into one.

Source: clause CONV-5 in ``spec/plug-ins/quality.md``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.conversion.contract import Converted, Converter, ConverterContext, ParameterError
from odf_engines.validation.columns import ColumnPath
from odf_quality.text_values import Bad, judge_each
from odf_quality.value_converters import text_at

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
        faults = tuple(found.fault(is_bad, code=code, message=stated) for code, stated, is_bad in judged.faults)
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


def check_new_names(schema: pa.Schema, removed: Sequence[str], names: Sequence[str], parameter: str) -> None:
    """Reject names of new columns that are empty, there twice, or those of columns that stay.

    Raises:
        ParameterError: One is.
    """
    stay = [name for name in schema.names if name not in removed]
    for index, name in enumerate(names):
        if not name or name in stay or name in names[:index]:
            raise ParameterError(parameter, expected="a name that no other column has", found=repr(name))


class Rename(Converter):
    """Gives columns other names."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``columns``: new names by old ones."""

        columns: dict[str, str]

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        known = context.schema.names
        for name in parameters.columns:
            if name not in known:
                raise ParameterError("columns", expected=f"columns of the rows ({', '.join(known)})", found=name,
                                     known=known)  # fmt: skip
        check_new_names(context.schema, [*parameters.columns], [*parameters.columns.values()], "columns")
        self._schema = pa.schema([field.with_name(parameters.columns.get(field.name, field.name))
                                  for field in context.schema])  # fmt: skip

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def convert(self, rows: pa.RecordBatch) -> Converted:
        return Converted(pa.RecordBatch.from_arrays(rows.columns, schema=self._schema))


class Split(Converter):
    """Makes several columns of one, by what stands between its parts."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``column``; ``separator``; ``into``: names of the parts, all of which must be there; ``keep`` the column."""

        column: str
        separator: str
        into: list[str]
        keep: bool = False

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        schema = context.schema
        text_at(schema, parameters.column)
        if parameters.column not in schema.names:
            raise ParameterError("column", expected="a whole column, not values inside it", found=parameters.column)
        if not parameters.separator:
            raise ParameterError("separator", expected="a text", found="''")
        if not parameters.into:
            raise ParameterError("into", expected="names of columns", found="none")
        check_new_names(schema, [] if parameters.keep else [parameters.column], parameters.into, "into")
        self._index = schema.get_field_index(parameters.column)
        new = [pa.field(name, pa.string()) for name in parameters.into]
        kept = [schema.field(self._index)] if parameters.keep else []
        fields = list(schema)
        self._schema = pa.schema([*fields[: self._index], *kept, *new, *fields[self._index + 1 :]])

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def convert(self, rows: pa.RecordBatch) -> Converted:
        count, texts = len(self.parameters.into), rows.column(self._index)
        parts = pc.split_pattern(texts, self.parameters.separator)
        is_bad = pc.not_equal(pc.list_value_length(parts), count)
        whole = pc.if_else(is_bad, pa.scalar(None, parts.type), parts)
        found = [pc.list_element(whole, number) for number in range(count)]
        columns = [_null_if_empty(part) for part in found]
        kept = [texts] if self.parameters.keep else []
        arrays = [*rows.columns[: self._index], *kept, *columns, *rows.columns[self._index + 1 :]]
        values = ColumnPath.find(rows.schema, self.parameters.column).read(pa.Table.from_batches([rows]))
        message = f"expected {count} parts with '{self.parameters.separator}' between them"
        fault = values.fault(is_bad, code="parts", message=message)
        return Converted(pa.RecordBatch.from_arrays(arrays, schema=self._schema), (fault,))


class Join(Converter):
    """Makes one column of several texts, those that are null left out."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``columns``; ``separator``; ``into``: name of the new column, which comes last; ``keep`` the others."""

        columns: list[str]
        separator: str
        into: str
        keep: bool = False

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        schema, columns = context.schema, parameters.columns
        if len(columns) < 2 or len(set(columns)) != len(columns):
            raise ParameterError("columns", expected="two or more different columns", found=", ".join(columns))
        for name in columns:
            text_at(schema, name, parameter="columns")
            if name not in schema.names:
                raise ParameterError("columns", expected="whole columns, not values inside them", found=name)
        removed = [] if parameters.keep else columns
        check_new_names(schema, removed, [parameters.into], "into")
        self._kept = [field.name for field in schema if field.name not in removed]
        fields = [schema.field(name) for name in self._kept]
        self._schema = pa.schema([*fields, pa.field(parameters.into, pa.string())])

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def convert(self, rows: pa.RecordBatch) -> Converted:
        texts = [rows.column(name) for name in self.parameters.columns]
        # Arrow leaves out a row of which every text is null.
        is_something = texts[0].is_valid()
        for text in texts[1:]:
            is_something = pc.or_(is_something, text.is_valid())
        texts[0] = pc.if_else(is_something, texts[0], "")
        joined = pc.binary_join_element_wise(*texts, self.parameters.separator, null_handling="skip")
        arrays = [*(rows.column(name) for name in self._kept), _null_if_empty(joined)]
        return Converted(pa.RecordBatch.from_arrays(arrays, schema=self._schema))


def _null_if_empty(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
