"""What keeps figures of a running node and writes them for scrapers: the contract of the group ``odf_node.metrics``.

Source: clause PLUG-13 in ``spec/plug-ins.md``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

Labels = tuple[tuple[str, str], ...]
Observe = Callable[[str, float], None]
"""Counts a duration in seconds, under a value of the histogram's label; from any thread."""


class Counter(Protocol):
    """A figure that only grows, or one for each set of values of its labels."""

    def labels(self, **values: str) -> "Counter":
        """Return the counter of these values."""
        ...

    def inc(self, amount: float = 1) -> None:
        """Add to the figure; from any thread."""
        ...


class Uncounted:
    """A counter that keeps nothing."""

    def labels(self, **_values: str) -> "Uncounted":
        """See ``Counter``."""
        return self

    def inc(self, amount: float = 1) -> None:
        """See ``Counter``."""


class MetricsRegistry:
    """Figures of one node, whose names are given in full and once. This one keeps and writes nothing."""

    def add_counter(self, name: str, meaning: str, labels: tuple[str, ...]) -> Counter:  # noqa: ARG002 - for others
        """Add a counter with the names of its labels."""
        return Uncounted()

    def add_histogram(self, name: str, meaning: str, label: str, bounds: tuple[float, ...]) -> Observe:  # noqa: ARG002
        """Add a histogram with the name of its label and the upper bounds of its buckets, in seconds."""
        return lambda _value, _seconds: None

    def add_family(self, name: str, meaning: str, read: Callable[[], Mapping[Labels, float]], kind: str) -> None:
        """Add figures that are read when a scraper asks, of the kind ``gauge`` or ``counter``."""

    def render(self) -> str:
        """Write all figures; reads those of families, so it may block."""
        return ""


@dataclass(frozen=True, slots=True)
class MetricsFormat:
    """What a plug-in of the group ``odf_node.metrics`` is: it keeps figures, and writes them in a form.

    Attributes:
        media_type: Of what ``render`` writes.
        make_registry: Makes an empty registry.
    """

    media_type: str
    make_registry: Callable[[], MetricsRegistry]


UNCOUNTED: Final = MetricsFormat("text/plain", MetricsRegistry)
