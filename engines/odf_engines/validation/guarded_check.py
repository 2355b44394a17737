"""A validator's look at some rows, guarded: whatever it raises or answers, it comes to faults of rows.

Source: clause VALID-4 in ``spec/validation.md``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.validation.contract import Fault, Validator

FAILED = "failed"
"""The code of rows on which a validator raised an error."""

FAULTS = pa.schema(
    [
        ("number", pa.int64()),
        ("call", pa.int32()),
        ("code", pa.string()),
        ("message", pa.string()),
        ("column", pa.string()),
        ("value", pa.string()),
    ]
)
"""Faults of rows as a table: number of the row, position of the validator in the declaration, and the fault."""

_SHOWN_CHARACTERS = 200  # as many as of a value that did not convert (ING-6)
_MESSAGE_CHARACTERS = 1000  # guess: of a plug-in's own words


@dataclass(frozen=True, slots=True)
class BatchFault:
    """What is wrong with a batch as a whole."""

    call: int
    code: str
    message: str


class WholeBatchFailedError(Exception):
    """A validator of whole batches raised an error; there is no row to blame it on."""


def check_subset(
    validator: Validator, call: int, rows: pa.Table, numbers: pa.Array
) -> Iterator[pa.RecordBatch | BatchFault]:
    """Let a validator look at some rows; those that make it raise are faults themselves."""
    try:
        found = _ask(validator, call, rows, numbers)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - code of others
        if rows.num_rows == 1:
            yield as_fault_batch(numbers, call, _reported(error))
            return
        middle = rows.num_rows // 2
        for start, count in ((0, middle), (middle, rows.num_rows - middle)):
            yield from check_subset(validator, call, rows.slice(start, count), numbers.slice(start, count))
        return
    yield from found


def check_whole(
    validator: Validator, call: int, rows: pa.Table, numbers: pa.Array
) -> list[pa.RecordBatch | BatchFault]:
    """Let a validator look at all rows of a batch at once; for the arguments see ``check_subset``.

    Raises:
        WholeBatchFailedError: It raised, or answered something that is no fault.
    """
    try:
        return _ask(validator, call, rows, numbers)
    except MemoryError:
        raise
    except Exception as error:
        raise WholeBatchFailedError(f"{type(error).__name__}: {error}"[:_MESSAGE_CHARACTERS]) from error


def _ask(validator: Validator, call: int, rows: pa.Table, numbers: pa.Array) -> list[pa.RecordBatch | BatchFault]:
    if not rows.num_rows and not validator.sees_whole_batch:
        return []
    found: list[pa.RecordBatch | BatchFault] = []
    for fault in validator.check(rows):
        if fault.rows is None:
            found.append(BatchFault(call, str(fault.code), str(fault.message)[:_MESSAGE_CHARACTERS]))
        elif len(fault.rows):
            found.append(as_fault_batch(numbers, call, fault, rows))
    return found


def _positions(rows: pa.Array, count: int) -> pa.Array:
    positions = rows.cast(pa.int64())
    values = positions.to_numpy(zero_copy_only=False)
    if positions.null_count or values.min() < 0 or values.max() >= count:
        raise ValueError(f"a fault names rows that are not among the {count} that were checked")
    return positions


def as_fault_batch(numbers: pa.Array, call: int, fault: Fault, rows: pa.Table | None = None) -> pa.RecordBatch:
    """Write a fault of rows as a table.

    Args:
        numbers: Of all rows that were looked at.
        call: Position of what found it in the declaration.
        fault: With rows.
        rows: What was looked at; gives the values where the fault does not.

    Raises:
        ValueError: It is about rows that are not there.
    """
    numbers = numbers.take(_positions(fault.rows, len(numbers)))
    count = len(numbers)
    columns = fault.columns
    if columns is None:
        columns = pa.repeat(pa.scalar(fault.column, pa.string()), count)
    values = fault.values
    if values is None and rows is not None and fault.column in rows.column_names:
        values = rows.column(fault.column).take(fault.rows).combine_chunks()
    messages = fault.messages
    if messages is None:
        messages = pa.repeat(pa.scalar(str(fault.message)), count)
    texts = [None] * count if values is None else [_text(value) for value in values]
    arrays = [
        numbers,
        pa.array(np.full(count, call, np.int32)),
        pa.repeat(pa.scalar(str(fault.code)), count),
        pc.utf8_slice_codeunits(messages.cast(pa.string()), 0, _MESSAGE_CHARACTERS),
        columns.cast(pa.string()),
        pa.array(texts, pa.string()),
    ]
    return pa.record_batch(arrays, schema=FAULTS)


def _reported(error: Exception) -> Fault:
    return Fault(code=FAILED, message=f"the validator failed: {type(error).__name__}: {error}", rows=pa.array([0]))


def _text(value: pa.Scalar) -> str | None:
    if not value.is_valid:
        return None
    if pa.types.is_timestamp(value.type):
        # Arrow's own way asks for a database of time zones, which a sandbox need not have.
        return str(np.datetime64(value.value, value.type.unit)) + "Z"
    plain = value.as_py()
    return (str(plain).lower() if isinstance(plain, bool) else str(plain))[:_SHOWN_CHARACTERS]
