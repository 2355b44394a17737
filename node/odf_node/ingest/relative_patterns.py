"""Patterns of files that a manifest names from its own folder (ING-55)."""

import glob
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from odf_protocol.events import Event, FetchStepFilesGlob, SetPollingSource
from odf_protocol.manifest import DatasetSnapshot

_HAS_PLACE: Final = re.compile(r"/|~|\$\{\{|[A-Za-z][A-Za-z0-9+.-]*:")


def place_files(snapshot: DatasetSnapshot, *, folder: Path | None) -> DatasetSnapshot:
    """Make relative patterns of files absolute.

    Args:
        snapshot: As the manifest says it.
        folder: That of the manifest, absolute; None where it came by no file: patterns then stay as they are.
    """
    if folder is None:
        return snapshot
    metadata = tuple(_placed(event, folder) for event in snapshot.metadata)
    return snapshot if metadata == snapshot.metadata else replace(snapshot, metadata=metadata)


def list_patterns(snapshot: DatasetSnapshot) -> list[str]:
    """List the patterns of files that a manifest names."""
    return [step.path for event in snapshot.metadata if (step := _glob_of(event)) is not None]


def _glob_of(event: Event) -> FetchStepFilesGlob | None:
    if isinstance(event, SetPollingSource) and isinstance(event.fetch, FetchStepFilesGlob):
        return event.fetch
    return None


def _placed(event: Event, folder: Path) -> Event:
    step = _glob_of(event)
    if step is None or _HAS_PLACE.match(step.path):
        return event
    assert isinstance(event, SetPollingSource)
    # Whatever the folder is called, only what the manifest says is a pattern.
    pattern = os.path.normpath(f"{glob.escape(str(folder))}/{step.path}")
    return replace(event, fetch=replace(step, path=pattern))
