"""Collectors and catalogues, or whoever speaks for them on the line, that lead elsewhere or answer without end.

Source: clause OBSERVE-11 in ``spec/plug-ins/observe.md``.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from aiohttp import web

from odf_node.adapters.observing import get_observer
from odf_node.configuration import Configuration
from odf_node.configuration.declaration import Lineage, Telemetry
from odf_node.ports.observing import DatasetVersion, Observer, Run, RunKind
from support.http_server import Answer, serving

SETTINGS: dict[str, Callable[[str], Configuration]] = {
    "events": lambda url: Configuration(lineage=Lineage(url=url)),
    "spans": lambda url: Configuration(telemetry=Telemetry(endpoint=url)),
}
SALES = DatasetVersion(dataset_id="did:odf:a", name="shop.sales")


REPORTED = {"events": 2, "spans": 1}
"""Of one run: its begin and its end, or both at once."""


def tell(what: str, answer: Answer) -> dict[str, int]:
    """Tell somebody who answers like that of a run; returns what became of it."""

    def work(observer: Observer) -> dict[str, int]:
        with observer.observing(Run(kind=RunKind.INGEST, dataset=SALES)):
            pass
        end_s = time.monotonic() + 60
        while sum((counts := observer.counts[what]).values()) < REPORTED[what]:
            assert time.monotonic() < end_s, counts
            observer.flush()
        return counts

    async def run() -> dict[str, int]:
        async with serving(answer) as server:
            observer = get_observer(SETTINGS[what](server.base), {"OPENLINEAGE_API_KEY": "hunter2"})
            return await asyncio.to_thread(work, observer)

    return asyncio.run(run())


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
@pytest.mark.parametrize("what", SETTINGS)
def test_answer_that_leads_elsewhere_is_not_followed_observe_11(what: str, status: int) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=status, headers={"Location": "/inside"})

    assert tell(what, answer) == {"sent": 0, "failed": REPORTED[what], "dropped": 0}
    assert asked
    assert "/inside" not in asked


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize("what", SETTINGS)
def test_answer_without_an_end_is_not_read_observe_11(what: str, encoding: str) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Encoding": encoding})
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(bytes(1 << 16))
        return response

    assert tell(what, answer) == {"sent": REPORTED[what], "failed": 0, "dropped": 0}
