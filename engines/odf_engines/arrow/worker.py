"""The program inside the sandbox: reads, converts and merges records with Arrow and DataFusion.

Source: clauses ENGINE-3 to ENGINE-6 and ENGINE-24 in ``spec/extensions/engine-contract.md``.
"""

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any


def main(arguments: dict[str, Any]) -> None:
    """Serve until the input ends.

    Args:
        arguments: ``limits`` for the kernel and ``memory_bytes`` of the session.
    """
    from odf_engines.sandbox.resources import set_kernel_limits

    set_kernel_limits(arguments["limits"])
    import odf_engines.arrow.merging  # noqa: F401 - now, and not with the first request
    from odf_engines.host.worker import serve, take_answers

    memory_bytes = arguments["memory_bytes"]
    serve(take_answers(), partial(_run, memory_bytes=memory_bytes), memory_bytes)


def _run(operation: str, request: Any, folder: Path, *, memory_bytes: int) -> dict[str, object]:
    from odf_engines.arrow.merging import merge_records
    from odf_engines.errors import EngineFailureError, UnsuitableSourceError
    from odf_engines.ingest.appending import append_source, convert_source, has_sql
    from odf_engines.ingest.result import Folders, answer_of, name_samples

    if operation not in {"convert", "ingest"}:
        raise EngineFailureError(f"not offered: {operation}")
    if operation == "ingest" and has_sql(request):
        raise UnsuitableSourceError(request.source_name)
    scratch = folder / "work"
    scratch.mkdir()
    folders = Folders(scratch, folder)
    try:
        if operation == "convert":
            answer = convert_source(request, folders)
        else:
            merge = partial(merge_records, scratch=scratch, memory_bytes=memory_bytes)
            ingested = append_source(request, folders, merge)
            answer = None if ingested is None else answer_of(request, ingested, folders.clock)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if answer is None:
        raise UnsuitableSourceError(request.source_name)
    return {**answer, **name_samples(folders)}


if __name__ == "__main__":
    # Started with -I -S: nothing of the machine's Python configuration counts, so the path is set here.
    sys.path[:0] = ["/runtime/ours", "/runtime/site", "/runtime/plug-ins"]
    main(json.loads(sys.argv[1]))
