"""The daemon's part: it owns the socket in the home, and a fork server behind it once somebody has come.

The fork server is started by the first command that knocks, which does its work by itself: a daemon that nobody gives
commands to spends nothing on them. While there is no fork server, or while it loads, whoever knocks is sent away at
once. One that ended is replaced at the next knock, not more often than every few seconds.

Source: clauses HAND-1, HAND-6 to HAND-8 in ``spec/daemon.md``.
"""

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from odf_node.configuration import Commands
from odf_node.handover.request import SOCKET_NAME
from odf_node.http.access_log import write_line

RESTART_S: Final = 10.0  # guess: one that dies while it loads must not be loaded all the time
READY_EVENT: Final = "commands-ready"
LEAVING_EVENT: Final = "commands-replaced"
_BACKLOG: Final = 16
_EVENT_BYTES: Final = 64 * 1024
_ENDS_S: Final = 15.0  # guess: longer than the fork server waits for a worker before it kills it


@dataclass(slots=True, eq=False)
class _Server:
    """A fork server, and the daemon's end of its control socket."""

    process: "subprocess.Popen[bytes]"
    control: socket.socket
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class CommandOffer:
    """Takes commands of one home; used on the event loop."""

    def __init__(self, folder: Path, settings: Commands) -> None:
        """Prepare.

        Args:
            folder: Where commands look for the socket.
            settings: Whether they are taken, and how many at once.
        """
        self._folder = folder
        self._settings = settings
        self._lock = -1
        self._listener: socket.socket | None = None
        self._servers: set[_Server] = set()
        self._current: _Server | None = None
        self._not_before_s = 0.0

    def start(self) -> None:
        """Listen; where that cannot be, the log says why and commands do their work by themselves."""
        if not self._settings.hand_over:
            return
        try:
            self._listen()
        except OSError as error:
            self._close()
            text = "another daemon of this home takes them" if isinstance(error, BlockingIOError) else str(error)
            write_line("commands-not-taken", level=logging.WARNING, text=text)
            return
        self._answer_knocks()

    async def end(self, grace_s: float) -> None:
        """Take no more commands; those that run have ``grace_s`` to end, then they are stopped. May be repeated."""
        self._stop_listening()
        self._close()
        for server in self._servers:
            with contextlib.suppress(OSError):
                server.control.send(b"end %d" % grace_s)
        for server in tuple(self._servers):
            try:
                await asyncio.wait_for(server.ended.wait(), grace_s + _ENDS_S)
            except TimeoutError:
                server.process.kill()
                await server.ended.wait()

    def _listen(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        self._lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever left a socket here is dead: it had the lock.
        (self._folder / SOCKET_NAME).unlink(missing_ok=True)
        folder = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            # The kernel allows names of 107 characters, while homes may lie deep.
            self._listener.bind(f"/proc/self/fd/{folder}/{SOCKET_NAME}")
        finally:
            os.close(folder)
        (self._folder / SOCKET_NAME).chmod(0o600)
        self._listener.listen(_BACKLOG)
        self._listener.setblocking(False)

    def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            with contextlib.suppress(OSError):
                (self._folder / SOCKET_NAME).unlink(missing_ok=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _answer_knocks(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().add_reader(self._listener, self._send_away)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)

    def _send_away(self) -> None:
        assert self._listener is not None
        with contextlib.suppress(OSError):
            self._listener.accept()[0].close()
        if self._current is None and time.monotonic() >= self._not_before_s:
            self._not_before_s = time.monotonic() + RESTART_S
            try:
                self._start_server(self._listener)
            except OSError as error:
                write_line("commands-not-taken", level=logging.WARNING, text=str(error))

    def _start_server(self, listener: socket.socket) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            descriptors = (listener.fileno(), theirs.fileno())
            words = [str(number) for number in (*descriptors, self._settings.at_once)]
            process = subprocess.Popen(
                [sys.executable, "-m", "odf_node.handover.fork_server", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=descriptors,
                start_new_session=True,
            )
        server = self._current = _Server(process, ours)
        self._servers.add(server)
        asyncio.get_running_loop().add_reader(ours, self._hear, server)

    def _hear(self, server: _Server) -> None:
        try:
            message = server.control.recv(_EVENT_BYTES)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if message:
            event = json.loads(message)
            write_line(**event)
            if event["event"] == READY_EVENT:
                self._stop_listening()  # the fork server does
            elif event["event"] == LEAVING_EVENT:
                self._part_from(server)
            return
        loop = asyncio.get_running_loop()
        loop.remove_reader(server.control)
        server.control.close()
        self._part_from(server)
        reaping = loop.run_in_executor(None, server.process.wait)
        reaping.add_done_callback(lambda _: self._forget(server))

    def _part_from(self, server: _Server) -> None:
        """Listen again instead of a fork server that takes no more."""
        if server is self._current:
            self._current = None
            self._answer_knocks()

    def _forget(self, server: _Server) -> None:
        self._servers.discard(server)
        server.ended.set()
        write_line("commands-ended", pid=server.process.pid, code=server.process.returncode)
