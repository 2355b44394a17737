"""Which observers settings and the environment ask for; the libraries of each are loaded where it is opened.

Source: clauses OBSERVE-4 and OBSERVE-7 in ``spec/plug-ins/observe.md``.
"""

from collections.abc import Hashable, Mapping
from typing import Final

from odf_node.adapters.observing import ObserverKind
from odf_node.configuration.declaration import Configuration
from odf_node.ports.observing import Observer, place_of

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_API_KEY: Final = "OPENLINEAGE_API_KEY"


def _find_endpoint(settings: Configuration, environment: Mapping[str, str]) -> str | None:
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    variables = (text for name in _ENDPOINTS if (text := environment.get(name)))
    return settings.telemetry.endpoint or next(variables, None)


def _find_collector(settings: Configuration, environment: Mapping[str, str]) -> Hashable | None:
    endpoint = _find_endpoint(settings, environment)
    return None if endpoint is None else (settings.telemetry, endpoint)


def _open_traces(settings: Configuration, environment: Mapping[str, str]) -> Observer:
    from odf_observe.traces import Traces  # here: it needs the extra "telemetry"

    return Traces(settings.telemetry.endpoint, place_of(_find_endpoint(settings, environment) or ""))


def _find_server(settings: Configuration, _environment: Mapping[str, str]) -> Hashable | None:
    return None if settings.lineage.url is None else settings.lineage


def _open_server(settings: Configuration, environment: Mapping[str, str]) -> Observer:
    from odf_observe.lineage_events import PAUSES_S, LineageEvents, to_server  # here: the extra "lineage"

    lineage = settings.lineage
    assert lineage.url is not None
    transport = to_server(lineage.url, environment.get(_API_KEY))
    return LineageEvents(transport, place_of(lineage.url), lineage.namespace, pauses_s=PAUSES_S)


def _find_file(settings: Configuration, _environment: Mapping[str, str]) -> Hashable | None:
    return None if settings.lineage.file is None else settings.lineage


def _open_file(settings: Configuration, _environment: Mapping[str, str]) -> Observer:
    from odf_observe.lineage_events import LineageEvents, to_file  # here: it needs the extra "lineage"

    lineage = settings.lineage
    assert lineage.file is not None
    return LineageEvents(to_file(lineage.file), str(lineage.file), lineage.namespace)


TELEMETRY: Final = ObserverKind("telemetry", _find_collector, _open_traces, "telemetry")
LINEAGE_SERVER: Final = ObserverKind("lineage", _find_server, _open_server, "lineage")
LINEAGE_FILE: Final = ObserverKind("lineage", _find_file, _open_file, "lineage")
