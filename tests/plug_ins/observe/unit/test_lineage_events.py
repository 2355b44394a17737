"""Events of OpenLineage, at a real server and in a file (OBSERVE-7 to OBSERVE-9).

The library ships no JSON schema, so the fields that ``OpenLineage.json`` 2-0-2 requires are checked here: of events
``eventTime``, ``producer``, ``schemaURL``, ``run.runId`` and ``job``; ``namespace`` and ``name`` of jobs and datasets;
``_producer`` and ``_schemaURL`` of every facet, and what these facets require.
"""

import asyncio
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from aiohttp import web

from odf_node.adapters.observing import get_observer
from odf_node.configuration import Configuration
from odf_node.configuration.declaration import Lineage
from odf_node.ports.observing import DatasetVersion, Observer, Run, RunKind
from support.absent_observers import observe_at_nobody
from support.http_server import serving

SECRET = "hunter2"
COLUMNS = (("offset", "int64"), ("price", "double"))
SALES = DatasetVersion(dataset_id="did:odf:a", name="shop.sales", block="f1620aa", columns=COLUMNS)
TOTALS = DatasetVersion(dataset_id="did:odf:b", name="shop.totals", block="f1620bb")
WRITTEN = DatasetVersion(dataset_id="did:odf:b", name="shop.totals", block="f1620cc", columns=COLUMNS)


def reported(work: Callable[[Observer], object], file: Path, **environment: str) -> list[dict[str, Any]]:
    """Let a file hear what an observer is told."""
    observer = get_observer(Configuration(lineage=Lineage(file=file, namespace="press")), environment)
    work(observer)
    observer.flush()
    return [json.loads(line) for line in file.read_text().splitlines()]


def derive(observer: Observer) -> None:
    with observer.observing(Run(kind=RunKind.STEP, dataset=TOTALS, inputs=(SALES,), engine="spark")) as run:
        run.rows, run.written = 3, WRITTEN


def iter_facets(event: dict[str, Any]) -> list[dict[str, Any]]:
    holders = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    kinds = ("facets", "inputFacets", "outputFacets")
    return [facet for holder in holders for kind in kinds for facet in holder.get(kind, {}).values()]


def check_required(event: dict[str, Any]) -> None:
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert event["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    assert event["producer"].startswith("urn:odf-node:")
    UUID(event["run"]["runId"])
    for named in (event["job"], *event["inputs"], *event["outputs"]):
        assert named["namespace"] == "press"
        assert named["name"]
    facets = iter_facets(event)
    assert facets
    for facet in facets:
        assert facet["_producer"] == event["producer"]
        assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/")


def test_step_is_a_start_and_a_completion_with_versions_and_columns(tmp_path: Path) -> None:
    start, complete = reported(derive, tmp_path / "events.ndjson")
    for event in (start, complete):
        check_required(event)
        assert event["job"]["name"] == "shop.totals"
        kind = event["job"]["facets"]["jobType"]
        assert (kind["processingType"], kind["integration"], kind["jobType"]) == ("BATCH", "ODF", "TRANSFORM")
        (read,) = event["inputs"]
        assert (read["name"], read["facets"]["version"]["datasetVersion"]) == ("shop.sales", "f1620aa")
        assert [(each["name"], each["type"]) for each in read["facets"]["schema"]["fields"]] == [*COLUMNS]
        (identity,) = read["facets"]["symlinks"]["identifiers"]
        assert identity == {"namespace": "odf", "name": "did:odf:a", "type": "DID"}
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["outputs"] == []
    (output,) = complete["outputs"]
    assert output["facets"]["version"]["datasetVersion"] == "f1620cc"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 3


def test_run_that_fails_tells_the_kind_of_its_error_alone(tmp_path: Path) -> None:
    def ingest(observer: Observer) -> None:
        with pytest.raises(ValueError, match=SECRET), observer.observing(Run(kind=RunKind.INGEST, dataset=SALES)):
            raise ValueError(f"row 3 has {SECRET}")

    start, fail = reported(ingest, tmp_path / "events.ndjson")
    check_required(fail)
    assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
    assert fail["run"]["facets"]["errorMessage"]["message"] == "ValueError"
    assert fail["outputs"] == []
    assert SECRET not in (tmp_path / "events.ndjson").read_text()


def test_runs_of_other_kinds_are_no_events(tmp_path: Path) -> None:
    def work(observer: Observer) -> None:
        for kind in (RunKind.PULL, RunKind.PUSH, RunKind.REEXECUTION):
            with observer.observing(Run(kind=kind, dataset=SALES)):
                pass
        derive(observer)

    assert len(reported(work, tmp_path / "events.ndjson")) == 2


def test_library_reads_neither_its_file_nor_its_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "console")
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", SECRET)
    (tmp_path / "openlineage.yml").write_text("transport: {type: noop}\nfacets: {environment_variables: [HOME]}\n")
    monkeypatch.chdir(tmp_path)
    events = reported(derive, tmp_path / "events.ndjson")
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"]
    assert SECRET not in json.dumps(events)


def test_server_gets_each_event_with_the_key_of_the_environment() -> None:
    bodies: list[dict[str, Any]] = []
    keys: list[str | None] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        assert (request.method, request.path) == ("POST", "/lineage/api/v1/lineage")
        keys.append(request.headers.get("Authorization"))
        bodies.append(await request.json())
        return web.Response(status=201)

    async def run() -> None:
        async with serving(answer) as server:
            settings = Configuration(lineage=Lineage(url=f"{server.base}/lineage", namespace="press"))
            observer = get_observer(settings, {"OPENLINEAGE_API_KEY": SECRET})
            await asyncio.to_thread(derive, observer)
            await asyncio.to_thread(observer.flush)
            assert observer.counts["events"] == {"sent": 2, "failed": 0, "dropped": 0}

    asyncio.run(run())
    assert [body["eventType"] for body in bodies] == ["START", "COMPLETE"]
    assert keys == [f"Bearer {SECRET}"] * 2
    for body in bodies:
        check_required(body)


def test_server_that_is_away_costs_no_run_anything_and_is_told() -> None:
    found = observe_at_nobody("lineage", "url", "http://127.0.0.1:9/path-secret", 1500)
    assert found.ran_s < 20
    assert found.counts["sent"] == 0
    assert found.counts["dropped"] > 0
    assert "lineage events" in found.log
    assert "path-secret" not in found.log


def test_file_that_cannot_be_written_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    observer = get_observer(Configuration(lineage=Lineage(file=tmp_path / "absent" / "events")), {})
    derive(observer)
    observer.flush()
    assert observer.counts["events"]["failed"] == 2
    assert "not delivered" in caplog.text
