"""Who hears of what runs, as settings and the environment have it; where they say nothing, nothing is loaded.

Source: clauses OBSERVE-1, OBSERVE-3, OBSERVE-4, OBSERVE-7 and OBSERVE-10 in ``spec/observing.md``.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

from odf_engines.stage_metrics import StageMetrics
from odf_node.ports.observing import UNOBSERVED, Observer, Run, place_of
from odf_node.wording import count_of

if TYPE_CHECKING:
    from odf_node.configuration.declaration import Configuration, Lineage, Telemetry

RUNS: Final = logging.getLogger("odf_node.runs")


class RunLines:
    """See ``Observer``."""

    @contextmanager
    def observing(self, run: Run) -> Iterator[Run]:
        """See ``Observer``."""
        try:
            yield run
        except BaseException as error:
            RUNS.info("%s: failed after %.2f s (%s)", _name(run), time.monotonic() - run.began_s, type(error).__name__)
            raise
        spent_s = time.monotonic() - run.began_s
        RUNS.info("%s: %s, %.2f s", _name(run), _describe(run), spent_s)
        for each in run.stages:
            RUNS.info("  %s", _describe_stage(each))
        for name, spent in run.milliseconds.items():
            RUNS.info("  %s: %.3f s", name, spent / 1000)

    def flush(self) -> None:
        """See ``Observer``."""

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """See ``Observer``."""
        return {}


def _name(run: Run) -> str:
    what = f"{run.kind} {run.dataset.name}"
    what += "" if run.block_number is None else f", block {run.block_number}"
    what += f", with {run.peer}" if run.peer else ""
    return what + (f", by {run.engine}" if run.engine else "")


def _describe(run: Run) -> str:
    wrote = f"wrote block {run.written.block}" if run.written and run.written.block else "wrote nothing"
    parts = [wrote, f"{count_of(run.rows, 'row')} added" if run.rows else "", f"{run.bad_rows} set aside"]
    return ", ".join(parts[: 3 if run.bad_rows else 2]).removesuffix(", ")


def _describe_stage(figures: StageMetrics) -> str:
    name = f"{figures.stage} {figures.plug_in}".rstrip()
    counts = (("in", figures.rows_in), ("out", figures.rows_out), ("bad", figures.bad_rows))
    rows = ", ".join(f"{count:,} {what}" for what, count in counts if count is not None)
    return f"{name}: {figures.seconds:.3f} s{f'; rows: {rows}' if rows else ''}"


_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_API_KEY: Final = "OPENLINEAGE_API_KEY"
_LOGGER: Final = logging.getLogger("odf_node.observing")
_LOCK: Final = Lock()
_KNOWN: Final[dict[object, Observer]] = {}  # nodes of one process share threads and connections


class _Several:
    """Lets several observers hear."""

    def __init__(self, observers: list[Observer]) -> None:
        self._observers = observers

    @contextmanager
    def observing(self, run: Run) -> Iterator[Run]:
        """See ``Observer``."""
        with ExitStack() as stack:
            for each in self._observers:
                stack.enter_context(each.observing(run))
            yield run

    def flush(self) -> None:
        """See ``Observer``."""
        for each in self._observers:
            each.flush()

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """See ``Observer``."""
        sums: dict[str, dict[str, int]] = {}
        for each in self._observers:
            for what, counts in each.counts.items():
                known = sums.setdefault(what, dict.fromkeys(counts, 0))
                for result, count in counts.items():
                    known[result] += count
        return sums


def get_observer(settings: "Configuration", environment: Mapping[str, str]) -> Observer:
    """Return who hears of what runs in this process under these settings.

    What cannot be told, as an extra is not installed or an address cannot be used, is said in a line and left alone.
    """
    endpoint, lineage = _find_endpoint(settings.telemetry, environment), settings.lineage
    has_lines = logging.getLogger("odf_node.runs").isEnabledFor(logging.INFO)
    if endpoint is None and lineage.url is None and lineage.file is None and not has_lines:
        return UNOBSERVED
    with _LOCK:
        key = settings.telemetry, endpoint, lineage, has_lines
        if key not in _KNOWN:
            made: list[Observer | None] = [RunLines()] if has_lines else []
            if endpoint is not None:
                made.append(_guarded(lambda: _open_traces(settings.telemetry, endpoint), "telemetry"))
            if lineage.url is not None:
                made.append(_guarded(lambda: _open_server(lineage, environment), "lineage"))
            if lineage.file is not None:
                made.append(_guarded(lambda: _open_file(lineage), "lineage"))
            _KNOWN[key] = _Several([each for each in made if each is not None])
        return _KNOWN[key]


def _find_endpoint(settings: "Telemetry", environment: Mapping[str, str]) -> str | None:
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    return settings.endpoint or next((text for name in _ENDPOINTS if (text := environment.get(name))), None)


def _open_traces(settings: "Telemetry", endpoint: str) -> Observer:
    from odf_node.adapters.traces import Traces  # here: it needs the extra "telemetry"

    return Traces(settings.endpoint, place_of(endpoint))


def _open_server(settings: "Lineage", environment: Mapping[str, str]) -> Observer:
    from odf_node.adapters.lineage_events import PAUSES_S, LineageEvents, to_server  # here: the extra "lineage"

    assert settings.url is not None
    transport = to_server(settings.url, environment.get(_API_KEY))
    return LineageEvents(transport, place_of(settings.url), settings.namespace, pauses_s=PAUSES_S)


def _open_file(settings: "Lineage") -> Observer:
    from odf_node.adapters.lineage_events import LineageEvents, to_file  # here: it needs the extra "lineage"

    assert settings.file is not None
    return LineageEvents(to_file(settings.file), str(settings.file), settings.namespace)


def _guarded(open_observer: Callable[[], Observer], extra: str) -> Observer | None:
    """Open an observer; what is wrong with it must not stop work (OBSERVE-3)."""
    try:
        return open_observer()
    except ImportError:
        _LOGGER.warning("[%s]: nothing is sent, it needs another package: pip install 'odf-node[%s]'", extra, extra)
    except Exception as error:  # noqa: BLE001 - of a library, about settings of the environment
        _LOGGER.warning("[%s]: nothing is sent, as its settings cannot be used (%s)", extra, type(error).__name__)
    return None
