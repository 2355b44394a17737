"""Databases that tests open, and that nobody would close: each is closed behind the test that opened it."""

from collections.abc import Iterator
from contextlib import contextmanager

from odf_node.adapters.sqlite_store import SqliteMetadataStore
from odf_node.home import Home

_OPEN: list[SqliteMetadataStore] = []


def open_store(home: Home) -> SqliteMetadataStore:
    """Open the database of a home; see ``closing_stores``."""
    store = SqliteMetadataStore(home)
    _OPEN.append(store)
    return store


@contextmanager
def closing_stores() -> Iterator[None]:
    """Close what is opened meanwhile; stores from before, as of a fixture of a wider scope, stay open."""
    before = len(_OPEN)
    try:
        yield
    finally:
        while len(_OPEN) > before:
            _OPEN.pop().close()
