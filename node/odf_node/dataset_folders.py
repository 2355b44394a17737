"""Folders of the home that a dataset has for itself: what they are called, and what is left of datasets that are gone.

Both names follow from the identity, so another name of a dataset changes nothing.

Source: clauses ING-33 in ``spec/ingest.md`` and SINK-2 in ``spec/quarantine.md``.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterable

from odf_node.home import Home
from odf_node.sink_notes import forget_notes
from odf_protocol.did import DatasetId


def name_session(dataset_id: DatasetId) -> str:
    """Name a dataset to brokers, in the 23 letters and digits that all of them take (MQTT 3.1.1 section 3.1.3.1)."""
    return f"odf{hashlib.sha3_256(str(dataset_id).encode()).hexdigest()[:20]}"


def name_sinks(dataset_id: DatasetId) -> str:
    """Name the folder of what a dataset's sinks write: its identity without ``did:odf:``."""
    return str(dataset_id).rpartition(":")[2]


def sweep_dataset_folders(home: Home, list_ids: Callable[[], Iterable[DatasetId]]) -> None:
    """Remove messages that wait for datasets that are gone, what their sinks wrote, and what was noted of these.

    Args:
        home: Has the folders.
        list_ids: Gives the datasets that there are; asked after the folders, as new ones come first.
    """
    forget_notes(home.cache, lambda: {str(each) for each in list_ids()})
    found = [*home.messages.glob("odf*"), *home.sinks.glob("fed01*")]
    if not found:
        return
    kept = {name(each) for each in list_ids() for name in (name_session, name_sinks)}
    for folder in found:
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)
