"""The session of an engine that a keeper holds for the commands of a home, and how a command comes by it.

Both sides are this program, run by this user; requests and answers are one message of JSON each, as between host and
guest. A keeper of another build is told to end and replaced.

Source: clauses WARM-1 to WARM-7 in ``spec/extensions/engine-contract.md``.
"""

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any, Final, Self

from odf_engines.contract import (
    Grade,
    IngestRequest,
    IngestResponse,
    PreparedRows,
    QueryRequest,
    QueryResponse,
    QueryTable,
    TransformRequest,
    TransformResponse,
)
from odf_engines.errors import EngineFailureError, SandboxUnavailableError
from odf_engines.host.messages import decode_message, encode_message, error_from_fields
from odf_node.adapters.keeper_place import KeeperPlace, idle_seconds
from odf_node.program_files import build_of_program
from odf_protocol.events import TransformSql
from odf_protocol.vocabulary import Vocabulary

APPEAR_S: Final = 60.0  # guess: a Python process starts within a second on an idle machine, and some are not idle
ANSWER_S: Final = 30.0
"""How long either side waits for the other's part of a greeting: a process that is stopped (SIGSTOP) answers never.
Guess: a keeper may be about to end an engine, on a machine that is busy."""
END_S: Final = 10.0  # guess: an engine ends within a second on an idle machine, and is killed after five
PROGRESS: Final = "progress"
"""A message before the answer: how many records the engine has read (ENGINE-29)."""
MESSAGE_BYTES: Final = 256 * 1024 * 1024  # guess: a question over thousands of slices names each of them
WELCOME: Final = "welcome"
OTHER_BUILD: Final = "other build"


class KeptSession:
    """An ``EngineSession`` that a keeper runs; closing it leaves the engine warm."""

    def __init__(self, connection: Connection, descriptor: int) -> None:
        """Take the connection, and a descriptor that is closed with it."""
        self._connection = connection
        self._descriptor = descriptor
        self.on_progress: Callable[[int], None] = lambda _count: None

    def start(self) -> None:
        self._ask("start")

    def transform(self, request: TransformRequest) -> TransformResponse:
        response: TransformResponse = self._ask("transform", request)
        return response

    def ingest(self, request: IngestRequest) -> IngestResponse:
        response: IngestResponse = self._ask("ingest", request)
        return response

    def convert(self, request: IngestRequest) -> PreparedRows:
        converted: PreparedRows = self._ask("convert", request)
        return converted

    def preprocess(self, transform: TransformSql, rows: Path) -> QueryResponse:
        made: QueryResponse = self._ask("preprocess", transform, rows)
        return made

    def query(self, request: QueryRequest) -> QueryResponse:
        response: QueryResponse = self._ask("query", request)
        return response

    def check(
        self, transform: TransformSql, inputs: Sequence[QueryTable], *, vocabulary: Vocabulary | None = None
    ) -> Grade:
        grade: Grade = self._ask("check", transform, tuple(inputs), vocabulary=vocabulary)
        return grade

    def stop(self) -> None:
        """See ``EngineSession``; the keeper ends the engine when its command goes away."""
        hang_up(self._connection)

    def close(self) -> None:
        if not self._connection.closed:
            self._connection.close()
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _ask(self, operation: str, *arguments: object, **options: object) -> Any:
        try:
            send(self._connection, {"operation": operation, "arguments": arguments, "options": options})
            while PROGRESS in (answer := receive(self._connection)):
                self.on_progress(answer[PROGRESS])
        except (OSError, EOFError) as error:
            raise EngineFailureError("the process that keeps the engine warm has ended") from error
        if (fields := answer.get("error")) is not None:
            if fields["kind"] == SandboxUnavailableError.__name__:
                raise SandboxUnavailableError(fields["reason"])
            raise error_from_fields(fields)
        return answer["result"]


class TakenSession(KeptSession):
    """The engine of a keeper whose place another one has taken: that keeper ends when this is closed.

    The descriptor is that of its process.
    """

    def __init__(
        self, connection: Connection, descriptor: int, process_id: int, on_progress: Callable[[str], None]
    ) -> None:
        """As ``KeptSession``; ``say`` hears of a process that had to be killed."""
        super().__init__(connection, descriptor)
        self._process_id = process_id
        self._on_progress = on_progress

    def has_ended(self) -> bool:
        """Say whether the keeper was ended by somebody else."""
        return self._wait(0)

    def close(self) -> None:
        """See ``EngineSession``; returns when the keeper, and so its engine, is gone."""
        if not self._connection.closed:
            self.stop()
            if not self._wait(END_S):
                # It is stopped, or busy beyond hope; the sandbox of its engine dies with it.
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
                self._on_progress(
                    f"process {self._process_id}, which kept an engine warm, did not end within {END_S:g} s "
                    "and was killed"
                )
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
    if (lock := place.take_turn()) is None:
        return None
    connection = _connect(place, build) or _start_and_connect(place, build, idle_s)
    if connection is None:
        os.close(lock)
        return None
    return KeptSession(connection, lock)


def take_over(place: KeeperPlace, build: str, on_progress: Callable[[str], None]) -> TakenSession | None:
    """Connect to the keeper that is there, for as long as it lives; None: there is none to be had.

    Args:
        place: Where the keeper is found.
        build: This program.
        on_progress: Hears when it had to be killed at its end.
    """
    if (connection := _connect(place, build)) is None:
        return None
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as line:
            process_id, *_ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return TakenSession(connection, os.pidfd_open(process_id), process_id, on_progress)
    except OSError:  # of a kernel without such descriptors
        connection.close()
        return None


def _connect(place: KeeperPlace, build: str) -> Connection | None:
    try:
        key = place.key.read_bytes()
        with place.address() as address, socket.socket(socket.AF_UNIX) as line:
            line.settimeout(ANSWER_S)
            line.connect(address)
            line.setblocking(True)
            connection = Connection(line.detach())
    except OSError:
        return None
    with contextlib.suppress(OSError, EOFError, AuthenticationError):
        limit_wait(connection, ANSWER_S)
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
        send(connection, build)
        if receive(connection) == WELCOME:
            limit_wait(connection, 0)
            return connection
    connection.close()
    return None


def send(connection: Connection, message: object) -> None:
    """Send one message of JSON; paths travel as they are, since both sides see the same files."""
    connection.send_bytes(encode_message(message, str).encode())


def receive(connection: Connection) -> Any:
    """Wait for one message.

    Raises:
        EOFError: The other side is gone.
        OSError: It is gone, or its message is larger than any.
    """
    return decode_message(connection.recv_bytes(MESSAGE_BYTES).decode())


def limit_wait(connection: Connection, limit_s: float) -> None:
    """Let whoever reads or writes fail with ``OSError`` after this time; 0: never."""
    whole_s = int(limit_s)
    limit = struct.pack("ll", whole_s, int((limit_s - whole_s) * 1e6))
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def hang_up(connection: Connection) -> None:
    """End a connection for both sides, from any thread: closing alone would not wake one that waits for an answer."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def _start_and_connect(place: KeeperPlace, build: str, idle_s: float) -> Connection | None:
    """Start a keeper that outlives this command; None where it does not come up."""
    before = _identify(place.socket)  # of one that does not answer
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
        if _identify(place.socket) != before and (connection := _connect(place, build)) is not None:
            return connection
        time.sleep(0.01)
    return None


def _identify(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns
