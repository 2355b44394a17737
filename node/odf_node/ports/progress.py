"""Who hears how far long work is."""

from dataclasses import dataclass
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class Count:
    """How much of a long step is done.

    Attributes:
        done: So far.
        total: Of how much; None: nobody knows yet.
        unit: What is counted, in the plural: ``rows``, ``blocks``.
    """

    done: int
    total: int | None
    unit: str


class OnProgress(Protocol):
    """Hears what is going on and, where it can be counted, how much of it is done."""

    def __call__(self, text: str, count: Count | None = None, /) -> None:
        """Hear it, from whichever thread."""
        ...


class ProgressLine(Protocol):
    """Where long work says how far it is."""

    def on_progress(self, label: str, count: Count | None = None, /) -> None:
        """Say what is going on, and how much of it is done where that is counted in something else than bytes."""
        ...

    def expect(self, total_bytes: int) -> None:
        """Say how much there will be."""
        ...

    def advance(self, size_bytes: int) -> None:
        """Say how much more has come."""
        ...


class Silence:
    """A progress line that nobody watches."""

    def on_progress(self, label: str, count: Count | None = None, /) -> None:
        """Say nothing."""

    def expect(self, total_bytes: int) -> None:
        """Say nothing."""

    def advance(self, size_bytes: int) -> None:
        """Say nothing."""


NO_PROGRESS: Final[OnProgress] = Silence().on_progress
"""Says it to nobody."""


def report_under(name: str, on_progress: OnProgress) -> OnProgress:
    """Return what says everything with the name of what it is about before it."""
    return lambda text, count=None: on_progress(f"{name}: {text}", count)
