"""Telling a receiver of new blocks (NOTICE)."""

from enum import StrEnum
from typing import Protocol


class Told(StrEnum):
    """How it went to tell."""

    DONE = "done"
    REFUSED = "refused"
    """The receiver will not have it; telling again would not help."""
    UNAVAILABLE = "unavailable"
    DROPPED = "dropped"
    """It was unavailable too often."""


class NoticeSending(Protocol):
    """Tells receivers."""

    async def send(self, url: str, body: bytes) -> tuple[Told, str]:
        """Tell one receiver.

        Args:
            url: Of the receiver, as the settings have it.
            body: JSON.

        Returns:
            How it went, and why in a few words without the address.
        """
        ...
