"""Looking at the beginning of a file, inside the sandbox.

``process`` says what requests and answers are.

Source: clause ING-24 in ``spec/plug-ins/drafts.md``.
"""

import importlib
import json
from itertools import islice
from typing import Any, Final

from odf_engines.confined.service import Request, Result, Service
from odf_engines.readers.contract import BrokenFileError, BrokenRecordError

_LONGEST_REASON: Final = 300


def main(_arguments: dict[str, Any]) -> None:
    """Answer until the input ends."""
    Service().serve({"look": _look}, _explain)


def _explain(error: Exception) -> str:
    """Say what is wrong with the file: whatever a hostile one makes a reader do is its fault."""
    if isinstance(error, MemoryError):
        return "it takes more memory than is allowed here"
    return (str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}")[:1000]


def _look(asked: Request) -> Result:
    request = asked.arguments
    with open("/sample/file", "rb") as file:  # noqa: PTH123 - a name inside the sandbox
        plan = getattr(importlib.import_module(request["module"]), request["attribute"])(file)
        file.seek(0)
        records: list[Any] = []
        size, broken, reason, is_whole = 0, 0, "", request["is_whole"]
        found = plan.iter_texts(file)
        try:
            for record in islice(found, request["max_records"] + 1):
                if isinstance(record, BrokenRecordError):
                    broken, reason = broken + 1, reason or str(record)[:_LONGEST_REASON]
                    continue
                size += len(json.dumps(record))
                if size > request["max_bytes"] or len(records) == request["max_records"]:
                    is_whole = False
                    break
                records.append(record)
        except BrokenFileError:
            # Of a file that is cut off the end is missing.
            if request["is_whole"] or not records:
                raise
    found_table = {
        "names": plan.names,
        "types": plan.types,
        "parameters": plan.parameters,
        "doubts": plan.doubts,
        "records": records,
        "is_whole": is_whole,
        "broken": broken,
        "reason": reason,
    }
    return found_table, b""
