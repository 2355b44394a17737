"""What the process that reads slices of strangers answers; ``slice_worker`` starts it within limits.

Source: clause ROWS-6 in ``spec/extensions/acceptance.md``.
"""

import base64
import contextlib
import io
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import numpy as np
import pyarrow as pa

import odf_protocol
from odf_node import rows
from odf_node.rows.slice_worker import PART_BYTES
from odf_node.rows.slices import check_slice, hash_values_of, iter_rows, read_slice, summarise
from odf_protocol.block import decode_block
from odf_protocol.changelog_balance import CHANGE, are_taken
from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnsupportedError
from odf_protocol.events import AddData, ExecuteTransform, SetDataSchema
from odf_protocol.row_fingerprints import RowFingerprints
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

_YIELDING: Final = 10  # guess: a tenth of what a process of ordinary priority gets beside it


def answer_all() -> None:
    """Answer requests from standard input until it ends, or this process' parent does."""
    for line in sys.stdin:
        answer, body = _answer(json.loads(line))
        print(json.dumps(answer), flush=True)
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()


def _answer(request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Give the line of the answer, and the bytes that follow it."""
    found = _find_answer(request)
    body = found.pop("body", b"")
    return {**found, "bytes": len(body)}, body


def _find_answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        _limit_time(request["cpu_s"])
        if request["operation"] == "check":
            return {"result": _check(request)}
        if request["operation"] == "rewrite":
            _rewrite(request)
            return {"result": None}
        if request["operation"] == "fingerprint":
            _fingerprint(request)
            return {"result": None}
        if request["operation"] == "summarise":
            return _summarise(request)
        if request["operation"] in {"window", "like"}:
            return _look(request)
        return {"result": _compare(request)}
    except MemoryError:
        return {"error": {"kind": "memory"}}
    except RejectedError as error:
        return {
            "error": {
                "kind": "rejected",
                "rule": error.rule,
                "sequence_number": error.sequence_number,
                "expected": _text(error.expected),
                "found": _text(error.found),
            }
        }
    except MalformedError as error:
        place = None if error.where is None else str(error.where)
        fields = {"what": error.what, "where": place, "expected": _text(error.expected), "found": _text(error.found)}
        return {"error": {"kind": "malformed", **fields}}
    except OdfError as error:
        return {"error": {"kind": "unsupported", "found": str(error)}}
    except Exception as error:  # noqa: BLE001 - whatever a hostile file makes a reader do is the file's fault
        return {"error": {"kind": "malformed", "what": "slice", "found": f"{type(error).__name__}: {error}"[:400]}}


def _check(request: dict[str, Any]) -> int:
    """Check a slice, and count the rows that take another one back."""
    claims, taken = _claims_of(request), 0

    def count(batch: pa.RecordBatch) -> None:
        nonlocal taken
        taken += int(np.count_nonzero(are_taken(np.asarray(batch.column(claims["vocabulary"].op)))))

    check_slice(Path(request["path"]), **claims, keep=count)
    return taken


def _fingerprint(request: dict[str, Any]) -> None:
    """Write the rows of a slice as ``CHANGE`` has them."""
    known, parts = Vocabulary(*request["vocabulary"]), _Parts()
    fingerprints = RowFingerprints(base64.b64decode(request["key"]))
    for batch in iter_rows(Path(request["path"])):
        found = fingerprints.of(batch, (known.offset, known.op, known.system_time))
        changes = np.empty(batch.num_rows, CHANGE)
        changes["high"], changes["low"] = found["high"], found["low"]
        changes["op"] = np.asarray(batch.column(known.op))
        parts.write(changes.tobytes())
    parts.flush_all()


def _rewrite(request: dict[str, Any]) -> None:
    parts = _Parts()
    rows.row_writing.rewrite_slice(Path(request["path"]), cast("BinaryIO", parts), **_claims_of(request))
    parts.flush_all()


class _Parts(io.BufferedIOBase):
    """A file that goes out through standard output, piece by piece; see ``slice_process``."""

    def __init__(self) -> None:
        self._held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._held += data
        if len(self._held) >= PART_BYTES:
            self.flush_all()
        return len(data)

    def flush_all(self) -> None:
        """Send what is held."""
        view = memoryview(bytes(self._held))
        self._held.clear()
        for start in range(0, len(view), PART_BYTES):
            part = view[start : start + PART_BYTES]
            sys.stdout.buffer.write(json.dumps({"part": len(part)}).encode() + b"\n")
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()


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


def _compare(request: dict[str, Any]) -> dict[str, Any] | None:
    published, recomputed = Path(request["published"]), Path(request["recomputed"])
    with contextlib.suppress(UnsupportedError):  # values that it does not know are compared one by one
        if hash_values_of(published) == hash_values_of(recomputed):
            return None
    mark = request["prev_watermark_ms"]
    found = odf_protocol.slice_comparison.compare_slices(
        read_slice(published),
        read_slice(recomputed),
        Vocabulary(*request["vocabulary"]),
        None if mark is None else Timestamp.from_unix_ms(mark),
    )
    return None if found is None else found.to_json()


def _summarise(request: dict[str, Any]) -> dict[str, Any]:
    os.nice(_YIELDING)  # strangers ask for it, and nobody here waits
    summary = summarise(Path(request["path"]), most_leaves=request["most_leaves"])
    if len(summary.schema) > request["most_schema_bytes"]:
        raise UnsupportedError("size of a schema", found=f"{len(summary.schema)} bytes")
    header = {"row_count": summary.row_count, "schema": base64.b64encode(summary.schema).decode()}
    return {"result": header, "body": b"".join(levels[0].raw for levels in summary.levels)}


def _look(request: dict[str, Any]) -> dict[str, Any]:
    path, named = Path(request["path"]), request["arguments"]
    if request["operation"] == "window":
        return {
            "result": None,
            "body": json.dumps(rows.row_windows.read_window(path, **named), ensure_ascii=False).encode(),
        }
    named["pattern"] = Path(named["pattern"])
    return {"result": rows.row_windows.find_rows_like(path, **named)}


def _limit_time(cpu_s: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    allowed = int(used.ru_utime + used.ru_stime) + cpu_s
    resource.setrlimit(resource.RLIMIT_CPU, (allowed if hard == resource.RLIM_INFINITY else min(allowed, hard), hard))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
