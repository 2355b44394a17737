"""One cell of a table, written so that JSON can hold it and people can read it, whatever it is.

Arrow's own conversions fail where Python has no such value, as of times before the year 1, after 9999, or finer than a
microsecond, of unknown time zones, or of structs that name a field twice; or they write another time.

Source: clause ROWS-11 in ``spec/extensions/acceptance.md``.
"""

import math
from typing import Any

import pyarrow as pa

from odf_protocol.errors import MalformedError
from odf_protocol.timestamp import Timestamp

_NANOSECONDS = 10**9
_TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": _NANOSECONDS}
_SECONDS_PER_DAY = 86_400


def cell_value(cell: pa.Scalar) -> Any:
    """Give the value of a cell.

    Returns:
        None, a bool, a whole number, a float, a text, or a list or dict of these. Times are in RFC 3339, those that it
        has no form for are numbers of units; bytes are hexadecimal, decimals exact text.
    """
    if not cell.is_valid:
        return None
    kind, types = cell.type, pa.types
    if isinstance(cell, pa.StructScalar):
        values = [(kind.field(index).name, cell_value(cell[index])) for index in range(kind.num_fields)]
        return dict(values) if len({name for name, _ in values}) == len(values) else [list(pair) for pair in values]
    if isinstance(cell, pa.MapScalar | pa.ListScalar):
        return [cell_value(item) for item in cell.values]
    if isinstance(cell, pa.DictionaryScalar | pa.RunEndEncodedScalar | pa.ExtensionScalar):
        return cell_value(cell.value)
    if isinstance(cell, pa.StringScalar):
        return cell.as_buffer().to_pybytes().decode(errors="backslashreplace")
    if isinstance(cell, pa.BinaryScalar):
        return cell.as_py().hex()
    if types.is_floating(kind):
        return float_value(cell.as_py())
    if types.is_boolean(kind) or types.is_integer(kind):
        return cell.as_py()
    if types.is_timestamp(kind):
        return _time(cell.value, kind.unit, "" if kind.tz is None else "Z") or f"{cell.value} {kind.unit} since 1970"
    if types.is_date32(kind):
        midnight = _time(cell.value * _SECONDS_PER_DAY, "s", "")
        return f"{cell.value} days since 1970" if midnight is None else midnight.partition("T")[0]
    if types.is_time(kind) and 0 <= cell.value < _SECONDS_PER_DAY * _TICKS_PER_SECOND[kind.unit]:
        return (_time(cell.value, kind.unit, "") or "").partition("T")[2]
    if types.is_temporal(kind):
        return f"{cell.value} {getattr(kind, 'unit', 'ms')}"
    return str(cell)


def float_value(value: float) -> float | str:
    """Give a float as JSON has it, which lacks some."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _time(value: int, unit: str, zone: str) -> str | None:
    per_second = _TICKS_PER_SECOND[unit]
    seconds, ticks = divmod(value, per_second)
    try:
        return str(Timestamp(seconds, ticks * (_NANOSECONDS // per_second))).removesuffix("Z") + zone
    except MalformedError:
        return None
