"""An engine that stays warm between commands: kept by a small process, or by the daemon, for one home.

Starting an engine takes seconds and most requests a fraction of one. So the first command that needs an engine starts a
*keeper*: a process that owns the sandboxed engine session, answers requests of this home's commands over a socket in
the home, one command at a time, and ends when nobody has come for a while. Where the daemon runs, it is the keeper; an
engine that is warm when it starts stays so behind it.

Only work of this home's own operator goes to a keeper; a stranger's transform is re-executed in a process of its own.
The sandbox is the same, and so are the checks of what comes out of it: the session object is the very same.

The socket and the key that commands show to it are readable by the owner of the home alone. Both sides are this
program, run by this user, so requests travel pickled; a keeper of another build is told to end and replaced.

Source: clauses WARM-1 to WARM-6 in ``spec/extensions/engine-contract.md``.
"""

import contextlib
import dataclasses
import fcntl
import os
import secrets
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, wait
from pathlib import Path
from typing import Any, Final, Self

from odf_engines.contract import (
    EngineSession,
    Grade,
    IngestRequest,
    IngestResponse,
    Limits,
    QueryRequest,
    QueryResponse,
    QueryTable,
    TransformRequest,
    TransformResponse,
)
from odf_engines.errors import EngineError, EngineFailureError, LimitExceededError, SandboxUnavailableError
from odf_engines.registry import get_engine
from odf_engines.spark.messages import error_from_fields, error_to_fields
from odf_node.engine_workspace import EngineWorkspace
from odf_node.program_files import build_of_program
from odf_protocol.events import TransformSql
from odf_protocol.vocabulary import Vocabulary

IDLE_VARIABLE: Final = "ODF_NODE_ENGINE_IDLE_S"
DEFAULT_IDLE_S: Final = 60.0  # guess: a person thinks between two commands; a gigabyte of memory waits meanwhile
APPEAR_S: Final = 60.0  # guess: a Python process starts within a second on an idle machine, and some are not idle
WATCH_S: Final = 1.0
END_S: Final = 60.0  # guess: an engine ends within a second on an idle machine
POLL_S: Final = 0.05  # how late an answer can be noticed; requests take some tenths of a second at least
MAX_REQUESTS: Final = 500  # guess: a session is replaced before its limit of processor time could matter
KEY_BYTES: Final = 32
WELCOME: Final = "welcome"
OTHER_BUILD: Final = "other build"


def idle_seconds(environment: "os._Environ[str] | dict[str, str]") -> float:
    """Read how long a warm engine waits for the next command; 0: none is kept."""
    try:
        return max(0.0, float(environment.get(IDLE_VARIABLE, DEFAULT_IDLE_S)))
    except ValueError:
        return DEFAULT_IDLE_S


@dataclass(frozen=True, slots=True)
class KeeperPlace:
    """Where the keeper of one engine of one home is found."""

    folder: Path
    engine: str

    @property
    def socket(self) -> Path:
        """Where the keeper listens."""
        return self.folder / f"{self.engine}.sock"

    @property
    def lock(self) -> Path:
        """Locked by the one command that talks to the keeper; others do without."""
        return self.folder / f"{self.engine}.lock"

    @contextlib.contextmanager
    def address(self) -> Iterator[str]:
        """Give the socket's name for the kernel, which allows 107 characters, while homes may lie deep."""
        descriptor = os.open(self.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{descriptor}/{self.socket.name}"
        finally:
            os.close(descriptor)

    @property
    def key(self) -> Path:
        """What a command shows to the keeper, and the keeper to the command."""
        return self.folder / f"{self.engine}.key"

    def get_or_create_key(self) -> bytes:
        """Read the key, making it when there is none; concurrent callers agree."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            temporary = self.folder / f".key-{secrets.token_hex(8)}"
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(descriptor, secrets.token_bytes(KEY_BYTES))
            os.close(descriptor)
            try:
                os.link(temporary, self.key)  # fails where another caller was first
            finally:
                temporary.unlink()
        return self.key.read_bytes()


@dataclass(slots=True)
class Keeper:
    """Serves one engine session to the commands of one home, one command at a time.

    ``build`` names the program's files; a command of another build makes the keeper end. ``idle_s`` after the last
    command the session is closed, and with ``ends_when_idle`` the keeper too.
    """

    place: KeeperPlace
    workspace: EngineWorkspace
    build: str
    idle_s: float
    ends_when_idle: bool
    _session: EngineSession | None = None
    _requests: int = 0
    _outputs: list[Path] = field(default_factory=list)
    _is_ending: threading.Event = field(default_factory=threading.Event)
    # One thread for all requests: the sandbox ends with the thread that started it (PR_SET_PDEATHSIG).
    _worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "engine"))

    def run(self) -> None:
        """Serve until idle, told to end, or the home is gone."""
        key = self.place.get_or_create_key()
        lock = self._wait_for_turn()
        if self._is_ending.is_set():
            if lock is not None:
                os.close(lock)
            return
        try:
            if lock is not None:
                self._session = _take_over(self.place, self.build)
            self.place.socket.unlink(missing_ok=True)
            with self.place.address() as address:
                listener = Listener(address, "AF_UNIX", backlog=8, authkey=key)
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
                if not wait([raw], timeout=WATCH_S):
                    if self._session is not None and time.monotonic() - last_used > self.idle_s:
                        self._end_session()
                    if self.ends_when_idle and time.monotonic() - last_used > self.idle_s:
                        break
                    continue
                with contextlib.suppress(AuthenticationError, OSError, EOFError), listener.accept() as connection:
                    self._serve(connection)
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
        while (lock := _lock(self.place)) is None and not self._is_ending.wait(POLL_S):
            pass
        return lock

    def end(self) -> None:
        """Make ``run`` return soon; from any thread."""
        self._is_ending.set()
        if (session := self._session) is not None:
            session.stop()

    def _serve(self, connection: Connection) -> None:
        if connection.recv() != self.build:
            connection.send(OTHER_BUILD)
            self._is_ending.set()
            return
        connection.send(WELCOME)
        try:
            while True:
                operation, arguments, options = connection.recv()
                self._forget_outputs()
                connection.send(self._answer(connection, operation, arguments, options))
        except EOFError:
            return
        finally:
            self._forget_outputs()

    def _answer(
        self, connection: Connection, operation: str, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[str, Any]:
        """Run one request beside this thread, so that a command that goes away (Ctrl-C) ends it."""
        if isinstance(self._session, TakenSession) and self._session.has_ended():
            self._end_session()
        if self._session is None or self._requests >= MAX_REQUESTS:
            self._end_session()
            try:
                self._session, self._requests = get_engine(self.place.engine).open(self.workspace.path, Limits()), 0
            except EngineError as error:
                return "error", error_to_fields(error)
        self._requests += 1
        running = self._worker.submit(_run, self._session, operation, arguments, options)
        while not running.done():
            # It asks nothing while it waits, so what can be read is its end.
            if connection.poll(POLL_S) and not running.done():
                self._session.stop()
                wait_for_futures([running])
                self._end_session()
                raise EOFError
        kind, value = running.result()
        if dataclasses.is_dataclass(value):
            found = (getattr(value, part.name) for part in dataclasses.fields(value))
            self._outputs = [path for path in found if isinstance(path, Path)]
        if kind == "error" and value["kind"] in {EngineFailureError.__name__, LimitExceededError.__name__}:
            self._end_session()
        return kind, value

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


def _run(
    session: EngineSession, operation: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[str, Any]:
    try:
        return "result", getattr(session, operation)(*arguments, **options)
    except EngineError as error:
        return "error", error_to_fields(error)


class KeptSession:
    """An ``EngineSession`` that a keeper runs; closing it leaves the engine warm."""

    def __init__(self, connection: Connection, descriptor: int) -> None:
        """Take the connection, and a descriptor that is closed with it."""
        self._connection = connection
        self._descriptor = descriptor

    def start(self) -> None:
        """See ``EngineSession``."""
        self._ask("start")

    def transform(self, request: TransformRequest) -> TransformResponse:
        """See ``EngineSession``."""
        response: TransformResponse = self._ask("transform", request)
        return response

    def ingest(self, request: IngestRequest) -> IngestResponse:
        """See ``EngineSession``."""
        response: IngestResponse = self._ask("ingest", request)
        return response

    def query(self, request: QueryRequest) -> QueryResponse:
        """See ``EngineSession``."""
        response: QueryResponse = self._ask("query", request)
        return response

    def check(
        self, transform: TransformSql, inputs: Sequence[QueryTable], *, vocabulary: Vocabulary | None = None
    ) -> Grade:
        """See ``EngineSession``."""
        grade: Grade = self._ask("check", transform, tuple(inputs), vocabulary=vocabulary)
        return grade

    def stop(self) -> None:
        """See ``EngineSession``; the keeper ends the engine when its command goes away."""
        # Closing alone would not wake a thread that waits for an answer.
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """See ``EngineSession``."""
        if not self._connection.closed:
            self._connection.close()
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _ask(self, operation: str, *arguments: object, **options: object) -> Any:
        try:
            self._connection.send((operation, arguments, options))
            kind, value = self._connection.recv()
        except (OSError, EOFError) as error:
            raise EngineFailureError("the process that keeps the engine warm has ended") from error
        if kind == "error":
            if value["kind"] == SandboxUnavailableError.__name__:
                raise SandboxUnavailableError(value["reason"])
            raise error_from_fields(value)
        return value


class TakenSession(KeptSession):
    """The engine of a keeper whose place another one has taken: that keeper ends when this is closed.

    The descriptor is that of its process.
    """

    def has_ended(self) -> bool:
        """Say whether the keeper was ended by somebody else."""
        return self._wait(0)

    def close(self) -> None:
        """See ``EngineSession``; returns when the keeper, and so its engine, is gone."""
        if not self._connection.closed:
            self.stop()
            self._wait(END_S)
            super().close()

    def _wait(self, limit_s: float) -> bool:
        end = select.poll()
        end.register(self._descriptor, select.POLLIN)
        return bool(end.poll(limit_s * 1000))


def find_warm_engine(folder: Path, engine: str, environment: "os._Environ[str]") -> "KeptSession | None":
    """Connect to the keeper of an engine of this home; None: none is to be had, or wanted.

    Args:
        folder: Where the home's engines work.
        engine: Its name.
        environment: Says how long engines wait.
    """
    if not (idle_s := idle_seconds(environment)):
        return None
    try:
        return find_warm_session(KeeperPlace(folder, engine), build_of_program(), idle_s)
    except OSError:
        return None  # a home that cannot be written has no keeper; questions are answered all the same


def find_warm_session(place: KeeperPlace, build: str, idle_s: float) -> KeptSession | None:
    """Connect to this home's keeper, starting one where there is none; None while another command has it.

    Args:
        place: Where the keeper is found.
        build: This program; a keeper of another build is told to end.
        idle_s: How long a new keeper waits for the next command.
    """
    place.get_or_create_key()
    if (lock := _lock(place)) is None:
        return None
    connection = _connect(place, build) or _start_and_connect(place, build, idle_s)
    if connection is None:
        os.close(lock)
        return None
    return KeptSession(connection, lock)


def _lock(place: KeeperPlace) -> int | None:
    """Take the turn to talk to the keeper, until the descriptor is closed; None while somebody else has it."""
    lock = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _take_over(place: KeeperPlace, build: str) -> TakenSession | None:
    """Connect to the keeper that is there, for as long as it lives; None: there is none to be had."""
    if (connection := _connect(place, build)) is None:
        return None
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as line:
            process_id, *_ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return TakenSession(connection, os.pidfd_open(process_id))
    except OSError:  # of a kernel without such descriptors
        connection.close()
        return None


def _connect(place: KeeperPlace, build: str) -> Connection | None:
    try:
        with place.address() as address:
            connection = Client(address, "AF_UNIX", authkey=place.key.read_bytes())
    except (OSError, EOFError, AuthenticationError):
        return None
    with contextlib.suppress(OSError, EOFError):
        connection.send(build)
        if connection.recv() == WELCOME:
            return connection
    connection.close()
    return None


def _start_and_connect(place: KeeperPlace, build: str, idle_s: float) -> Connection | None:
    """Start a keeper that outlives this command; None where it does not come up."""
    program = [sys.executable, "-m", "odf_node.adapters.warm_engines", str(place.folder), place.engine]
    keeper = subprocess.Popen(
        [*program, build, str(idle_s)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + APPEAR_S
    while time.monotonic() < deadline and keeper.poll() is None:
        if (connection := _connect(place, build)) is not None:
            return connection
        time.sleep(0.01)
    return None


def main(folder: str, engine: str, build: str, idle_s: str) -> None:
    """Keep an engine for commands of one home; see the module's docstring."""
    workspace = EngineWorkspace(Path(folder))
    Keeper(KeeperPlace(Path(folder), engine), workspace, build, float(idle_s), ends_when_idle=True).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
