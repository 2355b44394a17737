"""Figures about a running node, in Prometheus' text form.

Three kinds of figures: counters that only grow, histograms of seconds, and gauges that are read when somebody asks.
Labels come from small fixed sets (routes, statuses, reasons) and from names that the operator gave, never from what a
stranger sends: the number of series is bounded.

Source: "Exposition formats", text version 0.0.4, of the Prometheus documentation.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

MEDIA_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
SECONDS: Final = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Upper bounds of buckets.  # guess: from an answer out of memory to the transfer of a large slice"""

Labels = tuple[tuple[str, str], ...]

# A second series for each counter would tell the time of its first addition.
disable_created_metrics()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class GaugeFamily(Collector):
    """One figure for each of a few things, read when somebody asks."""

    name: str
    meaning: str
    read: Callable[[], Mapping[Labels, float]]
    kind: str

    def collect(self) -> Iterator[Metric]:
        """Yield the figures; nothing where there are none."""
        values = self.read()
        if not values:
            return
        family: Metric = (CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily)(self.name, self.meaning)
        for labels, value in values.items():
            family.add_sample(self.name, dict(labels), value)
        yield family


class Metrics:
    """All figures of one node; names begin with ``odf_node_``."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = self.add_counter(
            "http_requests_total", "Requests answered, by route and status.", "route", "method", "status"
        )
        self.request_seconds = Histogram(
            "odf_node_http_request_seconds",
            "From the request to the last byte of its answer.",
            ("route",),
            registry=self._registry,
            buckets=SECONDS,
        )
        self.sent_bytes = self.add_counter("http_sent_bytes_total", "Bytes of bodies that were sent.")
        self.turned_away = self.add_counter(
            "http_turned_away_total", "Requests and connections rejected for a limit, by reason.", "reason"
        )
        self.pushes = self.add_counter("pushes_total", "Pushes that were judged, by outcome.", "outcome")
        self.notices = self.add_counter("notices_total", "Notices of new blocks, by result.", "result")
        self.sinks = self.add_counter("sinks_total", "Entries of quarantine given to sinks, by result.", "result")
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
        self._registry.register(GaugeFamily(f"odf_node_{name}", meaning, read, kind))

    def render(self) -> str:
        """Write everything; reads the gauges, so it may block."""
        return generate_latest(self._registry).decode()

    def add_counter(self, name: str, meaning: str, *labels: str) -> Counter:
        """Add a figure that only grows, one for each combination of values of the labels."""
        return Counter(f"odf_node_{name}", meaning, labels, registry=self._registry)
