"""The program that reads files that others wrote, in a sandbox: one line of JSON each way, files come open.

Parquet compresses without bound: a file of a kilobyte can stand for a terabyte of values, and a reader may have faults
that a file of an attacker's finds. So they are read here, where nothing is at stake: the program holds no file but
those that it was handed, and its end is an answer like any other. Bytes follow an answer, or come in parts before it.

A new operation is one more entry of ``_OPERATIONS``: it gets the request and its files, and gives the answer.

Source: clause ROWS-6 in ``spec/extensions/acceptance.md``.
"""

import base64
import contextlib
import json
import mmap
import os
import resource
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Final, cast

import numpy as np
import pyarrow as pa

from odf_engines import reading
from odf_engines.host.parts import Parts
from odf_engines.host.tables import copy_rows, table_bytes
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
_RECEIVED_BYTES: Final = 64 * 1024
_KEY_BYTES: Final = 32
_MOST_FILES: Final = 253  # Source: unix(7), SCM_RIGHTS

Answer = tuple[Any, bytes]
"""A plain value, and the bytes that follow it."""


def main(_arguments: dict[str, Any]) -> None:
    """Answer until there are no more requests."""
    out = sys.stdout.buffer
    for request, files in _iter_requests():
        answer, body = _answer(request, files)
        out.write(json.dumps({**answer, "bytes": len(body)}).encode() + b"\n")
        out.write(body)
        out.flush()


def _iter_requests() -> Iterator[tuple[dict[str, Any], list[pa.Buffer]]]:
    """Yield what is asked, with the files that come with it."""
    source, pending, descriptors = socket.socket(fileno=0), bytearray(), list[int]()
    while True:
        found, handed, _, _ = socket.recv_fds(source, _RECEIVED_BYTES, _MOST_FILES)
        descriptors += handed
        pending += found
        if not found:
            return
        if pending.endswith(b"\n"):  # the next one comes when this is answered
            request = json.loads(pending)
            files = [_map(each) for each in descriptors]
            pending.clear()
            descriptors.clear()
            yield request, files


def _map(descriptor: int) -> pa.Buffer:
    try:
        if not os.fstat(descriptor).st_size:
            return pa.py_buffer(b"")
        return pa.py_buffer(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    finally:
        os.close(descriptor)


def _answer(request: dict[str, Any], files: list[pa.Buffer]) -> tuple[dict[str, Any], bytes]:
    try:
        _limit_time(request["cpu_s"])
        found, body = _OPERATIONS[request["operation"]](request, *files)
    except MemoryError:
        return _error("memory", None), b""
    except RejectedError as error:
        return _error("rejected", error.rule, expected=error.expected, found=error.found), b""
    except MalformedError as error:
        return _error("malformed", error.what, where=error.where, expected=error.expected, found=error.found), b""
    except OdfError as error:
        return _error("unsupported", None, found=error), b""
    except Exception as error:  # noqa: BLE001 - whatever a hostile file makes a reader do is the file's fault
        return _error("malformed", "slice", found=f"{type(error).__name__}: {error}"[:400]), b""
    return {"result": found}, body


def _error(
    kind: str, what: str | None, *, where: object = None, expected: object = None, found: object = None
) -> dict[str, Any]:
    texts = {"what": what, "where": where, "expected": expected, "found": found}
    return {"error": {"kind": kind, **{name: None if each is None else str(each) for name, each in texts.items()}}}


def _check(request: dict[str, Any], file: pa.Buffer) -> Answer:
    """Check a slice, and count the rows that take another one back."""
    claims, taken = _claims_of(request), 0

    def count(batch: pa.RecordBatch) -> None:
        nonlocal taken
        taken += int(np.count_nonzero(are_taken(np.asarray(batch.column(claims["vocabulary"].op)))))

    check_slice(file, **claims, keep=count)
    return taken, b""


def _fingerprint(request: dict[str, Any], file: pa.Buffer) -> Answer:
    """Write the rows of a slice as ``CHANGE`` has them."""
    known, parts = Vocabulary(*request["vocabulary"]), Parts()
    fingerprints = RowFingerprints(base64.b64decode(request["key"]))
    for batch in iter_rows(file):
        found = fingerprints.of(batch, (known.offset, known.op, known.system_time))
        changes = np.empty(batch.num_rows, CHANGE)
        changes["high"], changes["low"] = found["high"], found["low"]
        changes["op"] = np.asarray(batch.column(known.op))
        parts.write(changes.tobytes())
    parts.flush_all()
    return None, b""


def _rewrite(request: dict[str, Any], file: pa.Buffer) -> Answer:
    parts = Parts()
    reading.row_writing.rewrite_slice(file, cast("BinaryIO", parts), **_claims_of(request))
    parts.flush_all()
    return None, b""


def _claims_of(request: dict[str, Any]) -> dict[str, Any]:
    block = decode_block(base64.b64decode(request["block"]), expected_hash=None)
    schema = decode_block(base64.b64decode(request["schema"]), expected_hash=None).event
    assert isinstance(block.event, AddData | ExecuteTransform)
    assert block.event.new_data is not None
    assert isinstance(schema, SetDataSchema)
    assert schema.schema is not None
    return {
        "claimed": block.event.new_data,
        "schema": schema.schema,
        "vocabulary": Vocabulary(*request["vocabulary"]),
        "system_time": block.system_time,
        "sequence_number": block.sequence_number,
    }


def _compare(request: dict[str, Any], published: pa.Buffer, recomputed: pa.Buffer) -> Answer:
    with contextlib.suppress(UnsupportedError):  # values that it does not know are compared one by one
        if hash_values_of(published) == hash_values_of(recomputed):
            return None, b""
    mark = request["prev_watermark_ms"]
    found = compare_slices(
        read_slice(published),
        read_slice(recomputed),
        Vocabulary(*request["vocabulary"]),
        None if mark is None else Timestamp.from_unix_ms(mark),
    )
    return None if found is None else found.to_json(), b""


def _compare_bags(request: dict[str, Any], published: pa.Buffer, recomputed: pa.Buffer) -> Answer:
    """Count the rows of the first file that the second lacks, equal rows one by one, to the bit (PLAN-19)."""
    known = Vocabulary(*request["vocabulary"])
    # Nobody knows the key, so no rows can be chosen that meet under it.
    fingerprints = RowFingerprints(os.urandom(_KEY_BYTES), tells_bits=True)
    bags = []
    for file in (published, recomputed):
        parts = [fingerprints.of(batch, (known.offset, known.system_time)) for batch in iter_rows(file)]
        bags.append(np.unique(np.concatenate([np.empty(0, FINGERPRINT), *parts]), return_counts=True))
    (rows, counts), (others, other_counts) = bags
    _, here, there = np.intersect1d(rows, others, assume_unique=True, return_indices=True)
    shared = int(np.minimum(counts[here], other_counts[there]).sum())
    return {"published": int(counts.sum()), "recomputed": int(other_counts.sum()), "shared": shared}, b""


def _summarise(request: dict[str, Any], file: pa.Buffer) -> Answer:
    os.nice(_YIELDING)  # strangers ask for it, and nobody here waits
    summary = summarise(file, most_leaves=request["most_leaves"])
    if len(summary.schema) > request["most_schema_bytes"]:
        raise UnsupportedError("size of a schema", found=f"{len(summary.schema)} bytes")
    header = {"row_count": summary.row_count, "schema": base64.b64encode(summary.schema).decode()}
    return header, b"".join(levels[0].raw for levels in summary.levels)


def _window(request: dict[str, Any], file: pa.Buffer) -> Answer:
    found = reading.row_windows.read_window(file, **request["arguments"])
    return None, json.dumps(found, ensure_ascii=False).encode()


def _like(request: dict[str, Any], file: pa.Buffer, pattern: pa.Buffer) -> Answer:
    return reading.row_windows.find_rows_like(file, pattern=pattern, **request["arguments"]), b""


def _times(request: dict[str, Any], file: pa.Buffer) -> Answer:
    return reading.event_times.read_event_times(file, request["column"]), b""


def _times_beside(request: dict[str, Any], file: pa.Buffer) -> Answer:
    found = reading.event_times.read_times_beside(file, request["column"], request["beside"])
    return (None, b"") if found is None else ("table", table_bytes(found))


def _last_rows(request: dict[str, Any], file: pa.Buffer) -> Answer:
    return "table", table_bytes(read_last_rows(file, request["count"]))


def _new_rows(request: dict[str, Any], *files: pa.Buffer) -> Answer:
    schema = decode_block(base64.b64decode(request["schema"]), expected_hash=None).event
    assert isinstance(schema, SetDataSchema)
    assert schema.schema is not None
    parts, words = Parts(), Vocabulary(*request["vocabulary"])
    reading.new_rows.write_new_rows(files, schema.schema, words, cast("BinaryIO", parts), **request["arguments"])
    parts.flush_all()
    return None, b""


def _evolve(request: dict[str, Any], file: pa.Buffer) -> Answer:
    schema = decode_block(base64.b64decode(request["schema"]), expected_hash=None).event
    assert isinstance(schema, SetDataSchema)
    assert schema.schema is not None
    parts = Parts()
    reading.evolved_rows.write_in_columns(file, cast("BinaryIO", parts), schema.schema)
    parts.flush_all()
    return None, b""


def _copy(request: dict[str, Any], file: pa.Buffer) -> Answer:
    parts = Parts()
    with open_slice(file) as opened:
        copy_rows(opened, parts, columns=request["columns"], most=request["most"])
    parts.flush_all()
    return None, b""


def _hash(_request: dict[str, Any], file: pa.Buffer) -> Answer:
    return str(logical_hash_of(file)), b""


def _describe(_request: dict[str, Any], file: pa.Buffer) -> Answer:
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


def _check_output(request: dict[str, Any], file: pa.Buffer) -> Answer:
    return reading.output_files.check_output(file, request["check"]), b""


_OPERATIONS: Final[Mapping[str, Callable[..., Answer]]] = {
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
