"""Who hears of what runs, as settings and the environment have it; where they say nothing, nothing is loaded.

Source: clauses OBSERVE-1 and OBSERVE-4 in ``spec/observing.md``.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

from odf_node.ports.observing import UNOBSERVED, Observer, Run, place_of

if TYPE_CHECKING:
    from odf_node.configuration.declaration import Configuration, Telemetry

__all__ = ["get_observer"]

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
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
        return {what: counts for each in self._observers for what, counts in each.counts.items()}


def get_observer(settings: "Configuration", environment: Mapping[str, str]) -> Observer:
    """Return who hears of what runs in this process under these settings.

    What cannot be told, as an extra is not installed or an address cannot be used, is said in a line and left alone.
    """
    endpoint = _find_endpoint(settings.telemetry, environment)
    if endpoint is None:
        return UNOBSERVED
    with _LOCK:
        key = (settings.telemetry, endpoint)
        if key not in _KNOWN:
            made = [each for each in (_open_traces(settings.telemetry, endpoint),) if each is not None]
            _KNOWN[key] = made[0] if len(made) == 1 else _Several(made)
        return _KNOWN[key]


def _find_endpoint(settings: "Telemetry", environment: Mapping[str, str]) -> str | None:
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    named = settings.endpoint or next((text for name in _ENDPOINTS if (text := environment.get(name))), None)
    return named or None


def _open_traces(settings: "Telemetry", endpoint: str) -> Observer | None:
    try:
        from odf_node.adapters.traces import Traces

        return Traces(settings.endpoint, place_of(endpoint))
    except ImportError:
        _LOGGER.warning("no traces are sent: they need another package: pip install 'odf-node[telemetry]'")
    except Exception as error:  # noqa: BLE001 - what is wrong with the environment's settings must not stop work
        _LOGGER.warning("no traces are sent to %s: %s", place_of(endpoint), type(error).__name__)
    return None
