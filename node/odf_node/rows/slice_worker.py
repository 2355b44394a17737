"""The program that reads slices of strangers: run as a process of its own, with little memory and time.

Parquet compresses without bound: a file of a kilobyte can stand for a terabyte of values, and a reader may have faults
that a file of an attacker's finds. So slices are read here, where nothing is at stake: the process can write no file,
and its end is an answer like any other. ``slice_process`` starts it and speaks with it, one line of JSON each way;
rows that are written anew go out through the same pipe, in parts before the answer.

Source: clause ROWS-6 in ``spec/extensions/acceptance.md``.
"""

import base64
import contextlib
import ctypes
import importlib
import io
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

PART_BYTES: Final = 1024 * 1024  # guess: large enough that its line of JSON costs nothing
_YIELDING: Final = 10  # guess: a tenth of what a process of ordinary priority gets beside it
_DIE_WITH_PARENT: Final = 1  # Source: prctl(2), PR_SET_PDEATHSIG


def main() -> None:
    """Answer requests from standard input until it ends, or this process' parent does."""
    _limit_process(int(sys.argv[1]))
    importlib.import_module("odf_node.rows.slices")  # now: whoever started us early has no request yet
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
    from odf_protocol.errors import MalformedError, OdfError, RejectedError

    try:
        _limit_time(request["cpu_s"])
        if request["operation"] == "check":
            _check(request)
            return {"result": None}
        if request["operation"] == "rewrite":
            _rewrite(request)
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


def _check(request: dict[str, Any]) -> None:
    from odf_node.rows.slices import check_slice

    check_slice(Path(request["path"]), **_claims_of(request))


def _rewrite(request: dict[str, Any]) -> None:
    from odf_node.rows.row_writing import rewrite_slice

    parts = _Parts()
    rewrite_slice(Path(request["path"]), cast("BinaryIO", parts), **_claims_of(request))
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
    from odf_protocol.block import decode_block
    from odf_protocol.events import AddData, ExecuteTransform, SetDataSchema
    from odf_protocol.vocabulary import Vocabulary

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
    from odf_node.rows.slices import hash_values_of, read_slice
    from odf_protocol.errors import UnsupportedError
    from odf_protocol.slice_comparison import compare_slices
    from odf_protocol.timestamp import Timestamp
    from odf_protocol.vocabulary import Vocabulary

    published, recomputed = Path(request["published"]), Path(request["recomputed"])
    with contextlib.suppress(UnsupportedError):  # values that it does not know are compared one by one
        if hash_values_of(published) == hash_values_of(recomputed):
            return None
    mark = request["prev_watermark_ms"]
    found = compare_slices(
        read_slice(published),
        read_slice(recomputed),
        Vocabulary(*request["vocabulary"]),
        None if mark is None else Timestamp.from_unix_ms(mark),
    )
    return None if found is None else found.to_json()


def _summarise(request: dict[str, Any]) -> dict[str, Any]:
    from odf_node.rows.slices import summarise
    from odf_protocol.errors import UnsupportedError

    os.nice(_YIELDING)  # strangers ask for it, and nobody here waits
    summary = summarise(Path(request["path"]), most_leaves=request["most_leaves"])
    if len(summary.schema) > request["most_schema_bytes"]:
        raise UnsupportedError("size of a schema", found=f"{len(summary.schema)} bytes")
    header = {"row_count": summary.row_count, "schema": base64.b64encode(summary.schema).decode()}
    return {"result": header, "body": b"".join(levels[0].raw for levels in summary.levels)}


def _look(request: dict[str, Any]) -> dict[str, Any]:
    from odf_node.rows.row_windows import find_rows_like, read_window

    path, named = Path(request["path"]), request["arguments"]
    if request["operation"] == "window":
        return {"result": None, "body": json.dumps(read_window(path, **named), ensure_ascii=False).encode()}
    named["pattern"] = Path(named["pattern"])
    return {"result": find_rows_like(path, **named)}


def _limit_process(memory_bytes: int) -> None:
    # The parent may be killed while a slice is read.
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    for limit, value in (
        (resource.RLIMIT_DATA, memory_bytes),  # unlike RLIMIT_AS it does not count the mapped file
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (bounded, bounded))


def _limit_time(cpu_s: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    allowed = int(used.ru_utime + used.ru_stime) + cpu_s
    resource.setrlimit(resource.RLIMIT_CPU, (allowed if hard == resource.RLIM_INFINITY else min(allowed, hard), hard))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


if __name__ == "__main__":
    main()
