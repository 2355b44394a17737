"""Figures of a node in Prometheus' text form, by Prometheus' own library.

Source: clause DAEMON-8 in ``spec/daemon.md``; "Exposition formats", text version 0.0.4, in the documentation of
Prometheus.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from odf_node.ports.metrics import Counter, Labels, MetricsFormat, MetricsRegistry, Observe

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


class PrometheusRegistry(MetricsRegistry):
    """See ``MetricsRegistry``."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()

    def add_counter(self, name: str, meaning: str, labels: tuple[str, ...]) -> Counter:
        """See ``MetricsRegistry``."""
        return prometheus_client.Counter(name, meaning, labels, registry=self._registry)

    def add_histogram(self, name: str, meaning: str, label: str, bounds: tuple[float, ...]) -> Observe:
        """See ``MetricsRegistry``."""
        kept = prometheus_client.Histogram(name, meaning, (label,), registry=self._registry, buckets=bounds)
        return lambda value, seconds: kept.labels(value).observe(seconds)

    def add_family(self, name: str, meaning: str, read: Callable[[], Mapping[Labels, float]], kind: str) -> None:
        """See ``MetricsRegistry``."""
        self._registry.register(GaugeFamily(name, meaning, read, kind))

    def render(self) -> str:
        """See ``MetricsRegistry``."""
        return generate_latest(self._registry).decode()


FORMAT: Final = MetricsFormat(CONTENT_TYPE_PLAIN_0_0_4, PrometheusRegistry)
"""Found by its entry point in the group ``odf_node.metrics``."""
