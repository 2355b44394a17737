"""Messages of brokers that wait in the home: which folder is a dataset's, and what is left of datasets that are gone.

Source: clause ING-33 in ``spec/ingest.md``.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from odf_protocol.did import DatasetId


def name_session(dataset_id: DatasetId) -> str:
    """Name a dataset to brokers, in the 23 letters and digits that all of them take (MQTT 3.1.1 section 3.1.3.1)."""
    return f"odf{hashlib.sha3_256(str(dataset_id).encode()).hexdigest()[:20]}"


def sweep_messages(messages: Path, list_ids: Callable[[], Iterable[DatasetId]]) -> None:
    """Remove what waits for datasets that are gone.

    Args:
        messages: Has a folder for each session.
        list_ids: Gives the datasets that there are; asked after the folders, as new ones come first.
    """
    found = [*messages.glob("odf*")] if messages.is_dir() else []
    if not found:
        return
    kept = {name_session(each) for each in list_ids()}
    for folder in found:
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)
