"""The program inside the sandbox: reads, converts and merges records with Arrow and DataFusion.

Source: clauses ENGINE-3 to ENGINE-6 and ENGINE-24 in ``spec/extensions/engine-contract.md``.
"""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from odf_engines.arrow.sorting import DiskOrder
from odf_engines.confined.service import Service
from odf_engines.errors import EngineFailureError
from odf_engines.host.worker import serve
from odf_engines.ingest.appending import convert_source, ingest_source
from odf_engines.ingest.result import Folders, answer_of, name_samples
from odf_engines.merging.merge import merge_records


def main(arguments: dict[str, Any]) -> None:
    """Serve until the input ends; ``memory_bytes`` are those of the session."""
    memory_bytes = arguments["memory_bytes"]
    serve(Service(), partial(_run, memory_bytes=memory_bytes), memory_bytes)


def _run(operation: str, request: Any, folder: Path, *, memory_bytes: int) -> dict[str, object]:
    if operation not in {"convert", "ingest"}:
        raise EngineFailureError(f"not offered: {operation}")
    scratch = folder / "work"
    scratch.mkdir()
    folders = Folders(scratch, folder)
    try:
        if operation == "convert":
            answer = convert_source(request, folders)
        else:
            merge = partial(merge_records, order=DiskOrder(scratch, memory_bytes), scratch=scratch)
            answer = answer_of(request, ingest_source(request, folders, merge), folders.clock)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return {**answer, **name_samples(folders)}
