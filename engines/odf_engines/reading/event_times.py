"""The event times of the rows in a file, from the values that stand there: what its footer says decides nothing.

Source: WINDOW-10 and 11 in ``spec/extensions/event-windows.md``, ENGINE-28 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Sequence
from hashlib import sha3_256
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.reading.slices import Source, open_slice

_DAY_US: Final = 86_400_000_000
_TAKING: Final = ("1", "2")  # Source: RFC-015, operations retract and correct-from, as texts
_BATCH_ROWS: Final = 256  # guess: texts of some hundred kilobytes at once fit into memory; plain rows cost no more so
_LONGEST_TEXT: Final = 64
"""Bytes of a text that is looked at as it is; of a longer one its SHA3-256, which no shorter text can be."""
_NANOSECONDS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def read_event_times(path: Source, column: str) -> tuple[int, int] | None:
    """Return the oldest and the newest time in a column; None where it is none of times, or some row has none.

    Args:
        path: A file of rows.
        column: Of event times.

    Returns:
        In microseconds since 1970; what is finer, outwards.
    """
    first = last = None
    with open_slice(path) as file:
        if column not in file.schema_arrow.names:
            return None
        kind = file.schema_arrow.field(column).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
            return None
        for batch in file.iter_batches(columns=[column]):
            values = batch.column(0)
            if values.null_count:
                return None
            whole = values.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
            least, most = (each.as_py() for each in pc.min_max(whole).values())
            first = least if first is None else min(first, least)
            last = most if last is None else max(last, most)
    if first is None or last is None:
        return None
    return _floor_us(first, kind), -_floor_us(-last, kind)


def read_times_beside(path: Source, column: str, beside: Sequence[str]) -> pa.Table | None:
    """Return the event time of each row of a file, in microseconds, and what tells its row from others.

    Args:
        path: A file of rows.
        column: Of event times.
        beside: Other columns. Values that are equal are equal texts, of 65 bytes at most, as a small file holds a
            long text as often as somebody wants; columns of a type that says it in another way are left out.

    Returns:
        The other columns as texts, numbered from 0, and ``time``; None where one is missing, or a time finer than this.
    """
    with open_slice(path) as file:
        kinds = {each.name: each.type for each in file.schema_arrow}
        if column not in kinds:
            return None
        reported = [name for name in beside if name in kinds and _is_reported_by_text(kinds[name])]
        times: list[pa.Array] = []
        texts: dict[str, list[pa.Array]] = {name: [] for name in reported}
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(dict.fromkeys((column, *reported)))):
            micros = _micros(batch.column(column))
            if micros is None or micros.null_count:
                return None
            times.append(micros)
            for name in reported:
                values = batch.column(name)
                if pa.types.is_timestamp(values.type) and (values := _micros(values)) is None:
                    return None
                texts[name].append(_short_texts(values))
    rows = sum(map(len, times))
    found = {}
    for place, name in enumerate(beside):
        if name not in kinds:  # the schema got it later
            found[f"{place}"] = pa.nulls(rows, pa.large_string())
        elif name in texts:
            found[f"{place}"] = pa.chunked_array(texts[name], pa.large_string()).combine_chunks()
    return pa.table({**found, "time": pa.chunked_array(times, pa.int64()).combine_chunks()})


def _short_texts(values: pa.Array) -> pa.Array:
    """Return values as texts that are equal where the values are."""
    known = values.dictionary_encode()
    if pa.types.is_floating(values.type):
        texts = pa.array(map(_number_text, known.dictionary.to_pylist()), pa.large_string())
    else:
        texts = known.dictionary.cast(pa.large_string())
    raw = texts.cast(pa.large_binary()).to_pylist()
    if any(len(each) > _LONGEST_TEXT for each in raw):
        texts = pa.array(map(_shorten, raw), pa.large_binary()).cast(pa.large_string(), safe=False)
    return texts.take(known.indices)


def _number_text(number: float | None) -> str | None:
    # There are two zeros and many NaN, which SQL takes for equal.
    return None if number is None else repr(number + 0.0)


def _shorten(text: bytes) -> bytes:
    return b"#" + sha3_256(text).hexdigest().encode() if len(text) > _LONGEST_TEXT else text


def find_newest(rows: pa.Table) -> pa.Table:
    """Of versions keep, for each key, the newest one that is given, and all that are taken.

    Args:
        rows: From ``read_times_beside``: the columns of a key, the operation, the times.

    Returns:
        The columns of the key, ``is_taken``, ``time``.
    """
    *key, op, _time = rows.column_names
    is_taken = pc.is_in(rows.column(op), pa.array(_TAKING, pa.large_string()))
    rows = rows.drop_columns([op]).append_column("is_taken", is_taken)
    given = rows.filter(pc.invert(is_taken)).group_by(["is_taken", *key], use_threads=False)
    newest = given.aggregate([("time", "max")]).rename_columns({"time_max": "time"})
    taken = rows.filter(is_taken)
    return pa.concat_tables([each.select([*key, "is_taken", "time"]) for each in (newest, taken)])


def _micros(times: pa.Array) -> pa.Array | None:
    try:
        return times.cast(pa.timestamp("us", getattr(times.type, "tz", None))).cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _is_reported_by_text(kind: pa.DataType) -> bool:
    test = pa.types
    reported = (
        test.is_integer, test.is_boolean, test.is_string, test.is_large_string, test.is_date32, test.is_timestamp,
        test.is_decimal, test.is_float32, test.is_float64,
    )  # fmt: skip
    return any(each(kind) for each in reported)


def _floor_us(value: int, kind: pa.DataType) -> int:
    return value * _DAY_US if pa.types.is_date32(kind) else value * _NANOSECONDS[kind.unit] // 1_000
