"""Questions of others: in turns, over what whoever asks may read, in an engine that no other caller asks.

Source: clauses FLIGHT-4, FLIGHT-7 and FLIGHT-10 in ``spec/plug-ins/flight-sql.md``.
"""

import asyncio
import concurrent.futures
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from odf_engines.contract import Limits
from odf_flight.answers import Answers, KeptResult
from odf_node.composition import Node
from odf_node.configuration.declaration import QUERY_ENGINE
from odf_node.datasets.naming import list_named
from odf_node.datasets.queries import QueryRunner
from odf_node.engine_workspace import EngineWorkspace
from odf_node.engines.sessions import EngineHost
from odf_node.http.callers import Caller
from odf_node.ports import access
from odf_node.records.access import ReadGrants
from odf_node.semaphore import ShortestFirstSemaphore, TurnLimits

SHORT: Final = TurnLimits(at_once=3, waiting=64)  # guess: what waits is a line of text
LONG: Final = TurnLimits(at_once=2, waiting=64, own=1)  # guess: one caller's costly queries leave room for another's
SHORT_S: Final = 0.7  # guess: an ordinary query over millions of rows; measured by bench_fair_queries.py
AT_ONCE: Final = SHORT.at_once + LONG.at_once
"""Queries, each in an engine, and engines that wait for the next one."""
LIMITS: Final = Limits(
    wall_s=60.0,
    cpu_s=300,
    output_bytes=512 << 20,
    output_rows=10_000_000,
    decoded_bytes=1 << 30,
)
"""What one question may cost.  # guess: what a person waits for, and a client holds in memory"""
IDLE_S: Final = 60.0  # guess: an engine waits so long for the next question of its caller
_LOOK_S: Final = 0.1
"""How often it is looked whether whoever asked is still there."""


_Key = tuple[str, ReadGrants]
"""Who asks, and what they may read: of another's engine, or of other rights, nothing is used again."""


class AskerGoneError(Exception):
    """Whoever asked does not wait for the answer any more."""


class FlightQueries:
    """Answers questions: those who ask wait on the server's threads, engines on others, and the loop gives turns."""

    def __init__(self, node: Node, answers: Answers, loop: asyncio.AbstractEventLoop) -> None:
        self._node = node
        self._answers = answers
        self._loop = loop
        self._semaphore = ShortestFirstSemaphore(SHORT, LONG, short_s=SHORT_S)
        self._threads = ThreadPoolExecutor(AT_ONCE, "questions")
        self._tasks: set[asyncio.Task[Any] | None] = set()
        self._running: list[EngineHost] = []
        self._idle: OrderedDict[_Key, tuple[float, EngineHost]] = OrderedDict()
        """Since when each waits; who waits for longest is the first."""
        self._is_stopped = False

    def answer(
        self,
        caller: Caller,
        sql: str,
        *,
        is_gone: Callable[[], bool],
        engine: str | None = None,
        max_rows: int | None = None,
    ) -> tuple[bytes, KeptResult]:
        """Answer one question, and keep the answer; called by a thread, which waits.

        Args:
            caller: Whose turn it is, and what may be read.
            sql: In the SQL of the engine that answers.
            is_gone: Says whether no client waits for the answer any more.
            engine: Which answers; None: DataFusion.
            max_rows: Cut the answer there; None: a long one is an error.

        Raises:
            OdfError: As ``QueryRunner.run``; TooManyWaitingError, UnavailableError as ``FairSemaphore.ask``.
            AskerGoneError: As ``is_gone`` says; the engine is ended.
        """
        work = asyncio.run_coroutine_threadsafe(self._answer(caller, sql, engine, max_rows), self._loop)
        while not concurrent.futures.wait([work], _LOOK_S).done:
            if is_gone():
                work.cancel()
                raise AskerGoneError
        return work.result()

    def stop(self) -> None:
        """Turn away who waits, and end what runs."""
        self._is_stopped = True
        self._semaphore.close()
        for host in tuple(self._running):
            host.stop()

    async def close(self) -> None:
        """Wait for what was stopped, and end all engines."""
        await asyncio.gather(*(task for task in self._tasks if task is not None), return_exceptions=True)
        await self._end(tuple(self._idle))
        await asyncio.to_thread(self._threads.shutdown)

    async def sweep(self) -> None:
        """End engines that nobody asked for a while."""
        now_s = self._loop.time()
        await self._end([key for key, (since_s, _) in self._idle.items() if now_s - since_s >= IDLE_S])

    async def _answer(
        self, caller: Caller, sql: str, engine: str | None, max_rows: int | None
    ) -> tuple[bytes, KeptResult]:
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            # Another engine than the usual one takes longer to start than a short turn lasts.
            is_long = engine is not None and engine != QUERY_ENGINE
            return await self._semaphore.run(
                caller.peer, lambda max_s: self._run(caller, sql, engine, max_rows, max_s), is_long=is_long
            )
        finally:
            self._tasks.discard(task)

    async def _run(
        self, caller: Caller, sql: str, engine: str | None, max_rows: int | None, max_s: float | None
    ) -> tuple[bytes, KeptResult]:
        key = caller.peer, caller.reads
        host = await self._take_host(key)
        self._running.append(host)
        limits = LIMITS if max_s is None else replace(LIMITS, wall_s=max_s)
        work = self._loop.run_in_executor(self._threads, self._ask, host, caller, sql, engine, max_rows, limits)
        is_gone = False
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            is_gone = True
            host.stop()
            # The turn ends with the engine and not before.
            with suppress(Exception):
                await work
            raise
        finally:
            self._running.remove(host)
            if is_gone or self._is_stopped or key in self._idle:
                await asyncio.to_thread(host.close)
            else:
                self._idle[key] = self._loop.time(), host

    async def _take_host(self, key: _Key) -> EngineHost:
        if key in self._idle:
            return self._idle.pop(key)[1]
        if self._idle and len(self._running) + len(self._idle) >= AT_ONCE:
            await self._end([next(iter(self._idle))])
        node = self._node
        workspace = EngineWorkspace(node.home.folder.engines)
        return EngineHost(workspace, node.objects.rows, node.engine_files, LIMITS, roles=node.engine_roles)

    async def _end(self, keys: Iterable[_Key]) -> None:
        for host in [self._idle.pop(key)[1] for key in keys]:
            await asyncio.to_thread(host.close)

    def _ask(
        self,
        host: EngineHost,
        caller: Caller,
        sql: str,
        engine: str | None,
        max_rows: int | None,
        limits: Limits,
    ) -> tuple[bytes, KeptResult]:
        node = self._node
        queries = QueryRunner(node.home, host)
        records = list_named(node.store, caller.reads)
        with access.calling(access.Requester(door="flight", name=caller.peer, work="query")):
            found = queries.ask(sql, as_of=None, max_rows=max_rows, engine=engine, records=records, limits=limits)
        return self._answers.put(caller.peer, found.path)
