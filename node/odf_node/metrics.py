"""Figures about a running node, kept and written by a plug-in of the group ``odf_node.metrics``.

Three kinds of figures: counters that only grow, histograms of seconds, and gauges that are read when somebody asks.
Labels come from small fixed sets (routes, statuses, reasons) and from names that the operator gave, never from what a
stranger sends: the number of series is bounded.

Source: clauses DAEMON-9 in ``spec/daemon.md`` and PLUG-13 in ``spec/plug-ins.md``.
"""

from collections.abc import Callable, Mapping
from typing import Final

from odf_node.plug_ins import load_plug_ins
from odf_node.ports.metrics import UNCOUNTED, Counter, Labels, MetricsFormat

GROUP: Final = "odf_node.metrics"
SECONDS: Final = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Upper bounds of buckets.  # guess: from an answer out of memory to the transfer of a large slice"""


class Metrics:
    """All figures of one node; names begin with ``odf_node_``. Without a plug-in for them nothing is kept."""

    def __init__(self) -> None:
        found = load_plug_ins(GROUP, MetricsFormat)
        chosen = next(iter(found.values()), UNCOUNTED)  # of several, the first by name
        self.media_type = chosen.media_type
        self._registry = chosen.make_registry()
        self.requests = self.add_counter(
            "http_requests_total", "Requests answered, by route and status.", "route", "method", "status"
        )
        self.note_request_seconds = self._registry.add_histogram(
            "odf_node_http_request_seconds",
            "From the request to the last byte of its answer.",
            "route",
            SECONDS,
        )
        self.sent_bytes = self.add_counter("http_sent_bytes_total", "Bytes of bodies that were sent.")
        self.turned_away = self.add_counter(
            "http_turned_away_total", "Requests and connections rejected for a limit, by reason.", "reason"
        )
        self.pushes = self.add_counter("pushes_total", "Pushes that were judged, by outcome.", "outcome")
        self.notices = self.add_counter("notices_total", "Notices of new blocks, by result.", "result")
        self.faults = self.add_counter("faults_total", "Requests that failed for no known reason.")

    def add_gauge(self, name: str, meaning: str, read: Callable[[], float | None]) -> None:
        """Add a figure that is read when somebody asks, in a thread; None: there is none now."""

        def read_values() -> dict[Labels, float]:
            value = read()
            return {} if value is None else {(): value}

        self.add_family(name, meaning, read_values)

    def add_family(
        self, name: str, meaning: str, read: Callable[[], Mapping[Labels, float]], *, kind: str = "gauge"
    ) -> None:
        """Add a figure for each of a few things, read like a gauge; of the kind ``counter`` where it only grows."""
        self._registry.add_family(f"odf_node_{name}", meaning, read, kind)

    def add_counter(self, name: str, meaning: str, *labels: str) -> Counter:
        """Add a figure that only grows, one for each combination of values of the labels."""
        return self._registry.add_counter(f"odf_node_{name}", meaning, labels)

    def render(self) -> str:
        """Write everything; reads the gauges, so it may block."""
        return self._registry.render()
