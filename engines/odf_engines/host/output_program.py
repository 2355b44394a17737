"""The program that reads outputs of an engine, in a sandbox of its own: one line of JSON each way.

``output_reader`` starts it and says what its requests and answers are.

Source: clause ENGINE-19 in ``spec/extensions/engine-contract.md``.
"""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from odf_engines.errors import EngineError, EngineFailureError, LimitExceededError
from odf_engines.host.messages import error_to_fields
from odf_engines.host.output_checks import RowsCheck, SizeCheck
from odf_engines.host.output_rows import check_file, copy_first
from odf_engines.host.parts import Parts
from odf_protocol.events import OffsetInterval
from odf_protocol.vocabulary import Vocabulary


def main(arguments: dict[str, Any]) -> None:
    """Answer until the input ends; ``memory_bytes`` are what the limits keep."""
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line), arguments["memory_bytes"])), flush=True)


def _answer(request: dict[str, Any], memory_bytes: int) -> dict[str, Any]:
    try:
        if request["check"] == "copy":
            parts = Parts()
            copy_first(Path(request["path"]), parts, request["most"])
            parts.flush_all()
            return {"copied": True}
        found = check_file(Path(request["path"]), _check_of(request))
    except MemoryError:
        return {"error": error_to_fields(LimitExceededError("memory_bytes", allowed=memory_bytes))}
    except EngineError as error:
        return {"error": error_to_fields(error)}
    except Exception as error:  # noqa: BLE001 - whatever a hostile file makes a reader do is the file's fault
        text = f"output is not readable ({type(error).__name__}: {error})"[:400]
        return {"error": error_to_fields(EngineFailureError(text))}
    return {"hash": None if found.logical_hash is None else str(found.logical_hash), "operations": found.operations}


def _check_of(request: dict[str, Any]) -> RowsCheck | SizeCheck:
    if request["check"] == "size":
        schema = None if request["schema"] is None else _schema_of(request)
        return SizeCheck(most_decoded_bytes=request["most_decoded_bytes"], schema=schema, rows=request["rows"])
    start, end = request["interval"]
    return RowsCheck(
        schema=_schema_of(request),
        vocabulary=Vocabulary(*request["vocabulary"]),
        interval=OffsetInterval(start=start, end=end),
        system_time_ms=request["system_time_ms"],
        most_rows=request["most_rows"],
        most_decoded_bytes=request["most_decoded_bytes"],
    )


def _schema_of(request: dict[str, Any]) -> pa.Schema:
    return pa.ipc.read_schema(pa.BufferReader(base64.b64decode(request["schema"])))
