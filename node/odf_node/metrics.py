"""Figures about a running node, in Prometheus' text form.

Three kinds of figures: counters that only grow, histograms of seconds, and gauges that are read when somebody asks.
Labels come from small fixed sets (routes, statuses, reasons) and from names that the operator gave, never from what a
stranger sends: the number of series is bounded.

Source: "Exposition formats", text version 0.0.4, of the Prometheus documentation.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from threading import Lock
from typing import Final, TypeVar

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SECONDS: Final = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Upper bounds of buckets.  # guess: from an answer out of memory to the transfer of a large slice"""

Labels = tuple[tuple[str, str], ...]


class Counter:
    """A sum for each combination of labels; may be added to from any thread."""

    def __init__(self, name: str, meaning: str) -> None:
        self.name = name
        self.meaning = meaning
        self._lock = Lock()
        self._values: dict[Labels, float] = {}

    def add(self, amount: float = 1, **labels: str) -> None:
        """Add to one of the sums."""
        key = tuple(labels.items())
        with self._lock:
            self._values[key] = self._values.get(key, 0) + amount

    def get(self, **labels: str) -> float:
        """Return one of the sums; 0 where nothing was added."""
        return self._values.get(tuple(labels.items()), 0)

    def iter_lines(self) -> Iterator[str]:
        """Yield the exposition."""
        yield from _header(self.name, self.meaning, "counter")
        with self._lock:
            values = dict(self._values)
        for labels, value in values.items():
            yield f"{self.name}{_braces(labels)} {value:.15g}"


class Histogram:
    """How many took how long, for each combination of labels."""

    def __init__(self, name: str, meaning: str) -> None:
        self.name = name
        self.meaning = meaning
        self._lock = Lock()
        self._series: dict[Labels, tuple[list[int], float]] = {}

    def observe(self, seconds: float, **labels: str) -> None:
        """Count one."""
        key = tuple(labels.items())
        with self._lock:
            counts, total = self._series.get(key, ([0] * (len(SECONDS) + 1), 0.0))
            counts[bisect_left(SECONDS, seconds)] += 1
            self._series[key] = (counts, total + seconds)

    def iter_lines(self) -> Iterator[str]:
        """Yield the exposition."""
        yield from _header(self.name, self.meaning, "histogram")
        with self._lock:
            series = {labels: (list(counts), total) for labels, (counts, total) in self._series.items()}
        for labels, (counts, total) in series.items():
            for bound, count in zip([*map(str, SECONDS), "+Inf"], accumulate(counts), strict=True):
                yield f"{self.name}_bucket{_braces((*labels, ('le', bound)))} {count}"
            yield f"{self.name}_sum{_braces(labels)} {total:.15g}"
            yield f"{self.name}_count{_braces(labels)} {sum(counts)}"


class Gauge:
    """One figure, read when somebody asks."""

    def __init__(self, name: str, meaning: str, read: Callable[[], float | None]) -> None:
        self.name = name
        self.meaning = meaning
        self._read = read

    def iter_lines(self) -> Iterator[str]:
        """Yield the exposition; nothing where there is no figure."""
        value = self._read()
        if value is not None:
            yield from _header(self.name, self.meaning, "gauge")
            yield f"{self.name} {value:.15g}"


class GaugeFamily:
    """One figure for each of a few things, read when somebody asks."""

    def __init__(
        self, name: str, meaning: str, read: Callable[[], Mapping[Labels, float]], kind: str = "gauge"
    ) -> None:
        self.name = name
        self.meaning = meaning
        self._read = read
        self._kind = kind

    def iter_lines(self) -> Iterator[str]:
        """Yield the exposition; nothing where there are no figures."""
        values = self._read()
        if values:
            yield from _header(self.name, self.meaning, self._kind)
        for labels, value in values.items():
            yield f"{self.name}{_braces(labels)} {value:.15g}"


_Figure = TypeVar("_Figure", Counter, Histogram, Gauge, GaugeFamily)


class Metrics:
    """All figures of one node; names begin with ``odf_node_``."""

    def __init__(self) -> None:
        self._all: list[Counter | Histogram | Gauge | GaugeFamily] = []
        self.requests = self._add(Counter("odf_node_http_requests_total", "Requests answered, by route and status."))
        self.request_seconds = self._add(
            Histogram("odf_node_http_request_seconds", "From the request to the last byte of its answer.")
        )
        self.sent_bytes = self._add(Counter("odf_node_http_sent_bytes_total", "Bytes of bodies that were sent."))
        self.turned_away = self._add(
            Counter("odf_node_http_turned_away_total", "Requests and connections refused for a limit, by reason.")
        )
        self.pushes = self._add(Counter("odf_node_pushes_total", "Pushes that were judged, by outcome."))
        self.scheduled_pulls = self._add(
            Counter("odf_node_scheduled_pulls_total", "Pulls by schedules that ended, by result.")
        )
        self.notices = self._add(Counter("odf_node_notices_total", "Notices of new blocks, by result."))
        self.sinks = self._add(Counter("odf_node_sinks_total", "Entries of quarantine given to sinks, by result."))
        self.faults = self._add(Counter("odf_node_faults_total", "Requests that failed for no known reason."))

    def add_gauge(self, name: str, meaning: str, read: Callable[[], float | None]) -> None:
        """Add a figure that is read when somebody asks, in a thread; None: there is none now."""
        self._add(Gauge(f"odf_node_{name}", meaning, read))

    def add_family(
        self, name: str, meaning: str, read: Callable[[], Mapping[Labels, float]], *, kind: str = "gauge"
    ) -> None:
        """Add a figure for each of a few things, read like a gauge; of the kind ``counter`` where it only grows."""
        self._add(GaugeFamily(f"odf_node_{name}", meaning, read, kind))

    def render(self) -> str:
        """Write everything; reads the gauges, so it may block."""
        return "".join(f"{line}\n" for figure in self._all for line in figure.iter_lines())

    def _add(self, figure: _Figure) -> _Figure:
        self._all.append(figure)
        return figure


def _header(name: str, meaning: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in labels) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
