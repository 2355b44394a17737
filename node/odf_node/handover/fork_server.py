"""The process that has loaded the commands: takes requests over a socket of the home and forks a worker for each.

It has one thread and does nothing but wait, fork and hand on signals, so that a fork copies nothing that somebody holds
(a lock, a connection), and a worker that fails takes nothing with it. The daemon starts it and hears from it over a
*control* socket, whose end is its end.

States of a line to a client: reading its request; its worker runs, until the worker's end is seen; closed. Closing a
line before the worker said that it is ready tells the client to do the work by itself.

Source: clauses HAND-2 to HAND-8 in ``spec/daemon.md``.
"""

import array
import contextlib
import gc
import importlib
import json
import os
import secrets
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from odf_node.cli.main import COMMANDS, find_command
from odf_node.handover import worker
from odf_node.handover.likeness import surroundings_of, variables_read_at_start
from odf_node.handover.request import (
    DESCRIPTORS,
    KILLED,
    LENGTH_BYTES,
    MAX_REQUEST_BYTES,
    decode_request,
    identity_of_program,
)
from odf_node.program_files import build_of_program

PRELOADED: Final = (
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "odf_node.adapters.accounts",
    "odf_node.adapters.block_stage",
    "odf_node.adapters.exchange_peer",
    "odf_node.adapters.http_client",
    "odf_node.adapters.outgoing",
    "odf_node.adapters.peer_addresses",
    "odf_node.adapters.policy_file",
    "odf_node.adapters.request_signing",
    "odf_node.adapters.sources",
    "odf_node.audits",
    "odf_node.cli.commands.list",
    "odf_node.cli.commands.log",
    "odf_node.cli.commands.pull",
    "odf_node.cli.commands.push",
    "odf_node.cli.commands.verify",
    "odf_node.cli.progress",
    "odf_node.cli.reports",
    "odf_node.cli.run",
    "odf_node.cli.writing_time",
    "odf_node.composition",
    "odf_node.configuration",
    "odf_node.trust.auditing",
    "odf_node.exchange.logins",
    "odf_node.exchange.pulling",
    "odf_node.rows.slice_process",
    "odf_node.rows.slice_worker",
    "odf_node.rows.slices",
    "odf_node.trust.verifying",
    "odf_protocol.chain.stored_state",
    "odf_protocol.chain_progress",
    "odf_protocol.manifest.writing",
    "odf_protocol.manifest.yaml_text",
    "odf_protocol.wire.encoder",
)
"""What handed-over commands load, and their readers of slices; nothing that starts threads may be among it."""

_WITHOUT_THREADS: Final = {
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    # The allocator whose memory is counted right, as readers of slices have it.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OMP_NUM_THREADS": "1",
}
"""Variables with which numpy and pyarrow start none; read while they load."""

READ_S: Final = 20.0  # guess: a client sends at once, if its machine lets it
STOP_S: Final = 10.0  # guess: an engine is ended and what was staged removed; then the worker is killed
MAX_LINES: Final = 64  # guess: more clients than can be reading their answer at once
_WAIT_S: Final = 0.5
_READ_BYTES: Final = 256 * 1024
_HANDED_ON: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGSTOP, signal.SIGCONT})


@dataclass(slots=True)
class Line:
    """A connection of a client."""

    connection: socket.socket
    client_id: int
    deadline_s: float | None
    """When reading ends without a request, or the worker is killed."""
    body: bytearray = field(default_factory=bytearray)
    descriptors: list[int] = field(default_factory=list)
    worker_id: int | None = None
    watch: int = -1
    """A descriptor that becomes readable when the worker ends (pidfd_open(2))."""
    command: str = ""
    request_id: str = ""
    began_s: float = 0.0


class ForkServer:
    """Serves the lines until the control socket ends."""

    def __init__(self, listener: socket.socket, control: socket.socket, *, at_once: int, build: str) -> None:
        """Prepare to serve.

        Args:
            listener: Clients connect to it.
            control: To the daemon; a message is a JSON object to it, ``end SECONDS`` from it.
            at_once: How many workers may run.
            build: The program's files as they were before anything was loaded.
        """
        self._listener = listener
        self._control = control
        self._at_once = at_once
        self._build = build
        self._lines: dict[int, Line] = {}
        self._selector = selectors.DefaultSelector()
        self._surroundings = surroundings_of("self")
        self._variables = variables_read_at_start(os.environ)
        self._ends_at_s: float | None = None
        self._is_replaced = False

    def run(self) -> worker.Job | None:
        """Serve; returns a job in a worker that was forked for it, None in the server when it has ended."""
        self._listener.setblocking(False)
        self._watch(self._listener, self._accept)
        self._watch(self._control, self._hear)
        while not (self._ends_at_s is not None and not self._lines):
            timeout_s = _WAIT_S if self._lines else None
            for key, _ in self._selector.select(timeout_s):
                # One handler may have closed what the next one is for.
                if key.fd in self._selector.get_map() and (job := key.data()) is not None:
                    return job  # type: ignore[no-any-return]
            self._look_at_the_clock()
        return None

    def _watch(self, source: socket.socket | int, handler: Callable[[], worker.Job | None]) -> None:
        self._selector.register(source, selectors.EVENT_READ, handler)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        # Of struct ucred (socket(7)), three ints: process, user, group.
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        client_id, user = (int.from_bytes(credentials[at : at + 4], sys.byteorder) for at in (0, 4))
        if user != os.geteuid() or len(self._lines) >= MAX_LINES:
            connection.close()
            return
        connection.setblocking(False)
        line = Line(connection, client_id, time.monotonic() + READ_S)
        self._lines[connection.fileno()] = line
        self._watch(connection, lambda: self._read(line))

    def _read(self, line: Line) -> worker.Job | None:
        try:
            content = self._receive(line) if line.worker_id is None else line.connection.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        except (OSError, ValueError):
            content = b""
        if line.worker_id is not None:
            self._hand_on(line, content)
            return None
        line.body += content
        size = int.from_bytes(line.body[:LENGTH_BYTES], "big") if len(line.body) >= LENGTH_BYTES else 0
        if not content or size > MAX_REQUEST_BYTES or len(line.descriptors) > DESCRIPTORS:
            self._close(line)
        elif len(line.body) > LENGTH_BYTES and len(line.body) - LENGTH_BYTES >= size:
            return self._begin(line, bytes(line.body[LENGTH_BYTES:]))
        return None

    def _receive(self, line: Line) -> bytes:
        received = array.array("i")
        room = socket.CMSG_SPACE((DESCRIPTORS + 1) * received.itemsize)
        content, beside, flags, _ = line.connection.recvmsg(_READ_BYTES, room, socket.MSG_CMSG_CLOEXEC)
        for level, kind, numbers in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                received.frombytes(numbers[: len(numbers) - len(numbers) % received.itemsize])
        line.descriptors += received
        if flags & socket.MSG_CTRUNC:
            raise ValueError("more descriptors than expected")
        return content

    def _begin(self, line: Line, body: bytes) -> worker.Job | None:
        """Fork a worker, if it can be just what the client would be."""
        try:
            identity, words, environment = decode_request(body)
            refusal = self._find_refusal(line, identity, environment)
        except (OSError, ValueError) as error:
            refusal, words, environment = str(error), [], {}
        if refusal is None:
            server_id = os.getpid()
            try:
                worker_id = os.fork()
            except OSError as error:
                refusal = str(error)
            else:
                if worker_id == 0:
                    return self._leave(line, words, environment, server_id)
                self._follow(line, worker_id, words)
                return None
        self._tell("command-left", text=refusal)
        self._close(line)
        return None

    def _find_refusal(self, line: Line, identity: list[str], environment: dict[str, str]) -> str | None:
        if self._ends_at_s is not None:
            return "the daemon ends"
        if sum(other.worker_id is not None for other in self._lines.values()) >= self._at_once:
            return "as many as are allowed run already (commands.at_once)"
        if len(line.descriptors) != DESCRIPTORS:
            return "it sent other descriptors than expected"
        if identity != identity_of_program():
            return "it is of another installation, or its Python was started with other options"
        if build_of_program() != self._build:
            self._is_replaced = True
            return "the program has changed"
        if surroundings_of(str(line.client_id)) != self._surroundings:
            return "it runs with other namespaces, groups or capabilities"
        differing = variables_read_at_start(environment).items() ^ self._variables.items()
        return f"its {min(differing)[0]} differs" if differing else None

    def _leave(self, line: Line, words: list[str], environment: dict[str, str], server_id: int) -> worker.Job:
        """In the worker: let go of everything that is the server's."""
        self._selector.close()
        for other in self._lines.values():
            other.connection.close()
            for descriptor in other.descriptors if other is not line else []:
                os.close(descriptor)
            if other.watch >= 0:
                os.close(other.watch)
        self._listener.close()
        self._control.close()
        return worker.Job(words, environment, line.client_id, line.descriptors, server_id)

    def _follow(self, line: Line, worker_id: int, words: list[str]) -> None:
        line.worker_id, line.deadline_s = worker_id, None
        line.began_s, line.request_id = time.monotonic(), secrets.token_hex(8)
        # Its name alone: words may hold what is secret.
        command = find_command(words)[0]
        line.command = command if command in COMMANDS else ""
        self._close_descriptors(line)
        line.watch = os.pidfd_open(worker_id)
        self._watch(line.watch, lambda: self._reap(line))
        self._tell("command-began", request_id=line.request_id, command=line.command, pid=worker_id)

    def _hand_on(self, line: Line, content: bytes) -> None:
        """Give the worker what its client was sent; a client that has gone stops its worker."""
        if not content:
            self._selector.unregister(line.connection)
            self._stop(line, signal.SIGTERM)
        for number in content:
            if number in _HANDED_ON:
                self._signal(line, number)

    def _stop(self, line: Line, number: int) -> None:
        if line.deadline_s is None:
            line.deadline_s = time.monotonic() + STOP_S
            self._signal(line, signal.SIGCONT)
            self._signal(line, number)

    def _signal(self, line: Line, number: int) -> None:
        assert line.worker_id is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(line.worker_id, number)

    def _reap(self, line: Line) -> None:
        assert line.worker_id is not None
        _, status = os.waitpid(line.worker_id, 0)
        code = os.waitstatus_to_exitcode(status)
        # At the end of the daemon its client says so itself.
        if code < 0 and (self._ends_at_s is None or time.monotonic() < self._ends_at_s):
            with contextlib.suppress(OSError):
                line.connection.send(KILLED + bytes([-code]))
        self._selector.unregister(line.watch)
        os.close(line.watch)
        self._close(line)
        duration_ms = round((time.monotonic() - line.began_s) * 1000, 1)
        self._tell("command", request_id=line.request_id, command=line.command, code=code, duration_ms=duration_ms)

    def _close(self, line: Line) -> None:
        del self._lines[line.connection.fileno()]
        with contextlib.suppress(KeyError):
            self._selector.unregister(line.connection)
        line.connection.close()
        self._close_descriptors(line)
        if self._is_replaced and self._ends_at_s is None:
            self._tell("commands-replaced")
            self._end(float("inf"))  # what runs may finish; the next command makes the daemon start another

    def _close_descriptors(self, line: Line) -> None:
        for descriptor in line.descriptors:
            os.close(descriptor)
        line.descriptors = []

    def _hear(self) -> None:
        """Learn that the daemon ends: in order, with a time of grace, or just so."""
        try:
            message = self._control.recv(64)
        except OSError:
            message = b""
        grace_s = float(message[4:]) if message.startswith(b"end ") else 0.0
        if not message:
            self._selector.unregister(self._control)
        self._end(grace_s)

    def _end(self, grace_s: float) -> None:
        if self._ends_at_s is None:
            self._selector.unregister(self._listener)
            self._listener.close()
        self._ends_at_s = min(self._ends_at_s or float("inf"), time.monotonic() + grace_s)
        self._look_at_the_clock()

    def _look_at_the_clock(self) -> None:
        now_s = time.monotonic()
        for line in list(self._lines.values()):
            if line.worker_id is None:
                if self._ends_at_s is not None or (line.deadline_s is not None and now_s > line.deadline_s):
                    self._close(line)
            elif line.deadline_s is not None and now_s > line.deadline_s:
                self._signal(line, signal.SIGKILL)
            elif self._ends_at_s is not None and now_s >= self._ends_at_s:
                self._stop(line, signal.SIGUSR1)

    def _tell(self, event: str, **fields: Any) -> None:
        with contextlib.suppress(OSError):
            self._control.send(json.dumps({"event": event} | fields).encode(), socket.MSG_DONTWAIT)


def load_commands() -> None:
    """Load what commands need, and prepare what they hash with.

    Raises:
        RuntimeError: Something that was loaded has started a thread, which no fork would copy.
    """
    gc.disable()  # workers share what is loaded as long as nobody looks through it
    before = dict(os.environ)
    os.environ.update(_WITHOUT_THREADS)
    for name in PRELOADED:
        importlib.import_module(name)
    os.environ.clear()
    os.environ.update(before)
    gc.collect()
    gc.freeze()
    if len(os.listdir("/proc/self/task")) != 1:  # noqa: PTH208 - of /proc
        raise RuntimeError("loading the commands has started a thread")


def main(listener: str, control: str, at_once: str) -> None:
    """Serve on descriptors that the daemon has made."""
    # Terminals and supervisors signal all processes of the daemon; it says when this one is to end.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.close(os.pidfd_open(os.getpid()))  # a kernel without could not tell when a worker ends
    build = build_of_program()
    load_commands()
    server = ForkServer(
        socket.socket(fileno=int(listener)), socket.socket(fileno=int(control)), at_once=int(at_once), build=build
    )
    server._tell("commands-ready", pid=os.getpid())  # noqa: SLF001
    job = server.run()
    if job is not None:
        worker.run(job)


if __name__ == "__main__":
    main(*sys.argv[1:])
