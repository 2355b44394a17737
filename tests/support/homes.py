"""Homes for use cases that a test makes by itself."""

from pathlib import Path

from odf_node.adapters.clocks import FixedClock
from odf_node.adapters.key_files import KeyFiles
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.home import Home
from odf_node.home_folder import HomeFolder
from odf_node.store import MetadataStore
from odf_node.store.audit_trail import AuditTrail
from support.open_stores import open_store
from support.signing import NOON


def make_home(folder: HomeFolder | Path, store: MetadataStore | None = None) -> Home:
    """Give a home in a folder, whose clock stands at noon.

    Args:
        folder: Where it is.
        store: Its store where the test has opened it; otherwise one is opened, and closed behind the test.
    """
    place = folder if isinstance(folder, HomeFolder) else HomeFolder(folder)
    opened = open_store(place) if store is None else store
    clock = FixedClock(NOON)
    return Home(place, opened, ObjectFolder(place), KeyFiles(place), clock, AuditTrail(opened, clock))
