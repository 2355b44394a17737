"""Frames of Python as Arrow tables that fit a dataset: of pyarrow, pandas, polars, DuckDB, Spark, or lists of rows.

Whatever has Arrow's interface for streams is read by it, so none of these packages is needed here.

Source: clauses TABLE-3 to TABLE-5 in ``spec/plug-ins/tables.md``; the Arrow PyCapsule interface.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.records.carriers import from_carrier, one_array, slice_type_of, to_carrier
from odf_engines.records.plain_layouts import plain_layout
from odf_node.errors import UsageError
from odf_protocol.dataset_view import DatasetView
from odf_protocol.errors import UnsupportedError
from odf_protocol.row_fingerprints import RowFingerprints
from odf_protocol.schema_arrow import rows_schema_of
from odf_tables.errors import SHOWN_ROWS, RowsRejectedError, SchemaMismatchError

_INDEX: Final = re.compile(r"__index_level_\d+__")
"""How pandas calls its index in Arrow: no column of the frame."""
_HASH_KEY_BYTES: Final = 32


def read_frame(frame: object) -> pa.Table:
    """Give a frame as an Arrow table.

    Raises:
        UsageError: It is no frame that is known here.
    """
    if isinstance(frame, Sequence) and not isinstance(frame, str | bytes):
        return _read_rows(frame)
    table = _read_stream(frame)
    if table is None:
        raise UsageError(
            f"a {type(frame).__name__} is no frame; expected a table of pyarrow, pandas, polars, DuckDB or Spark, "
            "or a list of dictionaries"
        )
    return table.select([name for name in table.column_names if not _INDEX.fullmatch(name)])


def _read_stream(frame: object) -> pa.Table | None:
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(frame).read_all()
    if hasattr(frame, "__arrow_c_array__"):
        return pa.table(pa.record_batch(frame))
    for method in ("toArrow", "to_arrow_table", "arrow"):  # Spark; DuckDB, its later and its earlier name
        if callable(give := getattr(frame, method, None)):
            given = give()
            return given if isinstance(given, pa.Table) else pa.RecordBatchReader.from_stream(given).read_all()
    return None


def _read_rows(rows: Sequence[Any]) -> pa.Table:
    if not all(isinstance(each, Mapping) for each in rows):
        raise UsageError("a list that is written has a dictionary for each row")
    names = dict.fromkeys(name for each in rows for name in each)
    try:
        return pa.table({name: pa.array([each.get(name) for each in rows]) for name in names})
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"the list has values that are of no common type: {error}") from error


def check_column_name(name: str) -> None:
    """Check that queries and frames can name a column.

    Raises:
        UsageError: They cannot.
    """
    if "\0" in name:
        raise UsageError(f"column {name!r} has the character U+0000 in its name, which no query can have")
    if _INDEX.fullmatch(name):
        raise UsageError(
            f"column '{name}' is called as the index of pandas, which no frame gives; give it another name"
        )


def list_fields(view: DatasetView) -> list[pa.Field]:
    """List the columns that a frame of a table may have: all but offset, operation and system time."""
    assert view.schema is not None
    own = {view.vocabulary.offset, view.vocabulary.op, view.vocabulary.system_time}
    return [field for field in rows_schema_of(view.schema) if field.name not in own]


def fit_frame(name: str, frame: pa.Table, view: DatasetView) -> pa.Table:
    """Give a frame with the columns of a table, in the types of the table where no value changes by it.

    Args:
        name: Of the table, for messages.
        frame: What is written; a column of event times may be absent.
        view: What is in force in the table.

    Raises:
        SchemaMismatchError: It has other columns.
    """
    fields = [
        field
        for field in list_fields(view)
        if field.name != view.vocabulary.event_time or field.name in frame.column_names
    ]
    if differences := _list_differences(frame.schema, fields):
        raise SchemaMismatchError(name, differences)
    return pa.table(
        [_cast(frame.column(field.name), field.type) for field in fields], names=[each.name for each in fields]
    )


def list_added(frame: pa.Table, view: DatasetView) -> list[pa.Field]:
    """List the columns that only a frame has, as a table can gain them."""
    known = {each.name for each in list_fields(view)}
    for name in frame.column_names:
        check_column_name(name)
    return [
        pa.field(field.name, slice_type_of(_plain_type(field.type)))
        for field in frame.schema
        if field.name not in known
    ]


def _list_differences(found: pa.Schema, wanted: Sequence[pa.Field]) -> list[str]:
    known = {field.name: field for field in wanted}
    names = found.names
    differences = [
        f"+ {name} {found.field(name).type}" for name in names if name not in known and names.count(name) == 1
    ]
    differences += [f"+ {name} twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    for field in wanted:
        if field.name not in names:
            differences.append(f"- {field.name} {field.type}")
        elif names.count(field.name) == 1 and not _may_become(found.field(field.name).type, field.type):
            differences.append(f"~ {field.name}: expected {field.type}, found {found.field(field.name).type}")
    return differences


def _may_become(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Say whether values of a type may be values of another one; whether each is, is looked at later."""
    found = _plain_type(found)
    if pa.types.is_null(found) or found == wanted:
        return True
    for is_kind in (_is_number, pa.types.is_timestamp, pa.types.is_time):
        if is_kind(found):
            return bool(is_kind(wanted))
    try:
        return bool(slice_type_of(found) == wanted)
    except UnsupportedError:
        return False


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        # As in every ingest: what is finer than a millisecond is dropped towards the past (ING-5).
        chunks = [from_carrier(to_carrier(plain_layout(chunk), wanted), wanted) for chunk in column.chunks]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return column  # the engine names the rows whose values do not fit
    return pa.chunked_array(chunks, type=wanted)


def require_fitting(name: str, frame: pa.Table, view: DatasetView) -> None:
    """Reject a fitted frame in which values do not fit their column, where no engine looks at it as it is.

    Raises:
        RowsRejectedError: Has the first of them.
    """
    wanted = {field.name: field.type for field in list_fields(view)}
    misfits = [each for each in frame.column_names if frame.column(each).type != wanted[each]]
    if not misfits:
        return
    shown = []
    for place in range(frame.num_rows):
        wrong = [
            each
            for each in misfits
            if _cast(pa.chunked_array([one_array(frame.column(each).slice(place, 1))]), wanted[each]).type
            != wanted[each]
        ]
        if wrong:
            shown.append({"row": place, **dict.fromkeys(wrong, "does not fit the type")})
        if len(shown) == SHOWN_ROWS:
            break
    raise RowsRejectedError(name, "values do not fit", shown)


def require_keys(name: str, frame: pa.Table, keys: Sequence[str]) -> None:
    """Reject a frame in which a key is missing or stands twice.

    Raises:
        SchemaMismatchError: It lacks a column of the key.
        RowsRejectedError: A row has no value there, or the key of another row; has the first of them.
    """
    if missing := [each for each in keys if each not in frame.column_names]:
        raise SchemaMismatchError(name, [f"- {each} (a column of the key)" for each in missing])
    for key in keys:
        absent = pc.indices_nonzero(frame.column(key).is_null().combine_chunks())
        if len(absent):
            raise RowsRejectedError(name, f"no value in the key column '{key}'", _show(frame, absent), len(absent))
    hashes = RowFingerprints(secrets.token_bytes(_HASH_KEY_BYTES))
    # As merges tell keys apart: the two zeros are one, and so is all that is no number (ING-12).
    rows = pa.record_batch([one_array(frame.column(key)) for key in keys], names=[*keys])
    _, first = np.unique(hashes.of(rows, ()), return_index=True)
    if len(first) == frame.num_rows:
        return
    is_again = np.ones(frame.num_rows, bool)
    is_again[first] = False
    again = pa.array(np.flatnonzero(is_again))
    reason = f"a row before has the same key ({', '.join(keys)})"
    raise RowsRejectedError(name, reason, _show(frame, again), len(again))


def _show(frame: pa.Table, places: pa.Array) -> list[dict[str, Any]]:
    shown = places.slice(0, SHOWN_ROWS)
    rows = frame.take(shown).to_pylist()
    return [{"row": place, **row} for place, row in zip(shown.to_pylist(), rows, strict=True)]
