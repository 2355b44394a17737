"""Runs as spans of OpenTelemetry, sent by OTLP over HTTP.

A run is a span, with a child for each stage, which has one for each plug-in. Attributes have names of OpenTelemetry's
semantic conventions where there are some, and begin with ``odf.`` elsewhere. None holds a value of a row, an error's
text, or an address with more than scheme, host and port.

Source: clauses OBSERVE-4 to OBSERVE-6 in ``spec/plug-ins/observe.md``.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.semconv.attributes.server_attributes import SERVER_ADDRESS, SERVER_PORT
from opentelemetry.semconv.attributes.service_attributes import SERVICE_NAME, SERVICE_VERSION

from odf_engines.stage_metrics import StageMetrics
from odf_node import __version__
from odf_node.ports.observing import Run, RunKind
from odf_observe.outbox import Outbox
from odf_observe.unread_answers import UnreadAnswers

_PATH: Final = "v1/traces"  # Source: OTLP specification 1.5, "OTLP/HTTP Request"
_CLIENTS: Final = frozenset({RunKind.PULL, RunKind.PUSH})

# What it says of a collector that is away is said once a minute, in a line (OBSERVE-3), and not with each try.
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())


class _ToOutbox(SpanProcessor):
    def __init__(self, outbox: Outbox[ReadableSpan]) -> None:
        self._outbox = outbox

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self._outbox.put(span)


class Traces:
    """See ``Observer``.

    Args:
        endpoint: As ``OTEL_EXPORTER_OTLP_ENDPOINT``; None: what the environment says.
        where: The same for messages, without anything secret.
    """

    def __init__(self, endpoint: str | None, where: str) -> None:
        place = None if endpoint is None else f"{endpoint.rstrip('/')}/{_PATH}"
        exporter = OTLPSpanExporter(endpoint=place, session=UnreadAnswers())

        def send(spans: Sequence[ReadableSpan]) -> str | None:
            return None if exporter.export(spans) is SpanExportResult.SUCCESS else "it did not take them"

        self._outbox = Outbox("spans", where, send)
        # What the environment says of the service, in OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES, comes first.
        resource = Resource.create({SERVICE_VERSION: __version__})
        if str(resource.attributes.get(SERVICE_NAME)).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: "odf-node"}))
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(_ToOutbox(self._outbox))
        self._tracer = provider.get_tracer("odf_node", __version__)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """See ``Observer``."""
        return {"spans": dict(self._outbox.counts)}

    def flush(self) -> None:
        """See ``Observer``."""
        self._outbox.flush()

    @contextmanager
    def observing(self, run: Run) -> Iterator[Run]:
        """See ``Observer``."""
        kind = trace.SpanKind.CLIENT if run.kind in _CLIENTS else trace.SpanKind.INTERNAL
        span = self._tracer.start_span(run.kind.value, kind=kind, attributes=_describe(run), start_time=time.time_ns())
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            try:
                yield run
            except BaseException as error:
                # No text of it: it may quote a row, or a source's address.
                span.set_attribute(ERROR_TYPE, type(error).__name__)
                span.set_status(trace.StatusCode.ERROR)
                raise
            finally:
                span.set_attributes(_describe(run))
                self._add_stages(span, run.stages)
                span.end()

    def _add_stages(self, span: trace.Span, stages: Sequence[StageMetrics]) -> None:
        epoch_ns = time.time_ns() - time.monotonic_ns()
        wholes = {each.stage: each for each in stages if not each.plug_in}
        parents: dict[str, trace.Span] = {}
        for each in sorted(stages, key=lambda item: (bool(item.plug_in), item.began_s)):
            parent = parents.get(each.stage, span)
            made = self._tracer.start_span(
                f"{each.stage} {each.plug_in}".rstrip(),
                context=trace.set_span_in_context(parent),
                attributes=_describe_stage(each),
                start_time=epoch_ns + round(each.began_s * 1e9),
            )
            if not each.plug_in:
                parents[each.stage] = made
            else:
                made.end(epoch_ns + round(each.ended_s * 1e9))
        for stage, made in parents.items():
            made.end(epoch_ns + round(wholes[stage].ended_s * 1e9))


def _describe(run: Run) -> Mapping[str, str | int | float]:
    found: dict[str, str | int | float | None] = {
        "odf.dataset.id": run.dataset.dataset_id,
        "odf.dataset.name": run.dataset.name,
        "odf.dataset.block": run.written.block if run.written else None,
        "odf.engine": run.engine or None,
        "odf.rows.added": run.rows,
        "odf.rows.bad": run.bad_rows,
        "odf.block.number": run.block_number,
        **{f"odf.step.{name}_ms": spent for name, spent in run.milliseconds.items()},
    }
    if run.peer:
        place = urlsplit(run.peer)
        found |= {SERVER_ADDRESS: place.hostname, SERVER_PORT: place.port}
    return {name: value for name, value in found.items() if value is not None}


def _describe_stage(figures: StageMetrics) -> Mapping[str, str | int | float]:
    found = {
        "odf.stage": figures.stage,
        "odf.plug_in": figures.plug_in or None,
        "odf.seconds": figures.seconds,
        "odf.rows.in": figures.rows_in,
        "odf.rows.out": figures.rows_out,
        "odf.rows.bad": figures.bad_rows,
    }
    return {name: value for name, value in found.items() if value is not None}
