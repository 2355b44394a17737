"""All pushes of this process: a few at a time, forgotten when nobody continues them (EX-11, EX-21)."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from aiohttp import web

from odf_node.http.access_log import write_line
from odf_node.http.problems import TYPE_PREFIX, ProblemError, problem_of
from odf_node.http.push_session import PushedDataset, PushSession, proposed_head
from odf_node.http.served_node import ServedNode
from odf_node.http.uploads import Uploads
from odf_node.metrics import Metrics
from odf_node.ports.pushes import PushReceiver
from odf_node.records.access import ReadGrants
from odf_node.semaphore import Turn
from odf_node.threads import finish_in_thread
from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnsupportedError
from odf_protocol.exchange.limits import MAX_ENDED_PUSHES, MAX_PUSH_SESSIONS, MAX_TOKEN_PUSH_SESSIONS, PUSH_IDLE_S
from odf_protocol.exchange.messages import Problem, PushRequest, PushStatus

IDLE_LOOK_S: Final = 30.0
"""How often pushes that nobody continues are looked for: they hold up garbage collection."""


class PushRegistry:
    """Owns the sessions and the tasks that verify them; used on the event loop only."""

    def __init__(self, node: ServedNode, metrics: Metrics, uploads: Uploads) -> None:
        self._node = node
        self._metrics = metrics
        self._uploads = uploads
        self._sessions: dict[str, PushSession] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._beginning: list[str] = []
        """Tokens of pushes that are about to be sessions: many may begin at once."""

    async def begin(self, token_id: str, request: PushRequest, reads: ReadGrants) -> PushSession:
        """Open a session, unless the offer can never be accepted.

        A push of a head that is here already is accepted at once.
        """
        receiver = self._get_receiver()
        await self._forget_idle()
        await self._replace(token_id, request)
        running = [session.token_id for session in self._sessions.values() if session.is_open] + self._beginning
        if len(running) >= MAX_PUSH_SESSIONS or running.count(token_id) >= MAX_TOKEN_PUSH_SESSIONS:
            self._metrics.turned_away.labels(reason="pushes").inc()
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "busy",
                f"{len(running)} pushes are running; try again",
                headers={"Retry-After": "30"},
            )
        self._beginning.append(token_id)
        try:
            return await self._begin(receiver, token_id, request, reads)
        finally:
            self._beginning.remove(token_id)

    async def _begin(
        self, receiver: PushReceiver, token_id: str, request: PushRequest, reads: ReadGrants
    ) -> PushSession:
        record = await asyncio.to_thread(self._node.store.find_dataset, request.to_dataset_id())
        known_head = None if record is None else record.head
        proposed = request.head.to_head()
        if known_head != proposed:
            await receiver.consider(proposed_head(request), actor=token_id, reads=reads)
        session = await finish_in_thread(
            lambda: PushSession.begin(
                secrets.token_urlsafe(16),
                token_id,
                request,
                reads=reads,
                known_head=known_head,
                store=self._node.store,
                objects=self._node.objects,
                spool_folder=self._node.spool_folder,
                now_s=_now_s(),
            )
        )
        if known_head == proposed:
            session.status = PushStatus.ACCEPTED
            session.close()
        self._sessions[session.push_id] = session
        self._locks[session.push_id] = asyncio.Lock()
        return session

    def find(self, push_id: str, token_id: str) -> PushSession | None:
        """Return the session, if it was begun with this token."""
        session = self._sessions.get(push_id)
        return session if session is not None and session.token_id == token_id else None

    def touch(self, session: PushSession) -> None:
        """Note that somebody continues the session."""
        session.touched_s = _now_s()

    @asynccontextmanager
    async def alone(self, session: PushSession) -> AsyncIterator[None]:
        """Change the session while nobody else does; it is receiving inside."""
        async with self._locks[session.push_id]:
            if session.status is not PushStatus.RECEIVING:
                raise ProblemError(HTTPStatus.CONFLICT, "state", f"the push is {session.status.value}")
            yield

    def verify(self, session: PushSession) -> None:
        """Have a complete push judged, in its turn.

        Raises:
            TooManyWaitingError: Too many others wait; the push stays as it is, and may be committed later.
        """
        receiver, turn = self._get_receiver(), self._node.verifications.ask(session.token_id)
        session.status = PushStatus.VERIFYING
        self._tasks[session.push_id] = asyncio.create_task(self._judge(session, receiver, turn))

    async def wait(self, session: PushSession, wait_s: float) -> None:
        """Wait until the session is judged, or for ``wait_s`` seconds."""
        task = self._tasks.get(session.push_id)
        if task is not None:
            await asyncio.wait([task], timeout=wait_s)

    async def forget(self, session: PushSession, *, for_good: bool = False) -> None:
        """Drop the session with its blocks, once nobody is changing it; ``for_good``: and what arrived for it."""
        self._uploads.forget(session.push_id)
        async with self._locks[session.push_id]:
            if session.status is PushStatus.RECEIVING:
                session.status = PushStatus.FAILED
            if for_good:
                await finish_in_thread(session.arrivals.drop)
            await finish_in_thread(session.close)
            # Last: who finds the push no more finds its lease ended too.
            self._sessions.pop(session.push_id, None)
            self._tasks.pop(session.push_id, None)
        self._locks.pop(session.push_id, None)

    async def forget_idle(self) -> None:
        """Drop pushes that nobody continues, for as long as this runs."""
        while True:
            await asyncio.sleep(IDLE_LOOK_S)
            await self._forget_idle()

    async def close(self, grace_s: float) -> None:
        """Wait for what is being verified, then stop it, and drop everything."""
        self._node.verifications.close()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=grace_s)
        for task in self._tasks.values():
            task.cancel()
        # Whatever they end with was said where it happened; here everything is to end.
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for session in tuple(self._sessions.values()):
            await self.forget(session)

    async def _judge(self, session: PushSession, receiver: PushReceiver, turn: Turn) -> None:
        status, problem = PushStatus.FAILED, None
        try:
            async with turn:
                await receiver.receive(PushedDataset(session), actor=session.token_id, reads=session.reads)
            status = PushStatus.ACCEPTED
        except (RejectedError, MalformedError, UnsupportedError) as error:
            status, problem = PushStatus.REJECTED, problem_of(error)
        except OdfError as error:
            problem = problem_of(error)
            write_line("push-failed", push_id=session.push_id, error=type(error).__name__, text=str(error))
        except Exception as error:  # noqa: BLE001 - the edge of the task
            problem = Problem(type=f"{TYPE_PREFIX}fault", title="the node failed; its log has the reason", status=500)
            write_line("push-fault", push_id=session.push_id, error=repr(error))
        finally:
            session.problem = problem
            session.status = status
            session.touched_s = _now_s()
            self._uploads.forget(session.push_id)
            if status is not PushStatus.FAILED:
                session.arrivals.drop()
            # The answer stays for whoever asks; the lease and the blocks are no longer needed.
            session.close()
        self._metrics.pushes.labels(outcome=status.value).inc()
        write_line("push", push_id=session.push_id, dataset=session.request.dataset_id, status=status.value)

    async def _forget_idle(self) -> None:
        for session in tuple(self._sessions.values()):
            if session.status is not PushStatus.VERIFYING and _now_s() - session.touched_s > PUSH_IDLE_S:
                await self.forget(session)
        ended = [session for session in self._sessions.values() if not session.is_open]
        for session in ended[:-MAX_ENDED_PUSHES]:
            await self.forget(session)

    async def _replace(self, token_id: str, request: PushRequest) -> None:
        # A pusher that lost the answer to its first request begins again: its first session must not fill the place.
        for session in tuple(self._sessions.values()):
            same = (session.token_id, session.request.dataset_id) == (token_id, request.dataset_id)
            if same and session.status is PushStatus.RECEIVING:
                await self.forget(session)

    def _get_receiver(self) -> PushReceiver:
        if self._node.pushes is None:
            raise ProblemError(HTTPStatus.FORBIDDEN, "forbidden", "this node takes no pushes")
        return self._node.pushes


PUSHES: Final = web.AppKey("pushes", PushRegistry)


def get_registry(request: web.Request) -> PushRegistry:
    """Return the process's pushes."""
    return request.app[PUSHES]


def _now_s() -> float:
    return time.monotonic()
