"""Runs as spans, told to a real receiver of OTLP over HTTP, or to one that is slow or away (OBSERVE-1 to OBSERVE-6)."""

import asyncio
import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from odf_engines.stage_metrics import IngestStage, StageClock
from odf_node.adapters.observing import get_observer
from odf_node.composition import open_node
from odf_node.configuration import Configuration
from odf_node.configuration.declaration import Lineage, Telemetry
from odf_node.daemon.reloading import take_over
from odf_node.ports.observing import UNOBSERVED, DatasetVersion, Observer, Run, RunKind, place_of
from odf_node.threads import finish_in_thread
from odf_observe.outbox import Outbox
from support.absent_observers import observe_at_nobody
from support.http_server import serving

SECRET = "hunter2"
DATASET = DatasetVersion(dataset_id="did:odf:a", name="shop.sales", block="f1620aa")


class Receiver:
    """Keeps spans by name, and the attributes of their resource."""

    def __init__(self) -> None:
        self.spans: dict[str, Span] = {}
        self.resource: dict[str, Any] = {}
        self.raw = b""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        assert request.path == "/v1/traces"
        raw = await request.read()
        self.raw += raw
        for group in ExportTraceServiceRequest.FromString(raw).resource_spans:
            self.resource = _plain(group.resource.attributes)
            for scope in group.scope_spans:
                self.spans |= {span.name: span for span in scope.spans}
        body = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=body, content_type="application/x-protobuf")


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def observer_at(url: str) -> Observer:
    return get_observer(Configuration(telemetry=Telemetry(endpoint=url)), {})


def received(work: Callable[[Observer], object]) -> Receiver:
    """Let a receiver hear what an observer is told."""
    receiver = Receiver()

    async def run() -> None:
        async with serving(receiver.answer) as server:
            observer = observer_at(server.base)
            await asyncio.to_thread(work, observer)
            await asyncio.to_thread(observer.flush)

    asyncio.run(run())
    return receiver


def ingest(observer: Observer) -> None:
    clock = StageClock()
    with observer.observing(Run(kind=RunKind.INGEST, dataset=DATASET)) as run:
        with clock.measuring_alone(IngestStage.READ, "Csv") as sums:
            sums.count(rows_in=5, rows_out=4, bad_rows=1)
        with clock.measuring(IngestStage.VALIDATE):
            for name in ("Range", "Unique", "Range"):
                with clock.measuring(IngestStage.VALIDATE, name):
                    pass
        run.stages, run.rows, run.bad_rows, run.written = clock.figures, 4, 1, DATASET


def test_ingest_is_a_span_with_children_by_stage_and_plug_in() -> None:
    found = received(ingest)
    spans = found.spans
    assert set(spans) == {"ingest", "read", "read Csv", "validate", "validate Range", "validate Unique"}
    parents = {
        name: next((n for n, s in spans.items() if s.span_id == span.parent_span_id), "")
        for name, span in spans.items()
    }
    assert parents == {
        "ingest": "",
        "read": "ingest",
        "read Csv": "read",
        "validate": "ingest",
        "validate Range": "validate",
        "validate Unique": "validate",
    }
    assert found.resource["service.name"] == "odf-node"
    assert _plain(spans["ingest"].attributes) == {
        "odf.dataset.id": "did:odf:a",
        "odf.dataset.name": "shop.sales",
        "odf.dataset.block": "f1620aa",
        "odf.rows.added": 4,
        "odf.rows.bad": 1,
    }
    reported = _plain(spans["read Csv"].attributes)
    assert 0 < reported.pop("odf.seconds") < 1
    assert reported == {
        "odf.stage": "read",
        "odf.plug_in": "Csv",
        "odf.rows.in": 5,
        "odf.rows.out": 4,
        "odf.rows.bad": 1,
    }
    for name, parent in parents.items():
        if parent:
            assert spans[parent].start_time_unix_nano <= spans[name].start_time_unix_nano
            assert spans[name].end_time_unix_nano <= spans[parent].end_time_unix_nano
    assert abs(time.time_ns() - spans["ingest"].start_time_unix_nano) < 60e9


def test_run_that_fails_is_told_by_its_kind_alone_and_fails_all_the_same() -> None:
    def pull(observer: Observer) -> None:
        peer = place_of(f"https://me:{SECRET}@node.example:8443/{SECRET}?token={SECRET}")
        with (
            pytest.raises(ValueError, match=SECRET),
            observer.observing(Run(kind=RunKind.PULL, dataset=DATASET, peer=peer)),
        ):
            raise ValueError(f"row 3 has {SECRET}")

    found = received(pull)
    span = found.spans["pull"]
    assert span.status.code == Status.StatusCode.STATUS_CODE_ERROR
    assert span.kind == Span.SpanKind.SPAN_KIND_CLIENT
    reported = _plain(span.attributes)
    assert (reported["error.type"], reported["server.address"], reported["server.port"]) == (
        "ValueError",
        "node.example",
        8443,
    )
    assert len(span.events) == 0
    assert SECRET.encode() not in found.raw


def test_run_within_another_is_its_child_also_in_a_thread() -> None:
    def work(observer: Observer) -> None:
        def step() -> None:
            with observer.observing(Run(kind=RunKind.REEXECUTION, dataset=DATASET, block_number=3, engine="spark")):
                pass

        async def pull() -> None:
            with observer.observing(Run(kind=RunKind.PULL, dataset=DATASET)):
                await finish_in_thread(step)

        asyncio.run(pull())

    spans = received(work).spans
    assert spans["re-execute"].parent_span_id == spans["pull"].span_id
    assert _plain(spans["re-execute"].attributes)["odf.block.number"] == 3


def test_collector_that_is_away_costs_no_run_anything_and_is_told() -> None:
    found = observe_at_nobody("telemetry", "endpoint", f"http://me:{SECRET}@127.0.0.1:9/x", 3000)
    assert found.ran_s < 20  # 3,000 tries to connect, each with its pauses, would take an hour
    assert found.counts["sent"] == 0
    assert found.counts["dropped"] > 0
    assert "spans" in found.log
    assert "http://127.0.0.1:9" in found.log
    assert SECRET not in found.log


def test_outbox_whose_receiver_hangs_drops_what_finds_no_room(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    monkeypatch.setattr("odf_observe.outbox.END_WAIT_S", 0.01)

    let_go = threading.Event()
    taken: list[int] = []

    def send(items: Any) -> str | None:
        let_go.wait(60)
        taken.extend(items)
        return None

    outbox: Outbox[int] = Outbox("things", "somewhere", send, room=10)
    outbox.put(0)
    while outbox._waiting:
        time.sleep(0.001)
    for number in range(1, 31):
        outbox.put(number)
    with caplog.at_level(logging.WARNING):
        outbox.flush()
    assert outbox.counts == {"sent": 0, "failed": 0, "dropped": 20}
    assert "20 things were not delivered to somewhere" in caplog.text
    let_go.set()
    monkeypatch.setattr("odf_observe.outbox.END_WAIT_S", 60.0)
    outbox.flush()
    assert taken == list(range(11))
    assert outbox.counts["sent"] == 11


def test_nothing_is_loaded_where_nobody_is_named() -> None:
    program = (
        "import json, sys\nfrom odf_node.adapters.observing import get_observer\n"
        "from odf_node.configuration import Configuration\n"
        "get_observer(Configuration(), {'OTEL_SDK_DISABLED': 'true', 'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://a'})\n"
        "print(json.dumps([name for name in sys.modules if name.startswith(('opentelemetry', 'openlineage'))]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
    assert get_observer(Configuration(), {}) is UNOBSERVED


def test_endpoint_of_the_environment_counts_where_the_settings_name_none() -> None:
    found = get_observer(Configuration(), {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert found is not UNOBSERVED


def test_daemon_with_settings_of_its_own_lets_their_observer_hear(tmp_path: Path) -> None:
    with closing(open_node(tmp_path / "home")) as node:
        take_over(node, Configuration(lineage=Lineage(file=tmp_path / "events")))
        assert set(node.observer.counts) == {"events"}
        assert node.engines.observer is node.observer
        assert node.pushing.observer is node.observer


def test_missing_extra_is_told_and_work_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "odf_observe.traces", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with observer_at("http://127.0.0.1:10").observing(Run(kind=RunKind.STEP, dataset=DATASET)) as run:
        run.rows = 1
    assert "pip install 'odf-node[telemetry]'" in caplog.text


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://a:b@host.example:80/c?d=e#f", "http://host.example:80"),
        ("https://[::1]:8/x", "https://[::1]:8"),
        ("file:///etc/secret", ""),
        ("http://host:port/", ""),
    ],
)
def test_place_of_an_address_is_scheme_host_and_port_alone(url: str, place: str) -> None:
    assert place_of(url) == place
