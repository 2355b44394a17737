"""An engine that stays warm between commands: kept by a small process, or by the daemon, for one home.

Starting an engine takes seconds and most requests a fraction of one. So the first command that needs an engine starts a
*keeper*: a process that owns the sandboxed engine session, answers requests of this home's commands over a socket in
the home, one command at a time, and ends when nobody has come for a while. Where the daemon runs, it is the keeper; an
engine that is warm when it starts stays so behind it.

Only work of this home's own operator goes to a keeper; a stranger's transform is re-executed in a process of its own.
The sandbox is the same, and so are the checks of what comes out of it: the session object is the very same.

The socket and the key that commands show to it are readable by the owner of the home alone (``keeper_place``); what
commands do is in ``kept_session``.

Source: clauses WARM-1 to WARM-7 in ``spec/extensions/engine-contract.md``.
"""

import contextlib
import dataclasses
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener, answer_challenge, deliver_challenge, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from odf_engines.contract import Limits
from odf_engines.engine import EngineSession, ReportsProgress
from odf_engines.errors import EngineError, EngineFailureError, LimitExceededError
from odf_engines.host.messages import error_to_fields
from odf_engines.registry import get_engine
from odf_node.adapters.keeper_place import KeeperPlace
from odf_node.adapters.kept_session import (
    ANSWER_S,
    OTHER_BUILD,
    PROGRESS,
    WELCOME,
    TakenSession,
    hang_up,
    limit_wait,
    receive,
    send,
    take_over,
)
from odf_node.engine_workspace import EngineWorkspace

WATCH_S: Final = 1.0
POLL_S: Final = 0.05  # how late an answer can be noticed; requests take some tenths of a second at least
MAX_REQUESTS: Final = 500  # guess: a session is replaced before its limit of processor time could matter


@dataclass(slots=True)
class Keeper:
    """Serves one engine session to the commands of one home, one command at a time.

    ``build`` names the program's files; a command of another build makes the keeper end. ``idle_s`` after the last
    command the session is closed, and with ``ends_when_idle`` the keeper too. ``say`` hears what is not as it should
    be.
    """

    place: KeeperPlace
    workspace: EngineWorkspace
    build: str
    idle_s: float
    ends_when_idle: bool
    on_progress: Callable[[str], None] = field(default=lambda _text: None)
    _session: EngineSession | None = None
    _requests: int = 0
    _outputs: list[Path] = field(default_factory=list)
    _is_ending: threading.Event = field(default_factory=threading.Event)
    # Who waits for commands waits for the second too, which hears what is sent by the first.
    _waking: "tuple[socket.socket, socket.socket]" = field(default_factory=socket.socketpair)
    # The command that has its turn. It may be stopped and say nothing for ever, also while it holds an engine.
    _line: Connection | None = None
    _line_lock: threading.Lock = field(default_factory=threading.Lock)
    # One request after the other, beside the thread that listens.
    _worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "engine"))

    def run(self) -> None:
        """Serve until idle, told to end, or the home is gone."""
        try:
            self._run()
        finally:
            for end in self._waking:
                end.close()

    def _run(self) -> None:
        key = self.place.get_or_create_key()
        lock = self._wait_for_turn()
        if self._is_ending.is_set():
            if lock is not None:
                os.close(lock)
            return
        try:
            if lock is not None:
                self._session = take_over(self.place, self.build, self.on_progress)
            self.place.socket.unlink(missing_ok=True)
            with self.place.address() as address:
                listener = Listener(address, "AF_UNIX", backlog=8)
        except BaseException:
            self._end_session()
            raise
        finally:
            if lock is not None:
                os.close(lock)
        mine = self.place.socket.stat().st_ino
        last_used = time.monotonic()
        try:
            self.place.socket.chmod(0o600)
            raw = listener._listener._socket  # type: ignore[attr-defined]  # noqa: SLF001 - accept() has no time limit
            while not self._is_ending.is_set() and self._is_mine(mine):
                if raw not in wait([raw, self._waking[1]], timeout=WATCH_S):
                    if self._session is not None and time.monotonic() - last_used > self.idle_s:
                        self._end_session()
                    if self.ends_when_idle and time.monotonic() - last_used > self.idle_s:
                        break
                    continue
                with contextlib.suppress(AuthenticationError, OSError, EOFError), self._accept(listener) as connection:
                    self._serve(connection, key)
                last_used = time.monotonic()
        finally:
            self._end_session()
            self.workspace.close()
            with contextlib.suppress(OSError):
                listener.close()
            if self._is_mine(mine):
                self.place.socket.unlink(missing_ok=True)

    def _wait_for_turn(self) -> int | None:
        """Wait for the end of a command that talks to the keeper that is there; None: it waits for this one."""
        if self.ends_when_idle:
            return None
        while (lock := self.place.take_turn()) is None and not self._is_ending.wait(POLL_S):
            pass
        return lock

    def end(self) -> None:
        """Make ``run`` return soon; from any thread."""
        self._is_ending.set()
        with contextlib.suppress(OSError):  # it has ended
            self._waking[0].send(b".")
        if (session := self._session) is not None:
            session.stop()
        with self._line_lock:
            if self._line is not None:
                hang_up(self._line)

    @contextlib.contextmanager
    def _accept(self, listener: Listener) -> Iterator[Connection]:
        with listener.accept() as connection:
            with self._line_lock:
                self._line = connection
            try:
                if self._is_ending.is_set():
                    raise EOFError  # whoever ends this may have looked before there was a line
                yield connection
            finally:
                with self._line_lock:
                    self._line = None

    def _serve(self, connection: Connection, key: bytes) -> None:
        limit_wait(connection, ANSWER_S)
        deliver_challenge(connection, key)
        answer_challenge(connection, key)
        if receive(connection) != self.build:
            send(connection, OTHER_BUILD)
            self._is_ending.set()
            return
        send(connection, WELCOME)
        limit_wait(connection, 0)
        try:
            while True:
                asked = receive(connection)
                self._forget_outputs()
                send(connection, self._answer(connection, asked))
        except EOFError:
            return
        finally:
            self._forget_outputs()

    def _answer(self, connection: Connection, asked: dict[str, Any]) -> dict[str, Any]:
        """Run one request beside this thread, so that a command that goes away (Ctrl-C) ends it."""
        if isinstance(self._session, TakenSession) and self._session.has_ended():
            self._end_session()
        if self._session is None or self._requests >= MAX_REQUESTS:
            self._end_session()
            try:
                self._session, self._requests = get_engine(self.place.engine).open(self.workspace.path, Limits()), 0
            except EngineError as error:
                return {"error": error_to_fields(error)}
        self._requests += 1
        counts: SimpleQueue[int] = SimpleQueue()
        if isinstance(self._session, ReportsProgress):
            self._session.on_progress = counts.put
        running = self._worker.submit(_run, self._session, asked)
        while not running.done():
            while not counts.empty():
                with contextlib.suppress(OSError):  # it has gone away, as is seen below
                    send(connection, {PROGRESS: counts.get()})
            # It asks nothing while it waits, so what can be read is its end.
            if connection.poll(POLL_S) and not running.done():
                self._session.stop()
                wait_for_futures([running])
                self._end_session()
                raise EOFError
        answer = running.result()
        if dataclasses.is_dataclass(result := answer.get("result")):
            found = (getattr(result, part.name) for part in dataclasses.fields(result))
            self._outputs = [path for path in found if isinstance(path, Path)]
        if "error" in answer and answer["error"]["kind"] in {EngineFailureError.__name__, LimitExceededError.__name__}:
            self._end_session()
        return answer

    def _forget_outputs(self) -> None:
        """Remove what the last answer pointed to: the command asks for something else only after it took that."""
        for path in self._outputs:
            path.unlink(missing_ok=True)
        self._outputs = []

    def _end_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _is_mine(self, inode: int) -> bool:
        try:
            return self.place.socket.stat().st_ino == inode
        except OSError:
            return False


def _run(session: EngineSession, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": getattr(session, asked["operation"])(*asked["arguments"], **asked["options"])}
    except EngineError as error:
        return {"error": error_to_fields(error)}


def main(folder: str, engine: str, build: str, idle_s: str) -> None:
    """Keep an engine for commands of one home; see the module's docstring."""
    workspace = EngineWorkspace(Path(folder))
    Keeper(KeeperPlace(Path(folder), engine), workspace, build, float(idle_s), ends_when_idle=True).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
