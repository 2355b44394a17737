"""The event times of a file as the reader's part in the sandbox finds them, without the sandbox."""

from pathlib import Path

from odf_engines.reading import event_times
from odf_node.ports.rows import EventTimes


def read_event_times(path: Path, column: str) -> EventTimes | None:
    """See ``event_times``."""
    found = event_times.read_event_times(path, column)
    return None if found is None else EventTimes(*found)
