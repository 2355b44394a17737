"""Who hears how far long work is."""

from typing import Protocol


class ProgressLine(Protocol):
    """Where long work says how far it is."""

    def say(self, label: str) -> None:
        """Say what is going on."""
        ...

    def expect(self, total_bytes: int) -> None:
        """Say how much there will be."""
        ...

    def advance(self, size_bytes: int) -> None:
        """Say how much more has come."""
        ...


class Silence:
    """A progress line that nobody watches."""

    def say(self, label: str) -> None:
        """Say nothing."""

    def expect(self, total_bytes: int) -> None:
        """Say nothing."""

    def advance(self, size_bytes: int) -> None:
        """Say nothing."""
