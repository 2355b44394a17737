"""Databases that tests open, and that nobody would close: each is closed behind the test that opened it."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from odf_node.home_folder import HomeFolder
from odf_node.store import MetadataStore

_OPEN: list[ExitStack] = []


def open_store(home: HomeFolder) -> MetadataStore:
    """Open the database of a home; see ``closing_stores``."""
    opened = ExitStack()
    _OPEN.append(opened)
    return opened.enter_context(closing(MetadataStore(home)))


def open_new_store() -> MetadataStore:
    """Open the database of a new home, whose folder is removed when it is closed."""
    opened = ExitStack()
    _OPEN.append(opened)
    folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
    return opened.enter_context(closing(MetadataStore(HomeFolder(folder / "home"))))


@contextmanager
def closing_stores() -> Iterator[None]:
    """Close what is opened meanwhile; stores from before, as of a fixture of a wider scope, stay open."""
    before = len(_OPEN)
    try:
        yield
    finally:
        while len(_OPEN) > before:
            _OPEN.pop().close()
