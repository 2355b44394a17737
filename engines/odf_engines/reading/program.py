"""The program that reads files that others wrote, in a sandbox; files come open.

Parquet compresses without bound: a file of a kilobyte can stand for a terabyte of values, and a reader may have faults
that a file of an attacker's finds. So they are read here, where nothing is at stake: the program holds no file but
those that it was handed, and its end is an answer like any other. Bytes follow an answer, or come in parts before it.

A new operation is one more entry of ``_OPERATIONS``: it gets the request and its files, and gives the result. A plug-in
has a program of its own, which calls ``serve_files``.

Source: clause ROWS-6 in ``spec/extensions/acceptance.md``.
"""

import base64
import contextlib
import json
import mmap
import os
import resource
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final, cast

import numpy as np
import pyarrow as pa

from odf_engines.confined.service import Request, Result, Service
from odf_engines.host.tables import copy_rows, table_bytes
from odf_engines.reading.event_times import read_event_times, read_times_beside
from odf_engines.reading.evolved_rows import write_in_columns
from odf_engines.reading.new_rows import write_new_rows
from odf_engines.reading.output_files import check_output
from odf_engines.reading.row_windows import find_rows_like, read_window
from odf_engines.reading.row_writing import rewrite_slice
from odf_engines.reading.slices import (
    check_slice,
    hash_values_of,
    iter_rows,
    logical_hash_of,
    open_slice,
    read_last_rows,
    read_slice,
    summarise,
)
from odf_protocol.block import decode_block
from odf_protocol.changelog_balance import CHANGE, are_taken
from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnsupportedError
from odf_protocol.events import AddData, ExecuteTransform, SetDataSchema
from odf_protocol.multihash import Multihash
from odf_protocol.row_fingerprints import FINGERPRINT, RowFingerprints
from odf_protocol.slice_comparison import compare_slices
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

_YIELDING: Final = 10  # guess: a tenth of what a process of ordinary priority gets beside it
_KEY_BYTES: Final = 32


def main(_arguments: dict[str, Any]) -> None:
    """Answer until there are no more requests."""
    serve_files(_OPERATIONS)


def serve_files(operations: Mapping[str, Callable[..., Result]]) -> None:
    """Answer requests by a table of operations; the ``main`` of a program of a plug-in calls it.

    Args:
        operations: Each gets the request and its files, mapped; what it raises is an answer like any other.
    """

    def answer(request: Request) -> Result:
        files = [_map(each) for each in request.files]
        _limit_time(request.arguments["cpu_s"])
        return operations[request.operation](request, *files)

    Service().serve(dict.fromkeys(operations, answer), _error_of)


def _map(descriptor: int) -> pa.Buffer:
    try:
        if not os.fstat(descriptor).st_size:
            return pa.py_buffer(b"")
        return pa.py_buffer(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    finally:
        os.close(descriptor)


def _error_of(error: Exception) -> dict[str, Any]:
    match error:
        case MemoryError():
            return _error("memory", None)
        case RejectedError():
            return _error("rejected", error.rule, expected=error.expected, found=error.found)
        case MalformedError():
            return _error("malformed", error.what, where=error.where, expected=error.expected, found=error.found)
        case OdfError():
            return _error("unsupported", None, found=error)
    # Whatever a hostile file makes a reader do is the file's fault.
    return _error("malformed", "slice", found=f"{type(error).__name__}: {error}"[:400])


def _error(
    kind: str, what: str | None, *, where: object = None, expected: object = None, found: object = None
) -> dict[str, Any]:
    texts = {"what": what, "where": where, "expected": expected, "found": found}
    return {"kind": kind, **{name: None if each is None else str(each) for name, each in texts.items()}}


def _check(request: Request, file: pa.Buffer) -> Result:
    """Check a slice, and count the rows that take another one back."""
    claims, taken = _claims_of(request), 0

    def count(batch: pa.RecordBatch) -> None:
        nonlocal taken
        taken += int(np.count_nonzero(are_taken(np.asarray(batch.column(claims["vocabulary"].op)))))

    check_slice(file, **claims, keep=count)
    return taken, b""


def _fingerprint(request: Request, file: pa.Buffer) -> Result:
    """Write the rows of a slice as ``CHANGE`` has them."""
    known, parts = Vocabulary(*request.arguments["vocabulary"]), request.open_parts()
    fingerprints = RowFingerprints(base64.b64decode(request.arguments["key"]))
    for batch in iter_rows(file):
        found = fingerprints.of(batch, (known.offset, known.op, known.system_time))
        changes = np.empty(batch.num_rows, CHANGE)
        changes["high"], changes["low"] = found["high"], found["low"]
        changes["op"] = np.asarray(batch.column(known.op))
        parts.write(changes.tobytes())
    parts.flush_all()
    return None, b""


def _rewrite(request: Request, file: pa.Buffer) -> Result:
    parts = request.open_parts()
    rewrite_slice(file, cast("BinaryIO", parts), **_claims_of(request))
    parts.flush_all()
    return None, b""


def _claims_of(request: Request) -> dict[str, Any]:
    block = decode_block(base64.b64decode(request.arguments["block"]), expected_hash=None)
    schema = decode_block(base64.b64decode(request.arguments["schema"]), expected_hash=None).event
    assert isinstance(block.event, AddData | ExecuteTransform)
    assert block.event.new_data is not None
    assert isinstance(schema, SetDataSchema)
    assert schema.schema is not None
    return {
        "claimed": block.event.new_data,
        "schema": schema.schema,
        "vocabulary": Vocabulary(*request.arguments["vocabulary"]),
        "system_time": block.system_time,
        "sequence_number": block.sequence_number,
    }


def _compare(request: Request, published: pa.Buffer, reexecuted: pa.Buffer) -> Result:
    with contextlib.suppress(UnsupportedError):  # values that it does not know are compared one by one
        if hash_values_of(published) == hash_values_of(reexecuted):
            return None, b""
    mark = request.arguments["prev_watermark_ms"]
    found = compare_slices(
        read_slice(published),
        read_slice(reexecuted),
        Vocabulary(*request.arguments["vocabulary"]),
        None if mark is None else Timestamp.from_unix_ms(mark),
    )
    return None if found is None else found.to_json(), b""


def _compare_bags(request: Request, published: pa.Buffer, reexecuted: pa.Buffer) -> Result:
    """Count the rows of the first file that the second lacks, equal rows one by one, to the bit (PLAN-19)."""
    known = Vocabulary(*request.arguments["vocabulary"])
    # Nobody knows the key, so no rows can be chosen that meet under it.
    fingerprints = RowFingerprints(os.urandom(_KEY_BYTES), tells_bits=True)
    bags = []
    for file in (published, reexecuted):
        parts = [fingerprints.of(batch, (known.offset, known.system_time)) for batch in iter_rows(file)]
        bags.append(np.unique(np.concatenate([np.empty(0, FINGERPRINT), *parts]), return_counts=True))
    (rows, counts), (others, other_counts) = bags
    _, here, there = np.intersect1d(rows, others, assume_unique=True, return_indices=True)
    shared = int(np.minimum(counts[here], other_counts[there]).sum())
    return {"published": int(counts.sum()), "recomputed": int(other_counts.sum()), "shared": shared}, b""


def _summarise(request: Request, file: pa.Buffer) -> Result:
    os.nice(_YIELDING)  # strangers ask for it, and nobody here waits
    summary = summarise(file, max_leaves=request.arguments["max_leaves"])
    if len(summary.schema) > request.arguments["max_schema_bytes"]:
        raise UnsupportedError("size of a schema", found=f"{len(summary.schema)} bytes")
    header = {"row_count": summary.row_count, "schema": base64.b64encode(summary.schema).decode()}
    return header, b"".join(levels[0].raw for levels in summary.levels)


def _window(request: Request, file: pa.Buffer) -> Result:
    found = read_window(file, **request.arguments["arguments"])
    return None, json.dumps(found, ensure_ascii=False).encode()


def _like(request: Request, file: pa.Buffer, pattern: pa.Buffer) -> Result:
    return find_rows_like(file, pattern=pattern, **request.arguments["arguments"]), b""


def _times(request: Request, file: pa.Buffer) -> Result:
    return read_event_times(file, request.arguments["column"]), b""


def _times_beside(request: Request, file: pa.Buffer) -> Result:
    found = read_times_beside(file, request.arguments["column"], request.arguments["beside"])
    return (None, b"") if found is None else ("table", table_bytes(found))


def _last_rows(request: Request, file: pa.Buffer) -> Result:
    return "table", table_bytes(read_last_rows(file, request.arguments["count"]))


def _new_rows(request: Request, *files: pa.Buffer) -> Result:
    schema = decode_block(base64.b64decode(request.arguments["schema"]), expected_hash=None).event
    assert isinstance(schema, SetDataSchema)
    assert schema.schema is not None
    parts, words = request.open_parts(), Vocabulary(*request.arguments["vocabulary"])
    write_new_rows(files, schema.schema, words, cast("BinaryIO", parts), **request.arguments["arguments"])
    parts.flush_all()
    return None, b""


def _evolve(request: Request, file: pa.Buffer) -> Result:
    schema = decode_block(base64.b64decode(request.arguments["schema"]), expected_hash=None).event
    assert isinstance(schema, SetDataSchema)
    assert schema.schema is not None
    parts = request.open_parts()
    write_in_columns(file, cast("BinaryIO", parts), schema.schema)
    parts.flush_all()
    return None, b""


def _copy(request: Request, file: pa.Buffer) -> Result:
    parts = request.open_parts()
    with open_slice(file) as opened:
        copy_rows(opened, parts, columns=request.arguments["columns"], most=request.arguments["most"])
    parts.flush_all()
    return None, b""


def _hash(_request: Request, file: pa.Buffer) -> Result:
    return str(logical_hash_of(file)), b""


def _describe(_request: Request, file: pa.Buffer) -> Result:
    with open_slice(file) as opened:
        columns = [{"name": field.name, "type": str(field.type)} for field in opened.schema_arrow]
        rows = opened.metadata.num_rows
    found = {"rows": rows, "columns": columns, "logical_hash": _hash_or_reason(logical_hash_of, file)}
    return {**found, "values_hash": _hash_or_reason(hash_values_of, file)}, b""


def _hash_or_reason(hash_rows: Callable[[pa.Buffer], Multihash], file: pa.Buffer) -> str:
    try:
        return str(hash_rows(file))
    except UnsupportedError as error:
        return f"not defined: {error}"


def _check_output(request: Request, file: pa.Buffer) -> Result:
    return check_output(file, request.arguments["check"]), b""


_OPERATIONS: Final[Mapping[str, Callable[..., Result]]] = {
    "check": _check,
    "check output": _check_output,
    "fingerprint": _fingerprint,
    "rewrite": _rewrite,
    "compare": _compare,
    "compare bags": _compare_bags,
    "summarise": _summarise,
    "window": _window,
    "like": _like,
    "times": _times,
    "times beside": _times_beside,
    "last rows": _last_rows,
    "new rows": _new_rows,
    "evolve": _evolve,
    "copy": _copy,
    "hash": _hash,
    "describe": _describe,
}


def _limit_time(cpu_s: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    allowed = int(used.ru_utime + used.ru_stime) + cpu_s
    resource.setrlimit(resource.RLIMIT_CPU, (allowed if hard == resource.RLIM_INFINITY else min(allowed, hard), hard))
