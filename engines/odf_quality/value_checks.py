"""Validators of single values: required, type, range, format, enumeration.

Source: clause VALID-6 in ``spec/plug-ins/quality.md``.
"""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.validation.columns import ColumnPath
from odf_engines.validation.contract import Context, Fault, ParameterError, Validator
from odf_quality.text_values import ValueForm, find_judge, find_value_type, judge_each

__all__ = ["FORMATS", "Format", "OneOf", "Range", "Required", "Type"]

_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
FORMATS = {
    "email": r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+",
    "ipv4": rf"{_OCTET}(\.{_OCTET}){{3}}",
    "uri": r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+",
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
}
"""Patterns by name.  # guess: what most tables need; anything else is a pattern of one's own"""

_SHOWN_VALUES = 5  # of an enumeration in a message


class _ValueCheck(Validator):
    """A validator of the values of one column, each by itself."""

    code: ClassVar[str]

    def __init__(self, parameters: Any, context: Context) -> None:
        super().__init__(parameters, context)
        self._path = ColumnPath.find(context.schema, parameters.column)

    @property
    def column_names(self) -> tuple[str, ...]:
        return (self._path.column,)

    def check(self, rows: pa.Table) -> Iterable[Fault]:
        found = self._path.read(rows)
        yield found.fault(self.find_bad(found.values), code=self.code, message=self.message)

    @property
    @abstractmethod
    def message(self) -> str:
        """What is wrong with a bad value."""

    @abstractmethod
    def find_bad(self, values: pa.Array) -> pa.BooleanArray:
        """Say of each value whether it is bad; null for what is not judged."""


class Required(Validator):
    """Values that must be there."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``columns``: paths whose values must not be null."""

        columns: list[str]

    def __init__(self, parameters: Any, context: Context) -> None:
        super().__init__(parameters, context)
        self._paths = [ColumnPath.find(context.schema, name, parameter="columns") for name in parameters.columns]

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(path.column for path in self._paths)

    def check(self, rows: pa.Table) -> Iterable[Fault]:
        for path in self._paths:
            found = path.read(rows)
            yield found.fault(found.values.is_null(), code="required", message="a value is required")


class Type(Validator):
    """Values that are of a type, or texts that stand for one, as in ING-4, whatever type the column has."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``column``; ``type`` as in ``ddlSchema`` (``INT``, ``DECIMAL(10,2)``, ``DATE``)."""

        column: str
        type: str

    def __init__(self, parameters: Any, context: Context) -> None:
        super().__init__(parameters, context)
        self._path = ColumnPath.find(context.schema, parameters.column)
        self._type = find_value_type(parameters.type)
        self._judge, self._faults = find_judge(ValueForm(type=parameters.type), self._type)
        kind, is_same = self._path.type, self._path.type == self._type
        if not is_same and (pa.types.is_nested(kind) or pa.types.is_timestamp(kind) or pa.types.is_binary(kind)):
            expected = f"a column of texts, numbers, truth values or dates, or one of {parameters.type}"
            raise ParameterError("column", expected=expected, found=str(kind))

    @property
    def column_names(self) -> tuple[str, ...]:
        return (self._path.column,)

    def check(self, rows: pa.Table) -> Iterable[Fault]:
        if self._path.type == self._type:
            return
        found = self._path.read(rows)
        for code, message, is_bad in judge_each(
            found.values.cast(pa.string()), self._type, self._judge, self._faults
        ).faults:
            yield found.fault(is_bad, code=code, message=message)


class Range(_ValueCheck):
    """Values between two bounds, both included."""

    code = "range"

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``column``, and ``least`` or ``most`` or both, written as the column's values are (ING-4)."""

        column: str
        least: str | None = None
        most: str | None = None

    def __init__(self, parameters: Any, context: Context) -> None:
        super().__init__(parameters, context)
        if parameters.least is None and parameters.most is None:
            raise ParameterError("least", expected="a least value, a most one or both", found="neither")
        self._least, self._most = (self._bound(name) for name in ("least", "most"))

    @property
    def message(self) -> str:
        parts = (("at least", self.parameters.least), ("at most", self.parameters.most))
        return f"expected {' and '.join(f'{word} {bound}' for word, bound in parts if bound is not None)}"

    def find_bad(self, values: pa.Array) -> pa.BooleanArray:
        # Whatever is not seen to be within is outside: NaN is.
        is_good = values.is_valid()
        if self._least is not None:
            is_good = pc.and_(is_good, pc.greater_equal(values, self._least))
        if self._most is not None:
            is_good = pc.and_(is_good, pc.less_equal(values, self._most))
        return pc.and_(pc.invert(pc.fill_null(is_good, False)), values.is_valid())

    def _bound(self, name: str) -> pa.Scalar | None:
        text = getattr(self.parameters, name)
        return None if text is None else parse_value(text, self._path.type, name)


class Format(_ValueCheck):
    """Texts of a form: a regular expression, or the name of one."""

    code = "format"

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``column``, and either ``pattern``, which the whole text must match (RE2), or the name of a ``format``."""

        column: str
        pattern: str | None = None
        format: str | None = None

    def __init__(self, parameters: Any, context: Context) -> None:
        super().__init__(parameters, context)
        if not pa.types.is_string(self._path.type):
            raise ParameterError("column", expected="a column of texts", found=str(self._path.type))
        if (parameters.pattern is None) == (parameters.format is None):
            raise ParameterError("pattern", expected="either a pattern or a format", found="both or neither")
        if parameters.format is not None and parameters.format not in FORMATS:
            expected = f"one of {', '.join(FORMATS)}"
            raise ParameterError("format", expected=expected, found=parameters.format, known=FORMATS)
        self._pattern = rf"\A(?:{parameters.pattern or FORMATS[parameters.format]})\z"
        try:
            pc.match_substring_regex(pa.array([""]), self._pattern)
        except pa.ArrowInvalid as error:
            raise ParameterError("pattern", expected="a regular expression (RE2)", found=str(error)) from error

    @property
    def message(self) -> str:
        if self.parameters.format is not None:
            return f"not of the format {self.parameters.format}"
        return f"does not match {self.parameters.pattern}"

    def find_bad(self, values: pa.Array) -> pa.BooleanArray:
        return pc.invert(pc.match_substring_regex(values, self._pattern))


class OneOf(_ValueCheck):
    """Values out of a list."""

    code = "enumeration"

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``column`` and the ``values`` that it may have, written as the column's values are (ING-4)."""

        column: str
        values: list[str]

    def __init__(self, parameters: Any, context: Context) -> None:
        super().__init__(parameters, context)
        known = [parse_value(text, self._path.type, "values").as_py() for text in parameters.values]
        self._known = pa.array(known, self._path.type)

    @property
    def message(self) -> str:
        values = self.parameters.values
        more = len(values) - _SHOWN_VALUES
        return f"not one of {', '.join(values[:_SHOWN_VALUES])}{f' and {more} more' if more > 0 else ''}"

    def find_bad(self, values: pa.Array) -> pa.BooleanArray:
        return pc.and_(pc.invert(pc.is_in(values, self._known)), values.is_valid())


def parse_value(text: str, kind: pa.DataType, parameter: str) -> pa.Scalar:
    """Read a value of a declaration as one of a column.

    Raises:
        ParameterError: It is none.
    """
    try:
        if pa.types.is_timestamp(kind):
            # Without a zone a time is in UTC, and Arrow's own way asks for a database of time zones.
            plain = pa.scalar(text.upper().removesuffix("Z")).cast(pa.timestamp(kind.unit))
            return pa.scalar(plain.value, pa.int64()).cast(kind)
        return pa.scalar(text).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
        raise ParameterError(parameter, expected=f"a value of the type {kind}", found=text) from error
