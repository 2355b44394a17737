"""Addresses that nobody but a peer named, told from those that the operator typed by how they are written.

Source: clause GOSSIP-57 in ``spec/extensions/gossip.md``.
"""

from typing import Final

_MARK: Final = "heard+"


def as_heard(url: str) -> str:
    """Mark an address as hearsay, so that whoever uses it later knows."""
    return url if is_heard(url) else _MARK + url


def is_heard(url: str) -> bool:
    """Say whether an address is hearsay."""
    return url.startswith(_MARK)


def without_mark(url: str) -> str:
    """Return the address itself."""
    return url.removeprefix(_MARK)
